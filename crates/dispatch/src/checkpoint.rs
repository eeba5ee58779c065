//! The cluster that holds the checkpoint of a job (docs/reference/dispatch.md §3).
//!
//! Jobs write checkpoints to storage of the cluster that they run on. A Workload that is placed again prefers that cluster, or
//! requires it. A preference ranks the cluster before all others with room. A requirement refuses every other cluster, also in a race.

use engine::ids::ClusterId;

use crate::{
    ClusterRefusal, Fleet, PlacementConfig, WorkloadRequest, pending_placements::PlacementClass,
};

/// The cluster that holds the checkpoint of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckpointCluster {
    /// Name of the cluster, which may not be registered any more.
    pub name: Box<str>,
    /// No other cluster may take the Workload.
    pub required: bool,
}

impl WorkloadRequest {
    /// Name of the only cluster that may take the Workload, because it holds the checkpoint.
    pub(crate) fn required_cluster(&self) -> Option<&str> {
        self.checkpoint.as_ref().filter(|one| one.required).map(|one| &*one.name)
    }
}

impl Fleet {
    /// Whether a cluster holds the checkpoint that a Workload prefers or requires.
    pub(crate) fn holds_checkpoint(&self, request: &WorkloadRequest, id: ClusterId) -> bool {
        request.checkpoint.as_ref().is_some_and(|one| *one.name == *self.name(id))
    }

    /// Refuses a cluster if another one holds the checkpoint that a Workload requires.
    pub(crate) fn check_checkpoint(
        &self,
        request: &WorkloadRequest,
        id: ClusterId,
    ) -> Result<(), ClusterRefusal> {
        match request.required_cluster() {
            Some(name) if name != self.name(id) => {
                Err(ClusterRefusal::CheckpointElsewhere(name.into()))
            }
            _ => Ok(()),
        }
    }

    /// Puts the reason of the only cluster that may take a Workload first, because a message may be cut after it. The cluster may
    /// not be in the MultiKueueConfig any more.
    pub(crate) fn put_required_first(
        &mut self,
        class: &PlacementClass,
        config: &PlacementConfig,
        reasons: &mut Vec<(ClusterId, ClusterRefusal)>,
    ) {
        let holder = class.work.request.required_cluster();
        let Some(required) = class.only.or_else(|| holder.map(|name| self.intern_cluster(name)))
        else {
            return;
        };
        if !config.clusters.contains(&required) {
            reasons.push((required, ClusterRefusal::NotConfigured));
        }
        reasons.sort_by_key(|(id, _)| *id != required);
    }
}
