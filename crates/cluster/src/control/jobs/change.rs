//! Writes of a job, as the difference between two states of it, and Events about it.

use ::jobs::Job;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::{Write, difference},
};
use serde_json::json;

use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Subject, Target, Tracked},
    timers::Reevaluation,
};

/// The next state of a job, and which part of it is written.
#[derive(Debug)]
pub(crate) struct JobChange {
    after: Box<Job>,
    subresource: Option<&'static str>,
    purpose: Purpose,
}

impl JobChange {
    /// Metadata and spec.
    pub(super) fn spec(after: Box<Job>, purpose: Purpose) -> Self {
        Self { after, subresource: None, purpose }
    }

    /// The status.
    pub(crate) fn status(after: Box<Job>, purpose: Purpose) -> Self {
        Self { after, subresource: Some("status"), purpose }
    }
}

/// Submits the difference to the observed job, based on its uid and resourceVersion.
pub(super) fn submit(key: &Key, tracked: &Tracked<Job>, change: &JobChange, ctx: &mut Context) {
    let (before, after) = (&**tracked.object(), &*change.after);
    let (old, new) = match change.subresource {
        None => (
            json!({ "metadata": before.metadata, "spec": before.spec }),
            json!({ "metadata": after.metadata, "spec": after.spec }),
        ),
        Some(_) => (json!({ "status": before.status }), json!({ "status": after.status })),
    };
    let Some(mut patch) = difference(&old, &new) else {
        return;
    };
    patch["metadata"]["uid"] = json!(before.metadata.uid);
    patch["metadata"]["resourceVersion"] = json!(before.metadata.resource_version);
    let intent = Intent {
        target: Target::home(Subject::Job, key),
        purpose: change.purpose,
        base: tracked.stamp(),
        waiter: Reevaluation::Job(key.clone()),
    };
    ctx.outbox.submit(intent, |purpose, key| {
        Write::merge::<Job>(purpose, key, change.subresource, &patch)
    });
}

/// An Event about a job.
pub(super) fn event(
    job: &Job,
    event_type: EventType,
    reason: &'static str,
    note: String,
) -> EventRecord {
    let (regarding, action) = (Regarding::of(job), reason.to_owned());
    EventRecord { regarding, event_type, action, reason: reason.to_owned(), note }
}
