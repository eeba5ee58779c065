//! Measures cycles: time of this thread, so that other load on the machine counts little, and allocations.

use std::time::Duration;

use allocation_counter::measure;
use engine::{AcceptAll, CycleEntry, Engine, Time};
use rustix::time::{ClockId, clock_gettime};

/// Heads per part of a cycle.
const PART: usize = 64;

/// Sums over the cycles of a run.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Meter {
    pub(crate) decisions: u64,
    pub(crate) cycles: u64,
    pub(crate) time: Duration,
    /// The longest pause of the caller.
    pub(crate) pause: Duration,
    pub(crate) allocations: u64,
}

impl Meter {
    /// Runs one cycle in parts and measures it. The caller waits for one part at most.
    pub(crate) fn cycle<'a>(&mut self, engine: &'a mut Engine) -> &'a [CycleEntry] {
        let (mut pause, mut time) = (Duration::ZERO, Duration::ZERO);
        let counted = measure(|| {
            let mut start = now();
            let mut ongoing = engine.begin(Time(0));
            let mut complete = false;
            while !complete {
                let end = now();
                pause = pause.max(end - start);
                time += end - start;
                start = end;
                complete = ongoing.advance(&mut AcceptAll, PART);
            }
            drop(ongoing);
            let end = now();
            pause = pause.max(end - start);
            time += end - start;
        });
        let entries = engine.entries();
        self.cycles += 1;
        self.decisions += entries.len() as u64;
        self.time += time;
        self.pause = self.pause.max(pause);
        self.allocations += counted.count_total;
        entries
    }

    /// Decisions per second.
    pub(crate) fn rate(&self) -> f64 {
        to_f64(self.decisions) / self.time.as_secs_f64()
    }

    /// Nanoseconds per decision.
    pub(crate) fn nanoseconds(&self) -> f64 {
        self.time.as_secs_f64() * 1e9 / to_f64(self.decisions)
    }

    /// Allocations per decision.
    pub(crate) fn allocations(&self) -> f64 {
        to_f64(self.allocations) / to_f64(self.decisions)
    }
}

/// Time that this thread has had a core.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Exact for every count that a benchmark reaches.
#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^52")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}
