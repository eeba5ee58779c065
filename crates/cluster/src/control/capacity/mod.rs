//! The capacity of an agent's cluster: its nodes, less the pods bound to them, less the pods that admitted clones still get.
//!
//! The same numbers decide about admission here and are reported to managers. A bound pod takes room on its node; pods of
//! clones that are not bound yet are counted on the nodes that their clone is assigned, where the scheduler will bind them
//! (docs/reference/dispatch.md §4). The report never overstates (§2).
//!
//! Inputs: Nodes, Pods, the ClusterCapacity `local`, and evaluated clones. Outputs: what the fleet knows of this cluster, on which
//! scheduling places, the quota of the agent's only queue, and the report.
//!
//! | file | concept |
//! |---|---|
//! | `node` | a Pod as far as it decides about room |
//! | `nodes` | nodes and bound pods |
//! | `chains` | clones that share pods |
//! | `cycle_entries` | the pods that a cycle places |
//! | `unbound_pods` | the pods of a clone that are still to be bound |
//! | `inputs` | what capacity and report are computed from |
//! | `report` | node classes, and the ClusterCapacity |
//! | `unschedulable` | pods that no node takes |
//! | `failing_pods` | pods that cannot start |
//! | `refused_pods` | pods that the API server refuses |
//! | `refused_owners` | the job whose child got no pods |

mod chains;
mod cycle_entries;
mod failing_pods;
mod inputs;
mod node;
mod nodes;
mod refused_owners;
mod refused_pods;
mod report;
mod unbound_pods;
mod unschedulable;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crds::{
    v1alpha1::{ClusterCapacity, ClusterCapacityStatus, JobKind as ReportedKind},
    v1beta2::TopologyAssignment,
};
use dispatch::{
    AssignedWorkload, CapacityReport, Fleet, JobGvk, NodeClassCapacity, PlacementConfig,
    RemainingNodes,
};
use engine::{
    Amount, Names,
    ids::{ClusterId, WorkloadId},
};
use index::{AdmissionMode, Index};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::{watch::Key, writer::WriteOutcome};

pub(crate) use self::{
    inputs::{CapacityInputs, ReportInputs},
    node::CloneOfPod,
};

pub use self::{
    node::PodInfo,
    refused_pods::{REFUSED_PODS_FIELDS, RefusedPodsEvent},
};

pub(crate) use self::refused_owners::{ObjectName, OwnerSearch, RefusedOwners};
pub(crate) use self::report::same;

use self::{
    chains::SliceChains,
    failing_pods::FailingPods,
    nodes::Nodes,
    refused_pods::RefusedPods,
    unbound_pods::{BoundPods, UnboundPods, wanted_pods},
    unschedulable::{NewNodeWait, UnschedulablePods},
};
use super::{
    autoscaler_input::AutoscalerInput,
    autoscalers::{Autoscalers, NewNodeGroup},
    context::Context,
    outbox::{Purpose, Ticket, Tracked, after, answer_single, upsert_single},
    pod_failure::PodFailure,
    scheduling::{DispatchedEntryOf, Scheduler},
    start_failure::PodStarts,
    timers::Reevaluation,
    workloads::{TrackedWorkload, WorkloadChange, Workloads},
};
use crate::control::{key_map::KeyMap, node_info::NodeInfo};

/// The least time between two reports, after the first.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// The time between two reports while nothing changes.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The mode of a report with quotas.
const QUOTA: &str = "Quota";

/// The only cluster of an agent's fleet: its own.
const LOCAL: &str = "local";

/// The capacity of the cluster of an agent.
#[derive(Debug)]
pub(crate) struct LocalCapacity {
    mode: AdmissionMode,
    /// The only cluster of the fleet.
    id: ClusterId,
    nodes: Nodes,
    chains: SliceChains,
    unschedulable: UnschedulablePods,
    failing: FailingPods,
    refused: RefusedPods,
    autoscalers: Autoscalers,
    new_nodes: Vec<NewNodeGroup>,
    /// Clones that wait for new nodes, or did.
    waited: KeyMap<Key, NewNodeWait>,
    /// Clones whose unbound pods may have changed.
    touched: BTreeSet<Key>,
    /// Pods that are still to be bound, of clones that are not finished.
    unbound: KeyMap<Key, UnboundPods>,
    /// Unbound pods that the fleet counts.
    placed: KeyMap<Key, (WorkloadId, Arc<AssignedWorkload>)>,
    report: Option<Tracked<ClusterCapacity>>,
    not_before: Option<Timestamp>,
    /// When the report is written although nothing changed.
    heartbeat_at: Option<Timestamp>,
    /// The resourceVersion of the newest Workload that was observed, which may be gone.
    newest: u64,
    report_stale: bool,
    /// The engine has the agent's queue.
    has_quota: bool,
}

impl LocalCapacity {
    /// A cluster that runs jobs of these kinds, the only one of this fleet.
    pub(crate) fn new(kinds: &[ReportedKind], mode: AdmissionMode, fleet: &mut Fleet) -> Self {
        let id = fleet.intern_cluster(LOCAL);
        fleet.set_connected(id, true);
        fleet.set_local(id);
        // The clone of an upstream manager does not name the kind of its job.
        let kinds = kinds.iter().map(index::job_gvk).chain([JobGvk::default()]).collect();
        fleet.set_report(id, Some(CapacityReport { kinds, ..CapacityReport::default() }));
        fleet.set_config(
            LOCAL,
            Some(PlacementConfig { clusters: vec![id], ..PlacementConfig::default() }),
        );
        Self {
            mode,
            id,
            nodes: Nodes::default(),
            chains: SliceChains::default(),
            unschedulable: UnschedulablePods::default(),
            failing: FailingPods::default(),
            refused: RefusedPods::default(),
            autoscalers: Autoscalers::default(),
            new_nodes: Vec::new(),
            waited: KeyMap::new(),
            touched: BTreeSet::new(),
            unbound: KeyMap::new(),
            placed: KeyMap::new(),
            report: None,
            not_before: None,
            heartbeat_at: None,
            newest: 0,
            report_stale: false,
            has_quota: false,
        }
    }

    /// Records a Node.
    pub(crate) fn observe_node(
        &mut self,
        name: &str,
        object: Option<&NodeInfo>,
        ctx: &mut Context,
    ) {
        if self.nodes.set_node(name, object.cloned()) {
            ctx.agenda.now(Reevaluation::Capacity);
        }
    }

    /// Records a Pod.
    pub(crate) fn observe_pod(&mut self, key: Key, object: Option<&PodInfo>, ctx: &mut Context) {
        let failing = self.failing.observe(&key, object, ctx.now);
        for chain in self.unschedulable.observe(&key, object).into_iter().chain(failing) {
            ctx.agenda.workloads(self.chains.clones_of(&chain));
        }
        let refused = self.refused.observe(&key, object);
        let bound = object.and_then(|pod| pod.bound.clone());
        let bound = self.nodes.set_pod(key, bound);
        if bound.is_some() {
            ctx.agenda.now(Reevaluation::Capacity);
        }
        for chain in refused.into_iter().chain(bound.into_iter().flatten()) {
            self.touched.extend(self.chains.clones_of(&chain));
        }
    }

    /// Takes a change of a clone. The slices of one job share its pods.
    pub(crate) fn clone_changed(&mut self, change: &WorkloadChange) {
        self.touched.extend(self.chains.clone_changed(change));
    }

    /// The controller of a clone's job reports pods that it cannot create.
    pub(crate) fn pods_refused(&mut self, clone: Key, message: &str, ctx: &mut Context) {
        self.refused.refuse(self.chains.of(&clone).clone(), message, ctx.now);
        ctx.agenda.now(Reevaluation::Workload(clone));
    }

    /// Records objects of autoscalers.
    pub(crate) fn observe_autoscaler(&mut self, input: AutoscalerInput, ctx: &mut Context) {
        self.autoscalers.observe(input, ctx.now);
        ctx.agenda.now(Reevaluation::Capacity);
        if let Some(until) = self.autoscalers.counts_until() {
            ctx.agenda.at(until, Reevaluation::Capacity);
        }
    }

    /// Records a ClusterCapacity. Only the object `local` is this cluster's.
    pub(crate) fn observe_report(&mut self, key: &Key, object: Option<Arc<ClusterCapacity>>) {
        if &*key.name != crds::v1alpha1::LOCAL {
            return;
        }
        upsert_single(&mut self.report, object);
        self.report_stale = true;
    }

    /// Takes the answer to a write of the report.
    pub(crate) fn report_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        match &answer {
            WriteOutcome::Done(_) => {}
            // The label keys of a manager have changed. Until the first report the cluster takes nothing.
            WriteOutcome::Stale => (self.not_before, self.heartbeat_at) = (None, None),
            _ => self.heartbeat_at = None,
        }
        answer_single(&mut self.report, ticket.purpose == Purpose::CapacityCreate, answer);
        self.report_stale = true;
    }

    /// Why the pods of a clone do not run: what ends it first.
    pub(crate) fn pod_failure(&self, key: &Key) -> Option<PodFailure> {
        let chain = self.chains.of(key);
        let refused = self.refused.of(chain).into_iter();
        let unschedulable = self.unschedulable.of(chain, self.waited.get(key).copied());
        refused.chain(unschedulable).min_by_key(|one| one.at)
    }

    /// How many new nodes a clone waits for.
    fn awaited_new_nodes(&self, key: &Key, fleet: &Fleet) -> Option<i64> {
        self.placed.get(key).and_then(|(id, _)| fleet.awaited_new_nodes(*id))
    }

    /// What a clone shows about the start of its pods. It is evaluated again when that changes.
    pub(crate) fn pod_starts(&self, key: &Key, fleet: &Fleet, ctx: &mut Context) -> PodStarts {
        let (starts, until) = self.failing.of(self.chains.of(key), ctx.now);
        if let Some(until) = until {
            ctx.agenda.at(until, Reevaluation::Workload(key.clone()));
        }
        let PodStarts::Failing(failure) = starts else {
            return starts;
        };
        PodStarts::Failing(match self.awaited_new_nodes(key, fleet) {
            Some(nodes) => failure.awaiting(nodes),
            None => failure,
        })
    }

    /// Quotas of ClusterQueues may differ from those of the last report.
    pub(crate) fn quotas_changed(&mut self) {
        self.report_stale = true;
    }

    /// What an entry of a cycle needs of the cluster.
    pub(crate) fn work_of(&self) -> DispatchedEntryOf {
        cycle_entries::work_of(self.mode)
    }

    /// Brings engine and fleet up to date: total quota, free room, and unbound pods.
    pub(crate) fn refresh(&mut self, inputs: &mut CapacityInputs<'_>, ctx: &mut Context) {
        // A clone on the agenda, or its job, has changed, and with it the pods that are still to be
        // bound.
        self.touched.extend(ctx.agenda.pending_workloads().iter().cloned());
        // Nodes first: the fleet counts unbound pods on top of their report.
        if ctx.agenda.take_capacity() {
            self.refresh_nodes(inputs.scheduler, inputs.fleet, ctx);
        }
        for key in std::mem::take(&mut self.touched) {
            self.refresh_unbound(&key, inputs);
            self.refresh_bound(&key, inputs);
            let chain = self.chains.of(&key);
            if self.refused.of(chain).is_some() {
                self.refused.compare(chain, wanted_pods(&key, inputs));
            }
            self.report_stale = true;
        }
        self.refresh_waiting(inputs.fleet, ctx);
    }

    /// Records which clones wait for new nodes, and evaluates those that wait no longer.
    fn refresh_waiting(&mut self, fleet: &Fleet, ctx: &mut Context) {
        let placed = self.placed.iter().map(|(key, _)| key);
        let asked = placed.filter(|_| !self.new_nodes.is_empty());
        let waiting: BTreeSet<Key> =
            asked.filter(|key| self.awaited_new_nodes(key, fleet).is_some()).cloned().collect();
        // The pods of a clone are bound some time after the last of its nodes came.
        let known = std::mem::take(&mut self.waited);
        for (key, wait) in known.iter() {
            if self.placed.contains_key(key) && !waiting.contains(key) {
                let until = wait.until.unwrap_or(ctx.now);
                self.waited.insert(key.clone(), NewNodeWait { until: Some(until) });
                if wait.until.is_none() {
                    ctx.agenda.now(Reevaluation::Workload(key.clone()));
                }
            }
        }
        for key in waiting {
            self.waited.insert(key, NewNodeWait { until: None });
        }
    }

    /// Whether something of the report may differ from the last one, or that is old.
    pub(crate) fn is_report_due(&self, now: Timestamp) -> bool {
        self.report_stale || self.beats(now)
    }

    fn beats(&self, now: Timestamp) -> bool {
        self.heartbeat_at.is_none_or(|at| at <= now)
    }

    /// Writes the report, unless it is neither new nor old.
    pub(crate) fn write_report(&mut self, inputs: &mut ReportInputs<'_>, ctx: &mut Context) {
        let beats = self.beats(ctx.now);
        if let Some(at) = self.not_before.filter(|at| *at > ctx.now) {
            return ctx.agenda.at(at, Reevaluation::Report);
        }
        let Some(tracked) = &self.report else {
            return report::submit_creation(ctx);
        };
        if !ctx.free_or_wait(&report::target(), &tracked.stamp(), &Reevaluation::Report) {
            return;
        }
        let (before, base) = (Arc::clone(tracked.object()), tracked.stamp());
        self.report_stale = false;
        let mut status = self.status(&before.spec.all_label_keys(), inputs);
        if same(&before.status, &status) && !beats {
            return;
        }
        status.reported_at = Some(Time(ctx.now));
        if report::submit(&before.status, &status, base, ctx) {
            self.not_before = Some(after(ctx.now, REPORT_PERIOD));
            let next = after(ctx.now, HEARTBEAT);
            self.heartbeat_at = Some(next);
            ctx.agenda.at(next, Reevaluation::Report);
        }
    }

    fn refresh_nodes(&mut self, scheduler: &mut Scheduler, fleet: &mut Fleet, ctx: &mut Context) {
        let groups = self.autoscalers.groups(self.nodes.existing(), scheduler.names_mut(), ctx.now);
        let scales_otherwise = groups != self.new_nodes;
        self.new_nodes = groups;
        // A cluster without any nodes has a queue as well.
        let changed = self.nodes.take_totals_changed() | scales_otherwise || !self.has_quota;
        if changed && self.mode == AdmissionMode::Thin {
            self.has_quota = true;
            let totals = self.totals(scheduler.names());
            let totals: Vec<_> = totals.iter().map(|(name, sum)| (name.as_str(), *sum)).collect();
            let quota = |index: &mut Index, names: &mut _| index.agent_mode_quota(names, &totals);
            scheduler.update(&mut ctx.agenda, quota);
        }
        if scales_otherwise {
            let classes = self.new_nodes.iter().map(|group| group.class.clone());
            fleet.set_local_new_nodes(self.id, classes.collect());
            let clones = self.unschedulable.clones();
            ctx.agenda.workloads(clones.flat_map(|chain| self.chains.clones_of(chain)));
        }
        for name in self.nodes.take_changed() {
            let node = self.nodes.local(&name, scheduler.names_mut());
            fleet.set_local_node(self.id, &name, node);
        }
        self.report_stale = true;
    }

    /// What present nodes have in all for clones, and the nodes that can still be added.
    fn totals(&self, names: &Names) -> BTreeMap<String, Amount> {
        let mut totals: BTreeMap<String, Amount> =
            self.nodes.totals().map(|(name, sum)| (name.to_owned(), sum)).collect();
        for class in self.new_nodes.iter().map(|group| &group.class) {
            for (resource, amount) in &class.free {
                let sum = totals.entry(names.resources.name(*resource).to_owned()).or_default();
                *sum += amount.times(class.count);
            }
        }
        totals
    }

    /// Counts the unbound pods of a clone that holds quota.
    fn refresh_unbound(&mut self, key: &Key, inputs: &mut CapacityInputs<'_>) {
        let Self { mode, nodes, chains, .. } = self;
        let bound = BoundPods { mode: *mode, nodes, chains };
        let unbound = bound.of_clone(key, inputs);
        let counted = unbound.as_ref().filter(|one| one.holds_quota);
        let record = inputs.workloads.get(key).and_then(|record| Some((record, record.id()?)));
        match (record, counted.map(|one| Arc::clone(&one.work))) {
            (Some((record, id)), Some(work)) => {
                let placed = (id, work);
                if self.placed.get(key) != Some(&placed) {
                    let (id, work) = placed.clone();
                    inputs.fleet.place(id, self.id, work, record.started_at());
                    self.placed.insert(key.clone(), placed);
                }
            }
            (record, _) => {
                let placed = self.placed.remove(key).is_some();
                // The placement of a reservation that is not written yet is that of its cycle and
                // stays.
                let unreserved = |one: &TrackedWorkload| one.transitions().reservation().is_none();
                if let Some((_, id)) = record.filter(|(one, _)| placed && unreserved(one)) {
                    inputs.fleet.unplace(id);
                }
            }
        }
        match unbound {
            Some(unbound) => self.unbound.insert(key.clone(), unbound),
            None => self.unbound.remove(key),
        };
    }

    /// Records what the bound pods of a clone take, in mode Quota: the room of a preemption. The pods of slices are those of one of
    /// them.
    fn refresh_bound(&mut self, key: &Key, inputs: &mut CapacityInputs<'_>) {
        let id = inputs.workloads.id_of(key).filter(|_| self.mode == AdmissionMode::Quota);
        let Some(id) = id else {
            return;
        };
        let chain = self.chains.of(key);
        let taken = if self.chains.clones_of(chain).last() == Some(key) {
            self.nodes.taken_by(chain, inputs.scheduler.names_mut())
        } else {
            Vec::new()
        };
        inputs.fleet.set_bound(self.id, id, taken);
    }

    /// What is free beside clones, in classes by these labels at least.
    fn free_classes(
        &self,
        keys: &[String],
        workloads: &Workloads,
        fleet: &Fleet,
    ) -> RemainingNodes {
        // Pending clones count as well: up to `asOf` the manager does not count a clone as in
        // flight (docs/reference/dispatch.md §2).
        let is_pending =
            |key: &Key| workloads.id_of(key).is_some_and(|id| fleet.placed_on(id).is_none());
        let pending = self.unbound.iter().filter(|(key, _)| is_pending(key));
        let mut pending = pending.map(|(_, one)| one.work.as_ref()).peekable();
        if pending.peek().is_none() {
            let keys: Vec<Box<str>> = keys.iter().map(|key| key.as_str().into()).collect();
            return RemainingNodes {
                classes: fleet.local_classes(self.id, &keys),
                elastic: fleet.local_unused_new_nodes(self.id),
            };
        }
        // Any label may decide where they fit.
        let label_keys = fleet.local_label_keys(self.id).to_vec();
        let classes = fleet.local_classes(self.id, &label_keys);
        let elastic = fleet.local_unused_new_nodes(self.id);
        let known = CapacityReport { label_keys, classes, elastic, ..CapacityReport::default() };
        dispatch::free_capacity(&known, pending)
    }

    fn status(&mut self, keys: &[String], inputs: &mut ReportInputs<'_>) -> ClusterCapacityStatus {
        let left = self.free_classes(keys, inputs.workloads, inputs.fleet);
        let records = inputs.workloads.iter().map(|(_, record)| record);
        // The newest Workload may be deleted, and what an earlier report has counted must not count twice.
        let reported = self.report.as_ref().and_then(|one| one.object().status.as_of.parse().ok());
        self.newest = self.newest.max(reported.unwrap_or(0));
        let newest = self.newest;
        let counts = report::counts(records.map(|one| &**one.object()), inputs.origin);
        let kinds = std::mem::take(&mut inputs.kinds);
        let names = inputs.scheduler.names();
        // Nodes that are on their way are requested already, for the pods that wait for them or for pods of others.
        let unused = left.elastic.into_iter().zip(&self.new_nodes);
        let elastic = unused.map(|(class, group)| NodeClassCapacity {
            count: class.count.min(group.max_more),
            ..class
        });
        let elastic = report::elastic(names, elastic, keys);
        let status = report::status(names, &left.classes, keys, newest, kinds, counts);
        let status = ClusterCapacityStatus { elastic, ..status };
        match self.mode {
            AdmissionMode::Thin => status,
            AdmissionMode::Quota => ClusterCapacityStatus {
                mode: QUOTA.to_owned(),
                flavors: inputs.scheduler.quota_report(),
                ..status
            },
        }
    }
}

/// The nodes that the pods of a placed clone are assigned, by pod set; `None` where the scheduler chooses the nodes.
pub(crate) fn assigned_nodes(fleet: &Fleet, id: WorkloadId) -> Vec<Option<TopologyAssignment>> {
    let work = fleet.placed_work(id);
    let given = work.into_iter().flat_map(|work| &work.assigned);
    given.map(|one| index::status::on_hosts(&one.nodes)).collect()
}
