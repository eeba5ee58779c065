//! The webhooks of job kinds (docs/reference/kueue.md §5.1, §5.3).
//!
//! A handler decodes a review, gathers what the rules of `jobs` must know of the cluster, asks them, and encodes the
//! answer. Upstream's static configuration calls all kinds, so every path answers: kinds that are not enabled, or not
//! built yet, are allowed as they are.
//!
//! Invariants: no lock is held while something is awaited; nothing is defaulted before the facts are complete.

mod owners;
mod queues;
mod settings;
mod surroundings;

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

use self::owners::Owners;
use super::{
    decode,
    review::{Operation, Request, Response, Review},
};
use crate::webhook_cache::SharedWebhookCache;

/// Frameworks whose webhooks do something.
pub(crate) const SERVED: &[&str] = &[BATCH_JOB];

/// What the webhooks of jobs stand on.
pub struct JobWebhooks {
    settings: JobSettings,
    cache: SharedWebhookCache,
    owners: Owners,
    client: Client,
}

impl JobWebhooks {
    /// Webhooks that answer from `cache`, and read with `client` what those lack.
    #[must_use]
    pub fn new(settings: JobSettings, cache: SharedWebhookCache, client: Client) -> Self {
        Self { settings, cache, owners: Owners::new(client.clone()), client }
    }
}

/// All webhooks of job kinds, at upstream's paths.
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

async fn allow(Json(review): Json<Review>) -> Json<Review> {
    review.answer(|_| Response::allowed())
}

async fn default<J: GenericJob + DeserializeOwned + Sync + Send>(
    State(webhooks): State<Arc<JobWebhooks>>,
    Json(review): Json<Review>,
) -> Json<Review> {
    let response = match review.request() {
        Some(request) => decide_defaults::<J>(request, &webhooks).await,
        None => Response::without_request(),
    };
    review.respond(&response)
}

async fn decide_defaults<J: GenericJob + DeserializeOwned + Sync>(
    request: &Request,
    webhooks: &JobWebhooks,
) -> Response {
    let job: J = match decode::object(&request.object) {
        Ok(job) => job,
        Err(error) => return Response::undecodable(&error),
    };
    let namespace = request.namespace.as_str();
    let around = match surroundings::gather(webhooks, &job, namespace).await {
        Ok(around) => around,
        Err(unknown) => return unknown.into_response(),
    };
    let steps = defaulting::default(&job, around, webhooks.settings.gates);
    Response::Allowed { patch: steps.iter().map(defaulting::PatchAdd::to_json).collect() }
}

async fn check<J: GenericJob + DeserializeOwned>(
    State(webhooks): State<Arc<JobWebhooks>>,
    Json(review): Json<Review>,
) -> Json<Review> {
    review.answer(|request| match find_errors::<J>(request, &webhooks) {
        Ok(errors) => {
            denial(&errors).map_or_else(Response::allowed, |text| Response::denied(&text))
        }
        Err(error) => Response::undecodable(&error),
    })
}

fn find_errors<J: GenericJob + DeserializeOwned>(
    request: &Request,
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
