//! What is kept of a Workload: small, since there are many.

use std::sync::Arc;

use engine::Time;
use engine::ids::{LocalQueueId, WorkloadId};

/// What is kept of one Workload.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadRecord {
    pub(crate) request: Arc<dispatch::WorkloadRequest>,
    /// Its turn among those who wait for room.
    pub(crate) queue_order: dispatch::QueueOrder,
    /// When its backoff ends.
    pub(crate) requeue_at: Option<Time>,
    pub(crate) local_queue: Option<LocalQueueId>,
    /// Its object shows quota.
    pub(crate) quota_reserved: bool,
    /// Its object shows that it is being evicted.
    pub(crate) evicted: bool,
    /// Its object shows that it is admitted.
    pub(crate) admitted: bool,
}

/// The records, by the engine's dense ids.
#[derive(Debug, Default)]
pub(crate) struct WorkloadRecords(Vec<Option<WorkloadRecord>>);

impl WorkloadRecords {
    pub(crate) fn get(&self, id: WorkloadId) -> Option<&WorkloadRecord> {
        self.0.get(id.index())?.as_ref()
    }

    /// Enters a record and returns the old one. An equal request is not kept twice.
    pub(crate) fn replace(
        &mut self,
        id: WorkloadId,
        mut record: WorkloadRecord,
    ) -> Option<WorkloadRecord> {
        if self.0.len() <= id.index() {
            self.0.resize_with(id.index() + 1, || None);
        }
        let place = self.0.get_mut(id.index())?;
        let old = place.take();
        if let Some(old) = &old
            && old.request == record.request
        {
            record.request = Arc::clone(&old.request);
        }
        *place = Some(record);
        old
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) {
        if let Some(place) = self.0.get_mut(id.index()) {
            *place = None;
        }
    }
}
