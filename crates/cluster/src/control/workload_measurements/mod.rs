//! What Workloads measure: transitions of their conditions, and numbers of finished and of unadmitted ones.
//!
//! Transitions are measured where a change is observed, whichever component wrote it. A Workload that is observed for the
//! first time has made its transitions before; they are not measured again. Finished Workloads are in no queue of the engine,
//! so they are counted here. A change costs as much as one Workload.

mod dispatch_times;
mod gate_removal;
mod transitions;

use std::collections::BTreeMap;

use crds::{
    meta::is_true,
    names::{
        conditions::{ADMITTED, FINISHED, QUOTA_RESERVED},
        reasons,
    },
    v1beta2::Workload,
};
use index::{WorkloadLabelRules, status::find};
use jiff::SignedDuration;
use runtime::watch::Key;

pub(crate) use self::gate_removal::gate_removed;
use self::{dispatch_times::DispatchTimes, transitions::measure};
use super::{
    context::Context,
    measurement::{LocalQueueName, Measurement, QueuesOfWorkload, UnadmittedLabels},
    queues::Queues,
    workloads::WorkloadChange,
};
use crate::control::key_map::KeyMap;

/// What a Workload is counted as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum CountedAs {
    Finished(String, LocalQueueName),
    Unadmitted(UnadmittedLabels),
}

/// The numbers that metrics of Workloads are made from.
#[derive(Debug, Default)]
pub(crate) struct WorkloadNumbers {
    labels: WorkloadLabelRules,
    workloads: KeyMap<Key, CountedAs>,
    counts: BTreeMap<CountedAs, usize>,
    dispatches: DispatchTimes,
}

impl WorkloadNumbers {
    /// Nothing was observed. Measurements of a Workload have these labels of it.
    pub(crate) fn new(labels: WorkloadLabelRules) -> Self {
        Self { labels, ..Self::default() }
    }

    /// Measures a change of a Workload, and counts it again.
    pub(crate) fn workload_changed(
        &mut self,
        change: &WorkloadChange,
        queues: &Queues,
        ctx: &mut Context,
    ) {
        ctx.measurements.extend(self.dispatches.observe(change, ctx.now));
        let Some(workload) = change.after.as_ref().or(change.before.as_ref()) else {
            return;
        };
        let queues = queues.queues_of(&change.key, workload);
        ctx.measurements.extend(measure(change, (&queues, &self.labels), ctx.now));
        let counted = change.after.as_deref().and_then(|after| counted_as(after, &queues));
        ctx.measurements.extend(self.count(&change.key, counted));
    }

    /// The clock jumped: what lasts goes on.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { labels: _, workloads: _, counts: _, dispatches } = self;
        dispatches.clock_jumped(by);
    }

    /// Counts a parent of variants while it is not admitted. Everything else is measured about its variants.
    pub(crate) fn parent_changed(
        &mut self,
        change: &WorkloadChange,
        queues: &Queues,
        ctx: &mut Context,
    ) {
        let counted = change.after.as_deref().and_then(|parent| {
            let labels = unadmitted(parent, &queues.queues_of(&change.key, parent))?;
            Some(CountedAs::Unadmitted(labels))
        });
        ctx.measurements.extend(self.count(&change.key, counted));
    }

    /// Counts a Workload, and no longer what it was counted as before. Returns the numbers that differ now.
    fn count(&mut self, key: &Key, counted: Option<CountedAs>) -> Vec<Measurement> {
        let before = match counted.clone() {
            Some(counted) => self.workloads.insert(key.clone(), counted),
            None => self.workloads.remove(key),
        };
        if before == counted {
            return Vec::new();
        }
        let decreased = before.map(|one| self.change(one, |count| count.saturating_sub(1)));
        let increased = counted.map(|one| self.change(one, |count| count + 1));
        decreased.into_iter().chain(increased).collect()
    }

    fn change(&mut self, counted: CountedAs, change: impl FnOnce(usize) -> usize) -> Measurement {
        let count = self.counts.get(&counted).copied().unwrap_or_default();
        let count = change(count);
        match count {
            // Labels come and go with reasons and queues. A zero is reported once and forgotten.
            0 => self.counts.remove(&counted),
            _ => self.counts.insert(counted.clone(), count),
        };
        match counted {
            CountedAs::Finished(cluster_queue, local_queue) => {
                Measurement::FinishedWorkloads { cluster_queue, local_queue, count }
            }
            CountedAs::Unadmitted(labels) => Measurement::UnadmittedWorkloads(labels, count),
        }
    }
}

fn counted_as(workload: &Workload, queues: &QueuesOfWorkload) -> Option<CountedAs> {
    if is_true(&workload.status.conditions, FINISHED) {
        let cluster_queue = queues.of(workload);
        return Some(CountedAs::Finished(cluster_queue, queues.local_queue.clone()));
    }
    // Its parent counts in its place.
    if workload.parent().is_some() {
        return None;
    }
    unadmitted(workload, queues).map(CountedAs::Unadmitted)
}

/// Why a Workload is not admitted; `None` if it is, or never will be. A condition that is missing has a reason, too: a queue
/// explains only some of its Workloads.
fn unadmitted(workload: &Workload, queues: &QueuesOfWorkload) -> Option<UnadmittedLabels> {
    let conditions = &workload.status.conditions;
    let is_over = is_true(conditions, FINISHED) || workload.metadata.deletion_timestamp.is_some();
    if is_over || is_true(conditions, ADMITTED) {
        return None;
    }
    let reason = |kind, if_missing: &str| {
        find(conditions, kind).map_or_else(|| if_missing.to_owned(), |one| one.reason.clone())
    };
    let reserved = is_true(conditions, QUOTA_RESERVED);
    let cause = (!reserved).then(|| reason(QUOTA_RESERVED, reasons::PENDING_EVALUATION));
    Some(UnadmittedLabels {
        cluster_queue: queues.of(workload),
        local_queue: queues.local_queue.clone(),
        reason: reason(ADMITTED, reasons::NO_RESERVATION),
        underlying_cause: cause.unwrap_or_default(),
    })
}
