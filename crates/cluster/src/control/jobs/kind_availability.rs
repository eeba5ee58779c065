//! Which kinds of jobs can be observed, and which jobs were deleted together with their kind.
//!
//! A CRD is deleted after its objects. The garbage collector finds the owner of an object by its kind, so it never deletes the
//! Workloads of these jobs: they would hold their quota for ever. A version of a kind that is no longer served looks the same, but its
//! jobs exist and may run. Only a job with an observed deletion is known to be gone.
//!
//! The Workload of such a job may be admitted again before the garbage collector finds it, so it is finished first (docs/reference/kueue.md
//! §7.3 row 0c).

use std::collections::{BTreeMap, BTreeSet};

use ::jobs::{GenericJob, JobObject, Kind};
use runtime::watch::{Change, Unavailable};

use crate::control::{
    context::Context, job_key::JobKey, key_map::KeyMap, timers::Reevaluation,
    workloads::WorkloadCommand,
};

/// The observed kinds of jobs, and the jobs that were deleted together with theirs.
#[derive(Debug)]
pub(super) struct KindAvailability {
    /// Observed kinds; with a value those that the cluster does not serve, or does not let us see.
    kinds: KeyMap<Kind, Option<Unavailable>>,
    deleted: BTreeSet<JobKey>,
    /// Jobs with an observed deletion that was not decided about yet, with their uids.
    gone: BTreeMap<JobKey, String>,
}

impl KindAvailability {
    pub(super) fn new() -> Self {
        Self { kinds: KeyMap::new(), deleted: BTreeSet::new(), gone: BTreeMap::new() }
    }

    /// Why jobs of a kind cannot be observed.
    pub(super) fn unavailable(&self, kind: &Kind) -> Option<Unavailable> {
        *self.kinds.get(kind)?
    }

    /// Whether all jobs of a kind are known. Of pods only the managed ones are.
    pub(super) fn lists(&self, kind: &Kind) -> bool {
        kind.selector().is_none() && self.kinds.get(kind) == Some(&None)
    }

    /// Records that the watch shows a job no longer. A write that answers 404 proves less: a webhook may have sent it.
    pub(super) fn removed(&mut self, key: &JobKey, job: &JobObject) {
        // A pod without the label that the watch selects by is not observed either.
        let is_gone = self.lists(&key.kind) || job.metadata().deletion_timestamp.is_some();
        let uid = job.metadata().uid.clone().filter(|_| is_gone);
        if let Some(uid) = uid.filter(|_| self.unavailable(&key.kind).is_none()) {
            self.gone.insert(key.clone(), uid);
        }
    }

    /// Records that a job of this name exists.
    pub(super) fn appeared(&mut self, key: &JobKey) {
        self.gone.remove(key);
    }

    /// The uid of a job with a deletion that was observed since the last call.
    pub(super) fn take_gone(&mut self, key: &JobKey) -> Option<String> {
        self.gone.remove(key)
    }

    /// What follows for the Workloads of a job that is not observed: without their finalizer the garbage collector deletes them.
    pub(super) fn command_after_deletion(&self, job: &JobKey) -> Option<WorkloadCommand> {
        match self.unavailable(&job.kind) {
            // Nothing is known about jobs of a kind that the cluster does not let us see.
            Some(Unavailable::Forbidden) => None,
            Some(Unavailable::NotServed) if self.deleted.contains(job) => {
                Some(WorkloadCommand::Delete)
            }
            _ => Some(WorkloadCommand::RemoveFinalizer),
        }
    }

    /// Records whether a kind can be observed, as a change of it shows. `absent` are the jobs of the kind that do not exist any more and
    /// have Workloads; those that were deleted with the kind are evaluated again. Returns whether the kind can be observed now and
    /// could not be before, or the reverse.
    pub(super) fn observe(
        &mut self,
        kind: &Kind,
        change: &Change<JobObject>,
        absent: impl Iterator<Item = JobKey>,
        ctx: &mut Context,
    ) -> bool {
        let was_listed = self.kinds.get(kind) == Some(&None);
        match change {
            Change::Unavailable { reason, .. } => {
                tracing::warn!(%kind, ?reason, "jobs of this kind cannot be observed");
                // Without an earlier list nothing is known about jobs that are absent.
                if was_listed && *reason == Unavailable::NotServed {
                    for job in absent {
                        ctx.agenda.now(Reevaluation::Job(job.clone()));
                        self.deleted.insert(job);
                    }
                }
                self.kinds.insert(kind.clone(), Some(*reason)).flatten().is_none()
            }
            Change::Reset { .. } => {
                self.deleted.retain(|job| job.kind != *kind);
                self.kinds.insert(kind.clone(), None).flatten().is_some()
            }
            Change::Apply(_) | Change::Delete(_) => false,
        }
    }
}
