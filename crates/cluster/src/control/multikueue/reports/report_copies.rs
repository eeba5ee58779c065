//! Reports of workers on the hub: a `ClusterCapacity` with the name of each worker, a copy of its last report.
//!
//! For users, and for programs that see the hub only; nothing is decided by it. It is owned by its MultiKueueCluster and
//! deleted with it. Cost: at most one write per worker in ten seconds, none while nothing changes
//! (docs/reference/dispatch.md §2).

use std::time::Duration;

use crds::v1alpha1::{ClusterCapacity, ClusterCapacitySpec};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use runtime::{
    watch::Key,
    write::{FIELD_MANAGER, Write},
    writer::WriteOutcome,
};
use serde_json::json;

use crate::control::{
    capacity::same,
    context::Context,
    outbox::{Intent, Purpose, Stamp, Subject, Target, Tracked, after, decode},
    time::moved,
    timers::Reevaluation,
};

/// The least time between two copies of one report.
const PERIOD: Duration = Duration::from_secs(10);

/// The time after which a copy is written although only the time of the report differs.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(60);

/// The copy of one worker's report.
#[derive(Debug, Default)]
pub(crate) struct ReportCopy {
    /// As it was last written; unknown after a restart.
    written: Option<Tracked<ClusterCapacity>>,
    /// The uid of the MultiKueueCluster that owns it.
    owner: Option<String>,
    /// The report, or its owner, may have changed.
    stale: bool,
    not_before: Option<Timestamp>,
    /// When it was last written.
    written_at: Option<Timestamp>,
}

impl ReportCopy {
    /// The worker reported, or is registered by another MultiKueueCluster.
    pub(crate) fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Whether there may be something to write.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Writes a stale copy if it differs from the report. `owner` is `None` for a worker that is not registered.
    pub(crate) fn evaluate(
        &mut self,
        name: &str,
        report: Option<&ClusterCapacity>,
        owner: Option<OwnerReference>,
        ctx: &mut Context,
    ) {
        if let Some(later) = self.not_before.filter(|at| *at > ctx.now) {
            return ctx.agenda.at(later, Reevaluation::Report);
        }
        // A copy without an owner would never be deleted.
        let (Some(owner), Some(report)) = (owner, report) else {
            self.stale = false;
            return;
        };
        // A heartbeat is shown as well, so that the age of a report is; but not each of it.
        let is_written =
            self.written.as_ref().is_some_and(|one| same(&one.object().status, &report.status));
        let beat_at = self.written_at.map(|at| after(at, HEARTBEAT_PERIOD));
        if let Some(later) = beat_at.filter(|at| is_written && *at > ctx.now) {
            return ctx.agenda.at(later, Reevaluation::Report);
        }
        self.stale = false;
        let key = Key { namespace: None, name: name.into() };
        if self.write(&key, report, &owner, ctx) {
            self.not_before = Some(after(ctx.now, PERIOD));
            self.written_at = Some(ctx.now);
        }
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { written: _, owner: _, stale: _, not_before, written_at } = self;
        for at in [not_before, written_at] {
            *at = at.map(|at| moved(at, by));
        }
    }

    /// Takes the answer to a write of the copy.
    pub(crate) fn answered(&mut self, answer: WriteOutcome, ctx: &mut Context) {
        self.stale = true;
        match (&mut self.written, answer) {
            // A user deleted it, or the registration did; it is created again with the next report.
            (written, WriteOutcome::Gone) => *written = None,
            (Some(tracked), WriteOutcome::Done(value)) => {
                tracked.observe_answer(&value);
            }
            (written, WriteOutcome::Done(value)) => {
                *written = decode::<ClusterCapacity>(&value).map(Tracked::new);
                // A created copy has no status yet.
                self.not_before = None;
            }
            // A refused or unanswered write is repeated after the period: the copy is stale.
            _ => {}
        }
        ctx.agenda.at(self.not_before.unwrap_or(ctx.now), Reevaluation::Report);
    }

    /// Submits the next write; returns false if there is none.
    fn write(
        &mut self,
        key: &Key,
        report: &ClusterCapacity,
        owner: &OwnerReference,
        ctx: &mut Context,
    ) -> bool {
        // The garbage collector deletes the copy of the earlier MultiKueueCluster together with that.
        if self.owner.as_deref() != Some(&*owner.uid) {
            self.owner = Some(owner.uid.clone());
            self.written = None;
        }
        let target = Target::home(Subject::Capacity, key);
        // One write at a time; its answer marks the copy stale again.
        if ctx.outbox.writes().is_in_flight(&target) {
            return false;
        }
        match &self.written {
            None => create(target, &report.spec, owner, ctx),
            Some(tracked) => {
                let purpose = Purpose::CapacityCopy;
                let (base, waiter) = (tracked.stamp(), Reevaluation::Report);
                let intent = Intent { target, purpose, base, waiter };
                let before = tracked.object().clone();
                let after = &report.status;
                ctx.outbox.submit_status_of_unwatched::<ClusterCapacity, _>(
                    intent,
                    &before.status,
                    after,
                )
            }
        }
    }
}

fn create(
    target: Target,
    spec: &ClusterCapacitySpec,
    owner: &OwnerReference,
    ctx: &mut Context,
) -> bool {
    let fields = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "ClusterCapacity",
        "metadata": { "name": &*target.key.name, "ownerReferences": [owner] },
        "spec": spec,
    });
    let purpose = Purpose::CapacityCopyCreate;
    let intent = Intent { target, purpose, base: Stamp::default(), waiter: Reevaluation::Report };
    ctx.outbox.submit(intent, |purpose, key| {
        Write::apply::<ClusterCapacity>(purpose, key, None, FIELD_MANAGER, &fields)
    })
}
