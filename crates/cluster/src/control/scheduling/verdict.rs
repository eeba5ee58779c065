//! What an entry of a cycle means: a reservation, evictions of preemption targets, or a reason to be pending.

use crds::names::reasons;
use dispatch::{Fleet, PlacementRefusal, placement_message};
use engine::{CycleEntry, CycleOutcome, Engine, explain, ids::WorkloadId};
use index::Index;
use jiff::Timestamp;

use crate::control::workloads::{
    EvictionRequest, PendingMessage, ReservedQuota, TrackedWorkload, Workloads,
};

/// See the module.
pub(super) enum Verdict {
    Reserve(ReservedQuota),
    Preempt(Vec<(WorkloadId, EvictionRequest)>, PendingMessage),
    Wait(PendingMessage),
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
        refused: Option<&PlacementRefusal>,
    ) -> Verdict {
        if let CycleOutcome::Reserved { cluster } = entry.outcome {
            let admission = self.index.admission(self.engine, entry);
            let assigned = admission.pod_set_assignments.iter();
            let flavors = assigned.flat_map(|one| one.flavors.values()).map(String::as_str);
            let checks = self.index.checks_for_flavors(&admission.cluster_queue, flavors);
            let cluster = cluster.map(|id| self.fleet.name(id).into());
            return Verdict::Reserve(ReservedQuota { admission, checks, cluster });
        }
        let message = match refused {
            Some(refused) => placement_message(refused, self.fleet, self.engine.names()),
            None => explain::condition_message(self.engine, entry),
        };
        let pending = PendingMessage {
            reason: explain::condition_reason(entry).to_owned(),
            message,
            gated: entry.outcome == CycleOutcome::PreemptionGated,
            not_before: self.not_before,
        };
        let evictions = self.evictions(entry);
        if evictions.is_empty() {
            return Verdict::Wait(pending);
        }
        Verdict::Preempt(evictions, pending)
    }

    /// Evictions that the entry needs and that are not decided yet.
    fn evictions(&self, entry: &CycleEntry) -> Vec<(WorkloadId, EvictionRequest)> {
        let mut evictions = Vec::new();
        if let CycleOutcome::Migrating { from } = entry.outcome
            && !self.is_leaving(from)
        {
            evictions.push((from, self.migration(entry)));
        }
        let preempts = entry.outcome == CycleOutcome::Preempting;
        let targets = entry.targets.iter();
        for target in targets.filter(|one| preempts && !self.is_leaving(one.workload)) {
            let preemption = EvictionRequest {
                preempted: Some(target.reason),
                ..EvictionRequest::new(reasons::PREEMPTED, self.preemption_message(entry, target))
            };
            evictions.push((target.workload, preemption));
        }
        evictions
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

    fn preemption_message(&self, entry: &CycleEntry, target: &engine::PreemptionTarget) -> String {
        let queue = |id: WorkloadId| {
            let record = self.workloads.by_id(id).map(|(_, record)| record);
            let admission = record.and_then(|record| record.object().status.admission.as_ref());
            admission.map_or(String::new(), |one| format!("/{}", one.cluster_queue))
        };
        let preemptor = format!("/{}", self.engine.names().queues.name(entry.queue));
        let paths = (preemptor.as_str(), &*queue(target.workload));
        index::status::preemption_message(self.uids(entry.workload), target.reason, paths)
    }

    fn uids(&self, id: WorkloadId) -> (&str, &str) {
        let record = self.workloads.by_id(id).map(|(_, record)| record);
        record.map(TrackedWorkload::uids).unwrap_or_default()
    }
}
