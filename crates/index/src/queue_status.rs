//! Statuses of queues: condition Active, counts of pending, reserving and admitted Workloads, and usage.
//!
//! A ClusterQueue and its LocalQueues are counted in one pass over the Workloads of the queue. Every flavor and
//! resource of the queue is listed, also with usage zero; borrowing is listed only in a cohort. Source:
//! docs/reference/kueue.md §1.3, §1.4.

use std::collections::{BTreeMap, BTreeSet};

use crds::meta::Condition;
use crds::names::conditions;
use crds::v1beta2::{
    AdmissionFairSharingStatus, ClusterQueueStatus, FairSharingStatus, FlavorUsage,
    LocalQueueFlavorUsage, LocalQueueResourceUsage, LocalQueueStatus, ResourceUsage,
};
use engine::ids::{EquivalenceClassId, FlavorId, LocalQueueId, ResourceId, WorkloadId};
use engine::spec::{AssignedResource, PodSetAdmission, QuotaSpec};
use engine::{Amount, Engine, Names};

use crate::active_condition::QueueActiveCondition;
use crate::amount::quantity;
use crate::index::Index;
use crate::metric_labels::LabelSetId;
use crate::status::{NewCondition, StatusStamp, set_for_generation};

/// Amounts by flavor and resource.
pub(crate) type FlavorResourceAmounts = BTreeMap<(FlavorId, ResourceId), Amount>;

/// Workloads and amounts of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Pending Workloads.
    pub pending: usize,
    /// Pending Workloads that are inadmissible.
    pub inadmissible: usize,
    /// Workloads with quota reserved.
    pub reserving: usize,
    /// Admitted Workloads.
    pub admitted: usize,
    pub(crate) reserved: FlavorResourceAmounts,
    pub(crate) used: FlavorResourceAmounts,
    /// Workloads by their labels in metrics; empty unless such labels are configured.
    pub(crate) by_labels: BTreeMap<LabelSetId, LabelledCounts>,
}

/// Workloads of one queue with the same labels in metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LabelledCounts {
    pub(crate) active: usize,
    pub(crate) inadmissible: usize,
    pub(crate) admitted: usize,
}

/// Counts of a ClusterQueue and its LocalQueues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterQueueCounts {
    /// Counts of the ClusterQueue.
    pub total: QueueCounts,
    pub(crate) local_queues: BTreeMap<LocalQueueId, QueueCounts>,
    /// Numbers of equivalence classes of its active and of its inadmissible Workloads.
    pub(crate) classes: (usize, usize),
    /// Number of equivalence classes of both together.
    pub(crate) all_classes: usize,
    /// Requests of its pending Workloads.
    pub(crate) requested: BTreeMap<ResourceId, Amount>,
}

impl ClusterQueueCounts {
    /// Counts a ClusterQueue; zero for an unknown queue.
    #[must_use]
    pub fn count(index: &Index, engine: &Engine, cluster_queue: &str) -> Self {
        let mut counts = Self::default();
        // The engine also knows ClusterQueues that only a LocalQueue or Workload names.
        if index.queues.get(cluster_queue).is_none() {
            return counts;
        }
        let Some(queue) = engine.names().queues.get(cluster_queue) else {
            return counts;
        };
        let (mut active, mut inadmissible) = (BTreeSet::new(), BTreeSet::new());
        for id in engine.active_workloads(queue) {
            active.extend(shared_class(engine, id));
            counts.add_requests(index, id);
            counts.count_workload(index, id, |counts, labels| {
                counts.pending += 1;
                counts.count_labels(labels, |counts| counts.active += 1);
            });
        }
        for id in engine.inadmissible_workloads(queue) {
            inadmissible.extend(shared_class(engine, id));
            counts.add_requests(index, id);
            counts.count_workload(index, id, |counts, labels| {
                counts.pending += 1;
                counts.inadmissible += 1;
                counts.count_labels(labels, |counts| counts.inadmissible += 1);
            });
        }
        counts.classes = (active.len(), inadmissible.len());
        counts.all_classes = active.union(&inadmissible).count();
        for id in engine.reserving_workloads(queue) {
            let pod_sets = engine.admission(id).unwrap_or_default();
            let admitted = index.records.get(id).is_some_and(|record| record.admitted);
            counts.count_workload(index, id, |counts, labels| {
                counts.add_admission(pod_sets, admitted);
                // Quota that is reserved but not admitted is in no series with labels.
                if admitted {
                    counts.count_labels(labels, |counts| counts.admitted += 1);
                }
            });
        }
        counts
    }

    /// Counts of a LocalQueue.
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

    fn add_requests(&mut self, index: &Index, id: WorkloadId) {
        for pods in index.request(id).iter().flat_map(|request| &request.pod_sets) {
            for &(resource, amount) in &pods.requests {
                *self.requested.entry(resource).or_default() += amount.times(pods.count);
            }
        }
    }

    fn count_workload(
        &mut self,
        index: &Index,
        id: WorkloadId,
        count: impl Fn(&mut QueueCounts, Option<LabelSetId>),
    ) {
        let record = index.records.get(id);
        let labels = record.and_then(|record| record.label_set);
        count(&mut self.total, labels);
        if let Some(part) = record.and_then(|record| record.local_queue) {
            count(self.local_queues.entry(part).or_default(), labels);
        }
    }
}

impl QueueCounts {
    fn count_labels(&mut self, labels: Option<LabelSetId>, count: impl Fn(&mut LabelledCounts)) {
        if let Some(labels) = labels {
            count(self.by_labels.entry(labels).or_default());
        }
    }

    fn add_admission(&mut self, pod_sets: &[PodSetAdmission], admitted: bool) {
        self.reserving += 1;
        self.admitted += usize::from(admitted);
        for one in pod_sets {
            for &AssignedResource { resource, flavor, amount } in &one.resources {
                let amount = amount_in_use(one, amount);
                *self.reserved.entry((flavor, resource)).or_default() += amount;
                // Quota that is reserved but not admitted is reservation only (§1.3).
                if admitted {
                    *self.used.entry((flavor, resource)).or_default() += amount;
                }
            }
        }
    }
}

/// Amount used by the pods that are not reclaimable.
fn amount_in_use(one: &PodSetAdmission, total: Amount) -> Amount {
    match total.0.checked_div(one.count) {
        // Amounts in an admission are totals; without reclaimable pods the total is exact, also if it does not divide.
        Some(each) if one.reclaimed != 0 => Amount(each).times(one.count - one.reclaimed),
        _ => total,
    }
}

/// The weighted share as a status shows it: rounded up, the largest integer if it is infinite.
#[must_use]
pub fn fair_sharing_status(share: f64) -> FairSharingStatus {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast from float saturates: infinity is the largest integer"
    )]
    let weighted_share = share.ceil() as i64;
    FairSharingStatus { weighted_share }
}

/// What the statuses of a ClusterQueue and of its LocalQueues follow from.
#[derive(Debug, Clone, Copy)]
pub struct QueueStatusInputs<'a> {
    /// The queues.
    pub index: &'a Index,
    /// Names of flavors and resources.
    pub names: &'a Names,
    /// The counts of the ClusterQueue.
    pub counts: &'a ClusterQueueCounts,
    /// When the status is written.
    pub at: StatusStamp,
}

impl QueueStatusInputs<'_> {
    /// The status of a ClusterQueue after `old`; `None` if the queue does not exist. `share` is its weighted share under fair
    /// sharing.
    #[must_use]
    pub fn cluster_queue(
        self,
        name: &str,
        share: Option<f64>,
        old: &ClusterQueueStatus,
    ) -> Option<ClusterQueueStatus> {
        let Self { index, names, counts, at } = self;
        let activity = index.active_condition(name)?;
        let mut status = old.clone();
        set_active(&mut status.conditions, &activity, at);
        status.fair_sharing = share.map(fair_sharing_status);
        status.pending_workloads = saturating_i32(counts.total.pending);
        status.reserving_workloads = saturating_i32(counts.total.reserving);
        status.admitted_workloads = saturating_i32(counts.total.admitted);
        status.flavors_reservation = flavors(index, names, name, &counts.total.reserved);
        status.flavors_usage = flavors(index, names, name, &counts.total.used);
        Some(status)
    }

    /// The status of a LocalQueue after `old`; `None` if the queue does not exist. `usage` is what it consumed under admission
    /// fair sharing.
    #[must_use]
    pub fn local_queue(
        self,
        namespace: &str,
        name: &str,
        usage: Option<AdmissionFairSharingStatus>,
        old: &LocalQueueStatus,
    ) -> Option<LocalQueueStatus> {
        let Self { index, names, counts, at } = self;
        let activity = index.local_queue_active_condition(namespace, name)?;
        let cluster_queue = index.cluster_queue_of(namespace, name)?;
        let none = QueueCounts::default();
        // A LocalQueue without Workloads has no counts.
        let counts = counts.local_queue(names, namespace, name).unwrap_or(&none);
        let mut status = old.clone();
        set_active(&mut status.conditions, &activity, at);
        if usage.is_some() {
            status.fair_sharing.get_or_insert_default().admission_fair_sharing_status = usage;
        }
        status.pending_workloads = saturating_i32(counts.pending);
        status.reserving_workloads = saturating_i32(counts.reserving);
        status.admitted_workloads = saturating_i32(counts.admitted);
        let usage_of =
            |usage| flavors(index, names, cluster_queue, usage).into_iter().map(local_queue_usage);
        status.flavors_reservation = usage_of(&counts.reserved).collect();
        status.flavors_usage = usage_of(&counts.used).collect();
        Some(status)
    }
}

fn set_active(all: &mut Vec<Condition>, activity: &QueueActiveCondition, at: StatusStamp) {
    let wanted = NewCondition {
        kind: conditions::ACTIVE,
        status: activity.active,
        reason: activity.reason,
        message: &activity.message,
    };
    set_for_generation(all, wanted, at);
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
    let usage_of = flavors.map(|one| {
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
    usage_of.collect()
}

fn resource(names: &Names, quota: &QuotaSpec, total: Amount, in_cohort: bool) -> ResourceUsage {
    let name = names.resources.name(quota.resource);
    // Without a cohort usage above the nominal quota, e.g. after a reduction, is not borrowed.
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

/// The class that a Workload shares with equal ones. A slice that replaces another one has none (docs/reference/kueue.md §3.5).
fn shared_class(engine: &Engine, id: WorkloadId) -> Option<EquivalenceClassId> {
    (!engine.is_replacement(id)).then(|| engine.equivalence_class(id))
}

fn saturating_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
