//! What no engine can be faster than: the cache lines that a decision has to touch, times what touching one costs here.

use std::hint::black_box;
use std::time::Duration;

use crate::meter::{now, to_f64};

/// Lines of a decision that lie in tables small enough to stay near, and lines in the large table of Workloads.
///
/// Near: the queue (2), its bucket (1), the shape (2), one cell per level of the tree, read and written (2). Far: the
/// record of the Workload (2), its admission (2), and for each step down the heap of its bucket a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) near: f64,
    pub(crate) far: f64,
}

impl Lines {
    /// A decision in a line of so many, with so many candidates to look at.
    pub(crate) fn of(waiting: u64, candidates: u64) -> Self {
        let steps = to_f64(waiting.max(1)).log2().ceil();
        Self { near: 7.0, far: 4.0 + steps / 2.0 + to_f64(candidates) }
    }

    /// Nanoseconds per decision.
    pub(crate) fn floor(self, near_bytes: usize, far_bytes: usize) -> f64 {
        self.near * nanoseconds_per_line(near_bytes) + self.far * nanoseconds_per_line(far_bytes)
    }
}

const LINE: usize = 64;
const STEPS: usize = 2_000_000;

/// What one step costs when each line of a table says which is next.
fn nanoseconds_per_line(bytes: usize) -> f64 {
    let lines = (bytes / LINE).next_power_of_two().max(2);
    let mut table = vec![[0_u32; LINE / 4]; lines];
    // A full-period generator visits every line once, in no order that a machine foresees.
    let next = |at: usize| (at.wrapping_mul(0x5851_f42d) + 0x1405_7b7d) & (lines - 1);
    for (at, line) in table.iter_mut().enumerate() {
        line[0] = u32::try_from(next(at)).unwrap_or_default();
    }
    let (start, mut at) = (now(), 0_u32);
    for _ in 0..STEPS {
        at = table[at as usize][0];
    }
    black_box(at);
    per_step(now() - start)
}

fn per_step(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9 / to_f64(STEPS as u64)
}
