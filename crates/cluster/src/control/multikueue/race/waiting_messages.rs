//! How often the check of a Workload says why workers have not admitted it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::control::{
    outbox::after,
    time::{doubled, moved},
};

/// How long the first message stays at least; doubles with each further one.
const SHOWN_FOR: Duration = Duration::from_secs(30);

/// How long any message stays at most before the next one.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// See the module. Of one Workload.
#[derive(Debug, Default)]
pub(crate) struct WaitingMessages {
    /// How many there were.
    times: u32,
    /// Until when the last one stays.
    until: Option<Timestamp>,
}

impl WaitingMessages {
    /// When the next one may be written; `None` before the first.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.until
    }

    /// Records a message.
    pub(crate) fn shown(&mut self, now: Timestamp) {
        self.until = Some(after(now, doubled(SHOWN_FOR, self.times, LONGEST)));
        self.times = self.times.saturating_add(1);
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { times: _, until } = self;
        *until = until.map(|at| moved(at, by));
    }
}
