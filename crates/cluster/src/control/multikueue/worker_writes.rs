//! Writes of copies on workers: created with the epoch, deleted as they were observed.

use ::jobs::{
    Job, JobGates, pod_sets_info::FlavorsByName, remote_objects, remote_objects::RemoteIdentity,
};
use crds::v1beta2::Workload;
use runtime::{
    watch::Key,
    write::{DeletePreconditions, DeletePropagation, Write, WriteError},
};

use super::worker::Worker;
use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Stamp, Subject, Tracked},
    timers::Reevaluation,
};

/// Creates the clone of a Workload. Returns whether a create was sent or is on its way.
pub(super) fn create_clone(
    worker: &Worker,
    (key, workload): (&Key, &Workload),
    (flavors, mark): (&FlavorsByName, RemoteIdentity<'_>),
    ctx: &mut Context,
) -> bool {
    let clone = match remote_objects::remote_workload(workload, flavors, mark) {
        Ok(clone) => clone,
        Err(error) => {
            tracing::warn!(%error, workload = %key, "cannot make a clone");
            return false;
        }
    };
    let write = (Subject::Workload, key, Purpose::CloneCreate);
    send(worker, key, write, ctx, |purpose, _| Write::create(purpose, &clone));
    true
}

/// Creates the copy of a job, suspended.
pub(super) fn create_job(
    worker: &Worker,
    (key, workload): (&Key, &Workload),
    (job_key, job): (&Key, &Job),
    (mark, gates): (RemoteIdentity<'_>, JobGates),
    ctx: &mut Context,
) {
    let copy = remote_objects::remote_job(job, workload, mark, gates);
    let write = (Subject::Job, job_key, Purpose::JobCreate);
    send(worker, key, write, ctx, |purpose, _| Write::create(purpose, &copy));
}

/// Deletes the job of a Workload in the foreground: when it is gone, so are its pods.
pub(super) fn delete_job(worker: &Worker, key: &Key, ctx: &mut Context) {
    let Some(job_key) = worker.job_of(key) else {
        return;
    };
    let Some(only) = worker.jobs.get(job_key).and_then(deletable) else {
        return;
    };
    let write = (Subject::Job, job_key, Purpose::JobDelete);
    send(worker, key, write, ctx, |purpose, key| {
        Write::delete::<Job>(purpose, key, only, DeletePropagation::Foreground)
    });
}

/// Deletes the clone of a Workload.
pub(super) fn delete_clone(worker: &Worker, key: &Key, ctx: &mut Context) {
    let Some(only) = worker.clones.get(key).and_then(deletable) else {
        return;
    };
    let write = (Subject::Workload, key, Purpose::CloneDelete);
    send(worker, key, write, ctx, |purpose, key| {
        Write::delete::<Workload>(purpose, key, only, DeletePropagation::Background)
    });
}

/// Sends a write for a Workload, unless one of the same object is in flight.
fn send(
    worker: &Worker,
    workload: &Key,
    (subject, key, purpose): (Subject, &Key, Purpose),
    ctx: &mut Context,
    encode: impl FnOnce(&'static str, &Key) -> Result<Write, WriteError>,
) {
    let target = worker.target(subject, key);
    if ctx.outbox.writes().is_in_flight(&target) {
        return;
    }
    let waiter = Reevaluation::Workload(workload.clone());
    ctx.outbox.submit(Intent { target, purpose, base: Stamp::default(), waiter }, encode);
}

/// The precondition of a deletion; `None` if the object is being deleted already.
fn deletable<K: kube::Resource>(tracked: &Tracked<K>) -> Option<DeletePreconditions> {
    let meta = tracked.object().meta();
    let deleted = meta.deletion_timestamp.is_some();
    (!deleted).then(|| DeletePreconditions { uid: meta.uid.clone(), resource_version: None })
}
