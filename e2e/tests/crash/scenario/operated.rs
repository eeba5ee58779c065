//! A RayJob on a worker that the agent operates. Heads are played; the job ends as soon as one knows it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::DeleteParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    observed_job::{ObservedJob, create},
    setup::NAMESPACE,
};

/// Label of the pods of a RayCluster.
pub(super) const CLUSTER: &str = "ray.io/cluster";

impl ObservedJob<'_> {
    /// The RayJob is made, ends and is deleted. Meanwhile no RayCluster has a second head, and no job is submitted twice.
    pub(super) async fn operated(&self) -> Result<()> {
        tokio::select! {
            over = self.whole_life() => over?,
            error = self.second_head() => error?,
        }
        let ids = self.heads.submissions().into_iter().map(|submission| submission.id);
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for id in ids.filter(|id| id.starts_with(&format!("{}-", self.name))) {
            *times.entry(id).or_default() += 1;
        }
        ensure!(!times.is_empty(), "{} was not submitted", self.name);
        ensure!(times.values().all(|count| *count == 1), "submitted twice: {times:?}");
        Ok(())
    }

    async fn whole_life(&self) -> Result<()> {
        let (worker, jobs) = (self.worker()?, self.of_ray("RayJob", "rayjobs")?);
        let job: DynamicObject = serde_json::from_value(self.operated_job())?;
        create(&jobs, &job).await?;
        let ended = |job: &DynamicObject| {
            job.data.pointer("/status/jobDeploymentStatus").is_some_and(|it| it == "Complete")
        };
        worker.until(&jobs, self.name, "is complete", 4 * TIMEOUT, ended).await?;
        // The cluster goes with the end of the job, and its pods go with it.
        let clusters = self.of_ray("RayCluster", "rayclusters")?;
        let none = |all: &[DynamicObject]| !all.iter().any(|one| self.is_its(&one.name_any()));
        worker.until_all(&clusters, "", "no RayCluster is left", 4 * TIMEOUT, none).await?;
        let none = |all: &[Pod]| !all.iter().any(|pod| self.is_its(&pod.labels()[CLUSTER]));
        let pods = worker.api::<Pod>(NAMESPACE);
        worker.until_all(&pods, CLUSTER, "no pod is left", 4 * TIMEOUT, none).await?;
        jobs.delete(self.name, &DeleteParams::background()).await.context("deleting the RayJob")?;
        Ok(worker.until_gone(&jobs, self.name, 4 * TIMEOUT).await?)
    }

    /// Ends with an error as soon as a RayCluster has two heads.
    async fn second_head(&self) -> Result<()> {
        let worker = self.worker()?;
        let two = |all: &[Pod]| {
            let living = all.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            let mut clusters: Vec<&String> = living.map(|pod| &pod.labels()[CLUSTER]).collect();
            let count = clusters.len();
            clusters.sort();
            clusters.dedup();
            clusters.len() < count
        };
        let heads = worker.api::<Pod>(NAMESPACE);
        let labels = format!("{CLUSTER},ray.io/node-type=head");
        let found = worker.until_all(&heads, &labels, "two heads", 20 * TIMEOUT, two).await?;
        let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        bail!("two heads of one RayCluster: {names:?}")
    }

    fn is_its(&self, cluster: &str) -> bool {
        cluster.starts_with(&format!("{}-", self.name))
    }

    pub(super) fn of_ray(&self, kind: &str, plural: &str) -> Result<Api<DynamicObject>> {
        let kind = GroupVersionKind::gvk("ray.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Ok(Api::namespaced_with(self.worker()?.client(), NAMESPACE, &resource))
    }

    fn operated_job(&self) -> Value {
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": self.name},
            "spec": {
                "submissionMode": "HTTPMode", "entrypoint": "main",
                "shutdownAfterJobFinishes": true,
                "rayClusterSpec": cluster_spec(),
            },
        })
    }
}

/// The spec of a RayCluster: a head and a worker.
pub(super) fn cluster_spec() -> Value {
    let template = |name: &str| {
        json!({"spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": name, "image": "ray"}],
        }})
    };
    json!({
        "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": 1, "minReplicas": 0, "maxReplicas": 1,
            "rayStartParams": {}, "template": template("worker"),
        }],
    })
}
