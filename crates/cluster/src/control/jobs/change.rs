//! Writes of a job, as the difference between two states of it, and Events about it.

use ::jobs::{GenericJob, JobObject, Kind};
use crds::{json::merge_patch, names::reporters};
use kube::core::ApiResource;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::{DeletePreconditions, DeletePropagation, Write},
};
use serde_json::{Value, json};

use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Intent, Purpose, Target, Tracked},
    timers::Reevaluation,
};

/// The next state of a job, and which part of it is written.
#[derive(Debug)]
pub(crate) struct JobChange {
    after: Box<JobObject>,
    subresource: Option<&'static str>,
    purpose: Purpose,
}

impl JobChange {
    /// Metadata and spec.
    pub(super) fn spec(after: Box<JobObject>, purpose: Purpose) -> Self {
        Self { after, subresource: None, purpose }
    }

    /// The status.
    pub(crate) fn status(after: Box<JobObject>, purpose: Purpose) -> Self {
        Self { after, subresource: Some("status"), purpose }
    }

    /// The job with the change.
    pub(super) fn after(&self) -> &JobObject {
        &self.after
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Whether it writes the status.
    pub(super) fn is_of_status(&self) -> bool {
        self.subresource.is_some()
    }
}

/// Submits the difference to the observed job, based on its uid and resourceVersion. Returns whether there is one.
pub(super) fn submit(
    job: &JobKey,
    tracked: &Tracked<JobObject>,
    change: &JobChange,
    ctx: &mut Context,
) -> bool {
    let (before, after) = (&**tracked.object(), &*change.after);
    let (old, new) = match change.subresource {
        None => (with_metadata(before), with_metadata(after)),
        Some(_) => (with_status(before), with_status(after)),
    };
    let Some(mut patch) = merge_patch(&old, &new) else {
        return false;
    };
    // A merge patch by name alone would also change a new job of this name, or a newer version.
    let metadata = before.metadata();
    patch["metadata"]["uid"] = json!(metadata.uid);
    patch["metadata"]["resourceVersion"] = json!(metadata.resource_version);
    let intent = Intent {
        target: Target::job(job),
        purpose: change.purpose,
        base: tracked.stamp(),
        waiter: Reevaluation::Job(job.clone()),
    };
    ctx.outbox.submit(intent, |purpose, key| {
        Write::of(purpose, &resource(&job.kind)).merge(key, change.subresource, &patch)
    })
}

/// Submits the deletion of the observed job, by its uid. Its dependents are deleted after it. Returns whether it is submitted.
pub(super) fn submit_deletion(
    job: &JobKey,
    tracked: &Tracked<JobObject>,
    purpose: Purpose,
    ctx: &mut Context,
) -> bool {
    let intent = Intent {
        target: Target::job(job),
        purpose,
        base: tracked.stamp(),
        waiter: Reevaluation::Job(job.clone()),
    };
    // Without a resourceVersion: a status meanwhile is no reason to keep the job, and the uid excludes a successor.
    let uid = tracked.object().metadata().uid.clone();
    let only = DeletePreconditions { uid, resource_version: None };
    ctx.outbox.submit(intent, |purpose, key| {
        let resource = resource(&job.kind);
        Write::of(purpose, &resource).delete(key, only, DeletePropagation::Background)
    })
}

/// Metadata, and everything but the status.
fn with_metadata(job: &JobObject) -> Value {
    let mut object = job.without_status();
    object["metadata"] = json!(job.metadata());
    object
}

/// The status alone. One that is absent is removed as a whole: without its fields it may lack those that a schema requires.
fn with_status(job: &JobObject) -> Value {
    if job.has_status() { json!({ "status": job.status() }) } else { json!({}) }
}

/// The resource of a kind, as requests and Events name it.
pub(crate) fn resource(kind: &Kind) -> ApiResource {
    ApiResource::erase::<JobObject>(kind)
}

/// An Event about a job.
pub(crate) fn event(
    job: &JobObject,
    event_type: EventType,
    reason: &'static str,
    note: String,
) -> EventRecord {
    let uid = job.metadata().uid.as_deref().unwrap_or_default();
    let regarding = Regarding::dynamic(&resource(job.kind()), Key::of(job), uid);
    let (action, reason) = (reason.to_owned(), reason.to_owned());
    let controller = Some(reporters::of_framework(job.kind().framework()));
    EventRecord { regarding, event_type, action, reason, note, controller }
}
