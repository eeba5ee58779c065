//! What an observation changed.

use std::sync::Arc;

use crds::v1beta2::Workload;
use engine::ids::WorkloadId;
use runtime::watch::Key;

use super::{phase::WorkloadPhase, tracked_workload::TrackedWorkload};

/// An observation that changed what is known of a Workload.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadChange {
    pub(crate) key: Key,
    /// Its number in the engine; `None` for a Workload that was finished before.
    pub(crate) id: Option<WorkloadId>,
    /// The last observation; `None` for a new Workload, and for one that is entered again unchanged.
    pub(crate) before: Option<Arc<Workload>>,
    /// `None` if the Workload is gone.
    pub(crate) after: Option<Arc<Workload>>,
    /// The phase of the last observation.
    pub(crate) phase_before: Option<WorkloadPhase>,
    /// The phase now.
    pub(crate) phase: Option<WorkloadPhase>,
    /// A new spec has voided a reservation that was not written yet.
    pub(crate) voids_reservation: bool,
    /// Topology assignments that were decided are visible now.
    pub(crate) shows_topology: bool,
}

impl WorkloadChange {
    /// Of a Workload that is entered as it is.
    pub(super) fn reentered(key: &Key, record: &TrackedWorkload) -> Self {
        Self {
            key: key.clone(),
            id: record.id(),
            before: None,
            after: Some(Arc::clone(record.object())),
            phase_before: None,
            phase: Some(record.phase()),
            voids_reservation: false,
            shows_topology: false,
        }
    }

    /// Whether the change gave quota back.
    pub(crate) fn releases_quota(&self) -> bool {
        let holds = |phase: Option<WorkloadPhase>| phase.is_some_and(WorkloadPhase::holds_quota);
        holds(self.phase_before) && !holds(self.phase)
    }
}
