//! The placer: reserves quota only together with a worker cluster. Source: docs/reference/dispatch.md §1.

use crate::cycle::entry::CycleEntry;
use crate::ids::{ClusterId, RequeueKey, WorkloadId};

/// Chooses a worker cluster for a Workload whose quota fits.
///
/// Called in processing order with the entry's assignment, and again with other flavors if it refuses. An implementation that
/// returns `Ok` must count the Workload against the cluster's capacity at once, since later entries of the cycle
/// follow. If it returns a key, it must lead to [`Event::ClusterCapacity`](crate::Event::ClusterCapacity) with that
/// key when capacity may be available. The engine does not interpret keys.
///
/// ```
/// use engine::ids::ClusterId;
/// use engine::{CycleEntry, Placer, RequeueKey};
///
/// /// One worker cluster with capacity for `free` Workloads.
/// struct OneCluster {
///     free: u32,
/// }
///
/// impl Placer for OneCluster {
///     fn place(&mut self, _: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
///         self.free = self.free.checked_sub(1).ok_or(RequeueKey(0))?;
///         Ok(Some(ClusterId(0)))
///     }
/// }
/// ```
pub trait Placer {
    /// Chooses a cluster. `Ok(None)` reserves quota without a cluster.
    ///
    /// # Errors
    /// The key to wait under, if no cluster has capacity.
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey>;

    /// Whether a cluster takes the entry once the Workloads in `gone` are gone. Called before their preemption: no Workload
    /// is evicted for an entry that would get no cluster after it. Asked of several sets of targets; changes nothing.
    fn fits_after(&mut self, _: &CycleEntry, _gone: &[WorkloadId]) -> bool {
        true
    }

    /// Refuses an entry that fits on no cluster, not even after a preemption. Returns the key to wait under. `gone` are the
    /// targets that [`Self::fits_after`] answered no for.
    fn refuse_after(&mut self, _: &CycleEntry, _gone: &[WorkloadId]) -> RequeueKey {
        RequeueKey::default()
    }

    /// Per cluster that may take the entry if Workloads are preempted there, in order of preference: the Workloads placed on
    /// it, sorted.
    fn preemptible(&mut self, _: &CycleEntry) -> Vec<Vec<WorkloadId>> {
        Vec::new()
    }
}

/// Accepts every Workload without a cluster: plain Kueue.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcceptAll;

impl Placer for AcceptAll {
    fn place(&mut self, _: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        Ok(None)
    }
}
