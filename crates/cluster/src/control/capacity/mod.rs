//! The capacity of an agent's cluster: its nodes, less the pods bound to them, less the pods that admitted clones still get.
//!
//! The same numbers decide about admission here and are reported to managers. A bound pod takes room on its node; pods of
//! clones that are not bound yet are packed where they fit. The report never overstates (docs/reference/dispatch.md §2).
//!
//! Inputs: Nodes, Pods, the ClusterCapacity `local`, and evaluated clones. Outputs: the fleet of one cluster that scheduling
//! places on, the quota of the agent's only queue, and the report.
//!
//! | file | concept |
//! |---|---|
//! | `node` | a Node and a Pod as far as they decide about room |
//! | `nodes` | sums over nodes and bound pods |
//! | `report` | node classes, and the ClusterCapacity |
//! | `unschedulable` | pods that no node takes |

mod node;
mod nodes;
mod report;
mod unschedulable;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ::jobs::GenericJob;
use crds::{
    names::{annotations::WORKLOAD, labels::MULTI_KUEUE_WORKER_POD},
    v1alpha1::{ClusterCapacity, ClusterCapacityStatus, JobKind as ReportedKind},
    v1beta2::Workload,
};
use dispatch::{AssignedPodSet, AssignedWorkload, CapacityReport, Fleet, JobGvk, PlacementConfig};
use engine::ids::{ClusterId, WorkloadId};
use index::{FlavorInfo, Index};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use runtime::{watch::Key, writer::WriteOutcome};

use self::{
    node::{BoundPod, NodeInfo},
    nodes::Nodes,
    unschedulable::UnschedulablePods,
};
use super::{
    context::Context,
    jobs::Jobs,
    outbox::{Tracked, after, decode, upsert_single},
    scheduling::Scheduler,
    timers::Reevaluation,
    unschedulable::UnschedulablePod,
    workloads::{TrackedWorkload, WorkloadPhase, Workloads},
};

/// The least time between two reports, after the first.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// The only cluster of an agent's fleet: its own.
const LOCAL: &str = "local";

/// What the capacity is computed from, beside nodes and pods.
pub(crate) struct CapacityInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) jobs: &'a Jobs,
    pub(crate) scheduler: &'a mut Scheduler,
}

/// What a report says beside nodes.
pub(crate) struct ReportInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) scheduler: &'a mut Scheduler,
    /// Kinds of jobs that run here.
    pub(crate) kinds: Vec<ReportedKind>,
    /// The manager's origin; Workloads of other origins are counted separately.
    pub(crate) origin: &'a str,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct LocalCapacity {
    fleet: Fleet,
    id: ClusterId,
    nodes: Nodes,
    unschedulable: UnschedulablePods,
    /// Clones whose unbound pods may have changed.
    touched: BTreeSet<Key>,
    /// Pods that are still to be bound, of clones that are not finished.
    unbound: BTreeMap<Key, UnboundPods>,
    /// Unbound pods that the fleet counts.
    placed: BTreeMap<Key, (WorkloadId, Arc<AssignedWorkload>)>,
    report: Option<Tracked<ClusterCapacity>>,
    not_before: Option<Timestamp>,
    report_stale: bool,
}

/// Pods of a clone that are not bound yet.
#[derive(Debug, Clone, PartialEq)]
struct UnboundPods {
    work: Arc<AssignedWorkload>,
    /// The clone holds quota.
    holds_quota: bool,
}

impl LocalCapacity {
    pub(crate) fn new() -> Self {
        let mut fleet = Fleet::new();
        let id = fleet.cluster(LOCAL);
        fleet.set_connected(id, true);
        fleet.set_config(
            LOCAL,
            Some(PlacementConfig { clusters: vec![id], ..PlacementConfig::default() }),
        );
        Self {
            fleet,
            id,
            nodes: Nodes::default(),
            unschedulable: UnschedulablePods::default(),
            touched: BTreeSet::new(),
            unbound: BTreeMap::new(),
            placed: BTreeMap::new(),
            report: None,
            not_before: None,
            report_stale: false,
        }
    }

    pub(crate) fn fleet_mut(&mut self) -> &mut Fleet {
        &mut self.fleet
    }

    /// Records a Node.
    pub(crate) fn observe_node(&mut self, name: &str, object: Option<&Node>, ctx: &mut Context) {
        if self.nodes.set_node(name, object.map(NodeInfo::of)) {
            ctx.agenda.now(Reevaluation::Capacity);
        }
    }

    /// Records a Pod.
    pub(crate) fn observe_pod(&mut self, key: Key, object: Option<&Pod>, ctx: &mut Context) {
        for clone in self.unschedulable.observe(&key, object) {
            ctx.agenda.now(Reevaluation::Workload(clone));
        }
        let bound = object.and_then(BoundPod::of);
        if let Some(clones) = self.nodes.set_pod(key, bound) {
            self.touched.extend(clones);
            ctx.agenda.now(Reevaluation::Capacity);
        }
    }

    /// Records a ClusterCapacity. Only the object `local` is this cluster's.
    pub(crate) fn observe_report(&mut self, key: &Key, object: Option<ClusterCapacity>) {
        if &*key.name != crds::v1alpha1::LOCAL {
            return;
        }
        upsert_single(&mut self.report, object);
        self.report_stale = true;
    }

    /// Takes the answer to a write of the report.
    pub(crate) fn report_answered(&mut self, answer: WriteOutcome) {
        if let WriteOutcome::Done(value) = answer {
            match &mut self.report {
                Some(tracked) => {
                    tracked.observe_answer(value);
                }
                None => self.report = decode(value).map(Tracked::new),
            }
        }
        self.report_stale = true;
    }

    /// The pod of a clone that no node takes for the longest time.
    pub(crate) fn unschedulable(&self, key: &Key) -> Option<UnschedulablePod> {
        self.unschedulable.of(key)
    }

    /// Brings engine and fleet up to date: total quota, free room, and unbound pods.
    pub(crate) fn refresh(&mut self, inputs: &mut CapacityInputs<'_>, ctx: &mut Context) {
        self.touched.extend(ctx.agenda.pending_workloads().iter().cloned());
        if ctx.agenda.take_capacity() {
            self.refresh_nodes(inputs.scheduler, ctx);
        }
        for key in std::mem::take(&mut self.touched) {
            self.refresh_unbound(&key, inputs);
            self.report_stale = true;
        }
    }

    /// Writes the report if it differs from the last one.
    pub(crate) fn write_report(&mut self, inputs: &mut ReportInputs<'_>, ctx: &mut Context) {
        if !self.report_stale {
            return;
        }
        if let Some(at) = self.not_before.filter(|at| *at > ctx.now) {
            return ctx.agenda.at(at, Reevaluation::Report);
        }
        let Some(tracked) = &self.report else {
            return report::submit_creation(ctx);
        };
        if !ctx.is_free(&report::target(), &tracked.stamp(), &Reevaluation::Report) {
            return;
        }
        let (before, base) = (Arc::clone(tracked.object()), tracked.stamp());
        self.report_stale = false;
        let status = self.status(&before.spec.label_keys, inputs);
        if report::same(&before.status, &status) {
            return;
        }
        if report::submit(&before.status, &status, base, ctx) {
            self.not_before = Some(after(ctx.now, REPORT_PERIOD));
        }
    }

    fn refresh_nodes(&mut self, scheduler: &mut Scheduler, ctx: &mut Context) {
        let totals = self.nodes.totals();
        scheduler.update(&mut ctx.agenda, |index, names| index.agent_mode_quota(names, &totals));
        let report = self.local_report(scheduler);
        self.fleet.set_report(self.id, Some(report));
        self.report_stale = true;
    }

    /// The nodes in classes by every label. A clone does not carry the kind of its job.
    fn local_report(&self, scheduler: &mut Scheduler) -> CapacityReport {
        let keys = self.nodes.label_keys();
        let kinds = vec![JobGvk::default()];
        report::classes(scheduler.names_mut(), &self.nodes.free(), &keys, kinds)
    }

    /// Counts the unbound pods of a clone that holds quota.
    fn refresh_unbound(&mut self, key: &Key, inputs: &CapacityInputs<'_>) {
        let unbound = self.unbound_pods(key, inputs);
        let counted = unbound.as_ref().filter(|one| one.holds_quota);
        match (inputs.workloads.get(key), counted.map(|one| Arc::clone(&one.work))) {
            (Some(record), Some(work)) => {
                let placed = (record.id(), work);
                if self.placed.get(key) != Some(&placed) {
                    let (id, work) = placed.clone();
                    self.fleet.place(id, self.id, work, record.started_at());
                    self.placed.insert(key.clone(), placed);
                }
            }
            (record, _) => {
                let placed = self.placed.remove(key).is_some();
                let unreserved = |one: &&TrackedWorkload| one.transitions().reservation().is_none();
                if let Some(record) = record.filter(|one| placed && unreserved(one)) {
                    self.fleet.unplace(record.id());
                }
            }
        }
        match unbound {
            Some(unbound) => self.unbound.insert(key.clone(), unbound),
            None => self.unbound.remove(key),
        };
    }

    /// Pods of a clone that are still to be bound; `None` if there are none.
    fn unbound_pods(&self, key: &Key, inputs: &CapacityInputs<'_>) -> Option<UnboundPods> {
        let record = inputs.workloads.get(key)?;
        if record.phase() == WorkloadPhase::Finished {
            return None;
        }
        let workload = record.object();
        let request = inputs.scheduler.request(record.id())?;
        let reclaimable = inputs.jobs.of(key, workload).map(|(_, job)| job.reclaimable_pods());
        let given = request.pod_sets.iter().map(|pods| {
            let bound = self.nodes.bound(key, &pods.name);
            let done = reclaimable.iter().flatten().filter(|one| *one.name == *pods.name);
            let done: i64 = done.map(|one| i64::from(one.count)).sum();
            carried(workload, &pods.name, (pods.count - done - bound).max(0))
        });
        let given: Vec<AssignedPodSet> = given.collect();
        given.iter().any(|one| one.count > 0).then(|| {
            let work = Arc::new(AssignedWorkload { request: Arc::clone(request), assigned: given });
            UnboundPods { work, holds_quota: record.phase().holds_quota() }
        })
    }

    fn status(&self, keys: &[String], inputs: &mut ReportInputs<'_>) -> ClusterCapacityStatus {
        let known = self.local_report(inputs.scheduler);
        let unbound = self.unbound.values().map(|one| one.work.as_ref());
        let left = dispatch::free_capacity(&known, unbound);
        let records = inputs.workloads.iter().map(|(_, record)| record);
        let newest = records.clone().map(TrackedWorkload::version).max().unwrap_or(0);
        let counts = report::counts(records.map(|one| &**one.object()), inputs.origin);
        let kinds = std::mem::take(&mut inputs.kinds);
        report::status(inputs.scheduler.names(), &left, keys, newest, kinds, counts)
    }
}

/// What an entry of a cycle needs of the cluster: the pods of its clone.
pub(crate) fn work_of<'a>(
    index: &'a Index,
    workloads: &'a Workloads,
    entry: &engine::CycleEntry,
) -> Option<(&'a str, Arc<AssignedWorkload>)> {
    let request = index.request(entry.workload)?;
    let (_, record) = workloads.by_id(entry.workload)?;
    let given = request.pod_sets.iter().zip(&entry.assignment.pod_sets);
    let given = given.map(|(pods, one)| carried(record.object(), &pods.name, one.count)).collect();
    Some((LOCAL, Arc::new(AssignedWorkload { request: Arc::clone(request), assigned: given })))
}

/// `count` pods of a pod set, with the node labels and tolerations that a clone carries for it: its flavors are not here.
fn carried(clone: &Workload, pod_set: &str, count: i64) -> AssignedPodSet {
    let info = ::jobs::clone_assignment::read(clone, pod_set).unwrap_or_default();
    let (name, labels) = (pod_set.to_owned(), info.node_selector);
    index::assigned_pod_set(&FlavorInfo { name, count, labels, tolerations: info.tolerations })
}

/// The clone that a pod belongs to.
pub(crate) fn workload_of(pod: &Pod) -> Option<Key> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(MULTI_KUEUE_WORKER_POD)?;
    let name = pod.metadata.annotations.as_ref()?.get(WORKLOAD)?;
    let namespace = pod.metadata.namespace.as_deref().map(Into::into);
    Some(Key { namespace, name: name.as_str().into() })
}
