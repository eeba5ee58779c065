//! The table of Workloads, by id.
//!
//! Besides records it keeps released admissions for reuse, so that an admission does not allocate, and which Workloads wait
//! for cluster capacity. A what-if restores every row that was borrowed for a change.

use std::collections::BTreeSet;

use crate::dense_table::DenseTable;
use crate::ids::{QueueId, RequeueKey, WorkloadId};
use crate::row_undo::RowUndo;
use crate::time::Time;
use crate::workloads::admission::AdmissionRecord;
use crate::workloads::capacity_waits::{CapacityWait, CapacityWaits};
use crate::workloads::record::WorkloadRecord;
use crate::workloads::usage::SlotUsage;

/// Workloads by id.
#[derive(Debug, Default)]
pub(crate) struct WorkloadTable {
    table: DenseTable<WorkloadId, Option<WorkloadRecord>>,
    stamps: u32,
    saved: RowUndo<WorkloadId, WorkloadRecord>,
    /// `stamps` when the what-if began.
    saved_stamps: u32,
    /// Released admissions, for reuse.
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    released_admissions: Vec<Box<AdmissionRecord>>,
    capacity_waits: CapacityWaits,
    /// `capacity_waits` when the what-if began.
    saved_capacity_waits: CapacityWaits,
}

/// Bound on released admissions: enough for a cycle that follows many releases.
const MAX_RELEASED: usize = 16_384;

impl WorkloadTable {
    pub(crate) fn get(&self, id: WorkloadId) -> Option<&WorkloadRecord> {
        self.table.find(id)
    }

    pub(super) fn get_mut(&mut self, id: WorkloadId) -> Option<&mut WorkloadRecord> {
        self.saved.keep(&self.table, id);
        self.table.get_mut(id).and_then(Option::as_mut)
    }

    /// All Workloads in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkloadId, &WorkloadRecord)> {
        self.table.ids().filter_map(|id| Some((id, self.table.find(id)?)))
    }

    pub(crate) fn at(&self, id: WorkloadId) -> &WorkloadRecord {
        self.get(id).expect("invariant: queues and admissions refer to known Workloads")
    }

    pub(super) fn at_mut(&mut self, id: WorkloadId) -> &mut WorkloadRecord {
        self.get_mut(id).expect("invariant: queues and admissions refer to known Workloads")
    }

    /// A new ticket number.
    pub(crate) fn stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    /// An admission to fill in, reused if possible.
    pub(crate) fn new_admission(&mut self) -> Box<AdmissionRecord> {
        self.released_admissions.pop().unwrap_or_else(|| {
            Box::new(AdmissionRecord {
                queue: QueueId(0),
                reserved_at: Time(0),
                evicted: false,
                taken_over: false,
                usage: SlotUsage::new(),
                pod_sets: Vec::with_capacity(1),
            })
        })
    }

    /// Keeps a released admission for reuse.
    pub(crate) fn keep_released(&mut self, mut admission: Box<AdmissionRecord>) {
        if self.released_admissions.len() < MAX_RELEASED {
            // Domains share the paths of a tree, which would stay in memory with them.
            admission.pod_sets.iter_mut().for_each(|one| one.domains.clear());
            self.released_admissions.push(admission);
        }
    }

    /// Makes a Workload wait for cluster capacity, or for that and quota. Any of the keys ends the wait.
    pub(crate) fn await_capacity(&mut self, id: WorkloadId, wait: CapacityWait<'_>) {
        let CapacityWait { key, further_keys, awaits_quota } = wait;
        self.end_wait(id);
        let workload = self.at_mut(id);
        (workload.awaited_capacity, workload.awaits_quota) = (Some(key), awaits_quota);
        self.capacity_waits.add(id, key, further_keys);
    }

    /// Ends the wait of all Workloads under a key and returns them.
    pub(crate) fn end_waits(&mut self, key: RequeueKey) -> BTreeSet<WorkloadId> {
        let waiting = self.capacity_waits.under(key);
        for &id in &waiting {
            self.end_wait(id);
        }
        waiting
    }

    /// Ends the wait of a Workload for cluster capacity, if it waits.
    pub(crate) fn end_wait(&mut self, id: WorkloadId) {
        let Some(key) = self.get(id).and_then(|one| one.awaited_capacity) else {
            return;
        };
        self.at_mut(id).awaited_capacity = None;
        self.capacity_waits.remove(id, key);
    }

    pub(crate) fn insert(&mut self, id: WorkloadId, workload: WorkloadRecord) {
        self.end_wait(id);
        self.saved.keep(&self.table, id);
        *self.table.entry(id) = Some(workload);
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) -> Option<WorkloadRecord> {
        self.end_wait(id);
        self.saved.keep(&self.table, id);
        self.table.get_mut(id).and_then(Option::take)
    }

    /// Begins a what-if.
    pub(crate) fn begin(&mut self) {
        self.saved.begin(&self.table);
        self.saved_stamps = self.stamps;
        self.saved_capacity_waits.clone_from(&self.capacity_waits);
    }

    /// Ends the what-if.
    pub(crate) fn undo(&mut self) {
        self.saved.undo(&mut self.table);
        self.stamps = self.saved_stamps;
        self.capacity_waits = std::mem::take(&mut self.saved_capacity_waits);
    }
}
