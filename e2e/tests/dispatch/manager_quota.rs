//! The quota of the hub follows that of workers with queues (docs/reference/multikueue.md §2.14).

use anyhow::Result;
use crds::{
    meta::Condition,
    v1beta2::{ClusterQueue, MultiKueueConfig},
};
use e2e::installation::TIMEOUT;
use harness::Cluster;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::fixture::said;

/// The quota of the hub's ClusterQueue in cpus.
fn nominal(queue: &ClusterQueue) -> Option<String> {
    let flavor = queue.spec.resource_groups.first()?.flavors.first()?;
    Some(flavor.resources.first()?.nominal_quota.to_string())
}

fn is_automated(conditions: &[Condition]) -> bool {
    said(conditions, "MultiKueueManagerQuotaAutomation").is_some_and(|said| said.status)
}

/// The other worker has a queue of the same name without quota.
pub(crate) async fn follows_workers(
    hub: &Cluster,
    worker: &Cluster,
    namespace: &str,
) -> Result<()> {
    let configs = hub.cluster_api::<MultiKueueConfig>();
    let management = |how: &str| Patch::Merge(json!({"spec": {"quotaManagement": how}}));
    let parameters = PatchParams::default();
    configs.patch(namespace, &parameters, &management("Automated")).await?;
    let there = worker.cluster_api::<ClusterQueue>();
    let hub_queues = hub.cluster_api::<ClusterQueue>();
    for cpus in ["5", "2"] {
        let mut groups = there.get(namespace).await?.spec.resource_groups;
        groups[0].flavors[0].resources[0].nominal_quota = cpus.parse()?;
        let quota = Patch::Merge(json!({"spec": {"resourceGroups": groups}}));
        there.patch(namespace, &parameters, &quota).await?;
        let follows = |queue: &ClusterQueue| {
            nominal(queue).as_deref() == Some(cpus) && is_automated(&queue.status.conditions)
        };
        let what = format!("has a quota of {cpus}");
        hub.until(&hub_queues, namespace, &what, TIMEOUT, follows).await?;
    }
    configs.patch(namespace, &parameters, &management("Manual")).await?;
    let manual = |queue: &ClusterQueue| !is_automated(&queue.status.conditions);
    hub.until(&hub_queues, namespace, "is manual again", TIMEOUT, manual).await?;
    Ok(())
}
