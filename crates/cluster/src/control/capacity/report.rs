//! The capacity report of an agent: node classes, as dispatch reads them and as the ClusterCapacity shows them.

use crds::{
    meta::{Taint, is_true},
    names::{
        conditions::{ADMITTED, FINISHED},
        labels::MULTI_KUEUE_ORIGIN,
    },
    v1alpha1::{
        self, ClusterCapacity, ClusterCapacityStatus, ElasticCapacity, JobKind, LOCAL, NodeShape,
        WorkloadCounts,
    },
    v1beta2::Workload,
};
use dispatch::{NodeClassCapacity, PROTOCOL, join_equal_classes, reduce_classes};
use engine::{Amount, Names, ids::ResourceId};
use jiff::SignedDuration;
use runtime::{watch::Key, write::Write};

use super::LocalCapacity;
use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Stamp, Subject, Target, version},
    time::moved,
    timers::Reevaluation,
};

/// The most node classes of a report, and the most shapes of new nodes.
const MOST_CLASSES: usize = 64;

impl LocalCapacity {
    /// The clock jumped: the next report is due when it would have been, and what pods wait for lasts as long.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        // A new field has to say whether it holds times of this machine.
        let Self {
            mode: _,
            id: _,
            nodes: _,
            chains: _,
            // Times that kube-scheduler has written.
            unschedulable: _,
            failing,
            refused,
            autoscalers,
            new_nodes: _,
            waited,
            touched: _,
            unbound: _,
            placed: _,
            report: _,
            not_before,
            heartbeat_at,
            newest: _,
            report_stale: _,
            has_quota: _,
        } = self;
        autoscalers.clock_jumped(by);
        failing.clock_jumped(by);
        refused.clock_jumped(by);
        waited.for_each_mut(|_, wait| wait.until = wait.until.map(|at| moved(at, by)));
        for at in [not_before, heartbeat_at] {
            *at = at.map(|at| moved(at, by));
        }
    }

    /// The watch of Workloads shows this clone, and all that changed before it. An answer to a write proves nothing about others.
    pub(crate) fn watch_shows(&mut self, clone: &Workload) {
        self.newest = self.newest.max(version(clone));
    }
}

/// How much a resource counts when nodes share a class. Accelerators and other extended resources are scarce, and cpus are what most
/// pods ask for.
fn weight(resource: &str) -> u32 {
    match resource {
        "cpu" => 12,
        "memory" => 2,
        extended if extended.contains('/') => 14,
        _ => 1,
    }
}

/// The status as it is written. Nodes beyond the limit of classes share classes, so the report never overstates.
pub(super) fn status(
    names: &Names,
    left: &[NodeClassCapacity],
    keys: &[String],
    as_of: u64,
    kinds: Vec<JobKind>,
    (pending, running): (WorkloadCounts, WorkloadCounts),
) -> ClusterCapacityStatus {
    // Classes that differ in labels outside of `keys` only are one class of the report.
    let reported = left.iter().map(|class| with_labels(class, keys));
    let weight = |resource| weight(names.resources.name(resource));
    let reported = reduce_classes(join_equal_classes(reported), MOST_CLASSES, weight);
    let mut classes: Vec<v1alpha1::NodeClass> =
        reported.iter().map(|class| in_api(names, class)).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.count));
    ClusterCapacityStatus {
        protocol: PROTOCOL,
        mode: "Thin".to_owned(),
        as_of: as_of.to_string(),
        kinds,
        node_classes: classes,
        pending,
        running,
        ..ClusterCapacityStatus::default()
    }
}

/// A class with the labels of these keys only.
fn with_labels(class: &NodeClassCapacity, keys: &[String]) -> NodeClassCapacity {
    let labels = class.labels.iter();
    let labels = labels.filter(|(key, _)| keys.iter().any(|known| **known == **key));
    NodeClassCapacity { labels: labels.cloned().collect(), ..class.clone() }
}

/// New nodes as the status shows them. Equal shapes are one; beyond the limit those with the fewest nodes are left out.
pub(super) fn elastic(
    names: &Names,
    groups: impl IntoIterator<Item = NodeClassCapacity>,
    keys: &[String],
) -> Vec<ElasticCapacity> {
    let groups = groups.into_iter().filter(|group| group.count > 0);
    let mut shapes = join_equal_classes(groups.map(|group| with_labels(&group, keys)));
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.count));
    let shapes = shapes.iter().take(MOST_CLASSES).map(|shape| in_api(names, shape));
    let in_api = shapes.map(|v1alpha1::NodeClass { count, labels, taints, free, .. }| {
        let node_shape = NodeShape { labels, taints, allocatable: free };
        ElasticCapacity { node_shape, max_more: count }
    });
    in_api.collect()
}

fn in_api(names: &Names, class: &NodeClassCapacity) -> v1alpha1::NodeClass {
    let labels = class.labels.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let taints = class.taints.iter().map(|taint| Taint {
        effect: taint.effect.name().to_owned(),
        key: taint.key.to_string(),
        time_added: None,
        value: taint.value.to_string(),
    });
    let quantity = |&(resource, amount): &(ResourceId, Amount)| {
        let name = names.resources.name(resource);
        (name.to_owned(), index::quantity(name, amount))
    };
    v1alpha1::NodeClass {
        count: i32::try_from(class.count).unwrap_or(i32::MAX),
        labels: labels.collect(),
        taints: taints.collect(),
        free: class.free.iter().map(quantity).collect(),
        size: class.size.iter().map(quantity).collect(),
    }
}

/// Pending and running Workloads, of this origin and of others.
pub(super) fn counts<'a>(
    workloads: impl Iterator<Item = &'a Workload>,
    origin: &str,
) -> (WorkloadCounts, WorkloadCounts) {
    let (mut pending, mut running) = (WorkloadCounts::default(), WorkloadCounts::default());
    for workload in workloads {
        let conditions = &workload.status.conditions;
        if is_true(conditions, FINISHED) {
            continue;
        }
        let counts = if is_true(conditions, ADMITTED) { &mut running } else { &mut pending };
        let labels = workload.metadata.labels.as_ref();
        let own = labels.and_then(|all| all.get(MULTI_KUEUE_ORIGIN)).is_some_and(|of| of == origin);
        if own { counts.own += 1 } else { counts.others += 1 }
    }
    (pending, running)
}

/// Whether two reports are equal but for `asOf` and their times.
pub(crate) fn same(before: &ClusterCapacityStatus, after: &ClusterCapacityStatus) -> bool {
    let (as_of, reported_at) = (after.as_of.clone(), after.reported_at.clone());
    ClusterCapacityStatus { as_of, reported_at, ..before.clone() } == *after
}

/// The object that carries the report.
pub(super) fn target() -> Target {
    Target::home(Subject::Capacity, &Key { namespace: None, name: LOCAL.into() })
}

/// Submits the report. Returns false if nothing differs.
pub(super) fn submit(
    before: &ClusterCapacityStatus,
    after: &ClusterCapacityStatus,
    base: Stamp,
    ctx: &mut Context,
) -> bool {
    let (purpose, waiter) = (Purpose::Capacity, Reevaluation::Report);
    let intent = Intent { target: target(), purpose, base, waiter };
    ctx.outbox.submit_status::<ClusterCapacity, _>(intent, before, after)
}

/// Creates the object that carries the report, unless a create is in flight or in backoff.
pub(super) fn submit_creation(ctx: &mut Context) {
    let (target, base, waiter) = (target(), Stamp::default(), Reevaluation::Report);
    // A create that the API server refuses would be sent again with each decision.
    if !ctx.free_or_wait(&target, &base, &waiter) {
        return;
    }
    let mut object = ClusterCapacity::default();
    object.metadata.name = Some(LOCAL.to_owned());
    let intent = Intent { target, purpose: Purpose::CapacityCreate, base, waiter };
    ctx.outbox.submit(intent, |purpose, _| Write::create(purpose, &object));
}
