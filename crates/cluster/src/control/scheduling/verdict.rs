//! What an entry of a cycle means: a reservation, evictions of preemption targets, or a reason to be pending.

use crds::{names::reasons, v1beta2::Workload};
use dispatch::{Fleet, RefusedFlavors, refusals_message};
use engine::{
    CycleEntry, CycleOutcome, Engine, PreemptionTarget, explain,
    ids::{QueueId, WorkloadId},
};
use index::{Index, status::PodSetTopology};
use jiff::Timestamp;
use runtime::events::Regarding;

use crate::control::workloads::{
    EvictionRequest, PendingMessage, Preemption, ReservedQuota, TrackedWorkload, Workloads,
};

/// The consequence of an entry of a cycle.
pub(super) enum Verdict {
    Reserve(Box<ReservedQuota>),
    Preempt(Vec<(WorkloadId, EvictionRequest)>, PendingMessage),
    Wait(PendingMessage),
    /// Pods of a failed node move to others: the topology assignments by pod set.
    Move(Vec<PodSetTopology>),
    /// It loses its quota: nodes failed under it.
    Evict(EvictionRequest),
    /// There is no replacement for a failed node yet, with the message of the Event.
    NotReplaced(String),
}

/// What a verdict is read from.
pub(super) struct VerdictInputs<'a> {
    pub(super) engine: &'a Engine,
    pub(super) index: &'a Index,
    pub(super) fleet: &'a Fleet,
    pub(super) workloads: &'a Workloads,
    /// The earliest time at which a reason to be pending is written.
    pub(super) not_before: Timestamp,
}

impl VerdictInputs<'_> {
    /// The verdict of one entry. `refused` has the clusters that have no room for it.
    pub(super) fn verdict(
        &self,
        entry: &CycleEntry,
        refused: Option<&[RefusedFlavors]>,
    ) -> Verdict {
        if let CycleOutcome::Reserved { cluster } = entry.outcome {
            let admission = self.index.admission(self.engine, entry);
            let assigned = admission.pod_set_assignments.iter();
            let flavors = assigned.flat_map(|one| one.flavors.values()).map(String::as_str);
            // From the reservation on only checks of the assigned flavors are required
            // (docs/reference/kueue.md §2.3).
            let checks = self.index.checks_for_flavors(&admission.cluster_queue, flavors);
            let cluster = cluster.map(|id| self.fleet.name(id).into());
            let considered = explain::considered_flavors(self.engine, entry);
            let run_time = self.fleet.placed_run_time(entry.workload);
            let reserved = ReservedQuota { admission, checks, cluster, run_time, considered };
            return Verdict::Reserve(Box::new(reserved));
        }
        if entry.outcome.concerns_reserving_workload() {
            return self.of_failed_nodes(entry);
        }
        // The engine knows that no cluster takes the entry, the fleet why each of them does not. Other flavors, or preemption, may have
        // helped after a refusal.
        let unplaced = matches!(entry.outcome, CycleOutcome::NoClusterCapacity(_));
        let message = match refused.filter(|_| unplaced) {
            Some(refused) => refusals_message(refused, self.fleet, self.engine.names()),
            None => explain::condition_message(self.engine, entry),
        };
        let reason = match explain::condition_reason(entry) {
            // Upstream knows no reason either, and a condition has one.
            "" => reasons::PENDING,
            reason => reason,
        };
        let pending = PendingMessage {
            reason: reason.to_owned(),
            message,
            gated: entry.outcome == CycleOutcome::PreemptionGated,
            by_cycle: true,
            not_before: self.not_before,
        };
        let evictions = self.evictions(entry);
        // Its targets may all be leaving already; then there is nothing to do but wait.
        if evictions.is_empty() {
            return Verdict::Wait(pending);
        }
        Verdict::Preempt(evictions, pending)
    }

    /// The verdict about a Workload with quota under which nodes failed (docs/reference/kueue.md §4.11).
    fn of_failed_nodes(&self, entry: &CycleEntry) -> Verdict {
        let message = || explain::condition_message(self.engine, entry);
        match entry.outcome {
            CycleOutcome::NodeReplaced => {
                Verdict::Move(index::status::moved_topologies(self.engine, entry))
            }
            CycleOutcome::NodesFailed => {
                Verdict::Evict(EvictionRequest::new(reasons::NODE_FAILURES, message()))
            }
            _ => Verdict::NotReplaced(message()),
        }
    }

    /// Evictions that the entry needs and that are not decided yet.
    fn evictions(&self, entry: &CycleEntry) -> Vec<(WorkloadId, EvictionRequest)> {
        let mut evictions = Vec::new();
        if let CycleOutcome::Migrating { from } = entry.outcome
            && !self.is_leaving(from)
        {
            evictions.push((from, self.migration(entry)));
        }
        // A target is not preempted again before its eviction is seen (docs/reference/kueue.md
        // §4.8).
        let preempts = entry.outcome == CycleOutcome::Preempting;
        if preempts {
            evictions.extend(self.preemptions(entry.workload, entry.queue, &entry.targets));
        }
        evictions
    }

    /// Evictions of targets in favour of a Workload of this ClusterQueue. Those that are leaving are left out.
    pub(super) fn preemptions(
        &self,
        preemptor: WorkloadId,
        queue: QueueId,
        targets: &[PreemptionTarget],
    ) -> Vec<(WorkloadId, EvictionRequest)> {
        let staying = targets.iter().filter(|one| !self.is_leaving(one.workload));
        let eviction = |target: &PreemptionTarget| {
            let message = self.preemption_message(preemptor, queue, target);
            let request = EvictionRequest {
                preemption: self.preemption(preemptor, queue, target).map(Box::new),
                ..EvictionRequest::new(reasons::PREEMPTED, message)
            };
            (target.workload, request)
        };
        staying.map(eviction).collect()
    }

    fn is_leaving(&self, id: WorkloadId) -> bool {
        self.workloads.by_id(id).is_some_and(|(_, record)| record.is_leaving())
    }

    /// The eviction of a variant in favour of a sibling with a better flavor.
    fn migration(&self, entry: &CycleEntry) -> EvictionRequest {
        let (uid, _) = self.uids(entry.workload);
        let message = index::status::migration_message(uid);
        EvictionRequest::new(reasons::FLAVOR_MIGRATION, message)
    }

    fn preemption_message(
        &self,
        preemptor: WorkloadId,
        queue: QueueId,
        target: &PreemptionTarget,
    ) -> String {
        let reserved = self.engine.admission_spec(target.workload);
        let target_path = reserved.map(|one| self.engine.cohort_path(one.queue));
        let preemptor_path = self.engine.cohort_path(queue);
        let paths = (preemptor_path.as_str(), target_path.as_deref().unwrap_or_default());
        index::status::preemption_message(self.uids(preemptor), target.reason, paths)
    }

    fn preemption(
        &self,
        preemptor: WorkloadId,
        queue: QueueId,
        target: &PreemptionTarget,
    ) -> Option<Preemption> {
        let record = |id| self.workloads.by_id(id).map(|(_, record)| record.object());
        let priority = |id: WorkloadId, workload: &Workload| {
            let effective = self.index.queue_order(id).priority;
            let base = i64::from(workload.spec.priority.unwrap_or(0));
            format!("effective priority: {effective} (base: {base}, boost: {})", effective - base)
        };
        let (workload, preempted) = (record(preemptor)?, record(target.workload)?);
        let priorities = format!(
            "preemptor {}; preemptee {}",
            priority(preemptor, workload),
            priority(target.workload, preempted)
        );
        // All victims of a decision are one Event about the preemptor.
        let preemptor = Regarding::version_of(&**workload);
        let queue = self.engine.names().queues.name(queue).to_owned();
        Some(Preemption { reason: target.reason, preemptor, queue, priorities })
    }

    fn uids(&self, id: WorkloadId) -> (&str, &str) {
        let record = self.workloads.by_id(id).map(|(_, record)| record);
        record.map(TrackedWorkload::uids).unwrap_or_default()
    }
}
