//! Scheduling: the engine and the index that feeds it, and what cycles decide.
//!
//! Inputs: observations of everything that quota depends on, Workload changes, and answers that void an assumption.
//! Outputs: transitions of Workloads. The fleet is not owned here: a cycle borrows it, since quota is reserved only together
//! with a cluster that has room.
//!
//! | file | concept |
//! |---|---|
//! | `cycle` | scheduling cycles, and when another one is worth running |
//! | `verdict` | what an entry of a cycle means for Workloads |
//! | `block_admission` | `waitForPodsReady.blockAdmission` |
//! | `dump` | queues and quota as text |
//! | `explanations` | what pending Workloads lack, for Events and the visibility API |
//! | `usage_sampling` | what LocalQueues consumed, under admission fair sharing |
//! | `second_passes` | topology assignments of Workloads that hold quota already |
//! | `preemption_counts` | what cycles did about preemption, for metrics |
//! | `slices` | the end of a replaced slice of an elastic job |

mod block_admission;
mod cycle;
mod dump;
mod explanations;
mod preemption_counts;
mod second_passes;
mod slices;
mod usage_sampling;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crds::v1alpha1::FlavorCapacity;
use crds::v1beta2::{
    Admission, AdmissionFairSharingStatus, LocalQueue, PodSet, PodSetRequest, Workload,
};
use dispatch::{AssignedPodSet, Fleet, QueueOrder, WorkloadRequest};
use engine::{Engine, Event, Names, ids::WorkloadId};
use index::{
    AffectedWorkloads, Index, VariantRules,
    gauges::{self, ClusterQueueGauges, CohortGauges, LocalQueueGauges},
    local_queue_usage,
    queue_status::ClusterQueueCounts,
};
use jiff::{SignedDuration, Timestamp};
use runtime::{events::EventRecord, watch::Key};

pub use self::explanations::has_explanation;
use self::{
    block_admission::PodsReadyGate,
    cycle::{CyclesRun, SchedulingCycles},
    explanations::Explanations,
    preemption_counts::PreemptionCounts,
    usage_sampling::UsageSampling,
};
pub(crate) use self::{
    cycle::{ChangesNodes, DispatchedEntryOf},
    usage_sampling::UsageSettings,
};
use super::{
    context::Context,
    decisions::AdmissionExplained,
    measurement::labels_and_annotations,
    time::{engine_time, moved, timestamp},
    timers::{Agenda, Reevaluation},
    workloads::{TrackedWorkload, WorkloadChange, WorkloadPhase, Workloads},
};

/// What the scheduler is configured with.
#[derive(Clone, Debug)]
pub(crate) struct SchedulerConfig {
    pub(crate) engine: engine::EngineSettings,
    pub(crate) index: index::IndexConfig,
    /// How long a Workload is pending before the reason is written.
    pub(crate) explain_after: Duration,
    /// This process decides which Workloads get quota. Without, another client does, and queues are only counted.
    pub(crate) runs_cycles: bool,
    /// Pending Workloads get an Event that says what would make them admissible.
    pub(crate) explains_admission: bool,
    /// `waitForPodsReady.blockAdmission`.
    pub(crate) block_admission: bool,
    /// Admission fair sharing, if it is on.
    pub(crate) usage: Option<UsageSettings>,
    /// Cohorts have metrics (gate MetricsForCohorts).
    pub(crate) measures_cohorts: bool,
}

/// The engine, its index, and what waits for a cycle.
#[derive(Debug)]
pub(crate) struct Scheduler {
    engine: Engine,
    index: Index,
    gate: PodsReadyGate,
    sampling: UsageSampling,
    preemption_counts: PreemptionCounts,
    explain_after: Duration,
    runs_cycles: bool,
    /// `None` if another process explains the Workloads.
    explanations: Option<Explanations>,
    fair_sharing: bool,
    measures_cohorts: bool,
    /// Since when messages may have old numbers.
    stale_since: Option<Timestamp>,
    /// Workloads whose requests to a cluster were changed since the last cycle.
    edited: BTreeSet<WorkloadId>,
    /// Something changed since the last cycle that cycles depend on.
    pending: bool,
}

impl Scheduler {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let mut engine = Engine::new(config.engine.clone());
        Self {
            sampling: UsageSampling::new(config.usage.as_ref(), &mut engine),
            engine,
            index: Index::new(config.index.clone()),
            gate: PodsReadyGate::new(config.block_admission),
            preemption_counts: PreemptionCounts::default(),
            explain_after: config.explain_after,
            runs_cycles: config.runs_cycles,
            explanations: config.explains_admission.then(Explanations::default),
            fair_sharing: config.engine.fair_sharing.is_some(),
            measures_cohorts: config.measures_cohorts,
            stale_since: None,
            edited: BTreeSet::new(),
            pending: true,
        }
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self {
            engine: _,
            index: _,
            gate: _,
            sampling,
            preemption_counts: _,
            explain_after: _,
            runs_cycles: _,
            explanations,
            fair_sharing: _,
            measures_cohorts: _,
            stale_since,
            edited: _,
            pending: _,
        } = self;
        *stale_since = stale_since.map(|at| moved(at, by));
        sampling.resample_now();
        if let Some(explanations) = explanations {
            explanations.clock_jumped(by);
        }
    }

    /// Reads an object into the index and applies the events that follow from it.
    pub(crate) fn update(
        &mut self,
        agenda: &mut Agenda,
        read: impl FnOnce(&mut Index, &mut Names) -> Vec<Event>,
    ) {
        let events = read(&mut self.index, self.engine.names_mut());
        self.apply(events, agenda);
    }

    /// Whether a LocalQueue was deleted and created since its last observation, and has no part in what the first one consumed.
    pub(crate) fn is_another_queue(&self, key: &Key, queue: Option<&LocalQueue>) -> bool {
        queue.is_some_and(|queue| self.sampling.is_another(key, queue))
    }

    /// Takes over what the status of a LocalQueue records; `None` if it is gone.
    pub(crate) fn observe_usage(
        &mut self,
        key: &Key,
        queue: Option<&LocalQueue>,
        agenda: &mut Agenda,
    ) {
        let recorded = self.sampling.observe(key, queue, self.engine.names_mut());
        self.apply(recorded.into_iter().collect(), agenda);
    }

    /// The spec of a queue is new or changed: its usage may be sampled from now on.
    pub(crate) fn sample_usage(&mut self) {
        self.sampling.resample_now();
    }

    /// What the status of a LocalQueue records under admission fair sharing.
    pub(crate) fn usage_record(&self, key: &Key) -> Option<AdmissionFairSharingStatus> {
        local_queue_usage::record(&self.engine, &key.to_string())
    }

    /// Reads an object that changes how requests are read. Returns which Workloads it affects.
    pub(crate) fn update_defaults(
        &mut self,
        read: impl FnOnce(&mut Index) -> AffectedWorkloads,
    ) -> AffectedWorkloads {
        read(&mut self.index)
    }

    /// The number of a Workload, by its `namespace/name`.
    pub(crate) fn intern(&mut self, key: &Key) -> WorkloadId {
        self.engine.names_mut().workloads.intern(&key.to_string())
    }

    /// Takes a change of a Workload. Returns whether its number may be given to another one.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, ctx: &mut Context) -> bool {
        if let Some(explanations) = &mut self.explanations {
            explanations.observe(change, ctx.now);
        }
        let mut events = Vec::new();
        // The assumed usage goes first: the new spec may request another amount.
        let voided = change.id.filter(|_| change.voids_reservation);
        events.extend(voided.map(Event::ReservationWithdrawn));
        let namespace = change.key.namespace.as_deref().unwrap_or_default();
        let name = &change.key.name;
        let before = change.id.and_then(|id| self.index.request(id).cloned());
        let over = match &change.after {
            Some(after) => {
                let now = engine_time(ctx.now);
                events.extend(self.index.workload(self.engine.names_mut(), after, now));
                change.phase == Some(WorkloadPhase::Finished)
            }
            None => {
                events.extend(self.index.workload_gone(self.engine.names(), namespace, name));
                true
            }
        };
        // The engine knows nothing of annotations that select clusters.
        let differs = |id: &WorkloadId| {
            before.is_some()
                && self.index.request(*id).is_some_and(|one| Some(one) != before.as_ref())
        };
        self.edited.extend(change.id.filter(differs));
        let shown = change.id.filter(|_| change.shows_topology);
        events.extend(shown.map(Event::Written));
        // The end of a backoff is no event of any watch; at that time the Workload is entered
        // again.
        let wake = self.index.requeue_at(self.engine.names(), namespace, name);
        self.apply(events, &mut ctx.agenda);
        if let Some(at) = wake.filter(|_| change.after.is_some()) {
            ctx.agenda.at(timestamp(at), Reevaluation::Workload(change.key.clone()));
        }
        over
    }

    /// Takes back what the engine assumed for a decision that is not going to be written.
    pub(crate) fn withdraw(&mut self, id: WorkloadId, agenda: &mut Agenda) {
        self.apply(vec![Event::ReservationWithdrawn(id)], agenda);
    }

    /// Runs cycles if something changed that they depend on.
    pub(crate) fn run_cycles(
        &mut self,
        fleet: &mut Fleet,
        workloads: &mut Workloads,
        (work_of, changes_nodes): (DispatchedEntryOf, ChangesNodes<'_>),
        ctx: &mut Context,
    ) -> CyclesRun {
        if let Some((next, sampled)) = self.sampling.sample(&mut self.engine, ctx.now) {
            ctx.agenda.at(next, Reevaluation::Queues);
            // Another LocalQueue may come first now.
            self.pending |= sampled;
        }
        if !self.runs_cycles {
            return self.rest(ctx);
        }
        let Self { engine, index, gate, pending, edited, preemption_counts, stale_since, .. } =
            self;
        let explain_after = self.explain_after;
        let cycles = SchedulingCycles {
            engine,
            index,
            gate,
            fleet,
            work_of,
            changes_nodes,
            preemption_counts,
            explain_after,
            stale_since,
            edited,
            pending,
        };
        cycles.run(workloads, ctx)
    }

    /// Applies the configuration, which cycles would do, and forgets what asks for cycles, which would be due for ever.
    fn rest(&mut self, ctx: &mut Context) -> CyclesRun {
        self.engine.apply_configuration();
        ctx.agenda.take_fleet();
        self.edited.clear();
        self.pending = false;
        CyclesRun::default()
    }

    /// Explains a Workload that has stayed pending, if that is due. Returns the Event.
    pub(crate) fn explain_admission(
        &mut self,
        workloads: &Workloads,
        has_writes: bool,
        now: Timestamp,
    ) -> Option<EventRecord> {
        let due = self.explanations.as_mut().filter(|one| one.are_due(has_writes, now))?;
        due.explain(&mut self.engine, workloads, now)
    }

    /// Explanations that were published or withdrawn since the last call.
    pub(crate) fn take_explained(&mut self) -> Vec<AdmissionExplained> {
        self.explanations.as_mut().map(Explanations::take).unwrap_or_default()
    }

    /// When Workloads are to be explained next.
    pub(crate) fn next_explanation(&self) -> Option<Timestamp> {
        self.explanations.as_ref().and_then(Explanations::next)
    }

    /// Whether the engine holds a reservation of a Workload, written or not.
    pub(crate) fn holds_reservation(&self, id: WorkloadId) -> bool {
        self.engine.admission(id).is_some()
    }

    /// Whether a node of this hostname and with these labels is in a domain that the reservation of a Workload assigns.
    pub(crate) fn assigns_node(
        &self,
        id: WorkloadId,
        hostname: &str,
        labels: &BTreeMap<String, String>,
    ) -> bool {
        self.engine.assigns_node(id, hostname, labels)
    }

    /// Runs cycles at the next decision.
    pub(crate) fn request_cycle(&mut self) {
        self.pending = true;
    }

    /// Whether cycles are to be run.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Whether a backoff of a Workload ends at or before the present time.
    pub(crate) fn backoff_has_ended(&self, key: &Key, ctx: &Context) -> bool {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let wake = self.index.requeue_at(self.engine.names(), namespace, &key.name);
        wake.is_some_and(|at| at <= engine_time(ctx.now))
    }

    /// Keeps track of whether admission is blocked by the pods of a Workload.
    pub(crate) fn watch_pods_ready(&mut self, key: &Key, record: Option<&TrackedWorkload>) {
        self.gate.watch(key, record);
    }

    /// Why no cycle evaluates a pending Workload: reason and message of its condition.
    pub(crate) fn blocker(&self, workload: &Workload) -> Option<(&'static str, String)> {
        self.index.blocker(workload)
    }

    /// The message that names the admission gates of a Workload.
    pub(crate) fn gate_message(&self, workload: &Workload) -> Option<String> {
        self.index.gate_message(workload)
    }

    /// The admission checks that the ClusterQueue of a Workload requires; `None` if there is none.
    pub(crate) fn required_checks(&self, workload: &Workload) -> Option<Vec<String>> {
        self.index.required_checks(workload)
    }

    /// The rules for variants of a Workload; `None` if it gets none.
    pub(crate) fn variant_rules(&self, workload: &Workload) -> Option<VariantRules> {
        self.index.variant_rules(workload)
    }

    /// Whether a Workload is to become the parent of variants.
    pub(crate) fn becomes_parent(&self, workload: &Workload) -> bool {
        self.index.becomes_parent(workload)
    }

    /// Requests, as the status of a pending Workload shows them.
    pub(crate) fn resource_requests(&self, workload: &Workload) -> Vec<PodSetRequest> {
        self.index.resource_requests(workload)
    }

    /// What the pods of a Workload need.
    pub(crate) fn request(&self, id: WorkloadId) -> Option<&Arc<WorkloadRequest>> {
        self.index.request(id)
    }

    /// What an admission gives each pod set.
    pub(crate) fn admitted_pod_sets(
        &self,
        admission: &Admission,
        sets: &[PodSet],
    ) -> Vec<AssignedPodSet> {
        self.index.admitted_pod_sets(admission, sets)
    }

    /// The MultiKueueConfig of the MultiKueue check of a ClusterQueue.
    pub(crate) fn multikueue_config(&self, cluster_queue: &str) -> Option<&str> {
        self.index.multi_kueue_config(cluster_queue)
    }

    /// The queue order of a Workload.
    pub(crate) fn queue_order(&self, id: WorkloadId) -> QueueOrder {
        self.index.queue_order(id)
    }

    /// The MultiKueue check of a ClusterQueue.
    pub(crate) fn multikueue_check(&self, cluster_queue: &str) -> Option<&str> {
        self.index.multi_kueue_check(cluster_queue)
    }

    /// The Workload whose quota a slice takes over.
    pub(crate) fn replaced_slice(&self, id: WorkloadId) -> Option<WorkloadId> {
        self.engine.replaced_slice(id)
    }

    /// The message of the end of a slice that another one replaces.
    pub(crate) fn replacement_message(
        &self,
        old: WorkloadId,
        workloads: &Workloads,
    ) -> Option<String> {
        slices::replacement_message(&self.engine, old, workloads)
    }

    /// What counts of a ClusterQueue.
    pub(crate) fn counts(&self, cluster_queue: &str) -> ClusterQueueCounts {
        ClusterQueueCounts::count(&self.index, &self.engine, cluster_queue)
    }

    /// The numbers of a ClusterQueue for metrics.
    pub(crate) fn queue_gauges(
        &self,
        name: &str,
        counts: &ClusterQueueCounts,
    ) -> Option<ClusterQueueGauges> {
        let gauges = gauges::cluster_queue(&self.index, &self.engine, name, counts)?;
        Some(ClusterQueueGauges { weighted_share: self.queue_share(name), ..gauges })
    }

    /// The numbers of a LocalQueue for metrics.
    pub(crate) fn local_queue_gauges(
        &self,
        queue: &LocalQueue,
        counts: &ClusterQueueCounts,
    ) -> Option<LocalQueueGauges> {
        let metadata = &queue.metadata;
        let text = |one: &'_ Option<String>| one.clone().unwrap_or_default();
        let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
        let place = (namespace.as_str(), name.as_str());
        let gauges = gauges::local_queue(&self.index, self.engine.names(), place, counts)?;
        let key = format!("{namespace}/{name}");
        let fair_sharing_usage = local_queue_usage::weighted(&self.engine, &key);
        Some(LocalQueueGauges {
            metadata: labels_and_annotations(metadata),
            fair_sharing_usage,
            ..gauges
        })
    }

    /// The numbers of Cohorts; none without their metrics.
    pub(crate) fn cohort_gauges(&self, names: &BTreeSet<String>) -> Vec<CohortGauges> {
        if !self.measures_cohorts {
            return Vec::new();
        }
        let gauges = gauges::cohorts(&self.engine, names.iter().map(String::as_str)).into_iter();
        let with_share = |one: CohortGauges| CohortGauges {
            weighted_share: self.cohort_share(&one.name),
            ..one
        };
        gauges.map(with_share).collect()
    }

    /// The weighted share of a ClusterQueue; `None` without fair sharing.
    pub(crate) fn queue_share(&self, name: &str) -> Option<f64> {
        let queue = self.engine.names().queues.get(name).filter(|_| self.fair_sharing)?;
        Some(self.engine.queue_weighted_share(queue))
    }

    /// The weighted share of a Cohort; `None` without fair sharing.
    pub(crate) fn cohort_share(&self, name: &str) -> Option<f64> {
        let cohort = self.engine.names().cohorts.get(name).filter(|_| self.fair_sharing)?;
        Some(self.engine.cohort_weighted_share(cohort))
    }

    /// Queues and quota as text.
    pub(crate) fn dump(&self) -> String {
        dump::dump(&self.engine)
    }

    /// Quota of every ClusterQueue.
    pub(crate) fn quota_report(&self) -> Vec<FlavorCapacity> {
        index::quota_report(&self.index, &self.engine)
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn names(&self) -> &Names {
        self.engine.names()
    }

    /// The name tables of the engine, to intern what reports and nodes name: see [`Engine::names_mut`].
    pub(crate) fn names_mut(&mut self) -> &mut Names {
        self.engine.names_mut()
    }

    fn apply(&mut self, mut events: Vec<Event>, agenda: &mut Agenda) {
        // Shares of Cohorts are written once per period, which is no reason to count all queues.
        events.retain(|event| !self.engine.is_repetition(event));
        if events.iter().any(|event| !leaves_queues(event)) {
            agenda.now(Reevaluation::Queues);
        }
        // Pods come and go on nodes all the time, and mostly no Workload waits for that.
        let (nodes, others): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| matches!(event, Event::Node(..)));
        self.pending |= !others.is_empty();
        others.into_iter().for_each(|event| self.engine.apply(event));
        let changed = !nodes.is_empty();
        nodes.into_iter().for_each(|event| self.engine.apply(event));
        self.pending |= changed && self.engine.has_pending_heads();
    }
}

/// Whether an event leaves the status of queues as it is, or concerns one Workload only: the queues that count it are marked
/// where the Workload changes.
fn leaves_queues(event: &Event) -> bool {
    match event {
        Event::Workload(..)
        | Event::WorkloadGone(_)
        | Event::Evicting(_)
        | Event::Released { .. }
        | Event::ClusterCapacity(_)
        | Event::Written(_)
        | Event::ReservationWithdrawn(_)
        | Event::RefreshMessages
        | Event::UnhealthyNodes(..)
        | Event::Admitted(..)
        // No status of a queue depends on a node.
        | Event::Node(..) => true,
        Event::Namespace(..)
        | Event::Flavor(..)
        | Event::Topology(..)
        | Event::Check(..)
        | Event::Cohort(..)
        | Event::ClusterQueue(..)
        | Event::LocalQueue(..)
        | Event::AdmissionFairSharing(_)
        | Event::ConsumedResources(..)
        | Event::SampleUsage(_) => false,
    }
}
