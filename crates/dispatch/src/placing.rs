//! The fleet as the engine's [`Placer`]: quota is reserved only together with a cluster (spec/dispatch.md §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Entry, Placer, Time, WakeKey,
    ids::{ClusterId, WorkloadId},
};

use crate::{Ask, Fleet, Refused, Work};

/// What an entry is dispatched as: its MultiKueueConfig and what it would run. `None` if it is not dispatched by room.
pub type Lookup<'a> = dyn Fn(&Entry) -> Option<(String, Arc<Work>)> + 'a;

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
}

impl Placer for Placing<'_> {
    /// What is placed counts at once, so that later heads of the cycle see it.
    fn place(&mut self, entry: &Entry) -> Result<Option<ClusterId>, WakeKey> {
        let Some((config, work)) = (self.lookup)(entry) else {
            return Ok(None);
        };
        let ask = Ask { workload: entry.workload, config: &config, work: &work };
        match self.fleet.choose(&ask, self.now) {
            Ok(cluster) => {
                self.fleet.place(entry.workload, cluster, work);
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
