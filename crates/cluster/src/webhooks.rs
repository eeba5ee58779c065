//! The webhooks of Kueue's own kinds and of jobs, and the conversion of versions.
//!
//! A handler decodes a review, asks a pure rule, and encodes the answer. Paths, names and answers are upstream's
//! (docs/reference/kueue.md §5.1–5.2): kinds are registered in v1beta2 only, the API server converts what comes in v1beta1.

mod cluster_queue;
mod cohort;
mod conversion;
mod decode;
mod jobs;
mod mutate;
mod resource_flavor;
mod resource_groups;
mod review;
mod rules;
mod workload;
mod workload_status;
mod workload_update;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use crds::{
    v1beta2::{ClusterQueue, Cohort, ResourceFlavor, Workload},
    validation::{Errors, denial},
};
use serde::de::DeserializeOwned;

pub(crate) use self::jobs::SERVED;
pub use self::jobs::{JobSettings, JobWebhooks};
pub use rules::Rules;

use self::review::{Operation, Request, Response, Review};

/// Objects are at most 3 MiB on the wire; a review holds two of them.
const BODY_LIMIT: usize = 8 << 20;

/// All webhooks, at upstream's paths.
pub fn router(rules: Rules, jobs: JobWebhooks) -> Router {
    let of_kueue = Router::new()
        .route("/convert", post(conversion::convert))
        .route("/mutate-kueue-x-k8s-io-v1beta2-workload", post(mutate_workload))
        .route("/mutate-kueue-x-k8s-io-v1beta2-clusterqueue", post(mutate::<ClusterQueue>))
        .route("/mutate-kueue-x-k8s-io-v1beta2-resourceflavor", post(mutate::<ResourceFlavor>))
        .route("/validate-kueue-x-k8s-io-v1beta2-workload", post(validate::<Workload>))
        .route("/validate-kueue-x-k8s-io-v1beta2-clusterqueue", post(validate::<ClusterQueue>))
        .route("/validate-kueue-x-k8s-io-v1beta2-resourceflavor", post(validate::<ResourceFlavor>))
        .route("/validate-kueue-x-k8s-io-v1beta2-cohort", post(validate::<Cohort>))
        .with_state(Arc::new(rules));
    of_kueue.merge(jobs::router(jobs)).layer(DefaultBodyLimit::max(BODY_LIMIT))
}

/// What must hold of an object, beyond its schema.
trait Validate: DeserializeOwned {
    /// What is wrong with an object, given what it was before an update.
    fn validate(&self, old: Option<&Self>, rules: &Rules) -> Errors;
}

async fn validate<T: Validate>(
    State(rules): State<Arc<Rules>>,
    Json(review): Json<Review>,
) -> Json<Review> {
    review.answer(|request| decide_validation::<T>(request, &rules))
}

fn decide_validation<T: Validate>(request: &Request, rules: &Rules) -> Response {
    let object: T = match decode::object(&request.object) {
        Ok(object) => object,
        Err(error) => return Response::undecodable(&error),
    };
    let old: Option<T> = match request.operation {
        Operation::Update => match decode::object(&request.old_object) {
            Ok(old) => Some(old),
            Err(error) => return Response::undecodable(&error),
        },
        _ => None,
    };
    match denial(&object.validate(old.as_ref(), rules)) {
        Some(message) => Response::denied(&message),
        None => Response::allowed(),
    }
}

async fn mutate<T>(Json(review): Json<Review>) -> Json<Review>
where
    T: DeserializeOwned + serde::Serialize + mutate::InUse,
{
    review.answer(mutate::protect::<T>)
}

async fn mutate_workload(
    State(rules): State<Arc<Rules>>,
    Json(review): Json<Review>,
) -> Json<Review> {
    review.answer(|request| mutate::workload(request, &rules))
}

#[cfg(test)]
mod tests;
