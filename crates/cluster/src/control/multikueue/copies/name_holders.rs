//! Copies for other Workloads under the name of a job that a Workload has yet to create on its worker: those of a job that was deleted
//! and made again.
//!
//! | the copy | the Workload |
//! |---|---|
//! | is being deleted | waits until it is gone, and its worker's time to admit it begins then |
//! | is not, and its Workload is gone | the same; that Workload is evaluated, which deletes the copy |
//! | awaits a confirmation ([`breaker`](crate::control::multikueue::cleanup::breaker)) | is refused there: it would wait for a user |
//! | is of a higher epoch, or was made from a later version, than its Workload as the hub observes it | waits for up to six minutes: that may be observed late |
//! | is still there after the grace period of its pods and the time to admit | is refused there |
//!
//! A group that runs is not refused, because of what a replacement of a member finds: its other members go on, and the replacement waits.
//!
//! Upstream deletes the copy with the next create of the name, and evicts nothing (`remote_retention_test.go`).

use std::time::Duration;

use ::jobs::{GenericJob, JobGates, JobObject, set_copies};
use dispatch::{
    CopyHistory, Fleet,
    workload::{DispatchCheckState, RemoteConnection, RemoteCopy, RemoteJob, SlicePredecessor},
};
use engine::ids::ClusterId;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::Key;

use super::{
    copy_stamp::copy_stamp,
    name_wait::{NameWait, NewerHolder},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    multikueue::{
        cleanup::orphan_cleanup::present_workload,
        race::RaceView,
        view::{
            evaluated_workload::EvaluatedWorkload, hub_jobs::is_deleted_member,
            observed_workload::ObservedWorkload,
        },
        workers::worker::Worker,
    },
    outbox::after,
    timers::Reevaluation,
};

/// The grace period of a pod that names none, in seconds.
const DEFAULT_GRACE: i64 = 30;

/// The longest grace period that is waited for, in seconds: one day.
const LONGEST_GRACE: i64 = 24 * 60 * 60;

/// A copy under the name of a job that is missing on a worker.
#[derive(Clone, Copy)]
struct NameHolder<'a> {
    job: &'a JobKey,
    copy: &'a JobObject,
    /// The Workload that it is for; `None` if it names none.
    owner: Option<&'a Key>,
}

impl<'a> NameHolder<'a> {
    /// The Workload that it is for, unless it is being deleted.
    fn staying_owner(self) -> Option<&'a Key> {
        self.owner.filter(|_| self.copy.metadata().deletion_timestamp.is_none())
    }
}

/// See the module.
pub(crate) struct NameHolders<'e> {
    pub(crate) workload: EvaluatedWorkload<'e>,
    pub(crate) wait: &'e mut NameWait,
    pub(crate) fleet: &'e Fleet,
    pub(crate) ctx: &'e mut Context,
}

impl NameHolders<'_> {
    /// Waits for names that are held, or refuses clusters where they may stay so. Returns whether the time of a worker to admit
    /// begins now.
    pub(crate) fn await_names(
        &mut self,
        hub: &ObservedWorkload,
        race: &RaceView,
        copies: &mut [RemoteCopy],
    ) -> bool {
        let mut restarts = false;
        let awaiting = awaiting_cluster(hub, race);
        // The copy of an elastic job goes from one slice to the next.
        let has_own_jobs =
            hub.slices.predecessor == SlicePredecessor::Absent && !hub.slices.is_slice;
        let mut waits = false;
        self.note_newer_holders(copies);
        for copy in copies.iter_mut().filter(|copy| copy.name_held) {
            let connected = copy.connection == RemoteConnection::Connected;
            let worker = self
                .workload
                .worker(copy.cluster, self.fleet)
                .filter(|_| connected && has_own_jobs);
            let is_awaiting = awaiting == Some(copy.cluster);
            copy.name_held = worker.is_some() && is_awaiting;
            let Some(worker) = worker else {
                continue;
            };
            if is_awaiting {
                waits = true;
                self.wait.begin(self.ctx.now);
            }
            match self.name_refusal(worker) {
                Some(refusal) if !copy.jobs.iter().any(runs) => {
                    copy.refused.get_or_insert(refusal.into());
                    copy.name_held = false;
                }
                Some(refusal) => {
                    tracing::warn!(workload = %self.workload.key, refusal, "a member of a running group waits");
                }
                None if is_awaiting => {
                    self.await_name(worker);
                    restarts = true;
                }
                None => {}
            }
        }
        if !waits {
            self.wait.end();
        }
        restarts
    }

    /// Remembers since when each copy that holds a name is newer than its Workload as this process observes it.
    fn note_newer_holders(&mut self, copies: &[RemoteCopy]) {
        let held = copies.iter().filter(|copy| copy.name_held);
        let mut newer = Vec::new();
        for worker in held.filter_map(|copy| self.workload.worker(copy.cluster, self.fleet)) {
            let holders = self.held_names(worker).into_iter();
            for owner in holders.filter_map(|one| self.newer_owner(worker, one)) {
                let known = self.wait.newer(worker.id, owner).map(|one| one.since);
                let since = known.unwrap_or(self.ctx.now);
                newer.push(NewerHolder { cluster: worker.id, owner: owner.clone(), since });
            }
        }
        self.wait.set_newer(newer);
        if let Some(until) = self.wait.next_end(self.ctx.now) {
            self.reevaluate_at(until);
        }
    }

    fn reevaluate_at(&mut self, until: Timestamp) {
        self.ctx.agenda.at(until, Reevaluation::Workload(self.workload.key.clone()));
    }

    /// Whether a copy is awaited because the hub may observe its Workload late.
    fn is_awaited_newer(&self, worker: &Worker, holder: NameHolder<'_>) -> bool {
        let owner = self.newer_owner(worker, holder);
        let newer = owner.and_then(|owner| self.wait.newer(worker.id, owner));
        newer.is_some_and(|one| self.ctx.now < one.until())
    }

    /// The Workload of a copy that stays, if the hub may observe that late.
    fn newer_owner<'w>(&self, worker: &Worker, holder: NameHolder<'w>) -> Option<&'w Key> {
        holder.staying_owner().filter(|owner| {
            worker.metadata_of(owner).any(|copy| self.is_newer_than_observed(owner, copy))
        })
    }

    /// Whether a copy is of a higher epoch, or was made from a later version, than its Workload as the hub observes that.
    fn is_newer_than_observed(&self, owner: &Key, copy: &ObjectMeta) -> bool {
        let record = self.workload.workloads.get(owner);
        record.is_some_and(|one| {
            let (stamp, present) = (copy_stamp(copy), present_workload(one));
            stamp.epoch > index::epoch(one.object())
                || present
                    .is_some_and(|one| self.workload.incarnation.may_be_observed_late(&stamp, one))
        })
    }

    /// Evaluates the Workload again when a name may be free, and the Workloads of the copies that hold it.
    fn await_name(&mut self, worker: &Worker) {
        let held = self.held_names(worker);
        let until = held.iter().filter_map(|one| self.name_held_until(*one));
        if let Some(until) = until.filter(|until| *until > self.ctx.now).min() {
            self.reevaluate_at(until);
        }
        for owner in held.into_iter().filter_map(NameHolder::staying_owner) {
            // A Workload that exists is evaluated when it leaves the worker.
            if self.workload.workloads.get(owner).is_none() {
                self.ctx.agenda.now(Reevaluation::Workload(owner.clone()));
            }
        }
    }

    /// Why a worker cannot get a job because its name is held there; `None` if no name is, or it is waited for.
    pub(crate) fn name_refusal(&self, worker: &Worker) -> Option<String> {
        let mut held = self.held_names(worker);
        held.retain(|one| !self.is_awaited_newer(worker, *one));
        let says = |NameHolder { job, .. }: &NameHolder<'_>, what: &str| {
            format!("the name of {} {} is held by {what}", job.kind, job.key)
        };
        if let Some(disputed) = held.iter().find(|one| self.is_disputed_holder(worker, **one)) {
            return Some(says(disputed, "a copy that awaits a confirmation"));
        }
        let is_late = |one: &&NameHolder<'_>| {
            self.name_held_until(**one).is_some_and(|until| until <= self.ctx.now)
        };
        let late = held.iter().find(is_late)?;
        Some(says(late, "the copy of an earlier one, which was not gone in time"))
    }

    /// Copies under the names of jobs that are missing on a worker.
    fn held_names<'w>(&self, worker: &'w Worker) -> Vec<NameHolder<'w>>
    where
        Self: 'w,
    {
        let gates = self.workload.jobs.gates();
        let hub = self.workload.hub_jobs().into_iter();
        let missing = hub.filter(|(key, job)| {
            !set_copies::is_shared(*job)
                && !is_deleted_member(job, gates)
                && worker.clone_of(key) != Some(self.workload.key)
        });
        let holder = |(job, _)| {
            let copy = &**worker.jobs.get(job)?.object();
            Some(NameHolder { job, copy, owner: worker.clone_of(job) })
        };
        missing.filter_map(holder).collect()
    }

    /// Until when a copy is waited for; `None` if this Workload does not wait.
    fn name_held_until(&self, holder: NameHolder<'_>) -> Option<Timestamp> {
        let since = self.wait.since()?;
        let grace = grace_of(holder.copy, self.workload.jobs.gates());
        Some(after(after(since, grace), self.workload.config.admit_within))
    }

    /// Whether only a user decides about a copy that holds a name.
    fn is_disputed_holder(&self, worker: &Worker, holder: NameHolder<'_>) -> bool {
        let annotated = self.workload.registry.is_cleanup_confirmed(worker.name());
        let unconfirmed = !worker.breaker.is_confirmed(annotated);
        let Some(owner) = holder.staying_owner().filter(|_| unconfirmed) else {
            return false;
        };
        let is_absent = self.workload.workloads.get(owner).is_none();
        worker.metadata_of(owner).any(|copy| self.is_unexplained(owner, copy))
            || is_absent && self.workload.breaker_holds(owner, self.ctx)
    }

    /// Whether a copy of another Workload is of a higher epoch than that, or of a history that the hub does not know.
    fn is_unexplained(&self, owner: &Key, copy: &ObjectMeta) -> bool {
        let present = self.workload.workloads.get(owner).and_then(present_workload);
        let history = self.workload.incarnation.history(
            &copy_stamp(copy),
            present,
            self.workload.departed_uid(owner),
        );
        history == CopyHistory::Unknown || self.is_newer_than_observed(owner, copy)
    }
}

/// The cluster that is to get the jobs: the recorded one, or the only one that is nominated. In a race they follow the recorded cluster.
fn awaiting_cluster(hub: &ObservedWorkload, race: &RaceView) -> Option<ClusterId> {
    let single = match (hub.check, hub.nominations.clusters.as_slice()) {
        (DispatchCheckState::Pending, [single]) if race.clusters.is_none() => Some(*single),
        _ => None,
    };
    hub.recorded_cluster.or(single).filter(|_| hub.quota_reserved && !hub.evicted)
}

/// Whether a copy of a job has started and goes on.
fn runs(job: &RemoteJob) -> bool {
    !job.suspended && !job.deleting && !job.finished
}

/// The longest grace period of the pods of a copy.
fn grace_of(copy: &JobObject, gates: JobGates) -> Duration {
    let sets = copy.pod_sets(gates);
    let specs = sets.iter().filter_map(|set| set.template.spec.as_ref());
    let periods = specs.filter_map(|spec| spec.rest.get("terminationGracePeriodSeconds")?.as_i64());
    let seconds = periods.max().unwrap_or(DEFAULT_GRACE).clamp(0, LONGEST_GRACE);
    Duration::from_secs(seconds.unsigned_abs())
}
