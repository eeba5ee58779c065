//! The status of Cohorts, which is their weighted share under fair sharing, and their numbers for metrics.
//!
//! A share follows from the usage of a whole subtree, so all Cohorts are compared when a ClusterQueue is evaluated. Written at
//! most once per period and Cohort. The numbers of a Cohort are measured once per evaluation, however many of its ClusterQueues
//! were counted.

use std::{cell::LazyCell, collections::BTreeSet, time::Duration};

use crds::v1beta2::{Cohort, CohortStatus};
use index::queue_status;
use runtime::watch::Key;

use super::TrackedQueue;
use crate::control::{
    context::Context,
    key_map::KeyMap,
    measurement::{CohortGauges, Measurement, labels_and_annotations},
    outbox::{Intent, Purpose, Subject, Target, after},
    scheduling::Scheduler,
    timers::Reevaluation,
};

/// Writes the status of every Cohort whose share differs, or waits.
pub(super) fn write_status(
    cohorts: &mut KeyMap<Box<str>, TrackedQueue<Cohort>>,
    scheduler: &Scheduler,
    period: Duration,
    ctx: &mut Context,
) {
    cohorts.for_each_mut(|name, cohort| {
        if write_one(name, cohort, (scheduler, period), ctx) {
            cohort.not_before = after(ctx.now, period);
        }
    });
}

/// Returns whether a write was submitted.
fn write_one(
    name: &str,
    cohort: &TrackedQueue<Cohort>,
    (scheduler, period): (&Scheduler, Duration),
    ctx: &mut Context,
) -> bool {
    let share = scheduler.cohort_share(name);
    let fair_sharing = share.map(queue_status::fair_sharing_status);
    let (object, status) = (cohort.tracked.object().clone(), CohortStatus { fair_sharing });
    // Compared first: an equal status must not wake the process once per period.
    if object.status == status {
        return false;
    }
    let target = Target::home(Subject::Cohort, &Key { namespace: None, name: name.into() });
    if let Some(until) = cohort.kept_back(ctx.now, period) {
        ctx.agenda.at(until, Reevaluation::Cohorts);
        return false;
    }
    let base = cohort.tracked.stamp();
    if !ctx.free_or_wait(&target, &base, &Reevaluation::Cohorts) {
        return false;
    }
    let (purpose, waiter) = (Purpose::ClusterQueueStatus, Reevaluation::Cohorts);
    let intent = Intent { target, purpose, base, waiter };
    ctx.outbox.submit_status::<Cohort, _>(intent, &object.status, &status)
}

/// Measures the Cohorts of these names. A Cohort needs no object to have numbers.
pub(super) fn measure(
    names: &BTreeSet<String>,
    cohorts: &KeyMap<Box<str>, TrackedQueue<Cohort>>,
    scheduler: &Scheduler,
    ctx: &mut Context,
) {
    let parents = LazyCell::new(|| parents(cohorts).collect::<BTreeSet<&str>>());
    for gauges in scheduler.cohort_gauges(names) {
        let object = cohorts.get(gauges.name.as_str()).map(|cohort| cohort.tracked.object());
        let metadata =
            object.map(|object| labels_and_annotations(&object.metadata)).unwrap_or_default();
        let declared = object.is_some() || parents.contains(gauges.name.as_str());
        let gauges = CohortGauges { declared, metadata, ..gauges };
        ctx.measurements.push(Measurement::Cohort(Box::new(gauges)));
    }
}

/// Whether a Cohort exists as an object, or is the parent of one that does.
pub(super) fn is_declared(name: &str, cohorts: &KeyMap<Box<str>, TrackedQueue<Cohort>>) -> bool {
    cohorts.get(name).is_some() || parents(cohorts).any(|parent| parent == name)
}

/// The parents of the Cohorts that exist as objects.
pub(super) fn parents(
    cohorts: &KeyMap<Box<str>, TrackedQueue<Cohort>>,
) -> impl Iterator<Item = &str> {
    let parents = cohorts.values().map(|cohort| cohort.tracked.object().spec.parent_name.as_str());
    parents.filter(|parent| !parent.is_empty())
}
