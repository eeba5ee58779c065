//! What cycles did about preemption, as metrics count it (docs/reference/kueue.md §6.2).

use std::collections::{BTreeMap, BTreeSet};

use engine::{CycleEntry, CycleOutcome, FlavorAssignmentMode, Names, ids::QueueId};

use crate::control::measurement::Measurement;

/// ClusterQueues with a gauge of skipped preemptions above 0.
#[derive(Debug, Default)]
pub(super) struct PreemptionCounts {
    skipping: BTreeSet<QueueId>,
}

impl PreemptionCounts {
    /// The measurements of a cycle.
    pub(super) fn count(&mut self, entries: &[CycleEntry], names: &Names) -> Vec<Measurement> {
        let recomputed = entries.iter().filter(|entry| entry.targets_recomputed);
        let recomputed = recomputed.map(|entry| Measurement::TargetsRecomputed {
            cluster_queue: names.queues.name(entry.queue).to_owned(),
            result: recomputation_result(entry.outcome),
        });
        let mut all: Vec<Measurement> = recomputed.collect();
        let mut skips: BTreeMap<QueueId, usize> = BTreeMap::new();
        for entry in entries {
            *skips.entry(entry.queue).or_default() += usize::from(is_skipped(entry));
        }
        for (queue, count) in skips {
            // A queue that skips nothing has no series before it did once.
            let skipped_before = match count {
                0 => self.skipping.remove(&queue),
                _ => !self.skipping.insert(queue),
            };
            if count > 0 || skipped_before {
                let cluster_queue = names.queues.name(queue).to_owned();
                all.push(Measurement::PreemptionSkips { cluster_queue, count });
            }
        }
        all
    }
}

fn is_skipped(entry: &CycleEntry) -> bool {
    let preempts = entry.assignment.mode() == FlavorAssignmentMode::Preempt;
    preempts && entry.outcome == CycleOutcome::Skipped
}

fn recomputation_result(outcome: CycleOutcome) -> &'static str {
    match outcome {
        CycleOutcome::Preempting => "new_targets",
        CycleOutcome::Deferred => "deferred_fit",
        _ => "skipped",
    }
}
