//! The stored fields of a Workload. They are few, since there are many Workloads.

use std::sync::Arc;

use engine::Time;
use engine::ids::{LocalQueueId, TopologyNodeId, WorkloadId};

use crate::metric_labels::LabelSetId;

/// Stored fields of one Workload.
#[derive(Debug, Clone)]
pub(crate) struct IndexedWorkload {
    pub(crate) request: Arc<dispatch::WorkloadRequest>,
    /// Queue order.
    pub(crate) queue_order: dispatch::QueueOrder,
    /// End of its requeue backoff.
    pub(crate) requeue_at: Option<Time>,
    pub(crate) local_queue: Option<LocalQueueId>,
    /// Its labels in metrics, if such labels are configured.
    pub(crate) label_set: Option<LabelSetId>,
    /// The last object had QuotaReserved.
    pub(crate) quota_reserved: bool,
    /// The last object had Evicted.
    pub(crate) evicted: bool,
    /// The last object had Admitted.
    pub(crate) admitted: bool,
    /// Failed nodes that the last object named while it had quota.
    pub(crate) unhealthy_nodes: Box<[TopologyNodeId]>,
}

/// Records by the engine's dense ids.
#[derive(Debug, Default)]
pub(crate) struct IndexedWorkloads(Vec<Option<IndexedWorkload>>);

impl IndexedWorkloads {
    pub(crate) fn get(&self, id: WorkloadId) -> Option<&IndexedWorkload> {
        self.0.get(id.index())?.as_ref()
    }

    /// Stores a record and returns the previous one.
    pub(crate) fn replace(
        &mut self,
        id: WorkloadId,
        record: IndexedWorkload,
    ) -> Option<IndexedWorkload> {
        if self.0.len() <= id.index() {
            self.0.resize_with(id.index() + 1, || None);
        }
        self.0.get_mut(id.index())?.replace(record)
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) {
        if let Some(place) = self.0.get_mut(id.index()) {
            *place = None;
        }
    }
}
