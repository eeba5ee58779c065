//! The workload layer: records, equivalence classes, claims between slices, variant groups and second passes.
//!
//! It knows neither quota nor queues. The position of a Workload in its ClusterQueue is stored here and set by the
//! queue layer; what an admission charges is stored here and set together with the quota layer.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission_fair_sharing::ledger::Sums;
use crate::ids::{EquivalenceClassId, LocalQueueId, QueueId, RequeueKey, WorkloadId};
use crate::spec::{PodSetAdmission, QueueEligibility};
use crate::time::Time;
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::capacity_waits::CapacityWait;
use crate::workloads::equivalence_class::{EquivalenceClass, EquivalenceClasses};
use crate::workloads::record::{LastAssignment, QueuePosition, ScanProgress, WorkloadRecord};
use crate::workloads::second_passes::SecondPasses;
use crate::workloads::slice_replacements::SliceReplacements;
use crate::workloads::table::WorkloadTable;
use crate::workloads::usage::SlotUsage;
use crate::workloads::variant_groups::VariantGroups;

/// All Workloads.
#[derive(Debug, Default)]
pub(crate) struct WorkloadLayer {
    table: WorkloadTable,
    classes: EquivalenceClasses,
    /// Claims of slices to replace older ones.
    slices: SliceReplacements,
    /// Which Workloads are variants of one another.
    variant_groups: VariantGroups,
    second_passes: SecondPasses,
    before: Option<WorkloadCheckpoint>,
}

/// The small tables before a what-if.
#[derive(Debug)]
struct WorkloadCheckpoint {
    slices: SliceReplacements,
    variant_groups: VariantGroups,
    second_passes: SecondPasses,
}

impl WorkloadLayer {
    /// A Workload, if it is known.
    pub(crate) fn get(&self, id: WorkloadId) -> Option<&WorkloadRecord> {
        self.table.get(id)
    }

    /// A known Workload.
    pub(crate) fn at(&self, id: WorkloadId) -> &WorkloadRecord {
        self.table.at(id)
    }

    /// All Workloads in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WorkloadId, &WorkloadRecord)> {
        self.table.iter()
    }

    /// The quota reservation of a Workload, if it has one.
    pub(crate) fn admission(&self, id: WorkloadId) -> Option<&AdmissionRecord> {
        self.get(id)?.admission.as_deref()
    }

    /// The equivalence class of a known Workload. Cloning the `Arc` keeps it while the table changes.
    pub(crate) fn class(&self, id: WorkloadId) -> &Arc<EquivalenceClass> {
        self.class_at(self.at(id).class)
    }

    /// An equivalence class by id.
    pub(crate) fn class_at(&self, id: EquivalenceClassId) -> &Arc<EquivalenceClass> {
        self.classes.at(id)
    }

    /// Workloads that name the one named `old` as the slice that they replace.
    pub(crate) fn claims_on(&self, old: &str) -> impl Iterator<Item = WorkloadId> + '_ {
        self.slices.of(old)
    }

    /// Whether any Workload claims to replace an older slice.
    pub(crate) fn has_claims(&self) -> bool {
        !self.slices.is_empty()
    }

    /// Number of older slices that any Workload claims to replace.
    pub(crate) fn n_claims(&self) -> usize {
        self.slices.len()
    }

    /// Other variants of the same parent.
    pub(crate) fn siblings(&self, id: WorkloadId) -> impl Iterator<Item = WorkloadId> + '_ {
        self.variant_groups.siblings(id)
    }

    /// Second passes of all Workloads.
    pub(crate) fn second_passes(&self) -> &SecondPasses {
        &self.second_passes
    }

    /// Second passes of all Workloads, for a change. The table keeps its own rules, and nothing else of the layer follows from it.
    pub(crate) fn second_passes_mut(&mut self) -> &mut SecondPasses {
        &mut self.second_passes
    }
}

/// Workloads that come, change and go.
impl WorkloadLayer {
    /// Adds a reference to a class, which is inserted if it is new.
    pub(crate) fn acquire_class(&mut self, class: EquivalenceClass) -> EquivalenceClassId {
        self.classes.acquire(class)
    }

    /// Adds a reference to a known class.
    pub(crate) fn retain_class(&mut self, id: EquivalenceClassId) {
        self.classes.retain(id);
    }

    /// Removes a reference to a class.
    pub(crate) fn release_class(&mut self, id: EquivalenceClassId) {
        self.classes.release(id);
    }

    /// Adds a Workload, which takes over the caller's reference to its class.
    pub(crate) fn insert(&mut self, id: WorkloadId, workload: WorkloadRecord) {
        self.table.insert(id, workload);
    }

    /// Replaces a Workload without a reservation.
    pub(crate) fn replace(
        &mut self,
        id: WorkloadId,
        new: WorkloadRecord,
        scan_progress: ScanProgress,
    ) {
        let old = self.table.at_mut(id);
        let (old_class, settled_penalty) = (old.class, old.take_settled_penalty(&new));
        let last_assignment = old.last_assignment.take();
        let last_assignment = last_assignment.filter(|_| scan_progress == ScanProgress::Kept);
        self.table.insert(id, WorkloadRecord { last_assignment, settled_penalty, ..new });
        self.classes.release(old_class);
    }

    /// Removes a Workload. Returns false if it is not known.
    pub(crate) fn remove(&mut self, id: WorkloadId) -> bool {
        let removed = self.table.remove(id);
        if let Some(workload) = &removed {
            self.classes.release(workload.class);
        }
        removed.is_some()
    }

    /// Updates a Workload with a reservation from a new observation. Class, position and admission stay.
    pub(crate) fn update_reserving(&mut self, id: WorkloadId, new: WorkloadRecord) {
        let old = self.table.at_mut(id);
        old.settled_penalty = old.take_settled_penalty(&new);
        (old.priority, old.has_priority_class) = (new.priority, new.has_priority_class);
        (old.eligibility, old.queued_at) = (new.eligibility, new.queued_at);
        (old.local_queue, old.invalid, old.checks) = (new.local_queue, new.invalid, new.checks);
        (old.preemption_gated, old.uid) = (new.preemption_gated, new.uid);
    }

    /// Notes the entry penalty that the LocalQueue of a Workload was charged.
    pub(crate) fn settle_penalty(&mut self, id: WorkloadId, penalty: Sums) {
        self.table.at_mut(id).settled_penalty = Some(Box::new(penalty));
    }

    /// Forgets which Workloads of a LocalQueue, or of all of them, have a settled entry penalty. Cost: one look at every Workload.
    pub(crate) fn forget_settled_penalties(&mut self, local_queue: Option<LocalQueueId>) {
        let concerns =
            |one: &WorkloadRecord| local_queue.is_none() || one.local_queue == local_queue;
        let settled = self.iter().filter(|(_, one)| one.settled_penalty.is_some() && concerns(one));
        let settled: Vec<WorkloadId> = settled.map(|(id, _)| id).collect();
        for id in settled {
            self.table.at_mut(id).settled_penalty = None;
        }
    }

    /// Replaces the class of a Workload.
    pub(crate) fn set_class(&mut self, id: WorkloadId, class: EquivalenceClassId) {
        let old = std::mem::replace(&mut self.table.at_mut(id).class, class);
        self.classes.release(old);
    }

    /// Sets whether a Workload may be queued, and its queue-order timestamp. One that leaves its queue has no settled entry penalty.
    pub(crate) fn set_eligibility(
        &mut self,
        id: WorkloadId,
        eligibility: QueueEligibility,
        queued_at: Time,
    ) {
        let workload = self.table.at_mut(id);
        (workload.eligibility, workload.queued_at) = (eligibility, queued_at);
        if eligibility == QueueEligibility::Excluded {
            workload.settled_penalty = None;
        }
    }

    /// Sets the variant group of a Workload, or removes it from its group.
    pub(crate) fn set_variant_group(&mut self, id: WorkloadId, parent: Option<&str>) {
        self.variant_groups.set(id, parent);
    }

    /// Records that `new` names `old` as the slice that it replaces.
    pub(crate) fn add_claim(&mut self, new: WorkloadId) {
        let Some(workload) = self.table.get(new) else { return };
        if let Some(old) = &self.classes.at(workload.class).replaced_slice {
            self.slices.add(old, new);
        }
    }

    /// Removes the claim of a Workload, unless it claims `kept`.
    pub(crate) fn remove_claim(&mut self, new: WorkloadId, kept: Option<&str>) {
        let Some(workload) = self.table.get(new) else { return };
        if let Some(old) = &self.classes.at(workload.class).replaced_slice
            // A claim that the new object repeats stays where it is.
            && kept != Some(old)
        {
            self.slices.remove(old, new);
        }
    }
}

/// Positions in queues, and progress of scans.
impl WorkloadLayer {
    /// Sets the ClusterQueue in which a Workload without a reservation is pending.
    pub(crate) fn set_queue(&mut self, id: WorkloadId, queue: Option<QueueId>) {
        self.table.at_mut(id).queue = queue;
    }

    /// Sets the position in the ClusterQueue and returns the former one.
    pub(crate) fn set_position(
        &mut self,
        id: WorkloadId,
        position: QueuePosition,
    ) -> QueuePosition {
        std::mem::replace(&mut self.table.at_mut(id).position, position)
    }

    /// Sets the position and gives the Workload a new ticket number; tickets that it left in buckets are dead.
    pub(crate) fn set_position_with_ticket(
        &mut self,
        id: WorkloadId,
        position: QueuePosition,
    ) -> &WorkloadRecord {
        let number = self.table.stamp();
        let workload = self.table.at_mut(id);
        (workload.position, workload.ticket) = (position, number);
        workload
    }

    /// Sets the progress of the last flavor scan.
    pub(crate) fn set_last_assignment(
        &mut self,
        id: WorkloadId,
        last_assignment: Option<Box<LastAssignment>>,
    ) {
        self.table.at_mut(id).last_assignment = last_assignment;
    }

    /// Makes a Workload wait for cluster capacity.
    pub(crate) fn await_capacity(&mut self, id: WorkloadId, wait: CapacityWait<'_>) {
        self.table.await_capacity(id, wait);
    }

    /// Ends the wait of a Workload for cluster capacity, if it waits.
    pub(crate) fn end_wait(&mut self, id: WorkloadId) {
        self.table.end_wait(id);
    }

    /// Ends the wait of all Workloads under a key and returns them.
    pub(crate) fn end_waits(&mut self, key: RequeueKey) -> BTreeSet<WorkloadId> {
        self.table.end_waits(key)
    }
}

/// Admissions. Charges in other layers are the caller's.
impl WorkloadLayer {
    /// An admission to fill in, reused if possible.
    pub(crate) fn new_admission(&mut self) -> Box<AdmissionRecord> {
        self.table.new_admission()
    }

    /// Gives a Workload its admission and its position among the reserving Workloads.
    pub(crate) fn set_admission(
        &mut self,
        id: WorkloadId,
        admission: Box<AdmissionRecord>,
        index: u32,
    ) {
        // Cluster capacity requeues what waits for it, and a Workload with quota is in no pending queue.
        self.table.end_wait(id);
        let workload = self.table.at_mut(id);
        workload.queue = Some(admission.queue);
        workload.position = QueuePosition::Reserving { index };
        workload.admission = Some(admission);
    }

    /// Takes the admission of a Workload, which has no position in its ClusterQueue afterwards.
    pub(crate) fn take_admission(&mut self, id: WorkloadId) -> Option<Box<AdmissionRecord>> {
        let workload = self.table.at_mut(id);
        workload.position = QueuePosition::NotQueued;
        workload.admission.take()
    }

    /// Keeps a released admission for reuse.
    pub(crate) fn keep_released(&mut self, admission: Box<AdmissionRecord>) {
        self.table.keep_released(admission);
    }

    /// Marks a Workload with a reservation as evicted. Returns the ClusterQueue of the reservation.
    pub(crate) fn mark_evicted(&mut self, id: WorkloadId) -> Option<QueueId> {
        let admission = self.table.get_mut(id)?.admission.as_deref_mut()?;
        admission.evicted = true;
        Some(admission.queue)
    }

    /// Changes the pod sets of an admission.
    pub(crate) fn change_pod_sets(
        &mut self,
        id: WorkloadId,
        change: impl FnOnce(&mut Vec<PodSetAdmission>),
    ) {
        if let Some(admission) = self.table.at_mut(id).admission.as_deref_mut() {
            change(&mut admission.pod_sets);
        }
    }

    /// Sets what an admission charges, and whether a replacement slice took over its topology domains.
    pub(crate) fn set_charge(&mut self, id: WorkloadId, usage: SlotUsage, taken_over: bool) {
        if let Some(admission) = self.table.at_mut(id).admission.as_deref_mut() {
            (admission.usage, admission.taken_over) = (usage, taken_over);
        }
    }

    /// Removes a Workload within a simulation, or restores it. Returns false if it is so already.
    #[inline]
    pub(crate) fn set_removed(&mut self, id: WorkloadId, removed: bool) -> bool {
        std::mem::replace(&mut self.table.at_mut(id).removed, removed) != removed
    }
}

/// What-ifs.
impl WorkloadLayer {
    /// Begins a what-if.
    pub(crate) fn begin_what_if(&mut self) {
        // The pattern names every table, so that a new one cannot be left out.
        let Self { table, classes, slices, variant_groups, second_passes, before } = self;
        table.begin();
        classes.begin();
        *before = Some(WorkloadCheckpoint {
            slices: slices.clone(),
            variant_groups: variant_groups.clone(),
            second_passes: second_passes.clone(),
        });
    }

    /// Whether a what-if is open.
    pub(crate) fn is_in_what_if(&self) -> bool {
        self.before.is_some()
    }

    /// Ends the what-if.
    pub(crate) fn undo_what_if(&mut self) {
        if let Some(WorkloadCheckpoint { slices, variant_groups, second_passes }) =
            self.before.take()
        {
            self.table.undo();
            self.classes.undo();
            self.slices = slices;
            self.variant_groups = variant_groups;
            self.second_passes = second_passes;
        }
    }
}
