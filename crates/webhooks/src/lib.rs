//! Webhooks of Kueue's kinds and of jobs, and version conversion.
//!
//! A handler decodes a review, applies a pure rule, and encodes the response. Paths, names and responses are Kueue's
//! (docs/reference/kueue.md §5.1–5.2). Kinds are registered in v1beta2 only; the API server converts v1beta1.
//!
//! | module | concept |
//! |---|---|
//! | [`router`] | all webhooks, at their paths |
//! | [`WebhookGates`], [`JobSettings`] | what configuration and feature gates decide |
//! | [`JobWebhooks`] | webhooks of jobs |
//! | [`ray_security_router`] | webhooks that secure RayClusters |
//! | [`cache`] | the objects that webhooks of jobs read |
//! | `webhook_gates` | the feature gates of webhooks |
//! | `cluster_queue`, `cohort`, `resource_flavor`, `resource_groups` | validation of queues, Cohorts, flavors and quota |
//! | `workload`, `workload_update`, `workload_status` | validation of Workloads: creation, immutable fields, status |
//! | `pod_set_meaning` | when two pod sets mean the same |
//! | `mutate` | what mutating webhooks add to objects |
//! | `ray_security` | mutation and validation of secured RayClusters |
//! | `body`, `decode` | bodies of reviews, and their objects |

mod body;
pub mod cache;
mod cluster_queue;
mod cohort;
mod conversion;
mod decode;
mod jobs;
mod mutate;
mod pod_set_meaning;
mod ray_security;
mod resource_flavor;
mod resource_groups;
mod review;
mod webhook_gates;
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
    decode::Decode,
    v1beta2::{ClusterQueue, Cohort, ResourceFlavor, Workload},
    validation::{Errors, denial},
};

pub use self::jobs::{JobSettings, JobWebhooks};
pub use ray_security::ray_security_router;
pub use webhook_gates::WebhookGates;

use self::{
    body::ReviewBody,
    review::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
};

/// Objects have at most 3 MiB; a review contains two of them.
const BODY_LIMIT: usize = 8 << 20;

/// All webhooks, at Kueue's paths.
pub fn router(gates: WebhookGates, jobs: JobWebhooks) -> Router {
    let of_kueue = Router::new()
        .route("/convert", post(conversion::convert))
        .route("/mutate-kueue-x-k8s-io-v1beta2-workload", post(mutate_workload))
        .route("/mutate-kueue-x-k8s-io-v1beta2-clusterqueue", post(mutate::<ClusterQueue>))
        .route("/mutate-kueue-x-k8s-io-v1beta2-resourceflavor", post(mutate::<ResourceFlavor>))
        .route("/validate-kueue-x-k8s-io-v1beta2-workload", post(validate::<Workload>))
        .route("/validate-kueue-x-k8s-io-v1beta2-clusterqueue", post(validate::<ClusterQueue>))
        .route("/validate-kueue-x-k8s-io-v1beta2-resourceflavor", post(validate::<ResourceFlavor>))
        .route("/validate-kueue-x-k8s-io-v1beta2-cohort", post(validate::<Cohort>))
        .with_state(Arc::new(gates));
    of_kueue.merge(jobs::router(jobs)).layer(DefaultBodyLimit::max(BODY_LIMIT))
}

/// Validation of a kind beyond its schema.
///
/// Contract: `validate` is pure and finds all errors, in the order in which Kueue reports them; `old` is the object before an
/// update, none on creation. The object has passed the schema and the CEL rules of its CRD. An empty result allows the
/// request; otherwise callers deny it with all errors in one message.
///
/// ```ignore
/// impl Validate for Cohort {
///     fn validate(&self, _: Option<&Self>, _: &WebhookGates) -> Errors {
///         resource_groups::check(&self.spec.resource_groups, QUOTA_OWNER)
///     }
/// }
/// ```
trait Validate: Decode {
    /// All errors of the object.
    fn validate(&self, old: Option<&Self>, gates: &WebhookGates) -> Errors;
}

async fn validate<T: Validate>(
    State(gates): State<Arc<WebhookGates>>,
    ReviewBody(review): ReviewBody<AdmissionReview>,
) -> Json<AdmissionReview> {
    review.answer(|request| decide_validation::<T>(request, &gates))
}

fn decide_validation<T: Validate>(
    request: AdmissionRequest,
    gates: &WebhookGates,
) -> AdmissionResponse {
    let object: T = match decode::object(request.object) {
        Ok(object) => object,
        Err(error) => return AdmissionResponse::undecodable(&error),
    };
    let old: Option<T> = match request.operation {
        Operation::Update => match decode::object(request.old_object) {
            Ok(old) => Some(old),
            Err(error) => return AdmissionResponse::undecodable(&error),
        },
        _ => None,
    };
    match denial(&object.validate(old.as_ref(), gates)) {
        Some(message) => AdmissionResponse::denied(&message),
        None => AdmissionResponse::allowed(),
    }
}

async fn mutate<T>(ReviewBody(review): ReviewBody<AdmissionReview>) -> Json<AdmissionReview>
where
    T: Decode + serde::Serialize + mutate::InUse,
{
    review.answer(mutate::protect::<T>)
}

async fn mutate_workload(
    State(gates): State<Arc<WebhookGates>>,
    ReviewBody(review): ReviewBody<AdmissionReview>,
) -> Json<AdmissionReview> {
    review.answer(|request| mutate::workload(request, &gates))
}

#[cfg(test)]
mod tests;
