//! A RayCluster that the agent of its worker secures, on a plain Kubernetes: NetworkPolicies, a CA, and Ingresses.

use anyhow::{Context, Result, ensure};
use e2e::installation::TIMEOUT;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::{Pod, Secret},
        networking::v1::{Ingress, NetworkPolicy},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
    core::DynamicObject,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::operated::{CLUSTER, cluster_spec};
use crate::{
    observed_job::{ObservedJob, create},
    setup::NAMESPACE,
};

/// The metadata of all objects of a kind that have the label of the RayCluster.
type Labelled = Vec<ObjectMeta>;

impl ObservedJob<'_> {
    /// The RayCluster gets ready, has every object of its security once, and these go with it.
    pub(super) async fn secured(&self) -> Result<()> {
        let (worker, clusters) = (self.worker()?, self.of_ray("RayCluster", "rayclusters")?);
        let cluster: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": self.name}, "spec": cluster_spec(),
        }))?;
        create(&clusters, &cluster).await?;
        let ready = |it: &DynamicObject| it.data.pointer("/status/state") == Some(&json!("ready"));
        let stored = worker.until(&clusters, self.name, "is ready", 4 * TIMEOUT, ready).await?;
        let uid = stored.uid().context("a uid")?;
        self.expect_security(&uid).await?;
        let deletion = DeleteParams::background();
        clusters.delete(self.name, &deletion).await.context("deleting the RayCluster")?;
        worker.until_gone(&clusters, self.name, 4 * TIMEOUT).await?;
        self.until_none::<Pod>().await?;
        self.until_none::<NetworkPolicy>().await?;
        self.until_none::<Secret>().await?;
        self.until_none::<Ingress>().await
    }

    /// Each object is there once and belongs to the RayCluster; what its pods need is not younger than they are.
    async fn expect_security(&self, cluster: &str) -> Result<()> {
        let (policies, authority) =
            (self.labelled::<NetworkPolicy>().await?, self.labelled::<Secret>().await?);
        let ingresses = self.labelled::<Ingress>().await?;
        let name = self.name;
        expect_owned(&policies, cluster, &[format!("{name}-head-"), format!("{name}-workers-")])?;
        expect_owned(&authority, cluster, &[format!("{name}-ca-secret-")])?;
        let expected = [format!("ray-dashboard-{name}"), format!("rayclient-{name}")];
        expect_owned(&ingresses, cluster, &expected)?;
        let pods = self.labelled::<Pod>().await?;
        ensure!(pods.len() == 2, "{pods:?}");
        let first_pod = pods.iter().filter_map(|pod| pod.creation_timestamp.clone()).min();
        let needed = policies.iter().chain(&authority);
        let last_needed = needed.filter_map(|one| one.creation_timestamp.clone()).max();
        ensure!(last_needed <= first_pod, "pods came before {last_needed:?}: {first_pod:?}");
        Ok(())
    }

    async fn labelled<K>(&self) -> Result<Labelled>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = self.worker()?.api(NAMESPACE);
        let own = ListParams::default().labels(&self.own_label());
        Ok(api.list(&own).await?.items.iter().map(|object| object.meta().clone()).collect())
    }

    async fn until_none<K>(&self) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Send + 'static,
        K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        let (worker, what) = (self.worker()?, format!("no {} is left", K::kind(&())));
        let api: Api<K> = worker.api(NAMESPACE);
        worker.until_all(&api, &self.own_label(), &what, 4 * TIMEOUT, <[K]>::is_empty).await?;
        Ok(())
    }

    fn own_label(&self) -> String {
        format!("{CLUSTER}={}", self.name)
    }
}

/// Objects have these names, with a hash behind each one that ends with a dash, and one owner, which is the RayCluster.
fn expect_owned(objects: &[ObjectMeta], cluster: &str, expected: &[String]) -> Result<()> {
    let mut names: Vec<&str> = objects.iter().filter_map(|object| object.name.as_deref()).collect();
    names.sort_unstable();
    let has_name = |(name, expected): (&&str, &String)| match expected.strip_suffix('-') {
        Some(bare) => name.rsplit_once('-').is_some_and(|(before, _)| before == bare),
        None => name == expected,
    };
    let all = names.iter().zip(expected).all(has_name) && names.len() == expected.len();
    ensure!(all, "{names:?}, not {expected:?}");
    for object in objects {
        let owners: Vec<&str> =
            object.owner_references.iter().flatten().map(|owner| &*owner.uid).collect();
        ensure!(owners == [cluster], "{:?} belongs to {owners:?}", object.name);
    }
    Ok(())
}
