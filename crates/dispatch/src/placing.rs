//! The fleet as the engine's [`Placer`]: quota is reserved only together with a cluster (docs/reference/dispatch.md §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    CycleEntry, CycleOutcome, Placer, RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::{Ask, Fleet, Refused, Turn, Work};

/// What an entry is dispatched as.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its MultiKueueConfig.
    pub config: String,
    /// What it would run.
    pub work: Arc<Work>,
    /// Its turn among those who wait for room.
    pub turn: Turn,
}

/// Finds what an entry is dispatched as. `None` if it is not dispatched by room.
pub type Lookup<'a> = dyn Fn(&CycleEntry) -> Option<Asked> + 'a;

/// Places the entries of one cycle.
pub struct Placing<'a> {
    fleet: &'a mut Fleet,
    lookup: &'a Lookup<'a>,
    now: Time,
    /// Why those who got no cluster got none.
    pub refused: BTreeMap<WorkloadId, Refused>,
}

impl<'a> Placing<'a> {
    /// A placer for one cycle.
    pub fn new(fleet: &'a mut Fleet, lookup: &'a Lookup<'a>, now: Time) -> Self {
        Self { fleet, lookup, now, refused: BTreeMap::new() }
    }

    /// The outcome of the cycle. A head that lacks something else than room does not wait for room meanwhile, and none is
    /// kept for it.
    pub fn settle(&mut self, entries: &[CycleEntry]) {
        let room = |one: &&CycleEntry| matches!(one.outcome, CycleOutcome::NoClusterCapacity(_));
        for entry in entries.iter().filter(|one| !room(one)) {
            self.fleet.stop_waiting(entry.workload);
        }
    }
}

impl Placer for Placing<'_> {
    /// What is placed counts at once, so that later heads of the cycle see it.
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        let Some(Asked { config, work, turn }) = (self.lookup)(entry) else {
            return Ok(None);
        };
        let ask = Ask { workload: entry.workload, config: &config, work: &work, turn };
        match self.fleet.choose(&ask, self.now) {
            Ok(cluster) => {
                self.fleet.place(entry.workload, cluster, work, self.now);
                Ok(Some(cluster))
            }
            Err(refused) => {
                let key = refused.key;
                self.refused.insert(entry.workload, refused);
                Err(key)
            }
        }
    }
}
