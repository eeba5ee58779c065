//! Counts the requests to API servers by cluster, verb and resource.
//!
//! The counter is a layer of the client, so it covers lists, watches, leases and events as well as writes. Verbs and resources
//! are named as in audit logs, so that the two can be compared. Names of objects never become labels.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Uri};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tower::{Layer, Service};

use crate::transport::is_watch;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    cluster: String,
    verb: &'static str,
    resource: String,
}

/// Request metrics of all clients of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct RequestMetrics {
    requests: Family<RequestLabels, Counter>,
}

impl RequestMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Requests to API servers by cluster, verb and resource";
        registry.register("requests", help, self.requests.clone());
    }

    /// The layer that counts the requests of a client of `cluster`.
    #[must_use]
    pub fn of(&self, cluster: &str) -> RequestCounter {
        RequestCounter { cluster: cluster.into(), metrics: self.clone() }
    }
}

/// A `tower` layer that counts requests.
#[derive(Clone, Debug)]
pub struct RequestCounter {
    cluster: Arc<str>,
    metrics: RequestMetrics,
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct CountedService<S> {
    inner: S,
    counter: RequestCounter,
}

impl<S> Layer<S> for RequestCounter {
    type Service = CountedService<S>;

    fn layer(&self, inner: S) -> CountedService<S> {
        CountedService { inner, counter: self.clone() }
    }
}

impl<S, B> Service<Request<B>> for CountedService<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.counter.count(request.method(), request.uri());
        self.inner.call(request)
    }
}

impl RequestCounter {
    fn count(&self, method: &Method, uri: &Uri) {
        let target = RequestTarget::of(uri);
        let labels = RequestLabels {
            cluster: self.cluster.to_string(),
            verb: verb(method, &target),
            resource: target.resource,
        };
        self.metrics.requests.get_or_create(&labels).inc();
    }
}

fn verb(method: &Method, target: &RequestTarget) -> &'static str {
    match (method.as_str(), target.named) {
        ("GET", _) if target.watched => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "other",
    }
}

/// The target of a request.
#[derive(Debug, PartialEq, Eq)]
struct RequestTarget {
    /// For example `jobs` or `jobs/status`; for other paths the first segment.
    resource: String,
    /// The path names one object.
    named: bool,
    /// The query asks for a watch.
    watched: bool,
}

impl RequestTarget {
    fn of(uri: &Uri) -> Self {
        let (resource, named) = resource_of_path(uri.path());
        Self { resource, named, watched: uri.query().is_some_and(is_watch) }
    }
}

/// The resource of a path, and whether the path names one object.
fn resource_of_path(path: &str) -> (String, bool) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        // `namespaces/NAME` is itself an object, unless a resource in it follows.
        ["api", _, "namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        ["apis", _, _, "namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        other => {
            // Paths outside the API, such as `/version`, have the verb `get` in audit logs.
            let first = other.first().copied().unwrap_or_default();
            return (first.to_owned(), true);
        }
    };
    match rest {
        [resource] => ((*resource).to_owned(), false),
        [resource, _name] => ((*resource).to_owned(), true),
        // Segments below a subresource, such as a proxied path, never become labels.
        [resource, _name, part, ..] => (format!("{resource}/{part}"), true),
        [] => ("discovery".to_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_as_in_audit_logs() {
        let cases = [
            ("GET", "/apis/batch/v1/jobs?watch=true&resourceVersion=1", "watch jobs"),
            ("GET", "/apis/batch/v1/jobs?limit=500", "list jobs"),
            ("GET", "/apis/batch/v1/namespaces/ns/jobs/train", "get jobs"),
            ("POST", "/apis/batch/v1/namespaces/ns/jobs?", "create jobs"),
            ("PATCH", "/apis/batch/v1/namespaces/ns/jobs/train/status?", "patch jobs/status"),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "update leases"),
            ("DELETE", "/apis/batch/v1/namespaces/ns/jobs/train", "delete jobs"),
            ("DELETE", "/apis/batch/v1/namespaces/ns/jobs", "deletecollection jobs"),
            ("GET", "/api/v1/namespaces", "list namespaces"),
            ("GET", "/api/v1/namespaces/ns", "get namespaces"),
            (
                "PATCH",
                "/apis/sluice.dev/v1alpha1/clustercapacities/local",
                "patch clustercapacities",
            ),
            ("GET", "/version", "get version"),
            ("GET", "/apis/batch/v1", "get discovery"),
        ];
        for (method, uri, expected) in cases {
            let uri: Uri = uri.parse().expect("a URI");
            let target = RequestTarget::of(&uri);
            let method: Method = method.parse().expect("a method");
            let verb = verb(&method, &target);
            assert_eq!(format!("{verb} {}", target.resource), expected, "{uri}");
        }
    }

    #[test]
    fn every_request_is_counted_under_its_cluster() {
        let metrics = RequestMetrics::default();
        let uri: Uri = "/apis/batch/v1/namespaces/ns/jobs/train/status".parse().expect("a URI");
        for _ in 0..2 {
            metrics.of("worker-1").count(&Method::PATCH, &uri);
        }
        let mut registry = Registry::with_prefix("sluice");
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        let line =
            r#"sluice_requests_total{cluster="worker-1",verb="patch",resource="jobs/status"} 2"#;
        assert!(text.contains(line), "{text}");
    }
}
