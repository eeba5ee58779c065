//! What the dispatch state machine (`dispatch::workload`) looks at, made from what was observed.
//!
//! | file | concept |
//! |---|---|
//! | this one, `copy_views` | the copies on each worker |
//! | `evaluated_workload` | what one evaluation reads |
//! | `observed_workload`, `hub_jobs` | the hub's side of a Workload, and its jobs |
//! | `set_siblings`, `slice_heirs` | the other replicas of a set, and other slices of an elastic job, which share its copy |

pub(super) mod copy_views;
pub(super) mod evaluated_workload;
pub(super) mod hub_jobs;
pub(super) mod observed_workload;
pub(super) mod set_siblings;
pub(super) mod slice_heirs;

use std::sync::Arc;

use ::jobs::{
    GenericJob, JobGates, JobObject, elastic_copies::shrunk_pod_sets, remote_objects, set_copies,
};
use crds::{
    meta::{Condition, is_true},
    names::{
        AGENT_PROVISIONING_CHECK,
        conditions::{ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED, REFUSED},
    },
    template_defaults::{same_pod_sets, same_template},
    v1beta2::{PodSet, Workload, WorkloadSpec},
};
use dispatch::{
    CopyHistory, HubIncarnation, LeaseStamp, PresentWorkload,
    workload::{RemoteConnection, RemoteCopy, RemoteJob, RemoteLease, RemoteWorkload, StampState},
};
use engine::ids::ClusterId;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::Key;

use self::{
    hub_jobs::{HubJob, hub_job_of, is_abandoned, is_deleted_member},
    slice_heirs::SliceHeirs,
};
use crate::control::{
    job_key::JobKey,
    jobs::WrittenStatuses,
    lease_objects::stamp_of,
    multikueue::{
        copies::{
            clone_gate::clone_gate, copy_sizes::CopySizes, copy_stamp::copy_stamp,
            sent_copies::SentCopies, worker_writes::priority_fields,
        },
        leases::lease_state::LeaseState,
        workers::worker::Worker,
    },
    outbox::{Subject, Writes},
    time::engine_time,
};

/// What the clone of a Workload should ask for; `None` without an admission.
pub(crate) fn expected_spec(workload: &Workload) -> Option<WorkloadSpec> {
    workload.status.admission.as_ref()?;
    let pod_sets = remote_objects::admitted_pod_sets(workload);
    Some(WorkloadSpec { pod_sets, ..workload.spec.clone() })
}

/// A cluster that was never connected since this process began, and was not reached since this time.
pub(crate) fn unknown_cluster(
    cluster: ClusterId,
    since: Timestamp,
    lease: RemoteLease,
) -> RemoteCopy {
    let connection = RemoteConnection::Disconnected { since: engine_time(since) };
    RemoteCopy {
        cluster,
        connection,
        // No copy is observed there that a person could be asked about.
        cleanup_confirmed: false,
        // This process has sent nothing there. `create_sent` stands for writes of an earlier one.
        creates_answered: true,
        lease,
        refused: None,
        clone: None,
        jobs: Vec::new(),
        missing_job: true,
        name_held: false,
    }
}

/// What the copies of one Workload are compared with.
pub(crate) struct CopyInputs<'a> {
    /// The epoch of the hub's Workload.
    pub(crate) epoch: u64,
    /// The epoch of the last nomination: it may have been raised since.
    pub(crate) nominated_epoch: u64,
    pub(crate) hub_jobs: &'a [HubJob<'a>],
    /// What the hub's API server makes of the statuses of copies.
    pub(crate) statuses: &'a WrittenStatuses,
    /// What the clone should ask for; `None` without an admission.
    pub(crate) expected: Option<&'a WorkloadSpec>,
    /// The pod sets of the hub's Workload; `None` if it is gone.
    pub(crate) pod_sets: Option<&'a [PodSet]>,
    pub(crate) gates: JobGates,
    pub(crate) incarnation: &'a HubIncarnation,
    /// Uid and version of the hub's Workload.
    pub(crate) present: Option<PresentWorkload<'a>>,
    /// The uid of the last Workload of the name whose deletion was observed.
    pub(crate) departed: Option<&'a str>,
    pub(crate) writes: &'a Writes,
    pub(crate) sent: &'a SentCopies,
    /// Whether another Workload has a set that both are replicas of on a cluster.
    pub(crate) is_needed: &'a dyn Fn(&JobKey, &str) -> bool,
    /// Whether a job gets no copy: it is a member that requests too much.
    pub(crate) is_held: &'a dyn Fn(&JobObject) -> bool,
    pub(crate) heirs: SliceHeirs<'a>,
    pub(crate) now: Timestamp,
}

/// A worker, as its copies are looked at.
pub(crate) struct ViewedWorker<'a> {
    pub(crate) worker: &'a Worker,
    /// Since when it is not reached.
    pub(crate) lost_since: Option<Timestamp>,
    pub(crate) leases: LeaseState,
    /// A user has confirmed the cleanup of its disputed copies.
    pub(crate) cleanup_confirmed: bool,
}

/// What a worker has of a Workload.
pub(crate) fn copy_view(
    viewed: &ViewedWorker<'_>,
    key: &Key,
    inputs: &CopyInputs<'_>,
) -> RemoteCopy {
    let ViewedWorker { worker, lost_since, leases, cleanup_confirmed } = *viewed;
    let CopyInputs { hub_jobs, expected, gates, writes, heirs, now, .. } = *inputs;
    let sizes = CopySizes { worker, key, expected, heirs, gates, now };
    // A job that the worker hides may run there.
    let hidden = hub_jobs.iter().filter_map(|(key, _)| worker.hides_since(&key.kind)).min();
    let connection = match lost_since.or(hidden).map(engine_time) {
        Some(since) if worker.connection().active => RemoteConnection::NotSynced { since },
        Some(since) => RemoteConnection::Disconnected { since },
        None => RemoteConnection::Connected,
    };
    let jobs = jobs_on(worker, key, inputs);
    // A job that was not observed yet goes by kind and name of the hub's.
    let absent = hub_jobs.iter().filter(|(hub, _)| jobs.iter().all(|(job, _)| job != hub));
    let without_copy = |job: &JobObject| is_deleted_member(job, gates) || (inputs.is_held)(job);
    let absent = absent.map(|(hub, job)| (*hub, without_copy(job)));
    let (uncopied, missing): (Vec<_>, Vec<_>) = absent.partition(|(_, uncopied)| *uncopied);
    let missing: Vec<&JobKey> = missing.into_iter().map(|(hub, _)| hub).collect();
    let mut keys = jobs.iter().map(|(job, _)| *job).chain(missing.iter().copied());
    let job_pending = keys.any(|job| writes.is_unsettled(&worker.job_target(job)));
    let clone = worker.clones.get(key);
    RemoteCopy {
        cluster: worker.id,
        connection,
        cleanup_confirmed,
        creates_answered: !writes.is_unsettled(&worker.target(Subject::Workload, key))
            && !job_pending,
        lease: leases.lease,
        refused: worker
            .refused
            .copy(key, inputs.nominated_epoch)
            .map(|refused| refused.message.as_str().into()),
        clone: clone.map(|tracked| clone_view(sizes, leases.stamp, tracked.object(), inputs)),
        missing_job: !missing.is_empty() || (jobs.is_empty() && uncopied.is_empty()),
        name_held: missing.iter().any(|job| worker.jobs.get(job).is_some()),
        jobs: jobs.iter().map(|(key, job)| job_view(sizes, key, job, inputs)).collect(),
    }
}

/// The clone on a worker. `present` is the stamp that it would get now.
fn clone_view(
    sizes: CopySizes<'_>,
    present: LeaseStamp,
    clone: &Workload,
    inputs: &CopyInputs<'_>,
) -> RemoteWorkload {
    let CopySizes { worker, key, now, .. } = sizes;
    let conditions = &clone.status.conditions;
    let find =
        |kind: &str| conditions.iter().find(|one| one.r#type == kind && one.status == "True");
    let at = |one: &Condition| one.transitioned_at().map(engine_time);
    let counts_until = worker.report_counts_until().filter(|_| awaits_nodes(clone));
    RemoteWorkload {
        epoch: remote_objects::epoch(&clone.metadata),
        history: inputs.history(&clone.metadata),
        same_uid: inputs.is_of_present(&clone.metadata),
        deleting: clone.metadata.deletion_timestamp.is_some(),
        delete_sent: inputs.sent.is_clone_deleted(worker.id, clone.metadata.uid.as_deref()),
        admitted_at: find(ADMITTED).map(|one| at(one).unwrap_or_default()),
        awaits_nodes_until: counts_until.map(engine_time),
        evicted: is_true(conditions, EVICTED),
        refused: find(REFUSED).map(|one| one.message.as_str().into()),
        finished: find(FINISHED)
            .map(|one| (one.reason.as_str().into(), one.message.as_str().into())),
        same_spec: inputs.expected.is_none_or(|expected| same_spec(clone, expected)),
        same_pods: inputs.pod_sets.is_some_and(|sets| same_pods(&clone.spec.pod_sets, sets)),
        stale_priority: has_stale_priority(worker, key, clone, inputs),
        stale_size: sizes.of_clone().is_some(),
        stamp: stamp_state(clone, present),
        gate: clone_gate(worker, key, clone, now),
    }
}

/// Where a copy of a job comes from.
struct JobOrigin {
    epoch: u64,
    history: CopyHistory,
    same_uid: bool,
}

/// Where the copy of a job comes from by what it carries.
fn job_origin(job: &JobObject, hub_job: Option<&JobObject>, inputs: &CopyInputs<'_>) -> JobOrigin {
    let same_uid = inputs.is_of_present(job.metadata());
    // The copy of a set of replicas has no epoch: it starts nothing, and the clones that do have theirs.
    let of_set = hub_job.filter(|hub| set_copies::is_shared(*hub));
    let (epoch, history) = match of_set {
        Some(set) if set_copies::is_copy_of(job, set) => (inputs.epoch, CopyHistory::Known),
        // It belongs to an earlier set of the name.
        Some(_) => (0, CopyHistory::Known),
        None => (remote_objects::epoch(job.metadata()), inputs.history(job.metadata())),
    };
    JobOrigin { epoch, history, same_uid }
}

/// The copy of a job on a worker.
fn job_view(
    sizes: CopySizes<'_>,
    job_key: &JobKey,
    job: &JobObject,
    inputs: &CopyInputs<'_>,
) -> RemoteJob {
    let CopySizes { worker, key, gates, heirs, .. } = sizes;
    let hub_job = hub_job_of(job_key, inputs.hub_jobs);
    let heir = heirs.heir(job_key, job, worker);
    let JobOrigin { epoch, history, same_uid } = match heir {
        // Its stamps are those of the slice that it names.
        Some(heir) if heir == key => {
            JobOrigin { epoch: inputs.epoch, history: CopyHistory::Known, same_uid: true }
        }
        _ => job_origin(job, hub_job, inputs),
    };
    let abandoned = is_abandoned(job, hub_job, gates);
    RemoteJob {
        epoch,
        history,
        same_uid,
        shared: set_copies::is_shared(job) && (inputs.is_needed)(job_key, worker.name()),
        stale_size: hub_job.is_some_and(|hub| sizes.of_job(job_key, hub).is_some()),
        handed_over: heir.is_some_and(|heir| heir != key),
        deleting: job.metadata().deletion_timestamp.is_some(),
        active: job.is_active(),
        // A set has no switch.
        suspended: job.spec_suspended() && job.set_size().is_none(),
        // Of a job that another program runs only the clone says that it is over.
        finished: job.finished().is_some() || job.is_skipped(),
        succeeded: job.finished().is_some_and(|outcome| outcome.success),
        // The status of a member that is gone is shown nowhere.
        status_synced: hub_job
            .map_or(abandoned, |hub| inputs.statuses.has_status_of(job_key, hub, job)),
        end_refused: hub_job.is_some_and(|hub| {
            hub.refuses_end_of(job) || inputs.statuses.loses_end_of(job_key, hub, job)
        }),
        abandoned,
    }
}

/// The copies of the jobs of a Workload: those that name its clone, those that it has together with others, and those of an earlier
/// slice.
fn jobs_on<'a>(
    worker: &'a Worker,
    key: &Key,
    inputs: &CopyInputs<'a>,
) -> Vec<(&'a JobKey, &'a Arc<JobObject>)> {
    let hub_jobs = inputs.hub_jobs;
    let inherited = inputs.heirs.inherited(key, hub_jobs.iter().map(|(key, _)| *key), worker);
    let inherited =
        inherited.into_iter().filter_map(|key| Some((key, worker.jobs.get(key)?.object())));
    // Only a person decides about a copy of another history.
    let known = |(_, job): &(&JobKey, &Arc<JobObject>)| {
        inputs.incarnation.knows(&copy_stamp(job.metadata()))
    };
    let inherited: Vec<_> = inherited.filter(known).collect();
    let shared = hub_jobs.iter().filter(|(_, job)| set_copies::is_shared(*job));
    let shared = shared.filter_map(|(key, _)| Some((*key, worker.jobs.get(key)?.object())));
    let shared: Vec<(&JobKey, &Arc<JobObject>)> = shared.collect();
    let named = worker.jobs(key).filter(|(job, _)| shared.iter().all(|(other, _)| other != job));
    named.chain(shared.iter().copied()).chain(inherited).collect()
}

impl CopyInputs<'_> {
    /// Whether the hub knows where a copy comes from.
    fn history(&self, of: &ObjectMeta) -> CopyHistory {
        self.incarnation.history(&copy_stamp(of), self.present, self.departed)
    }

    /// Whether a copy names the uid of the hub's Workload.
    fn is_of_present(&self, of: &ObjectMeta) -> bool {
        let uid = copy_stamp(of).workload_uid;
        uid.is_some() && uid.as_deref() == self.present.map(|one| one.uid)
    }
}

/// Whether an agent holds quota for a clone and has asked an autoscaler for its nodes.
fn awaits_nodes(clone: &Workload) -> bool {
    let is = |condition| is_true(&clone.status.conditions, condition);
    let mut checks = clone.status.admission_checks.iter();
    is(QUOTA_RESERVED) && !is(ADMITTED) && checks.any(|one| one.name == AGENT_PROVISIONING_CHECK)
}

/// How the stamp of a clone compares with the one that it would get now.
fn stamp_state(clone: &Workload, present: LeaseStamp) -> StampState {
    let admitted = clone.is_admitted();
    match stamp_of(&clone.metadata) {
        Some(stamp) if stamp.session < present.session => StampState::Ended,
        Some(stamp) if stamp.term < present.term && !admitted => StampState::OfFormerLeader,
        Some(_) | None => StampState::Current,
    }
}

/// Whether the hub's Workload has another priority than its clone, and the worker did not refuse it.
fn has_stale_priority(
    worker: &Worker,
    key: &Key,
    clone: &Workload,
    inputs: &CopyInputs<'_>,
) -> bool {
    let CopyInputs { expected, now, .. } = *inputs;
    let priority = |spec: &WorkloadSpec| (spec.priority, spec.priority_class_ref.clone());
    let stale = expected.filter(|expected| priority(expected) != priority(&clone.spec));
    let fields = stale.map(priority_fields);
    fields.is_some_and(|fields| !worker.refused.priorities.has(key, &fields, now))
}

/// Whether a clone asks for what the hub's Workload asks for. Preemption gates are the manager's to change and no difference. A
/// priority and a smaller size are written to the clone.
pub(crate) fn same_spec(clone: &Workload, expected: &WorkloadSpec) -> bool {
    let active = |spec: &WorkloadSpec| spec.active.unwrap_or(true);
    let same_pods = same_pod_sets(&clone.spec.pod_sets, &expected.pod_sets)
        || shrunk_pod_sets(clone, &expected.pod_sets).is_some();
    let clone = &clone.spec;
    same_pods
        && clone.queue_name == expected.queue_name
        && clone.maximum_execution_time_seconds == expected.maximum_execution_time_seconds
        && active(clone) == active(expected)
}

/// Whether a clone asks for the pods of the hub's Workload. Their number may differ only after a partial admission: for another
/// number of indexes the work is another one.
fn same_pods(clone: &[PodSet], hub: &[PodSet]) -> bool {
    let same = |clone: &PodSet, hub: &PodSet| {
        let same_count = clone.count == hub.count || hub.min_count.is_some();
        clone.name == hub.name && same_template(&clone.template, &hub.template) && same_count
    };
    clone.len() == hub.len() && clone.iter().zip(hub).all(|(clone, hub)| same(clone, hub))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(action: &serde_json::Value) -> Workload {
        let container = json!({"name": "c", "livenessProbe": {"grpc": action}});
        let template = json!({"spec": {"containers": [container]}});
        let pod_sets = json!([{"name": "main", "count": 1, "template": template}]);
        let workload = json!({"metadata": {"name": "w"}, "spec": {"podSets": pod_sets}});
        serde_json::from_value(workload).expect("a Workload decodes")
    }

    #[test]
    fn a_clone_without_the_defaults_of_the_hub_asks_for_the_same() {
        let clone = workload(&json!({"port": 80}));
        for (service, same) in [("", true), ("s", false)] {
            let hub = workload(&json!({"port": 80, "service": service})).spec;
            assert_eq!(same_spec(&clone, &hub), same, "{service}");
            assert_eq!(same_pods(&clone.spec.pod_sets, &hub.pod_sets), same, "{service}");
        }
    }
}
