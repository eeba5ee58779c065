//! The fleet as the engine's [`Placer`]: quota is reserved only together with a cluster (docs/reference/dispatch.md §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    CycleEntry, CycleOutcome, Placer, RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::{AssignedWorkload, Fleet, PlacementRefusal, PlacementRequest, QueueOrder};

/// What an entry is dispatched as.
#[derive(Debug, Clone)]
pub struct DispatchedEntry {
    /// Its MultiKueueConfig.
    pub config: String,
    /// What it would run.
    pub work: Arc<AssignedWorkload>,
    /// Its turn among those who wait for room.
    pub order: QueueOrder,
}

/// Finds what an entry is dispatched as. `None` if it is not dispatched by room.
pub type DispatchLookup<'a> = dyn Fn(&CycleEntry) -> Option<DispatchedEntry> + 'a;

/// Places the entries of one cycle.
pub struct FleetPlacer<'a> {
    fleet: &'a mut Fleet,
    lookup: &'a DispatchLookup<'a>,
    now: Time,
    /// Why those who got no cluster got none.
    pub refusals: BTreeMap<WorkloadId, PlacementRefusal>,
}

impl<'a> FleetPlacer<'a> {
    /// A placer for one cycle.
    pub fn new(fleet: &'a mut Fleet, lookup: &'a DispatchLookup<'a>, now: Time) -> Self {
        Self { fleet, lookup, now, refusals: BTreeMap::new() }
    }

    /// The outcome of the cycle. A head that lacks something else than room does not wait for room meanwhile, and none is
    /// kept for it.
    pub fn finish_cycle(&mut self, entries: &[CycleEntry]) {
        let room = |one: &&CycleEntry| matches!(one.outcome, CycleOutcome::NoClusterCapacity(_));
        for entry in entries.iter().filter(|one| !room(one)) {
            self.fleet.pause_waiting(entry.workload);
        }
    }
}

impl Placer for FleetPlacer<'_> {
    /// What is placed counts at once, so that later heads of the cycle see it.
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
            Err(refused) => {
                let key = refused.key;
                self.refusals.insert(entry.workload, refused);
                Err(key)
            }
        }
    }
}
