//! What the dispatch state machine (`dispatch::workload`) looks at, made from what was observed.

use ::jobs::{GenericJob, Job, remote_objects};
use crds::{
    meta::is_true,
    names::conditions::{ADMITTED, EVICTED, FINISHED, REFUSED},
    v1beta2::{Workload, WorkloadSpec},
};
use dispatch::{
    Fleet,
    workload::{
        DispatchCheckState, LocalJob, LocalWorkload, RemoteConnection, RemoteCopy, RemoteJob,
        RemoteWorkload,
    },
};
use engine::ids::ClusterId;
use jiff::Timestamp;
use runtime::watch::Key;

use super::{state::DispatchState, worker::Worker};
use crate::control::{
    outbox::{Subject, Writes},
    time::engine_time,
    workloads::{TrackedWorkload, WorkloadPhase},
};

/// The hub's side of a Workload. `check` is its MultiKueue check, and is `None` without quota.
pub(super) fn hub_view(
    record: &TrackedWorkload,
    (check, job): (Option<&str>, Option<&Job>),
    state: &DispatchState,
    fleet: &mut Fleet,
) -> LocalWorkload {
    let workload = record.object();
    let status = &workload.status;
    let mut id = |name: &String| fleet.cluster(name);
    LocalWorkload {
        exists: workload.metadata.deletion_timestamp.is_none(),
        finished: record.phase() == WorkloadPhase::Finished,
        quota_reserved: record.phase().holds_quota(),
        evicted: record.phase().is_evicted(),
        check: check_state(workload, check),
        recorded_cluster: status.cluster_name.as_ref().map(&mut id),
        nominated_clusters: status.nominated_cluster_names.iter().map(&mut id).collect(),
        epoch: index::epoch(workload),
        epoch_raised: state.epoch_raised,
        create_sent: state.sent,
        nominated_at: engine_time(state.nominated_at),
        job: job.map(hub_job).unwrap_or_default(),
    }
}

/// The hub's side of a Workload that was removed by force: its job, and the workers that may have copies.
pub(super) fn orphan_view(job: &Job, nominated: Vec<ClusterId>) -> LocalWorkload {
    LocalWorkload {
        create_sent: true,
        nominated_clusters: nominated,
        job: hub_job(job),
        ..LocalWorkload::default()
    }
}

/// What the clone of a Workload should ask for; `None` without an admission.
pub(super) fn expected_spec(workload: &Workload) -> Option<WorkloadSpec> {
    workload.status.admission.as_ref()?;
    let pod_sets = remote_objects::admitted_pod_sets(workload);
    Some(WorkloadSpec { pod_sets, ..workload.spec.clone() })
}

/// A cluster that was never connected since this process began.
pub(super) fn unknown_cluster(cluster: ClusterId, began: Timestamp) -> RemoteCopy {
    let connection = RemoteConnection::Disconnected { since: engine_time(began) };
    RemoteCopy {
        cluster,
        connection,
        creates_answered: true,
        refused: None,
        clone: None,
        job: None,
    }
}

fn hub_job(job: &Job) -> LocalJob {
    LocalJob {
        exists: true,
        suspended: job.spec_suspended(),
        active: job.is_active(),
        started: job.has_started(),
    }
}

fn check_state(workload: &Workload, name: Option<&str>) -> DispatchCheckState {
    let checks = workload.status.admission_checks.iter();
    let mut checks = checks.filter(|check| Some(check.name.as_str()) == name);
    match checks.next().map(|check| check.state.as_str()) {
        Some("Ready") => DispatchCheckState::Ready,
        Some("Retry") => DispatchCheckState::Retry,
        Some("Rejected") => DispatchCheckState::Rejected,
        _ => DispatchCheckState::Pending,
    }
}

/// What the copies of one Workload are compared with.
pub(super) struct CopyInputs<'a> {
    pub(super) hub: &'a LocalWorkload,
    pub(super) hub_job: Option<&'a Job>,
    pub(super) expected: Option<&'a WorkloadSpec>,
    pub(super) writes: &'a Writes,
    pub(super) now: Timestamp,
}

/// What a worker has of a Workload.
pub(super) fn copy_view(worker: &Worker, key: &Key, inputs: &CopyInputs<'_>) -> RemoteCopy {
    let CopyInputs { hub, hub_job, expected, writes, now } = *inputs;
    let connection = match worker.lost_since() {
        Some(since) => RemoteConnection::Disconnected { since: engine_time(since) },
        None if worker.is_listed() => RemoteConnection::Connected,
        None => RemoteConnection::NotSynced,
    };
    let job_key = worker.job_of(key);
    let may_apply = |subject, key: &Key| writes.may_apply(&worker.target(subject, key), now);
    // A job that was not observed yet goes by the name of the hub's.
    let hub_key = hub_job.and_then(|job| job.metadata.name.as_deref());
    let hub_key = hub_key.map(|name| Key { namespace: key.namespace.clone(), name: name.into() });
    let job_pending = job_key.or(hub_key.as_ref()).is_some_and(|key| may_apply(Subject::Job, key));
    let clone = worker.clones.get(key);
    let job = job_key.and_then(|key| worker.jobs.get(key));
    RemoteCopy {
        cluster: worker.id,
        connection,
        creates_answered: !may_apply(Subject::Workload, key) && !job_pending,
        refused: worker.refusal(key, nominated_epoch(hub)).map(Into::into),
        clone: clone.map(|tracked| clone_view(tracked.object(), expected)),
        job: job.map(|tracked| job_view(tracked.object(), hub_job)),
    }
}

/// The epoch of the last nomination: it may have been raised since.
fn nominated_epoch(hub: &LocalWorkload) -> u64 {
    if hub.epoch_raised { hub.epoch.saturating_sub(1) } else { hub.epoch }
}

fn clone_view(clone: &Workload, expected: Option<&WorkloadSpec>) -> RemoteWorkload {
    let conditions = &clone.status.conditions;
    let find =
        |kind: &str| conditions.iter().find(|one| one.r#type == kind && one.status == "True");
    let admitted = find(ADMITTED);
    let at =
        |one: &crds::meta::Condition| one.last_transition_time.as_ref().map(|at| engine_time(at.0));
    RemoteWorkload {
        epoch: remote_objects::epoch(&clone.metadata),
        deleting: clone.metadata.deletion_timestamp.is_some(),
        admitted_at: admitted.map(|one| at(one).unwrap_or_default()),
        evicted: is_true(conditions, EVICTED),
        refused: find(REFUSED).map(|one| one.message.as_str().into()),
        finished: find(FINISHED)
            .map(|one| (one.reason.as_str().into(), one.message.as_str().into())),
        same_spec: expected.is_none_or(|expected| same_spec(&clone.spec, expected)),
    }
}

/// Whether a clone asks for what the hub's Workload asks for. Preemption gates are the manager's to change and no difference.
fn same_spec(clone: &WorkloadSpec, expected: &WorkloadSpec) -> bool {
    let active = |spec: &WorkloadSpec| spec.active.unwrap_or(true);
    clone.pod_sets == expected.pod_sets
        && clone.queue_name == expected.queue_name
        && clone.priority == expected.priority
        && clone.maximum_execution_time_seconds == expected.maximum_execution_time_seconds
        && active(clone) == active(expected)
}

fn job_view(job: &Job, hub_job: Option<&Job>) -> RemoteJob {
    RemoteJob {
        epoch: remote_objects::epoch(&job.metadata),
        deleting: job.metadata.deletion_timestamp.is_some(),
        active: job.is_active(),
        finished: job.finished().is_some(),
        status_synced: hub_job.is_some_and(|hub| hub.with_remote_status(job).status == hub.status),
    }
}
