//! Observations of Workloads, and answers to their writes.
//!
//! Inputs: objects and answers. Outputs: [`WorkloadChange`]s.

use std::sync::Arc;

use crds::v1beta2::Workload;
use engine::ids::WorkloadId;
use index::{AffectedWorkloads, status::with_topologies};
use jiff::Timestamp;
use runtime::{watch::Key, writer::WriteOutcome};

use super::{Workloads, tracked_workload::TrackedWorkload, workload_change::WorkloadChange};
use crate::control::{
    context::Context,
    outbox::{Purpose, Settled, Ticket},
};

impl Workloads {
    /// Whether this object is another one than the Workload that is known by its name.
    pub(crate) fn is_replaced_by(&self, key: &Key, object: &Workload) -> bool {
        let known = self.records.get(key);
        known.is_some_and(|record| record.object().metadata.uid != object.metadata.uid)
    }

    /// Records an observation of an object with the known uid, or of a new one, which `id` numbers.
    pub(crate) fn observe(
        &mut self,
        key: &Key,
        object: Arc<Workload>,
        id: impl FnOnce() -> WorkloadId,
    ) -> Option<WorkloadChange> {
        if self.records.contains_key(key) {
            return self.update(key, |record| record.observe(object));
        }
        let id = id();
        let record = TrackedWorkload::new(object, id);
        let change = WorkloadChange::reentered(key, &record);
        self.by_id.insert(id, key.clone());
        self.records.insert(key.clone(), record);
        Some(change)
    }

    /// Forgets a Workload that is gone.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<WorkloadChange> {
        // The number stays taken until `release_id`: other machines have to take the removal first.
        let record = self.records.remove(key)?;
        self.deadlines.set(key, None);
        Some(WorkloadChange {
            key: key.clone(),
            id: record.id(),
            before: Some(Arc::clone(record.object())),
            after: None,
            phase_before: Some(record.phase()),
            phase: None,
            voids_reservation: false,
            shows_topology: false,
        })
    }

    /// Enters pending Workloads again if their requests are read differently now. An admission has fixed those of a Workload with
    /// quota (docs/reference/kueue.md §2.5).
    pub(crate) fn reenter_affected(&self, affected: &AffectedWorkloads) -> Vec<WorkloadChange> {
        self.reenter(affected, |record| !record.phase().holds_quota())
    }

    /// The same with those that have quota: their pods are counted on nodes, and an admission does not fix what these request.
    pub(crate) fn reenter_all_affected(&self, affected: &AffectedWorkloads) -> Vec<WorkloadChange> {
        self.reenter(affected, |_| true)
    }

    /// Entered again as they are.
    fn reenter(
        &self,
        affected: &AffectedWorkloads,
        among: impl Fn(&TrackedWorkload) -> bool,
    ) -> Vec<WorkloadChange> {
        // Most changes of queues: no Workload is looked at.
        if *affected == AffectedWorkloads::None {
            return Vec::new();
        }
        let records = self.records.iter().filter(|(_, record)| among(record));
        let concerned = records.filter(|(key, record)| concerns(affected, key, record.object()));
        concerned.map(|(key, record)| WorkloadChange::reentered(key, record)).collect()
    }

    /// One Workload, entered again as it is.
    pub(crate) fn reenter_one(&self, key: &Key) -> Option<WorkloadChange> {
        self.records.get(key).map(|record| WorkloadChange::reentered(key, record))
    }

    /// Takes the answer to a write of an existing Workload.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        settled: &Settled,
        ctx: &mut Context,
    ) -> Option<WorkloadChange> {
        let key = &ticket.target.key;
        let record = self.records.get_mut(key)?;
        // A 404 removes the Workload; the watch may never report an object that came and went between two lists.
        // Only if nothing newer was observed: a Workload that was created again under the name stays.
        if answer == WriteOutcome::Gone && settled.base.as_ref() == Some(&record.stamp()) {
            return self.remove(key);
        }
        // Without a write the transition stays pending.
        let WriteOutcome::Done(value) = answer else {
            return None;
        };
        let change = self.update(key, |record| record.observe_answer(&value));
        if let Some(record) = self.records.get_mut(key) {
            settle_purpose(record, ticket.purpose, ctx.now);
            record.settle_transitions();
        }
        change
    }

    /// Records a newer object. A changed spec, or other pods that need no quota, void a reservation that was decided for the old one.
    fn update(
        &mut self,
        key: &Key,
        observe: impl FnOnce(&mut TrackedWorkload) -> bool,
    ) -> Option<WorkloadChange> {
        let record = self.records.get_mut(key)?;
        let (before, phase_before) = (Arc::clone(record.object()), record.phase());
        if !observe(record) {
            return None;
        }
        // The answer to the write of a transition may be lost. Left over, it would be written for the next reservation.
        record.settle_transitions();
        let after = Arc::clone(record.object());
        if before.spec.priority_class_ref != after.spec.priority_class_ref {
            record.forget_followed_class();
        }
        let other_work = before.spec != after.spec
            || before.status.reclaimable_pods != after.status.reclaimable_pods;
        let voids_reservation = other_work && record.transitions_mut().withdraw_reservation();
        let shows_topology = ends_topology(record, &before);
        Some(WorkloadChange {
            key: key.clone(),
            id: record.id(),
            before: Some(before),
            after: Some(after),
            phase_before: Some(phase_before),
            phase: Some(record.phase()),
            voids_reservation,
            shows_topology,
        })
    }
}

/// Ends the transition to new topology assignments if they are visible, or if another writer has replaced the assignments that
/// they follow. Returns whether they are visible.
fn ends_topology(record: &mut TrackedWorkload, before: &Workload) -> bool {
    let Some(assigned) = record.transitions().topology() else {
        return false;
    };
    let status = &record.object().status;
    let visible = with_topologies(status.clone(), assigned).admission == status.admission;
    if visible || status.admission != before.status.admission {
        record.transitions_mut().end_topology();
    }
    visible
}

/// What a write of this purpose means for pending transitions, beside what the status shows.
fn settle_purpose(record: &mut TrackedWorkload, purpose: Purpose, now: Timestamp) {
    match purpose {
        // A clone of the earlier epoch may still report readiness.
        Purpose::RaiseEpoch => record.transitions_mut().withdraw_check_ready(),
        Purpose::Pending => record.reason_written(now),
        _ => {}
    }
}

/// Whether the requests of a Workload may be read differently.
fn concerns(affected: &AffectedWorkloads, key: &Key, workload: &Workload) -> bool {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    match affected {
        AffectedWorkloads::None => false,
        AffectedWorkloads::InNamespace(name) => namespace == *name,
        AffectedWorkloads::InLocalQueues(queues) => {
            queues.contains(&format!("{namespace}/{}", workload.spec.queue_name))
        }
        AffectedWorkloads::OfRuntimeClass(name) => {
            let sets = workload.spec.pod_sets.iter();
            let mut pods = sets.filter_map(|set| set.template.spec.as_ref());
            pods.any(|pod| pod.runtime_class_name.as_ref() == Some(name))
        }
    }
}
