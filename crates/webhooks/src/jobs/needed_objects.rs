//! Reads the objects that the pod sets of a job need, like the runtime of a TrainJob.
//!
//! A new job is refused without an object that its kind requires. A change of a job is not: its user, and the manager that stops
//! it, could not help it.

use std::sync::Arc;

use jobs::{
    GenericJob, JobGates, JobObject,
    lookups::{FoundObjects, LookupFailure, LookupKind, NeededObject},
    validate,
};
use kube::{
    Api, Client, Error,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use tokio::time::timeout;

use super::defaulting_facts::READ_TIMEOUT;

/// A job with its pod sets, as far as the objects were found.
///
/// # Errors
/// The refusal of a job that names an object that does not exist.
pub(super) async fn of_new(client: &Client, job: &JobObject) -> Result<JobObject, String> {
    let found = read(client, job).await;
    match job.refusal_without(&found) {
        Some(refusal) => Err(refusal),
        None => Ok(job.with_objects(&found)),
    }
}

/// A changed job with its pod sets. Without them if it has no other errors in its templates than before: the object that has the
/// templates may have changed since.
pub(super) async fn of_changed(
    client: &Client,
    new: &JobObject,
    old: &JobObject,
    gates: JobGates,
) -> JobObject {
    if new.without_status() == old.without_status() {
        return new.clone();
    }
    let found = read(client, new).await;
    let [complete, before] = [new, old].map(|job| job.with_objects(&found));
    let errors = |job: &JobObject| validate::of_templates(job, gates);
    if errors(&complete) == errors(&before) { new.clone() } else { complete }
}

async fn read(client: &Client, job: &JobObject) -> FoundObjects {
    let mut found = FoundObjects::default();
    for needed in job.needed_objects() {
        let api = api(client, &needed);
        match timeout(READ_TIMEOUT, api.get(&needed.name)).await {
            Ok(Ok(object)) => found.observe(needed, Some(Arc::new(object))),
            Ok(Err(Error::Api(status))) if status.code == 404 && status.reason == "NotFound" => {}
            // Whether it exists is not known.
            Ok(Err(_)) | Err(_) => {
                found.observe_failure(&needed.kind, Some(LookupFailure::Forbidden));
            }
        }
    }
    found
}

fn api(client: &Client, needed: &NeededObject) -> Api<DynamicObject> {
    let LookupKind { gvk, plural, .. } = &needed.kind;
    let kind = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    match &needed.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
