//! Queues and workers are created, deleted and created again.

use anyhow::Result;
use crds::{
    meta::is_true,
    v1alpha1::{ClusterCapacity, LOCAL},
    v1beta2::{ClusterQueue, MultiKueueCluster, ResourceFlavor},
};
use e2e::installation::TIMEOUT;
use kube::{Api, Resource, api::DeleteParams};
use serde_json::json;

use crate::{
    observed_job::{ObservedJob, create},
    setup::{AUTOMATED, cluster_queue},
};

impl ObservedJob<'_> {
    /// A worker is deleted and registered again, its report is deleted, and a flavor needs another label.
    pub(super) async fn registered(&self) -> Result<()> {
        let worker = self.worker()?;
        let workers = self.hub().cluster_api::<MultiKueueCluster>();
        let reports = worker.cluster_api::<ClusterCapacity>();
        let flavors = self.hub().cluster_api::<ResourceFlavor>();
        if !self.again {
            delete(&workers, worker.name()).await?;
            delete(&reports, LOCAL).await?;
        }
        self.register().await?;
        let flavor = json!({
            "metadata": {"name": self.name}, "spec": {"nodeLabels": {self.name: "yes"}},
        });
        create(&flavors, &serde_json::from_value(flavor)?).await?;
        let active = |one: &MultiKueueCluster| is_true(&one.status.conditions, "Active");
        self.hub().until(&workers, worker.name(), "is active", TIMEOUT, active).await?;
        let has_label_key =
            |one: &ClusterCapacity| one.spec.all_label_keys().iter().any(|key| key == self.name);
        worker.until(&reports, LOCAL, "is asked for the label", TIMEOUT, has_label_key).await?;
        let shows = |one: &ClusterCapacity| !one.status.node_classes.is_empty();
        let copies = self.hub().cluster_api::<ClusterCapacity>();
        self.hub().until(&copies, worker.name(), "shows the report", TIMEOUT, shows).await?;
        self.submit(self.job()).await?;
        self.until_over().await?;
        delete(&flavors, self.name).await
    }

    async fn register(&self) -> Result<()> {
        let (name, workers) = (self.worker()?.name(), self.hub().cluster_api());
        let worker = json!({
            "metadata": {"name": name},
            "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": name}}},
        });
        create(&workers, &serde_json::from_value::<MultiKueueCluster>(worker)?).await
    }

    /// Nothing used it.
    pub(super) async fn queue_removed(&self) -> Result<()> {
        let queues = self.hub().cluster_api::<ClusterQueue>();
        let flavors = self.hub().cluster_api::<ResourceFlavor>();
        if !self.again {
            let flavor = json!({"metadata": {"name": self.name}, "spec": {}});
            create(&flavors, &serde_json::from_value(flavor)?).await?;
            let queue = cluster_queue(self.name, self.name, None);
            create(&queues, &serde_json::from_value(queue)?).await?;
            let known = |queue: &ClusterQueue| is_true(&queue.status.conditions, "Active");
            self.hub().until(&queues, self.name, "is active", TIMEOUT, known).await?;
        }
        delete(&queues, self.name).await?;
        self.hub().until_gone(&queues, self.name, TIMEOUT).await?;
        delete(&flavors, self.name).await?;
        Ok(self.hub().until_gone(&flavors, self.name, TIMEOUT).await?)
    }
}

impl ObservedJob<'_> {
    /// The worker has more than the ClusterQueue was made with.
    pub(super) async fn automated(&self) -> Result<()> {
        let queues = self.hub().cluster_api::<ClusterQueue>();
        let mut queue = cluster_queue(self.name, "default", Some(AUTOMATED));
        queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] =
            json!("1");
        create(&queues, &serde_json::from_value(queue)?).await?;
        let follows = |queue: &ClusterQueue| {
            let mut flavors = queue.spec.resource_groups.iter().flat_map(|one| &one.flavors);
            let quota = flavors.find_map(|flavor| flavor.resources.first());
            is_true(&queue.status.conditions, "MultiKueueManagerQuotaAutomation")
                && quota.is_some_and(|quota| quota.nominal_quota.units() > 1)
        };
        self.hub().until(&queues, self.name, "follows the worker", TIMEOUT, follows).await?;
        delete(&queues, self.name).await?;
        Ok(self.hub().until_gone(&queues, self.name, TIMEOUT).await?)
    }
}

/// Deletes an object, if it exists.
async fn delete<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
