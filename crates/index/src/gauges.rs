//! Numbers of ClusterQueues, LocalQueues and Cohorts as metrics show them: cpu in cores, other resources in base units.
//!
//! Source: docs/reference/kueue.md §6.2.

use std::collections::BTreeMap;

use engine::ids::{CohortId, FlavorId, ResourceId};
use engine::{Amount, Engine, Names};

use crate::amount::float;
use crate::index::Index;
use crate::indexed_objects::IndexedClusterQueue;
use crate::metric_labels::LabelSetId;
use crate::queue_status::{ClusterQueueCounts, FlavorResourceAmounts, LabelledCounts, QueueCounts};

/// The status of a ClusterQueue that admits Workloads.
const ACTIVE: &str = "active";
/// The resource that counts pods.
const PODS: &str = "pods";

/// Numbers of Workloads in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueNumbers {
    /// Pending and active.
    pub active: usize,
    /// Pending and inadmissible.
    pub inadmissible: usize,
    /// With quota reserved.
    pub reserving: usize,
    /// Admitted.
    pub admitted: usize,
    /// The same by labels of the Workloads, without labels that no Workload has. Empty unless such labels are configured.
    pub by_labels: Vec<LabelledNumbers>,
}

/// Numbers of Workloads with the same labels in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelledNumbers {
    /// The values, in the order of the rules.
    pub labels: Vec<String>,
    /// Pending and active.
    pub active: usize,
    /// Pending and inadmissible.
    pub inadmissible: usize,
    /// Admitted.
    pub admitted: usize,
}

/// Labels and annotations of an object, which custom labels of metrics are read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelsAndAnnotations {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// One flavor and resource of a queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlavorResourceGauge {
    /// The flavor's name.
    pub flavor: String,
    /// The resource's name.
    pub resource: String,
    /// `nominalQuota`.
    pub nominal: f64,
    /// `borrowingLimit`; infinite if it is not set.
    pub borrowing_limit: f64,
    /// `lendingLimit`; infinite if it is not set.
    pub lending_limit: f64,
    /// What Workloads with quota reserved take.
    pub reserved: f64,
    /// What admitted Workloads take.
    pub used: f64,
}

/// A LocalQueue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalQueueGauges {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels and annotations.
    pub metadata: LabelsAndAnnotations,
    /// Condition Active.
    pub active: bool,
    /// It has a `stopPolicy` other than None: no pending queue has its Workloads.
    pub stopped: bool,
    /// Its Workloads.
    pub workloads: QueueNumbers,
    /// What its Workloads take of every flavor of its ClusterQueue.
    pub resources: Vec<FlavorResourceGauge>,
    /// What it consumed under admission fair sharing, weighted.
    pub fair_sharing_usage: Option<f64>,
}

/// A ClusterQueue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterQueueGauges {
    /// Its name.
    pub name: String,
    /// Its labels and annotations.
    pub metadata: LabelsAndAnnotations,
    /// `active`, `pending` or `terminating`.
    pub status: &'static str,
    /// Cohorts above it, from its parent to the root.
    pub cohorts: Vec<String>,
    /// Its Workloads.
    pub workloads: QueueNumbers,
    /// Equivalence classes of its active and of its inadmissible Workloads.
    pub classes: (usize, usize),
    /// Quota and usage of every flavor and resource.
    pub resources: Vec<FlavorResourceGauge>,
    /// Requests of pending Workloads by resource.
    pub requested: Vec<(String, f64)>,
    /// The weighted share, not rounded; `None` without fair sharing, infinite for weight 0.
    pub weighted_share: Option<f64>,
}

/// A Cohort.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CohortGauges {
    /// Its name.
    pub name: String,
    /// It exists as an object, or is the parent of one that does; other Cohorts are only named by ClusterQueues.
    pub declared: bool,
    /// Its labels and annotations.
    pub metadata: LabelsAndAnnotations,
    /// It is in a cohort cycle, which has no root.
    pub cyclic: bool,
    /// Cohorts above it, from its parent to the root.
    pub cohorts: Vec<String>,
    /// Quota of its subtree by flavor and resource; infinite if it is unlimited.
    pub quota: Vec<(String, String, f64)>,
    /// Reservations of all ClusterQueues in its subtree by flavor and resource.
    pub reserved: Vec<(String, String, f64)>,
    /// The weighted share, not rounded; `None` without fair sharing, infinite for weight 0.
    pub weighted_share: Option<f64>,
}

/// The numbers of a ClusterQueue; `None` if it does not exist. The caller knows its labels, annotations and share.
#[must_use]
pub fn cluster_queue(
    index: &Index,
    engine: &Engine,
    name: &str,
    counts: &ClusterQueueCounts,
) -> Option<ClusterQueueGauges> {
    let queue = index.queues.get(name)?;
    let id = engine.names().queues.get(name)?;
    let above = engine.cohorts_of_queue(id);
    let status = status(index, queue, name);
    let active = status == ACTIVE;
    Some(ClusterQueueGauges {
        name: name.to_owned(),
        metadata: LabelsAndAnnotations::default(),
        status,
        cohorts: above.into_iter().map(str::to_owned).collect(),
        workloads: numbers(index, &counts.total, active),
        classes: if active { counts.classes } else { (0, counts.all_classes) },
        resources: resources(engine.names(), queue, &counts.total),
        requested: requested(engine.names(), queue, &counts.requested),
        weighted_share: None,
    })
}

/// The numbers of a LocalQueue; `None` if it does not exist. Without its ClusterQueue it is not active and has no Workloads.
/// The caller knows its labels, annotations and usage.
#[must_use]
pub fn local_queue(
    index: &Index,
    names: &Names,
    (namespace, name): (&str, &str),
    counts: &ClusterQueueCounts,
) -> Option<LocalQueueGauges> {
    let above = index.cluster_queue_of(namespace, name)?;
    let queue = index.queues.get(above);
    let active = queue.is_some_and(|queue| status(index, queue, above) == ACTIVE);
    let none = QueueCounts::default();
    let counts = counts.local_queue(names, namespace, name).unwrap_or(&none);
    Some(LocalQueueGauges {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        metadata: LabelsAndAnnotations::default(),
        active: index.local_queue_active_condition(namespace, name)?.active,
        stopped: index.is_local_queue_stopped(namespace, name),
        workloads: numbers(index, counts, active),
        resources: queue.map(|queue| resources(names, queue, counts)).unwrap_or_default(),
        fair_sharing_usage: None,
    })
}

/// The numbers of the Cohorts of these names that any object names. The caller knows whether they are declared, their labels,
/// annotations and shares. Cost: one visit per node of the quota tree below them.
#[must_use]
pub fn cohorts<'a>(engine: &Engine, names: impl IntoIterator<Item = &'a str>) -> Vec<CohortGauges> {
    let known = |name: &'a str| Some((name, engine.names().cohorts.get(name)?));
    let known: Vec<(&str, CohortId)> = names.into_iter().filter_map(known).collect();
    let ids: Vec<CohortId> = known.iter().map(|(_, id)| *id).collect();
    let reserved = engine.cohort_reservations(&ids).into_iter();
    known
        .into_iter()
        .zip(reserved)
        .map(|(known, reserved)| cohort(engine, known, reserved))
        .collect()
}

fn cohort(
    engine: &Engine,
    (name, id): (&str, CohortId),
    reserved: Vec<(FlavorId, ResourceId, Amount)>,
) -> CohortGauges {
    let names = engine.names();
    let named = |all: Vec<(FlavorId, ResourceId, Amount)>| {
        let one = |(flavor, resource, amount): (FlavorId, ResourceId, Amount)| {
            let resource = names.resources.name(resource);
            let flavor = names.flavors.name(flavor).to_owned();
            let number =
                if amount.is_unlimited() { f64::INFINITY } else { float(resource, amount) };
            (flavor, resource.to_owned(), number)
        };
        all.into_iter().map(one).collect()
    };
    CohortGauges {
        name: name.to_owned(),
        declared: false,
        metadata: LabelsAndAnnotations::default(),
        cyclic: engine.is_in_cohort_cycle(id),
        cohorts: engine.cohorts_of_cohort(id).into_iter().map(str::to_owned).collect(),
        quota: named(engine.cohort_quota(id)),
        reserved: named(reserved),
        weighted_share: None,
    }
}

/// The numbers of a queue. While its ClusterQueue is not active, no pending Workload is.
fn numbers(index: &Index, counts: &QueueCounts, queue_active: bool) -> QueueNumbers {
    let pending = |active: usize, inadmissible: usize| {
        if queue_active { (active, inadmissible) } else { (0, active + inadmissible) }
    };
    let labelled = |(labels, counts): (&LabelSetId, &LabelledCounts)| {
        let (active, inadmissible) = pending(counts.active, counts.inadmissible);
        let labels = index.label_sets.values(*labels).to_vec();
        LabelledNumbers { labels, active, inadmissible, admitted: counts.admitted }
    };
    let (active, inadmissible) = pending(counts.pending - counts.inadmissible, counts.inadmissible);
    QueueNumbers {
        by_labels: counts.by_labels.iter().map(labelled).collect(),
        active,
        inadmissible,
        reserving: counts.reserving,
        admitted: counts.admitted,
    }
}

fn status(index: &Index, queue: &IndexedClusterQueue, name: &str) -> &'static str {
    let active = index.active_condition(name).is_some_and(|condition| condition.active);
    match (queue.terminating, active) {
        (true, _) => "terminating",
        (false, true) => ACTIVE,
        (false, false) => "pending",
    }
}

fn resources(
    names: &Names,
    queue: &IndexedClusterQueue,
    counts: &QueueCounts,
) -> Vec<FlavorResourceGauge> {
    let flavors = queue.spec.groups.iter().flat_map(|group| &group.flavors);
    let quotas = flavors.flat_map(|one| one.resources.iter().map(|quota| (one.flavor, quota)));
    let gauge = |(flavor, quota): (FlavorId, &engine::spec::QuotaSpec)| {
        let resource = names.resources.name(quota.resource);
        let of = |all: &FlavorResourceAmounts| {
            float(resource, all.get(&(flavor, quota.resource)).copied().unwrap_or_default())
        };
        let limit = |limit: Option<Amount>| limit.map_or(f64::INFINITY, |one| float(resource, one));
        FlavorResourceGauge {
            flavor: names.flavors.name(flavor).to_owned(),
            resource: resource.to_owned(),
            nominal: float(resource, quota.nominal),
            borrowing_limit: limit(quota.borrowing_limit),
            lending_limit: limit(quota.lending_limit),
            reserved: of(&counts.reserved),
            used: of(&counts.used),
        }
    };
    quotas.map(gauge).collect()
}

/// What the pending Workloads of a ClusterQueue request: of every resource that the queue covers, zero included, and of every
/// other resource that they request. Pods count only where they are covered: otherwise no quota is charged for them.
fn requested(
    names: &Names,
    queue: &IndexedClusterQueue,
    sums: &BTreeMap<ResourceId, Amount>,
) -> Vec<(String, f64)> {
    let covered = queue.covered.iter().map(|resource| (resource.as_str(), Amount::ZERO));
    let mut all: BTreeMap<&str, Amount> = covered.collect();
    for (&id, &amount) in sums.iter().filter(|(_, amount)| **amount != Amount::ZERO) {
        let resource = names.resources.name(id);
        if resource != PODS || queue.covered.contains(PODS) {
            all.insert(resource, amount);
        }
    }
    let number =
        |(resource, amount): (&str, Amount)| (resource.to_owned(), float(resource, amount));
    all.into_iter().map(number).collect()
}
