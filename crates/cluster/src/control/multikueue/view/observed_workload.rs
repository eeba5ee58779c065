//! What the objects of the hub say of a Workload, before its copies are looked at.

use ::jobs::elastic_copies::is_of_elastic_job;
use crds::{
    meta::annotation,
    names::annotations::WORKLOAD_SLICE_REPLACEMENT_FOR,
    v1beta2::{Workload, WorkloadStatus},
};
use dispatch::{
    Fleet,
    workload::{DispatchCheckState, LocalJob, SlicePredecessor},
};
use engine::{Time, ids::ClusterId};
use jiff::Timestamp;

use super::{
    evaluated_workload::EvaluatedWorkload,
    hub_jobs::{HubJob, check_state, local_job},
};
use crate::control::{
    elastic_slices::predecessor_state,
    multikueue::{
        race::nominations::{Nominations, check_nominations},
        state::DispatchState,
    },
    time::engine_time,
    workloads::{TrackedWorkload, WorkloadPhase},
};

/// See the module. The fields are those of [`dispatch::workload::LocalWorkload`].
#[derive(Debug, Default)]
pub(crate) struct ObservedWorkload {
    pub(crate) exists: bool,
    pub(crate) finished: bool,
    pub(crate) quota_reserved: bool,
    pub(crate) evicted: bool,
    pub(crate) check: DispatchCheckState,
    pub(crate) awaits_other_checks: bool,
    pub(crate) recorded_cluster: Option<ClusterId>,
    pub(crate) nominations: Nominations,
    pub(crate) epoch: u64,
    pub(crate) epoch_raised: bool,
    pub(crate) create_sent: bool,
    pub(crate) nominated_at: Time,
    pub(crate) is_own_version: bool,
    pub(crate) slices: SliceView,
    pub(crate) job: LocalJob,
}

/// What the other slices of an elastic job mean for a Workload.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SliceView {
    pub(crate) predecessor: SlicePredecessor,
    pub(crate) is_slice: bool,
    pub(crate) has_successor: bool,
}

impl ObservedWorkload {
    /// The epoch of the last nomination: it may have been raised since.
    pub(crate) fn nominated_epoch(&self) -> u64 {
        if self.epoch_raised { self.epoch.saturating_sub(1) } else { self.epoch }
    }
}

impl EvaluatedWorkload<'_> {
    /// What the hub says of the Workload; `check` is its MultiKueue check, and is `None` without quota. The time to admit begins again
    /// while other checks are awaited. Names of clusters need not be registered, so they are interned.
    pub(crate) fn observe(
        self,
        check: Option<&str>,
        state: &mut DispatchState,
        fleet: &mut Fleet,
        now: Timestamp,
    ) -> ObservedWorkload {
        let jobs = self.hub_jobs();
        let Some(record) = self.record() else {
            return self.observe_orphan(&jobs, fleet);
        };
        let workload = record.object();
        let status = &workload.status;
        let awaits_other_checks =
            check.is_some_and(|check| index::status::awaits_other_checks(status, check));
        if awaits_other_checks {
            // A worker's time to admit begins when something can be created there.
            state.nominated_at = now;
        }
        let slices = self.slices(workload);
        ObservedWorkload {
            exists: exists(record),
            finished: record.phase() == WorkloadPhase::Finished,
            quota_reserved: record.phase().holds_quota(),
            evicted: record.phase().is_evicted(),
            check: check_state(workload, check),
            awaits_other_checks,
            recorded_cluster: status.cluster_name.as_ref().map(|name| fleet.intern_cluster(name)),
            nominations: self.nominations(status, fleet),
            epoch: index::epoch(workload),
            epoch_raised: state.epoch_raised,
            create_sent: state.sent.any,
            nominated_at: engine_time(state.nominated_at),
            is_own_version: record.version() > self.incarnation.began_at,
            slices,
            job: self.job(&jobs, slices),
        }
    }

    /// A Workload that does not exist has nothing, unless its job has lost it by force: then workers may have copies.
    fn observe_orphan(self, jobs: &[HubJob<'_>], fleet: &mut Fleet) -> ObservedWorkload {
        let orphan = self.jobs.orphan_of(self.key).filter(|_| !jobs.is_empty());
        let Some(orphan) = orphan else {
            return ObservedWorkload::default();
        };
        // After a restart the nomination is unknown, and any worker may have a copy.
        let names =
            if orphan.clusters.is_empty() { self.every_worker() } else { orphan.clusters.clone() };
        let clusters = names.iter().map(|name| fleet.intern_cluster(name)).collect();
        ObservedWorkload {
            create_sent: true,
            nominations: Nominations { clusters, ..Nominations::default() },
            job: self.job(jobs, SliceView::default()),
            ..ObservedWorkload::default()
        }
    }

    fn nominations(self, status: &WorkloadStatus, fleet: &mut Fleet) -> Nominations {
        let names = status.nominated_cluster_names.iter();
        let nominated = names.map(|name| fleet.intern_cluster(name)).collect();
        check_nominations(self.view(fleet), nominated)
    }

    fn slices(self, workload: &Workload) -> SliceView {
        if !is_of_elastic_job(workload) {
            return SliceView::default();
        }
        SliceView {
            predecessor: predecessor_state(workload, self.workloads),
            is_slice: annotation(&workload.metadata, WORKLOAD_SLICE_REPLACEMENT_FOR).is_some(),
            has_successor: self.heirs().has_successor(self.key, workload),
        }
    }

    fn job(self, jobs: &[HubJob<'_>], slices: SliceView) -> LocalJob {
        let job = local_job(jobs, self.jobs);
        // The pods that the job shows are those of the earlier slice.
        let active = job.active && slices.predecessor == SlicePredecessor::Absent;
        LocalJob { active, ..job }
    }
}

/// Whether a Workload exists for its copies: one that is being deleted withdraws them, as an absent one does
/// (docs/reference/multikueue.md §2.2).
pub(crate) fn exists(record: &TrackedWorkload) -> bool {
    record.object().metadata.deletion_timestamp.is_none()
}
