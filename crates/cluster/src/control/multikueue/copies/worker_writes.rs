//! Writes of copies on workers: created with the epoch, deleted as they were observed, and read where a create is not settled.

use ::jobs::{
    GenericJob, JobGates, JobObject, admitted_infos::FlavorsByName, remote_objects,
    remote_objects::RemoteIdentity,
};
use crds::{
    names::{annotations::LEASE_STAMP, labels::MULTI_KUEUE_ORIGIN},
    v1beta2::{PreemptionGateState, Workload, WorkloadSpec},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use runtime::{
    watch::Key,
    write::{DeletePreconditions, DeletePropagation, Write, WriteError},
};
use serde_json::{Value, json};

use super::copy_sizes::CopySizes;
use crate::control::{
    context::Context,
    job_key::JobKey,
    jobs::resource,
    lease_objects::stamp_of,
    multikueue::{
        view::hub_jobs::HubJob,
        workers::{worker::Worker, worker_clusters::WorkerClusters},
    },
    outbox::{Intent, Purpose, Stamp, Subject, Target, Tracked},
    timers::Reevaluation,
};

/// What copies of a Workload are made from.
#[derive(Clone, Copy)]
pub(crate) struct CopySource<'a> {
    pub(crate) key: &'a Key,
    pub(crate) workload: &'a Workload,
    /// What identifies them.
    pub(crate) mark: RemoteIdentity<'a>,
    pub(crate) gates: JobGates,
}

/// Creates the clone of a Workload. Returns whether the create was sent.
pub(crate) fn create_clone(
    worker: &Worker,
    source: CopySource<'_>,
    flavors: &FlavorsByName,
    ctx: &mut Context,
) -> bool {
    let CopySource { key, workload, mark, .. } = source;
    let clone = match remote_objects::remote_workload(workload, flavors, mark) {
        Ok(clone) => clone,
        Err(error) => {
            tracing::warn!(%error, workload = %key, "cannot make a clone");
            return false;
        }
    };
    let write = intent(key, worker.target(Subject::Workload, key), Purpose::CloneCreate);
    send(write, ctx, |purpose, _| Write::create(purpose, &clone))
}

/// Creates the copy of a job, suspended; that of a set holds its pods by itself, since an agent has no webhooks for that, and Kueue takes
/// the gate off as its own. Returns whether the create was sent.
pub(crate) fn create_job(
    worker: &Worker,
    source: CopySource<'_>,
    (job_key, job): HubJob<'_>,
    ctx: &mut Context,
) -> bool {
    let CopySource { key, workload, mark, gates } = source;
    let mut copy = remote_objects::remote_job(job, workload, mark, gates);
    copy.hold_pods();
    let write = intent(key, worker.job_target(job_key), Purpose::JobCreate);
    send(write, ctx, |purpose, _| {
        Write::of(purpose, &resource(copy.kind())).create(copy.to_create())
    })
}

/// Limits a write to the copy that was compared: a successor of its name or a newer version stays as it is.
fn as_compared(metadata: &ObjectMeta) -> Value {
    json!({ "uid": metadata.uid, "resourceVersion": metadata.resource_version })
}

/// What a clone gets as its priority.
pub(crate) fn priority_fields(spec: &WorkloadSpec) -> Value {
    json!({ "priority": spec.priority, "priorityClassRef": spec.priority_class_ref })
}

/// Writes the priority of a Workload to its clone. Returns what was sent.
pub(crate) fn push_priority(
    worker: &Worker,
    key: &Key,
    workload: &Workload,
    ctx: &mut Context,
) -> Option<Value> {
    let clone = worker.clones.get(key)?;
    let spec = priority_fields(&workload.spec);
    let fields = json!({ "metadata": as_compared(&clone.object().metadata), "spec": spec });
    let write = intent(key, worker.target(Subject::Workload, key), Purpose::Priority);
    let encode = |purpose, key: &Key| Write::merge::<Workload>(purpose, key, None, &fields);
    send(write, ctx, encode).then_some(spec)
}

/// Writes the size of a Workload to its clone; if the clone has it, that of its jobs to their copies, which name the clone then. Returns
/// what was sent, by job; `None` is the clone.
pub(crate) fn push_size(
    sizes: CopySizes<'_>,
    source: CopySource<'_>,
    jobs: &[HubJob<'_>],
    ctx: &mut Context,
) -> Vec<(Option<JobKey>, Value)> {
    let CopySizes { worker, key, .. } = sizes;
    if let (Some(clone), Some(spec)) = (worker.clones.get(key), sizes.of_clone()) {
        let fields = json!({ "metadata": as_compared(&clone.object().metadata), "spec": spec });
        let write = intent(key, worker.target(Subject::Workload, key), Purpose::ResizeCopy);
        let encode = |purpose, key: &Key| Write::merge::<Workload>(purpose, key, None, &fields);
        let sent = send(write, ctx, encode);
        return sent.then_some((None, spec)).into_iter().collect();
    }
    let mut pushed = Vec::new();
    for (job_key, job) in jobs {
        let copy = worker.jobs.get(job_key).map(Tracked::object);
        let Some((copy, size)) = copy.zip(sizes.of_job(job_key, job)) else {
            continue;
        };
        let mut metadata = as_compared(copy.metadata());
        if size.renames {
            let named = remote_objects::named_slice(source.workload, source.mark, source.gates);
            metadata["labels"] = named["labels"].clone();
            metadata["annotations"] = named["annotations"].clone();
        }
        let fields = json!({ "metadata": metadata, "spec": size.spec });
        let write = intent(key, worker.job_target(job_key), Purpose::ResizeCopy);
        let sent = send(write, ctx, |purpose, key| {
            Write::of(purpose, &resource(&job_key.kind)).merge(key, None, &fields)
        });
        if sent {
            pushed.push((Some((*job_key).clone()), size.fields()));
        }
    }
    pushed
}

/// Writes the positions of the preemption gates of a clone.
pub(crate) fn write_gates(
    worker: &Worker,
    key: &Key,
    gates: &[PreemptionGateState],
    ctx: &mut Context,
) {
    let Some(clone) = worker.clones.get(key) else {
        return;
    };
    let fields = json!({
        "metadata": as_compared(&clone.object().metadata), "status": {"preemptionGates": gates},
    });
    let write = intent(key, worker.target(Subject::Workload, key), Purpose::OpenCloneGate);
    send(write, ctx, |purpose, key| {
        Write::merge::<Workload>(purpose, key, Some("status"), &fields)
    });
}

/// Writes the stamp of this leader to a clone, so that the agent may admit it. Returns whether it was sent.
pub(crate) fn push_stamp(worker: &Worker, key: &Key, stamp: &str, ctx: &mut Context) -> bool {
    let Some(clone) = worker.clones.get(key) else {
        return false;
    };
    let mut metadata = as_compared(&clone.object().metadata);
    metadata["annotations"] = json!({ LEASE_STAMP: stamp });
    let fields = json!({ "metadata": metadata });
    let write = intent(key, worker.target(Subject::Workload, key), Purpose::Stamp);
    send(write, ctx, |purpose, key| Write::merge::<Workload>(purpose, key, None, &fields))
}

/// Deletes jobs of a Workload. When they are gone, so are the pods of those that had not ended.
pub(crate) fn delete_jobs<'a>(
    worker: &Worker,
    key: &Key,
    jobs: impl Iterator<Item = &'a JobKey>,
    ctx: &mut Context,
) {
    for job_key in jobs {
        let copy = worker.jobs.get(job_key);
        let Some((propagation, only)) = copy.and_then(deletion_of_job) else {
            continue;
        };
        let write = intent(key, worker.job_target(job_key), Purpose::JobDelete);
        send(write, ctx, |purpose, key| {
            let resource = resource(&job_key.kind);
            Write::of(purpose, &resource).delete(key, only, propagation)
        });
    }
}

/// How a job is deleted, with the precondition; `None` if it is being deleted already. A job stays until the garbage collector has
/// removed its pods. One that has ended goes at once, and so does a suspended Job without pods, if it is still what was observed:
/// a worker without a garbage collector would keep it for ever. So does one that is mirrored, as upstream's: its end is not known. Under
/// ExactlyOnce it stays, because its absence is the proof that nothing of it runs.
fn deletion_of_job(copy: &Tracked<JobObject>) -> Option<(DeletePropagation, DeletePreconditions)> {
    let (only, job) = (deletable(copy)?, copy.object());
    let leaves_pods = job.kind().is_mirrored() && stamp_of(job.metadata()).is_none();
    if job.finished().is_some() || leaves_pods {
        return Some((DeletePropagation::Background, only));
    }
    if !is_without_pods(job) {
        return Some((DeletePropagation::Foreground, only));
    }
    let resource_version = job.metadata().resource_version.clone();
    Some((DeletePropagation::Background, DeletePreconditions { resource_version, ..only }))
}

/// Whether a job has no pods, terminating ones included. The status of a batch Job counts them all; that of other kinds may not show
/// pods that start or end.
fn is_without_pods(job: &JobObject) -> bool {
    let status = job.status();
    let is_none = |field: &str| status[field].as_i64().unwrap_or(0) == 0;
    matches!(job, JobObject::Batch(_))
        && job.spec_suspended()
        && ["active", "ready", "terminating"].into_iter().all(is_none)
}

/// Deletes the clone of a Workload. Returns its uid if the deletion was sent.
pub(crate) fn delete_clone(worker: &Worker, key: &Key, ctx: &mut Context) -> Option<String> {
    let only = worker.clones.get(key).and_then(deletable)?;
    let uid = only.uid.clone()?;
    let write = intent(key, worker.target(Subject::Workload, key), Purpose::CloneDelete);
    let sent = send(write, ctx, |purpose, key| {
        // The jobs went before their clone, so nothing depends on it any more.
        Write::delete::<Workload>(purpose, key, only, DeletePropagation::Background)
    });
    sent.then_some(uid)
}

/// Reads copies whose creates are not settled, on connected workers.
pub(crate) fn read_unsettled(workers: &WorkerClusters, origin: &str, ctx: &mut Context) {
    for (target, waiter) in ctx.outbox.unsettled_due(ctx.now) {
        let Some(name) = target.to.worker() else {
            continue;
        };
        // A connection suffices, although lists may be missing: the read of one name is consistent by itself.
        if !workers.is_connected(name) || !ctx.free_or_wait(&target, &Stamp::default(), &waiter) {
            continue;
        }
        let resource = match &target.subject {
            Subject::Job(kind) => resource(kind),
            _ => ApiResource::erase::<Workload>(&()),
        };
        let labels = format!("{MULTI_KUEUE_ORIGIN}={origin}");
        let purpose = Purpose::Settle;
        let intent = Intent { target, purpose, base: Stamp::default(), waiter };
        ctx.outbox
            .submit(intent, |purpose, key| Write::of(purpose, &resource).list_one(key, &labels));
    }
}

/// Sends a write for a Workload, unless one of the same object is in flight or failed a moment ago. Returns whether it was sent.
fn send(
    intent: Intent,
    ctx: &mut Context,
    encode: impl FnOnce(&'static str, &Key) -> Result<Write, WriteError>,
) -> bool {
    // In flight, or in the backoff of a write that the worker did not accept.
    if !ctx.free_or_wait(&intent.target, &intent.base, &intent.waiter) {
        return false;
    }
    ctx.outbox.submit(intent, encode)
}

/// A write for a Workload.
fn intent(workload: &Key, target: Target, purpose: Purpose) -> Intent {
    let waiter = Reevaluation::Workload(workload.clone());
    // No base: a create has no object yet, and a deletion names the uid in its precondition.
    Intent { target, purpose, base: Stamp::default(), waiter }
}

/// The precondition of a deletion; `None` if the object is being deleted already.
fn deletable<K: kube::Resource>(tracked: &Tracked<K>) -> Option<DeletePreconditions> {
    let meta = tracked.object().meta();
    let deleted = meta.deletion_timestamp.is_some();
    // The status of a copy changes all the time and is no reason to keep it.
    (!deleted).then(|| DeletePreconditions { uid: meta.uid.clone(), resource_version: None })
}
