//! Webhooks that secure RayClusters on a manager cluster (docs/reference/ray.md §14).
//!
//! The agents of workers add the same to RayClusters that they run. A copy that only a worker changes would not match its Workload, so the
//! manager changes a RayCluster before it is counted. CodeFlare's paths are those of Kueue's webhooks, so the paths here begin otherwise.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use crds::validation::denial;
use ray::security::{self, SecurityConfig};
use serde_json::Value;

use super::{
    BODY_LIMIT,
    body::ReviewBody,
    mutate::difference,
    review::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
};

const MUTATE: &str = "/ray-security/mutate-ray-io-v1-raycluster";
const VALIDATE: &str = "/ray-security/validate-ray-io-v1-raycluster";

/// One of the webhooks.
#[derive(Clone)]
struct SecurityWebhook {
    config: Arc<SecurityConfig>,
    decide: fn(&AdmissionRequest, &SecurityConfig) -> AdmissionResponse,
}

/// Both webhooks.
pub fn ray_security_router(config: SecurityConfig) -> Router {
    let config = Arc::new(config);
    let mutating = SecurityWebhook { config: Arc::clone(&config), decide: mutate };
    let validating = SecurityWebhook { config, decide: validate };
    Router::new()
        .route(MUTATE, post(answer).with_state(mutating))
        .route(VALIDATE, post(answer).with_state(validating))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

async fn answer(
    State(SecurityWebhook { config, decide }): State<SecurityWebhook>,
    ReviewBody(review): ReviewBody<AdmissionReview>,
) -> Json<AdmissionReview> {
    review.answer(|request| decide(&request, &config))
}

fn mutate(request: &AdmissionRequest, config: &SecurityConfig) -> AdmissionResponse {
    let before = with_namespace(request);
    let mut after = before.clone();
    security::mutate(&mut after, old_object(request), config);
    AdmissionResponse::Allowed { patch: difference(&before, &after) }
}

fn validate(request: &AdmissionRequest, config: &SecurityConfig) -> AdmissionResponse {
    let object = with_namespace(request);
    match denial(&security::validate(&object, old_object(request), config)) {
        Some(message) => AdmissionResponse::denied(&message),
        None => AdmissionResponse::allowed(),
    }
}

fn old_object(request: &AdmissionRequest) -> Option<&Value> {
    (request.operation == Operation::Update).then_some(&request.old_object)
}

/// A new object may lack its namespace, of which names of the head are made.
fn with_namespace(request: &AdmissionRequest) -> Value {
    let mut object = request.object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), request.namespace.as_str().into());
    }
    object
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;

    async fn ask(path: &str, object: &Value, old: &Value) -> Value {
        let text =
            "kuberay: {rayDashboardOAuthEnabled: false, ingressDomain: a.b, certGeneratorImage: i}";
        let router = ray_security_router(SecurityConfig::parse(text).expect("a file"));
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": operation, "namespace": "ns",
                "object": object, "oldObject": old,
            },
        });
        let request =
            http::Request::post(path).body(Body::from(review.to_string())).expect("a request");
        let response = router.oneshot(request).await.expect("a response");
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        serde_json::from_slice::<Value>(&bytes).expect("JSON")["response"].clone()
    }

    fn cluster() -> Value {
        let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray"}]}});
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c"},
            "spec": {"headGroupSpec": {"template": template}},
        })
    }

    #[tokio::test]
    async fn a_new_cluster_gets_its_certificates() {
        let answer = ask(MUTATE, &cluster(), &Value::Null).await;
        assert_eq!((&answer["allowed"], &answer["patchType"]), (&json!(true), &json!("JSONPatch")));
    }

    #[tokio::test]
    async fn a_cluster_that_lost_them_is_refused() {
        let answer = ask(VALIDATE, &cluster(), &Value::Null).await;
        assert_eq!(answer["allowed"], true, "CodeFlare checks certificates of updates only");
        let answer = ask(VALIDATE, &cluster(), &cluster()).await;
        let message = answer["status"]["message"].as_str().expect("a message");
        assert!(message.contains("create-cert Init Container is immutable"), "{message}");
        assert_eq!(answer["status"]["code"], 403);
    }
}
