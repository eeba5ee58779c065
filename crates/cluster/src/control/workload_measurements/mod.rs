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
    names::conditions::{ADMITTED, FINISHED, QUOTA_RESERVED},
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
        ctx.measurements.extend(self.observe(&change.key, change.after.as_deref(), &queues));
    }

    /// The clock jumped: what lasts goes on.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { labels: _, workloads: _, counts: _, dispatches } = self;
        dispatches.clock_jumped(by);
    }

    /// Counts a Workload no longer: its variants are counted in its place.
    pub(crate) fn forget(&mut self, key: &Key, ctx: &mut Context) {
        ctx.measurements.extend(self.observe(key, None, &QueuesOfWorkload::default()));
    }

    /// Counts a Workload, and no longer what it was counted as before; `None` if it is gone. Returns the numbers that differ
    /// now.
    fn observe(
        &mut self,
        key: &Key,
        workload: Option<&Workload>,
        queues: &QueuesOfWorkload,
    ) -> Vec<Measurement> {
        let counted = workload.and_then(|workload| counted_as(workload, queues));
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
    let condition = |name| find(&workload.status.conditions, name);
    let cluster_queue = queues.of(workload);
    if is_true(&workload.status.conditions, FINISHED) {
        return Some(CountedAs::Finished(cluster_queue, queues.local_queue.clone()));
    }
    // A Workload without the condition was not evaluated yet.
    let admitted = condition(ADMITTED).filter(|one| one.status != "True")?;
    let reserved = condition(QUOTA_RESERVED).filter(|one| one.status != "True");
    Some(CountedAs::Unadmitted(UnadmittedLabels {
        cluster_queue,
        local_queue: queues.local_queue.clone(),
        reason: admitted.reason.clone(),
        underlying_cause: reserved.map(|one| one.reason.clone()).unwrap_or_default(),
    }))
}
