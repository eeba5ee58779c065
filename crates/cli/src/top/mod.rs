//! `top`: the ClusterQueues with their Workloads, and the usage of each flavor against its quota.
//!
//! Pure: [`QueueList::of`] makes the model out of ClusterQueues.

#[cfg(test)]
mod tests;
mod text;

use crds::{
    meta::find,
    names::conditions::ACTIVE,
    quantity::Quantity,
    v1beta2::{ClusterQueue, FlavorUsage, ResourceUsage},
};
use serde::Serialize;

/// All ClusterQueues, by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueList {
    /// The queues.
    pub cluster_queues: Vec<QueueSummary>,
}

/// One ClusterQueue.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueSummary {
    /// Name.
    pub name: String,
    /// The Cohort; empty for none.
    pub cohort: String,
    /// Status of the condition `Active`; `Unknown` without one.
    pub active: String,
    /// Reason of that condition.
    pub reason: String,
    /// Message of that condition.
    pub message: String,
    /// Workloads that wait for quota.
    pub pending: i32,
    /// Workloads that hold quota.
    pub reserving: i32,
    /// Admitted Workloads that have not finished.
    pub admitted: i32,
    /// Usage and quota by flavor and resource, in the order of the spec.
    pub quotas: Vec<QuotaUsage>,
}

/// One resource in one flavor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaUsage {
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// What admitted Workloads use.
    pub used: Quantity,
    /// What Workloads hold, admitted or not.
    pub reserved: Quantity,
    /// What is borrowed, of what is held.
    pub borrowed: Quantity,
    /// What belongs to the queue.
    pub nominal: Quantity,
    /// What may be borrowed at most; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowing_limit: Option<Quantity>,
    /// What may be lent at most; everything if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lending_limit: Option<Quantity>,
}

impl QueueList {
    /// The model.
    #[must_use]
    pub fn of(queues: &[ClusterQueue]) -> Self {
        let mut cluster_queues: Vec<QueueSummary> = queues.iter().map(QueueSummary::of).collect();
        cluster_queues.sort_by(|one, other| one.name.cmp(&other.name));
        Self { cluster_queues }
    }
}

impl QueueSummary {
    fn of(queue: &ClusterQueue) -> Self {
        let status = &queue.status;
        let active = find(&status.conditions, ACTIVE);
        let flavors = queue.spec.resource_groups.iter().flat_map(|group| &group.flavors);
        let quotas = flavors.flat_map(|flavor| {
            flavor.resources.iter().map(|quota| {
                let find = |usages| usage_of(usages, &flavor.name, &quota.name);
                let (used, held) = (find(&status.flavors_usage), find(&status.flavors_reservation));
                let total = |usage: Option<&ResourceUsage>| usage.and_then(|one| one.total.clone());
                QuotaUsage {
                    flavor: flavor.name.clone(),
                    resource: quota.name.clone(),
                    used: total(used).unwrap_or_default(),
                    reserved: total(held).unwrap_or_default(),
                    borrowed: held.and_then(|one| one.borrowed.clone()).unwrap_or_default(),
                    nominal: quota.nominal_quota.clone(),
                    borrowing_limit: quota.borrowing_limit.clone(),
                    lending_limit: quota.lending_limit.clone(),
                }
            })
        });
        Self {
            name: queue.metadata.name.clone().unwrap_or_default(),
            cohort: queue.spec.cohort_name.clone(),
            active: active.map_or_else(|| "Unknown".to_owned(), |one| one.status.clone()),
            reason: active.map(|one| one.reason.clone()).unwrap_or_default(),
            message: active.map(|one| one.message.clone()).unwrap_or_default(),
            pending: status.pending_workloads,
            reserving: status.reserving_workloads,
            admitted: status.admitted_workloads,
            quotas: quotas.collect(),
        }
    }
}

fn usage_of<'a>(
    usages: &'a [FlavorUsage],
    flavor: &str,
    resource: &str,
) -> Option<&'a ResourceUsage> {
    let usage = usages.iter().find(|one| one.name == flavor)?;
    usage.resources.iter().find(|one| one.name == resource)
}
