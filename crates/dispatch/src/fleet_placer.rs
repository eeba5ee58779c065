//! The fleet as the engine's [`Placer`]: quota is reserved only together with a cluster (docs/reference/dispatch.md §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    CycleEntry, CycleOutcome, Placer, RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::{AssignedWorkload, Fleet, PlacementRefusal, PlacementRequest, QueueOrder};

/// The request of a cycle entry that is dispatched.
#[derive(Debug, Clone)]
pub struct DispatchedEntry {
    /// Its MultiKueueConfig.
    pub config: String,
    /// Its requests and flavors.
    pub work: Arc<AssignedWorkload>,
    /// Its queue order among Workloads that wait for capacity.
    pub order: QueueOrder,
}

/// Returns the request of a cycle entry; `None` if the entry is not dispatched by capacity.
pub type DispatchLookup<'a> = dyn Fn(&CycleEntry) -> Option<DispatchedEntry> + 'a;

/// Places the entries of one cycle. Implements [`Placer`] with a [`Fleet`].
pub struct FleetPlacer<'a> {
    fleet: &'a mut Fleet,
    lookup: &'a DispatchLookup<'a>,
    now: Time,
    /// Reasons per entry without a cluster.
    pub refusals: BTreeMap<WorkloadId, PlacementRefusal>,
}

impl<'a> FleetPlacer<'a> {
    /// Creates the placer of one cycle.
    pub fn new(fleet: &'a mut Fleet, lookup: &'a DispatchLookup<'a>, now: Time) -> Self {
        Self { fleet, lookup, now, refusals: BTreeMap::new() }
    }

    /// Takes the outcome of the cycle. A head that lacks something other than capacity does not wait for capacity
    /// meanwhile, and gets no reservation.
    pub fn finish_cycle(&mut self, entries: &[CycleEntry]) {
        let room = |one: &&CycleEntry| matches!(one.outcome, CycleOutcome::NoClusterCapacity(_));
        for entry in entries.iter().filter(|one| !room(one)) {
            self.fleet.pause_waiting(entry.workload);
        }
    }
}

impl Placer for FleetPlacer<'_> {
    /// A placement counts at once, so that later entries of the cycle see it.
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        let Some(DispatchedEntry { config, work, order }) = (self.lookup)(entry) else {
            return Ok(None);
        };
        let ask =
            PlacementRequest { workload: entry.workload, config: &config, work: &work, order };
        match self.fleet.choose_cluster(&ask, self.now) {
            Ok(cluster) => {
                self.fleet.place(entry.workload, cluster, work, self.now);
                Ok(Some(cluster))
            }
            Err(refusal) => {
                let key = refusal.key;
                self.refusals.insert(entry.workload, refusal);
                Err(key)
            }
        }
    }

    fn place_after(&mut self, entry: &CycleEntry, gone: &[WorkloadId]) -> Result<(), RequeueKey> {
        let Some(DispatchedEntry { config, work, order }) = (self.lookup)(entry) else {
            return Ok(());
        };
        let ask =
            PlacementRequest { workload: entry.workload, config: &config, work: &work, order };
        match self.fleet.check_after(&ask, gone, self.now) {
            Ok(()) => {
                self.refusals.remove(&entry.workload);
                Ok(())
            }
            Err(refusal) => {
                let key = refusal.key;
                self.refusals.insert(entry.workload, refusal);
                Err(key)
            }
        }
    }

    fn preemptible(&mut self, entry: &CycleEntry) -> Vec<Vec<WorkloadId>> {
        let Some(DispatchedEntry { config, work, order }) = (self.lookup)(entry) else {
            return Vec::new();
        };
        let ask =
            PlacementRequest { workload: entry.workload, config: &config, work: &work, order };
        self.fleet.preemptible(&ask, self.now)
    }
}
