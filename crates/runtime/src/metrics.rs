//! The metrics endpoint. The process passes in the registry; there is no global one.

use std::sync::Arc;

use axum::{Router, extract::State, response::IntoResponse, routing::get};
use http::{StatusCode, header};
use prometheus_client::{encoding::text, registry::Registry};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/metrics` of this registry.
pub fn router(registry: Arc<Registry>) -> Router {
    Router::new().route("/metrics", get(render)).with_state(registry)
}

async fn render(State(registry): State<Arc<Registry>>) -> impl IntoResponse {
    let mut body = String::new();
    match text::encode(&mut body, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use prometheus_client::metrics::counter::Counter;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_registered_counter_is_served() {
        let mut registry = Registry::with_prefix("kueue");
        let counter: Counter = Counter::default();
        registry.register("tries", "Tries", counter.clone());
        counter.inc_by(3);
        let request = http::Request::get("/metrics").body(Body::empty()).expect("a request");
        let response = router(Arc::new(registry)).oneshot(request).await.expect("a response");
        assert_eq!(response.headers()[header::CONTENT_TYPE], CONTENT_TYPE);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("text");
        assert!(body.contains("\nkueue_tries_total 3\n"), "{body}");
    }
}
