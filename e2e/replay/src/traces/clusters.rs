//! The clusters of a replay.

use anyhow::Context;

use super::case::TraceCluster;
use crate::run::ReplayTarget;

/// A manager cluster, and its worker if cases need one.
pub struct ReplayClusters {
    /// The cluster to which requests go that name none.
    pub manager: ReplayTarget,
    /// The worker.
    pub worker: Option<ReplayTarget>,
}

impl ReplayClusters {
    /// The cluster of a request.
    ///
    /// # Errors
    /// If it is a worker, and there is none.
    pub(crate) fn of(&self, cluster: Option<TraceCluster>) -> anyhow::Result<&ReplayTarget> {
        match cluster {
            None => Ok(&self.manager),
            Some(TraceCluster::Worker) => self.worker.as_ref().context("there is no worker"),
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReplayTarget> {
        std::iter::once(&self.manager).chain(&self.worker)
    }
}
