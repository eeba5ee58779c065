//! What the API server of a worker has refused, and for how long that counts (docs/reference/dispatch.md §3).
//!
//! | refused | counts |
//! |---|---|
//! | a copy, of the only nominated cluster | until the next epoch: the nomination ends, and the cluster is left out for a while |
//! | a copy, of a cluster in a race | for 1 min, twice as long with each further refusal, 30 min at most: the race goes on, and the cause may end |
//! | a priority, or a size | for 10 min: the work goes on without it |

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;
use serde_json::Value;

use crate::control::{key_map::KeyMap, outbox::after, time::moved};

/// How long the first refusal of a copy counts in a race.
const SHORTEST: Duration = Duration::from_secs(60);

/// How long any refusal of a copy counts in a race at most.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// How long a refused priority or size is not written again.
const CHANGE_COUNTS_FOR: Duration = Duration::from_secs(10 * 60);

/// A refusal of a copy by the API server of a worker.
#[derive(Debug)]
pub(super) struct CopyRefusal {
    /// The epoch of the copy.
    pub(super) epoch: u64,
    pub(super) message: String,
    pub(super) scope: RefusedScope,
}

/// What else a worker does not take that has refused a Workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedScope {
    Namespace,
    Kind,
    Shape,
}

/// The last refusal of a copy, and how many of its epoch there were.
#[derive(Debug)]
struct CountedRefusal {
    refusal: CopyRefusal,
    times: u32,
    /// Until when it counts in a race.
    until: Timestamp,
}

/// A field that was refused, and until when it is not written again.
#[derive(Debug)]
struct RefusedChange<T> {
    value: T,
    until: Timestamp,
}

/// See the module. By Workload.
#[derive(Debug)]
pub(super) struct RefusedWrites {
    copies: KeyMap<Key, CountedRefusal>,
    priorities: KeyMap<Key, RefusedChange<i32>>,
    sizes: KeyMap<Key, RefusedChange<Value>>,
}

impl RefusedWrites {
    pub(super) fn new() -> Self {
        Self { copies: KeyMap::new(), priorities: KeyMap::new(), sizes: KeyMap::new() }
    }

    /// The refusal of a copy of this epoch.
    pub(super) fn copy(&self, key: &Key, epoch: u64) -> Option<&CopyRefusal> {
        self.counted(key, epoch).map(|one| &one.refusal)
    }

    /// Until when a refusal of this epoch counts in a race.
    pub(super) fn copy_until(&self, key: &Key, epoch: u64) -> Option<Timestamp> {
        self.counted(key, epoch).map(|one| one.until)
    }

    pub(super) fn refuse_copy(&mut self, key: Key, refusal: CopyRefusal, now: Timestamp) {
        let earlier = self.counted(&key, refusal.epoch).map_or(0, |one| one.times);
        let pause = SHORTEST.saturating_mul(1 << earlier.min(5)).min(LONGEST);
        let times = earlier.saturating_add(1);
        self.copies.insert(key, CountedRefusal { refusal, times, until: after(now, pause) });
    }

    /// Whether a priority of the clone is not written again yet.
    pub(super) fn has_priority(&self, key: &Key, priority: i32, now: Timestamp) -> bool {
        self.priorities.get(key).is_some_and(|one| one.value == priority && now < one.until)
    }

    /// Returns when it may be written again.
    pub(super) fn refuse_priority(&mut self, key: Key, value: i32, now: Timestamp) -> Timestamp {
        let until = after(now, CHANGE_COUNTS_FOR);
        self.priorities.insert(key, RefusedChange { value, until });
        until
    }

    /// Whether these fields of a copy are not written again yet. The next size is another one.
    pub(super) fn has_size(&self, key: &Key, fields: &Value, now: Timestamp) -> bool {
        self.sizes.get(key).is_some_and(|one| one.value == *fields && now < one.until)
    }

    /// Returns when they may be written again.
    pub(super) fn refuse_size(&mut self, key: Key, value: Value, now: Timestamp) -> Timestamp {
        let until = after(now, CHANGE_COUNTS_FOR);
        self.sizes.insert(key, RefusedChange { value, until });
        until
    }

    /// Forgets what was refused of a Workload that is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.copies.remove(key);
        self.priorities.remove(key);
        self.sizes.remove(key);
    }

    /// The clock jumped: what lasts goes on.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.copies.for_each_mut(|_, one| one.until = moved(one.until, by));
        self.priorities.for_each_mut(|_, one| one.until = moved(one.until, by));
        self.sizes.for_each_mut(|_, one| one.until = moved(one.until, by));
    }

    fn counted(&self, key: &Key, epoch: u64) -> Option<&CountedRefusal> {
        self.copies.get(key).filter(|one| one.refusal.epoch == epoch)
    }
}
