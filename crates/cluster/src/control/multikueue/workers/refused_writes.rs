//! What the API server of a worker has refused, and for how long that counts (docs/reference/dispatch.md §3).
//!
//! | refused | counts |
//! |---|---|
//! | a copy, of the only nominated cluster | until the next epoch: the nomination ends, and the cluster is left out for a while |
//! | a copy, of a cluster in a race | for 1 min, twice as long with each further refusal, 30 min at most: the race goes on, and the cause may end |
//! | a priority, a size, or the opening of a preemption gate | for 10 min: the work goes on without it |

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;
use serde_json::Value;

use crate::control::{
    key_map::KeyMap,
    outbox::after,
    time::{doubled, moved},
};

/// How long the first refusal of a copy counts in a race.
const SHORTEST: Duration = Duration::from_secs(60);

/// How long any refusal of a copy counts in a race at most.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// How long a refused priority, size or opening is not written again.
const CHANGE_COUNTS_FOR: Duration = Duration::from_secs(10 * 60);

/// A refusal of a copy by the API server of a worker.
#[derive(Debug)]
pub(crate) struct CopyRefusal {
    /// The epoch of the copy.
    pub(crate) epoch: u64,
    pub(crate) message: String,
    pub(crate) scope: RefusedScope,
}

/// What else a worker does not take that has refused a Workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedScope {
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

/// Refused changes of one kind, by Workload.
#[derive(Debug)]
pub(crate) struct RefusedChanges<T>(KeyMap<Key, RefusedChange<T>>);

impl<T: PartialEq> RefusedChanges<T> {
    /// Whether this value is not written again yet. The next one is another one.
    pub(crate) fn has(&self, key: &Key, value: &T, now: Timestamp) -> bool {
        self.0.get(key).is_some_and(|one| one.value == *value && now < one.until)
    }

    /// Returns when it may be written again.
    pub(crate) fn refuse(&mut self, key: Key, value: T, now: Timestamp) -> Timestamp {
        let until = after(now, CHANGE_COUNTS_FOR);
        self.0.insert(key, RefusedChange { value, until });
        until
    }

    fn clock_jumped(&mut self, by: SignedDuration) {
        self.0.for_each_mut(|_, one| one.until = moved(one.until, by));
    }
}

/// See the module. By Workload.
#[derive(Debug)]
pub(crate) struct RefusedWrites {
    copies: KeyMap<Key, CountedRefusal>,
    /// Priorities of clones, with their classes.
    pub(crate) priorities: RefusedChanges<Value>,
    /// Fields of copies.
    pub(crate) sizes: RefusedChanges<Value>,
    /// Openings of preemption gates.
    pub(crate) openings: RefusedChanges<()>,
}

impl RefusedWrites {
    pub(crate) fn new() -> Self {
        Self {
            copies: KeyMap::new(),
            priorities: RefusedChanges(KeyMap::new()),
            sizes: RefusedChanges(KeyMap::new()),
            openings: RefusedChanges(KeyMap::new()),
        }
    }

    /// The refusal of a copy of this epoch.
    pub(crate) fn copy(&self, key: &Key, epoch: u64) -> Option<&CopyRefusal> {
        self.counted(key, epoch).map(|one| &one.refusal)
    }

    /// Until when a refusal of this epoch counts in a race.
    pub(crate) fn copy_until(&self, key: &Key, epoch: u64) -> Option<Timestamp> {
        self.counted(key, epoch).map(|one| one.until)
    }

    pub(crate) fn refuse_copy(&mut self, key: Key, refusal: CopyRefusal, now: Timestamp) {
        let earlier = self.counted(&key, refusal.epoch).map_or(0, |one| one.times);
        let pause = doubled(SHORTEST, earlier, LONGEST);
        let times = earlier.saturating_add(1);
        self.copies.insert(key, CountedRefusal { refusal, times, until: after(now, pause) });
    }

    /// Forgets what was refused of a Workload that is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.copies.remove(key);
        self.priorities.0.remove(key);
        self.sizes.0.remove(key);
        self.openings.0.remove(key);
    }

    /// The clock jumped: what lasts goes on.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { copies, priorities, sizes, openings } = self;
        copies.for_each_mut(|_, one| one.until = moved(one.until, by));
        priorities.clock_jumped(by);
        sizes.clock_jumped(by);
        openings.clock_jumped(by);
    }

    fn counted(&self, key: &Key, epoch: u64) -> Option<&CountedRefusal> {
        self.copies.get(key).filter(|one| one.refusal.epoch == epoch)
    }
}
