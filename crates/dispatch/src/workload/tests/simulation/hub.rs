//! The hub's API server, and how clusters are nominated.

use super::*;

/// The Workload and its job on the hub's API server.
#[derive(Debug, Clone)]
pub(super) struct HubObjects {
    pub(super) version: u64,
    pub(super) hub: LocalWorkload,
    /// Epoch, activity and end in the job's status.
    pub(super) status: Option<(u64, bool, bool)>,
    /// The cluster that the Workload was last withdrawn from.
    pub(super) last_cluster: Option<ClusterId>,
}

/// How clusters are nominated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedDispatcher {
    /// One, chosen by its room.
    Single,
    /// All that are usable.
    Race,
    /// One, and its queues decide within [`QUEUE_TIME`]. The Workload may move to others meanwhile.
    Queue,
}

pub(super) fn release(stated: &mut HubObjects) {
    let hub = &mut stated.hub;
    (hub.quota_reserved, hub.evicted, hub.recorded_cluster, hub.check) =
        (false, false, None, DispatchCheckState::Pending);
    hub.nominated_clusters.clear();
    hub.awaits_other_checks = false;
}
