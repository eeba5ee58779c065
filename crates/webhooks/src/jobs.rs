//! Webhooks of job kinds (docs/reference/kueue.md §5.1, §5.3).
//!
//! A handler decodes a review, gathers the cluster state that the rules of `jobs` need, applies them, and encodes the
//! response. Kueue's static webhook configuration calls all kinds, so every path responds; kinds that are not enabled or not
//! implemented are allowed unchanged.
//!
//! Invariants: no lock is held across an await; nothing is defaulted before the cache is synced.

mod defaulting_facts;
mod deletion;
mod needed_objects;
mod owners;
mod queues;
mod reservations;
mod settings;

use std::sync::Arc;

use axum::{Json, Router, extract::State, routing::post};
use crds::{
    json::is_terminating,
    names::{MANAGED, labels::QUEUE_NAME},
    validation::{Errors, denial},
};
use jobs::{
    GenericJob, Job, JobObject, Kind, defaulting,
    integrations::{self, INTEGRATIONS},
    job, validate,
};
use kube::Client;
use serde_json::Value;

pub use settings::JobSettings;

use self::{defaulting_facts::GatherError, owners::OwnerReader};
use super::{
    body::ReviewBody,
    decode,
    review::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
};
use crate::cache::SharedWebhookCache;

/// The state of the webhooks of jobs.
pub struct JobWebhooks {
    settings: JobSettings,
    cache: SharedWebhookCache,
    owners: OwnerReader,
    client: Client,
}

impl JobWebhooks {
    /// Webhooks that read `cache`, and use `client` for objects that are not in it.
    #[must_use]
    pub fn new(settings: JobSettings, cache: SharedWebhookCache, client: Client) -> Self {
        Self { settings, cache, owners: OwnerReader::new(client.clone()), client }
    }
}

/// All webhooks of job kinds, at Kueue's paths.
pub(super) fn router(webhooks: JobWebhooks) -> Router {
    let webhooks = Arc::new(webhooks);
    let handled: Vec<Kind> = webhooks.settings.kinds.handled.iter().cloned().collect();
    let router = handled.iter().fold(Router::new(), |router, kind| {
        let state = KindWebhooks { kind: kind.clone(), webhooks: Arc::clone(&webhooks) };
        let defaults = post(default).with_state(state.clone());
        let checks = post(check).with_state(state);
        let router = router.route(&kind.webhook_path("mutate"), defaults);
        router.route(&kind.webhook_path("validate"), checks)
    });
    let others =
        INTEGRATIONS.iter().filter(|one| handled.iter().all(|kind| kind.framework() != one.name));
    let gated = &webhooks.settings.kinds.gated;
    others.fold(router, |router, one| {
        let mutates = if gated.contains(&one.name) { post(warn_of_no_quota) } else { post(allow) };
        // Only one of the two webhooks warns: a client prints every warning that it gets.
        let router = router.route(&one.webhook_path("mutate"), mutates);
        router.route(&one.webhook_path("validate"), post(allow))
    })
}

/// A job of an enabled kind whose feature gate is off runs past its queue, and not in silence.
async fn warn_of_no_quota(
    ReviewBody(review): ReviewBody<AdmissionReview>,
) -> Json<AdmissionReview> {
    review.answer(|request| match &request.object["metadata"]["labels"][QUEUE_NAME] {
        Value::String(queue) => AdmissionResponse::Warned {
            warning: format!(
                "a feature gate disables the queueing of this kind: it runs without quota, whatever LocalQueue {queue} has"
            ),
        },
        _ => AdmissionResponse::allowed(),
    })
}

/// The webhooks of one kind.
#[derive(Clone)]
struct KindWebhooks {
    kind: Kind,
    webhooks: Arc<JobWebhooks>,
}

async fn allow(ReviewBody(review): ReviewBody<AdmissionReview>) -> Json<AdmissionReview> {
    review.answer(|_| AdmissionResponse::allowed())
}

async fn default(
    State(KindWebhooks { kind, webhooks }): State<KindWebhooks>,
    ReviewBody(mut review): ReviewBody<AdmissionReview>,
) -> Json<AdmissionReview> {
    let response = match review.take_request() {
        Some(request) => decide_defaults(request, &kind, &webhooks).await,
        None => AdmissionResponse::without_request(),
    };
    review.respond(&response)
}

async fn decide_defaults(
    request: AdmissionRequest,
    kind: &Kind,
    webhooks: &JobWebhooks,
) -> AdmissionResponse {
    // Its owner may be gone already, and the garbage collector could not take the finalizers off.
    if request.operation == Operation::Update && is_terminating(&request.object) {
        return AdmissionResponse::allowed();
    }
    let job = match decode_job(kind, request.object) {
        Ok(job) => job,
        Err(error) => return AdmissionResponse::undecodable(&error),
    };
    // The integration of pods was enabled only for pods that a parent holds (docs/reference/kueue.md §7.1).
    if job.as_pod().is_some_and(|pod| webhooks.settings.kinds.managed.leaves_alone(pod)) {
        return AdmissionResponse::allowed();
    }
    let keeps = request.operation == Operation::Update && !job.is_defaulted_again();
    if keeps || job.is_held_by_other() {
        return AdmissionResponse::allowed();
    }
    let namespace = request.namespace.as_str();
    let facts = match defaulting_facts::gather(webhooks, &job, namespace).await {
        Ok(facts) => facts,
        Err(unknown) => return unknown.into_response(),
    };
    let steps = job.defaults_by(facts, webhooks.settings.gates);
    AdmissionResponse::Allowed { patch: steps.iter().map(defaulting::PatchAdd::to_json).collect() }
}

async fn check(
    State(KindWebhooks { kind, webhooks }): State<KindWebhooks>,
    ReviewBody(mut review): ReviewBody<AdmissionReview>,
) -> Json<AdmissionReview> {
    let response = match review.take_request() {
        Some(request) => decide_errors(request, &kind, &webhooks).await,
        None => AdmissionResponse::without_request(),
    };
    review.respond(&response)
}

async fn decide_errors(
    request: AdmissionRequest,
    kind: &Kind,
    webhooks: &JobWebhooks,
) -> AdmissionResponse {
    let AdmissionRequest { operation, namespace, object, old_object, .. } = request;
    if operation == Operation::Update && deletion::only_goes_on(&object, &old_object) {
        return AdmissionResponse::allowed();
    }
    let old_object = (operation == Operation::Update).then_some(old_object);
    let (job, old) = match decode_versions(kind, object, old_object) {
        Ok(versions) => versions,
        Err(error) => return AdmissionResponse::undecodable(&error),
    };
    let (gates, client) = (webhooks.settings.gates, &webhooks.client);
    let is_update = old.is_some();
    let errors = match old {
        None => match needed_objects::of_new(client, &job).await {
            Ok(job) => validate::create(&job, gates),
            Err(refusal) => return AdmissionResponse::denied(&refusal),
        },
        Some(old) => match errors_of_change(webhooks, &namespace, &job, &old).await {
            Ok(errors) => errors,
            Err(unknown) => return unknown.into_response(),
        },
    };
    denial(&errors).map_or_else(
        || warn_of_managed_owner(&job, is_update, &webhooks.settings),
        |text| AdmissionResponse::denied(&text),
    )
}

/// The errors of an update.
async fn errors_of_change(
    webhooks: &JobWebhooks,
    namespace: &str,
    new: &JobObject,
    old: &JobObject,
) -> Result<Errors, GatherError> {
    let (gates, client) = (webhooks.settings.gates, &webhooks.client);
    let removes_queue = new.queue_name().is_empty() && !old.queue_name().is_empty();
    let default_queue =
        removes_queue && defaulting_facts::gives_default_queue(webhooks, namespace).await?;
    let complete = needed_objects::of_changed(client, new, old, gates).await;
    let mut errors = validate::update(&complete, old, default_queue, gates);
    if validate::leaves_queue_while_suspended(new, old)
        && reservations::holds_quota(client, namespace, old, gates).await?
    {
        errors.push(validate::queue_of_reserved_quota(new));
    }
    Ok(errors)
}

/// A pod of a managed job is started with the job. One that is queued by itself as well may wait for ever.
/// Updates of a pod with a suspending parent have no warning: its parent is queued, and the pod has the label for the parent.
fn warn_of_managed_owner(
    job: &JobObject,
    is_update: bool,
    settings: &JobSettings,
) -> AdmissionResponse {
    let owner = integrations::controller(job.metadata());
    let is_queued = job.as_pod().is_some_and(|pod| {
        let by_parent = is_update && pod.has_suspending_parent();
        pod.label(MANAGED) == Some("true") && !by_parent
    });
    if !is_queued || !owner.is_some_and(|owner| settings.kinds.managed.manages(owner)) {
        return AdmissionResponse::allowed();
    }
    let warning = format!(
        "pod owner is managed by kueue, label '{MANAGED}=true' might lead to unexpected behaviour"
    );
    AdmissionResponse::Warned { warning }
}

/// The job, and what it was before an update.
fn decode_versions(
    kind: &Kind,
    object: Value,
    old_object: Option<Value>,
) -> Result<(JobObject, Option<JobObject>), String> {
    let job = decode_job(kind, object)?;
    let old = old_object.map(|old| decode_job(kind, old)).transpose()?;
    Ok((job, old))
}

/// Decodes a job. The error of a typed kind names the field.
fn decode_job(kind: &Kind, object: Value) -> Result<JobObject, String> {
    if kind == job::kind() {
        return decode::object::<Job>(object).map(JobObject::from);
    }
    kind.decode(object)
}

#[cfg(test)]
pub(super) mod tests;
