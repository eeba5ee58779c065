//! Webhooks of job kinds (docs/reference/kueue.md §5.1, §5.3).
//!
//! A handler decodes a review, gathers the cluster state that the rules of `jobs` need, applies them, and encodes the
//! response. Kueue's static webhook configuration calls all kinds, so every path responds; kinds that are not enabled or not
//! implemented are allowed unchanged.
//!
//! Invariants: no lock is held across an await; nothing is defaulted before the cache is synced.

mod defaulting_facts;
mod owners;
mod queues;
mod settings;

use std::sync::Arc;

use axum::{Json, Router, extract::State, routing::post};
use crds::validation::{Errors, denial};
use jobs::{
    GenericJob, Job, defaulting,
    integrations::{BATCH_JOB, INTEGRATIONS, Integration},
    validate,
};
use kube::Client;
use serde::de::DeserializeOwned;

pub use settings::JobSettings;

use self::owners::OwnerReader;
use super::{
    decode,
    review::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
};
use crate::webhook_cache::SharedWebhookCache;

/// Frameworks with webhooks.
pub(crate) const SERVED: &[&str] = &[BATCH_JOB];

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
    let routes = INTEGRATIONS.iter().fold(Router::new(), |router, framework| {
        let (defaults, checks) = match acted_on(&webhooks, framework) {
            Some(BATCH_JOB) => (post(default::<Job>), post(check::<Job>)),
            _ => (post(allow), post(allow)),
        };
        let path = |verb| framework.webhook_path(verb);
        router.route(&path("mutate"), defaults).route(&path("validate"), checks)
    });
    routes.with_state(Arc::new(webhooks))
}

fn acted_on(webhooks: &JobWebhooks, framework: &Integration) -> Option<&'static str> {
    let enabled = webhooks.settings.kinds.is_enabled(framework.name);
    (enabled && SERVED.contains(&framework.name)).then_some(framework.name)
}

async fn allow(Json(review): Json<AdmissionReview>) -> Json<AdmissionReview> {
    review.answer(|_| AdmissionResponse::allowed())
}

async fn default<J: GenericJob + DeserializeOwned + Sync + Send>(
    State(webhooks): State<Arc<JobWebhooks>>,
    Json(review): Json<AdmissionReview>,
) -> Json<AdmissionReview> {
    let response = match review.request() {
        Some(request) => decide_defaults::<J>(request, &webhooks).await,
        None => AdmissionResponse::without_request(),
    };
    review.respond(&response)
}

async fn decide_defaults<J: GenericJob + DeserializeOwned + Sync>(
    request: &AdmissionRequest,
    webhooks: &JobWebhooks,
) -> AdmissionResponse {
    let job: J = match decode::object(&request.object) {
        Ok(job) => job,
        Err(error) => return AdmissionResponse::undecodable(&error),
    };
    let namespace = request.namespace.as_str();
    let facts = match defaulting_facts::gather(webhooks, &job, namespace).await {
        Ok(facts) => facts,
        Err(unknown) => return unknown.into_response(),
    };
    let steps = defaulting::default(&job, facts, webhooks.settings.gates);
    AdmissionResponse::Allowed { patch: steps.iter().map(defaulting::PatchAdd::to_json).collect() }
}

async fn check<J: GenericJob + DeserializeOwned>(
    State(webhooks): State<Arc<JobWebhooks>>,
    Json(review): Json<AdmissionReview>,
) -> Json<AdmissionReview> {
    review.answer(|request| match find_errors::<J>(request, &webhooks) {
        Ok(errors) => denial(&errors)
            .map_or_else(AdmissionResponse::allowed, |text| AdmissionResponse::denied(&text)),
        Err(error) => AdmissionResponse::undecodable(&error),
    })
}

fn find_errors<J: GenericJob + DeserializeOwned>(
    request: &AdmissionRequest,
    webhooks: &JobWebhooks,
) -> Result<Errors, String> {
    let gates = webhooks.settings.gates;
    let job: J = decode::object(&request.object)?;
    if request.operation != Operation::Update {
        return Ok(validate::create(&job, gates));
    }
    let old: J = decode::object(&request.old_object)?;
    let default_queue = webhooks.cache.read(|cache| cache.has_default_queue(&request.namespace));
    Ok(validate::update(&job, &old, default_queue, gates))
}

#[cfg(test)]
pub(super) mod tests;
