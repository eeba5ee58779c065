//! What queues show of themselves: Active, how many Workloads wait, hold quota and are admitted, and how much they use.
//!
//! A ClusterQueue and its LocalQueues are counted in one walk over the Workloads of the queue. Every flavor and resource
//! of the queue is shown, also those nobody uses; borrowing is shown only in a cohort. Source: docs/reference/kueue.md §1.3,
//! §1.4.

use std::collections::BTreeMap;

use crds::meta::Condition;
use crds::names::conditions;
use crds::v1beta2::{
    ClusterQueueStatus, FlavorUsage, LocalQueueFlavorUsage, LocalQueueResourceUsage,
    LocalQueueStatus, ResourceUsage,
};
use engine::ids::{FlavorId, LocalQueueId, ResourceId, WorkloadId};
use engine::spec::{PodSetAdmission, ResourceQuota};
use engine::{Amount, Engine, Names};

use crate::active_condition::ActiveCondition;
use crate::amount::quantity;
use crate::index::Index;
use crate::status::{StatusStamp, set};

/// Amounts by flavor and resource.
type FlavorResourceAmounts = BTreeMap<(FlavorId, ResourceId), Amount>;

/// Counts of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Workloads that wait.
    pub pending: usize,
    /// Workloads that hold quota.
    pub reserving: usize,
    /// Those of them that are admitted.
    pub admitted: usize,
    reserved: FlavorResourceAmounts,
    used: FlavorResourceAmounts,
}

/// Counts of a ClusterQueue and of its LocalQueues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterQueueCounts {
    /// The ClusterQueue.
    pub total: QueueCounts,
    local_queues: BTreeMap<LocalQueueId, QueueCounts>,
}

impl ClusterQueueCounts {
    /// Counts a ClusterQueue; nothing for one that the engine never heard of.
    #[must_use]
    pub fn count(index: &Index, engine: &Engine, cluster_queue: &str) -> Self {
        let mut tally = Self::default();
        if !index.queues.contains_key(cluster_queue) {
            return tally;
        }
        let Some(queue) = engine.names().queues.get(cluster_queue) else {
            return tally;
        };
        for id in
            engine.active_workloads(queue).into_iter().chain(engine.inadmissible_workloads(queue))
        {
            tally.count_workload(index, id, |counts| counts.pending += 1);
        }
        for id in engine.reserving_workloads(queue) {
            let pod_sets = engine.admission(id).unwrap_or_default();
            let admitted = index.records.get(id).is_some_and(|record| record.admitted);
            tally.count_workload(index, id, |counts| counts.add_admission(pod_sets, admitted));
        }
        tally
    }

    /// The counts of a LocalQueue.
    #[must_use]
    pub fn local_queue(
        &self,
        names: &Names,
        namespace: &str,
        local_queue: &str,
    ) -> Option<&QueueCounts> {
        let id = names.local_queues.get(&format!("{namespace}/{local_queue}"))?;
        self.local_queues.get(&id)
    }

    fn count_workload(&mut self, index: &Index, id: WorkloadId, count: impl Fn(&mut QueueCounts)) {
        count(&mut self.total);
        if let Some(part) = index.records.get(id).and_then(|record| record.local_queue) {
            count(self.local_queues.entry(part).or_default());
        }
    }
}

impl QueueCounts {
    fn add_admission(&mut self, pod_sets: &[PodSetAdmission], admitted: bool) {
        self.reserving += 1;
        self.admitted += usize::from(admitted);
        for one in pod_sets {
            for &(resource, flavor, total) in &one.resources {
                let amount = amount_in_use(one, total);
                *self.reserved.entry((flavor, resource)).or_default() += amount;
                if admitted {
                    *self.used.entry((flavor, resource)).or_default() += amount;
                }
            }
        }
    }
}

/// What the pods that have not finished hold.
fn amount_in_use(one: &PodSetAdmission, total: Amount) -> Amount {
    match total.0.checked_div(one.count) {
        Some(each) if one.reclaimed != 0 => Amount(each).times(one.count - one.reclaimed),
        _ => total,
    }
}

/// The status of a ClusterQueue after `old`; `None` if there is no such queue.
#[must_use]
pub fn cluster_queue_status(
    index: &Index,
    names: &Names,
    name: &str,
    tally: &ClusterQueueCounts,
    old: &ClusterQueueStatus,
    at: StatusStamp,
) -> Option<ClusterQueueStatus> {
    let activity = index.active_condition(name)?;
    let mut status = old.clone();
    set_active(&mut status.conditions, &activity, at);
    status.pending_workloads = saturating_i32(tally.total.pending);
    status.reserving_workloads = saturating_i32(tally.total.reserving);
    status.admitted_workloads = saturating_i32(tally.total.admitted);
    status.flavors_reservation = flavors(index, names, name, &tally.total.reserved);
    status.flavors_usage = flavors(index, names, name, &tally.total.used);
    Some(status)
}

/// The status of a LocalQueue after `old`; `None` if there is no such queue. `tally` is that of its ClusterQueue.
#[must_use]
pub fn local_queue_status(
    index: &Index,
    names: &Names,
    (namespace, name): (&str, &str),
    tally: &ClusterQueueCounts,
    old: &LocalQueueStatus,
    at: StatusStamp,
) -> Option<LocalQueueStatus> {
    let activity = index.local_queue_active_condition(namespace, name)?;
    let cluster_queue = index.cluster_queue_of(namespace, name)?;
    let none = QueueCounts::default();
    let counts = tally.local_queue(names, namespace, name).unwrap_or(&none);
    let mut status = old.clone();
    set_active(&mut status.conditions, &activity, at);
    status.pending_workloads = saturating_i32(counts.pending);
    status.reserving_workloads = saturating_i32(counts.reserving);
    status.admitted_workloads = saturating_i32(counts.admitted);
    let shown =
        |usage| flavors(index, names, cluster_queue, usage).into_iter().map(local_queue_usage);
    status.flavors_reservation = shown(&counts.reserved).collect();
    status.flavors_usage = shown(&counts.used).collect();
    Some(status)
}

fn set_active(all: &mut Vec<Condition>, activity: &ActiveCondition, at: StatusStamp) {
    set(all, conditions::ACTIVE, activity.active, activity.reason, &activity.message, at);
}

fn flavors(
    index: &Index,
    names: &Names,
    cluster_queue: &str,
    usage: &FlavorResourceAmounts,
) -> Vec<FlavorUsage> {
    let Some(queue) = index.queues.get(cluster_queue) else {
        return Vec::new();
    };
    let in_cohort = queue.spec.cohort.is_some();
    let flavors = queue.spec.groups.iter().flat_map(|group| &group.flavors);
    let shown = flavors.map(|one| {
        let quotas = one.resources.iter();
        let mut resources: Vec<ResourceUsage> = quotas
            .map(|quota| {
                let total = usage.get(&(one.flavor, quota.resource)).copied().unwrap_or_default();
                resource(names, quota, total, in_cohort)
            })
            .collect();
        resources.sort_by(|left, right| left.name.cmp(&right.name));
        FlavorUsage { name: names.flavors.name(one.flavor).to_owned(), resources }
    });
    shown.collect()
}

fn resource(names: &Names, quota: &ResourceQuota, total: Amount, in_cohort: bool) -> ResourceUsage {
    let name = names.resources.name(quota.resource);
    let borrowed = if in_cohort { (total - quota.nominal).clip() } else { Amount::ZERO };
    ResourceUsage {
        borrowed: Some(quantity(name, borrowed)),
        name: name.to_owned(),
        total: Some(quantity(name, total)),
    }
}

fn local_queue_usage(flavor: FlavorUsage) -> LocalQueueFlavorUsage {
    let one = |one: ResourceUsage| LocalQueueResourceUsage { name: one.name, total: one.total };
    let resources = flavor.resources.into_iter().map(one).collect();
    LocalQueueFlavorUsage { name: flavor.name, resources }
}

fn saturating_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
