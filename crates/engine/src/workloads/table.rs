//! The table of Workloads, by id.
//!
//! Besides records it keeps released admissions for reuse, so that an admission does not allocate, and which Workloads wait
//! for cluster capacity. A what-if restores every row that was borrowed for a change.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{QueueId, RequeueKey, WorkloadId};
use crate::row_undo::RowUndo;
use crate::time::Time;
use crate::workloads::admission::Admission;
use crate::workloads::record::WorkloadRecord;
use crate::workloads::usage::SlotUsage;

/// Workloads by id.
#[derive(Debug, Default)]
pub(crate) struct WorkloadTable {
    table: Vec<Option<WorkloadRecord>>,
    stamps: u32,
    saved: RowUndo<WorkloadRecord>,
    /// `stamps` when the what-if began.
    saved_stamps: u32,
    /// Released admissions, for reuse.
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    released_admissions: Vec<Box<Admission>>,
    capacity_waits: CapacityWaits,
    /// `capacity_waits` when the what-if began.
    saved_capacity_waits: CapacityWaits,
}

/// Workloads that wait for cluster capacity, by key.
type CapacityWaits = BTreeMap<RequeueKey, BTreeSet<WorkloadId>>;

/// Bound on released admissions: enough for a cycle that follows many releases.
const MAX_RELEASED: usize = 16_384;

impl WorkloadTable {
    pub(crate) fn get(&self, id: WorkloadId) -> Option<&WorkloadRecord> {
        self.table.get(id.index()).and_then(Option::as_ref)
    }

    pub(crate) fn get_mut(&mut self, id: WorkloadId) -> Option<&mut WorkloadRecord> {
        self.saved.keep(&self.table, id.index());
        self.table.get_mut(id.index()).and_then(Option::as_mut)
    }

    pub(crate) fn at(&self, id: WorkloadId) -> &WorkloadRecord {
        self.get(id).expect("invariant: queues and admissions refer to known Workloads")
    }

    pub(crate) fn at_mut(&mut self, id: WorkloadId) -> &mut WorkloadRecord {
        self.get_mut(id).expect("invariant: queues and admissions refer to known Workloads")
    }

    /// A new ticket number.
    pub(crate) fn stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    /// An admission to fill in, reused if possible.
    pub(crate) fn new_admission(&mut self) -> Box<Admission> {
        self.released_admissions.pop().unwrap_or_else(|| {
            Box::new(Admission {
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
    pub(crate) fn keep_released(&mut self, mut admission: Box<Admission>) {
        if self.released_admissions.len() < MAX_RELEASED {
            admission.pod_sets.iter_mut().for_each(|one| one.domains.clear());
            self.released_admissions.push(admission);
        }
    }

    /// Makes a Workload wait for cluster capacity.
    pub(crate) fn await_capacity(&mut self, id: WorkloadId, key: RequeueKey) {
        self.end_wait(id);
        self.at_mut(id).awaited_capacity = Some(key);
        self.capacity_waits.entry(key).or_default().insert(id);
    }

    /// Ends the wait of all Workloads under a key and returns them.
    pub(crate) fn end_waits(&mut self, key: RequeueKey) -> BTreeSet<WorkloadId> {
        let end_waits = self.capacity_waits.remove(&key).unwrap_or_default();
        for &id in &end_waits {
            self.at_mut(id).awaited_capacity = None;
        }
        end_waits
    }

    fn end_wait(&mut self, id: WorkloadId) {
        let Some(key) = self.get(id).and_then(|one| one.awaited_capacity) else {
            return;
        };
        self.at_mut(id).awaited_capacity = None;
        if let Some(ids) = self.capacity_waits.get_mut(&key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.capacity_waits.remove(&key);
            }
        }
    }

    pub(crate) fn insert(&mut self, id: WorkloadId, workload: WorkloadRecord) {
        self.end_wait(id);
        if self.table.len() <= id.index() {
            self.table.resize_with(id.index() + 1, || None);
        }
        self.saved.keep(&self.table, id.index());
        self.table[id.index()] = Some(workload);
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) -> Option<WorkloadRecord> {
        self.end_wait(id);
        self.saved.keep(&self.table, id.index());
        self.table.get_mut(id.index()).and_then(Option::take)
    }

    /// Begins a what-if.
    pub(crate) fn begin(&mut self) {
        self.saved.begin(&self.table);
        self.saved_stamps = self.stamps;
        self.saved_capacity_waits.clone_from(&self.capacity_waits);
    }

    /// Whether a what-if is open.
    pub(crate) fn is_watched(&self) -> bool {
        self.saved.is_open()
    }

    /// Ends the what-if.
    pub(crate) fn undo(&mut self) {
        self.saved.undo(&mut self.table);
        self.stamps = self.saved_stamps;
        self.capacity_waits = std::mem::take(&mut self.saved_capacity_waits);
    }
}
