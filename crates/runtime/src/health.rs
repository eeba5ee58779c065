//! Health endpoints: `/healthz` for liveness, `/readyz` for readiness.
//!
//! The bodies are those of other Kubernetes controllers: `ok`, or one line per check and status 500. `?verbose` lists the
//! checks on success too; `/readyz/NAME` runs one of them.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::StatusCode;

type HealthCheck = Box<dyn Fn() -> bool + Send + Sync>;

/// Named checks. The endpoint succeeds if all checks do.
#[derive(Default)]
pub struct HealthChecks {
    checks: Vec<(&'static str, HealthCheck)>,
}

impl HealthChecks {
    /// Adds a check. It must not block.
    #[must_use]
    pub fn with(
        mut self,
        name: &'static str,
        holds: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((name, Box::new(holds)));
        self
    }

    fn run(&self, endpoint: &str, verbose: bool, only: Option<&str>) -> (StatusCode, String) {
        let selected = |name: &str| only.is_none_or(|only| only == name);
        let results: Vec<(&str, bool)> = self
            .checks
            .iter()
            .filter(|(name, _)| selected(name))
            .map(|(name, holds)| (*name, holds()))
            .collect();
        // An endpoint without checks succeeds, but a check that does not exist is an error.
        if only.is_some() && results.is_empty() {
            return (StatusCode::NOT_FOUND, "no such check\n".to_owned());
        }
        let passed = results.iter().all(|(_, holds)| *holds);
        if passed && !verbose {
            return (StatusCode::OK, "ok".to_owned());
        }
        let mut body: String = results
            .iter()
            .map(|(name, holds)| match holds {
                true => format!("[+]{name} ok\n"),
                // Probes are not authenticated; the text is that of Kubernetes' own checks.
                false => format!("[-]{name} failed: reason withheld\n"),
            })
            .collect();
        let verdict = if passed { "passed" } else { "failed" };
        body.push_str(&format!("{endpoint} check {verdict}\n"));
        let code = if passed { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        (code, body)
    }
}

/// An endpoint: its name, which is its path and stands in the response, and its checks.
pub struct HealthEndpoint {
    name: String,
    checks: HealthChecks,
}

impl HealthEndpoint {
    /// An endpoint with this name; slashes around it have no effect.
    #[must_use]
    pub fn new(name: &str, checks: HealthChecks) -> Self {
        Self { name: name.trim_matches('/').to_owned(), checks }
    }

    fn router(self) -> Router {
        let name = &self.name;
        let (all, one) = (format!("/{name}"), format!("/{name}/{{check}}"));
        Router::new().route(&all, get(serve)).route(&one, get(serve)).with_state(Arc::new(self))
    }
}

/// Serves liveness and readiness checks.
pub fn router(liveness: HealthEndpoint, readiness: HealthEndpoint) -> Router {
    liveness.router().merge(readiness.router())
}

async fn serve(
    State(endpoint): State<Arc<HealthEndpoint>>,
    only: Option<Path<String>>,
    RawQuery(query): RawQuery,
) -> Response {
    let verbose = query.is_some_and(|query| {
        // As in Kubernetes, the parameter counts by its presence, whatever its value.
        query.split('&').any(|part| part.split('=').next() == Some("verbose"))
    });
    let only = only.as_ref().map(|Path(name)| name.as_str());
    endpoint.checks.run(&endpoint.name, verbose, only).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn get(router: Router, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(Body::empty()).expect("a request");
        let response = router.oneshot(request).await.expect("a response");
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (code, String::from_utf8(body.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn a_response_names_the_failed_checks() {
        let router = router(
            HealthEndpoint::new("healthz", HealthChecks::default().with("ping", || true)),
            HealthEndpoint::new(
                "/ready",
                HealthChecks::default().with("up", || true).with("certs", || false),
            ),
        );
        let table = [
            ("/healthz", 200, "ok"),
            ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
            ("/ready", 500, "[+]up ok\n[-]certs failed: reason withheld\nready check failed\n"),
            ("/ready/up", 200, "ok"),
            ("/ready/certs", 500, "[-]certs failed: reason withheld\nready check failed\n"),
            ("/ready/other", 404, "no such check\n"),
            ("/readyz", 404, ""),
        ];
        for (path, code, body) in table {
            assert_eq!(get(router.clone(), path).await, (code, body.to_owned()), "{path}");
        }
    }
}
