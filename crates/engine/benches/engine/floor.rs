//! A lower bound for any engine: the cache lines that a decision has to touch, times the measured cost of touching
//! one.

use std::hint::black_box;
use std::time::Duration;

use crate::meter::{now, to_f64};

/// Cache lines of a decision by table, and the sizes of the tables.
///
/// Per queue: the queue (2), its bucket (1), the equivalence class (2), one cell per level of the tree, read and
/// written (2), and one line for every two steps down the heap of the bucket. Per Workload: the record (2) and its
/// assignment (1), and record and admission (2) of each preemption candidate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    of_queues: f64,
    queues: usize,
    of_workloads: f64,
    workloads: usize,
}

/// Approximate size of a queue with its cells and pending queue, a heap entry, and a Workload.
const QUEUE: usize = 1024;
const TICKET: usize = 24;
const WORKLOAD: usize = 256;

impl Lines {
    /// A decision with this many pending Workloads per queue and preemption candidates.
    pub(crate) fn of(queues: usize, per_queue: usize, candidates: u64) -> Self {
        let steps = to_f64(per_queue.max(1) as u64).log2().ceil();
        Self {
            of_queues: 7.0 + steps / 2.0,
            queues: queues * (QUEUE + per_queue * TICKET),
            of_workloads: 3.0 + 2.0 * to_f64(candidates),
            workloads: queues * per_queue * WORKLOAD,
        }
    }

    /// The same in a tree of this many levels instead of two.
    pub(crate) fn of_levels(self, levels: u32) -> Self {
        Self { of_queues: self.of_queues - 2.0 + f64::from(levels), ..self }
    }

    /// Nanoseconds per decision if all lines are fetched in parallel, and if they are fetched one after the other.
    /// Heads of different queues are independent, so an engine may come close to the first.
    pub(crate) fn floor(self) -> (f64, f64) {
        let (queues, workloads) = (Table::of(self.queues), Table::of(self.workloads));
        let sum = |of: fn(&Table) -> f64| {
            self.of_queues * of(&queues) + self.of_workloads * of(&workloads)
        };
        (sum(Table::gathered), sum(Table::followed))
    }
}

const LINE: usize = 64;
const STEPS: usize = 2_000_000;

/// Lines linked in an order that the processor cannot predict.
struct Table {
    lines: Vec<[u32; LINE / 4]>,
}

impl Table {
    fn of(bytes: usize) -> Self {
        let mut lines = vec![[0; LINE / 4]; (bytes / LINE).next_power_of_two().max(2)];
        let mask = lines.len() - 1;
        for (at, line) in lines.iter_mut().enumerate() {
            line[0] = u32::try_from(next(at) & mask).unwrap_or_default();
        }
        Self { lines }
    }

    /// Cost of a line whose address is in the line before it.
    fn followed(&self) -> f64 {
        let (start, mut at) = (now(), 0_u32);
        for _ in 0..STEPS {
            at = self.lines[at as usize][0];
        }
        black_box(at);
        per_step(now() - start)
    }

    /// Cost of a line whose address is known in advance.
    fn gathered(&self) -> f64 {
        let (start, mut at, mut sum) = (now(), 0, 0_u32);
        for _ in 0..STEPS {
            at = next(at) & (self.lines.len() - 1);
            sum = sum.wrapping_add(self.lines[at][0]);
        }
        black_box(sum);
        per_step(now() - start)
    }
}

/// A full-period generator: it visits every line once.
fn next(at: usize) -> usize {
    at.wrapping_mul(0x5851_f42d) + 0x1405_7b7d
}

fn per_step(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9 / to_f64(STEPS as u64)
}
