//! What method and path of a request mean.

use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use crate::{refusal::RayApiRefusal, service_reference::ServiceReference};

/// Kinds of which a write may name compute templates.
const WITH_TEMPLATES: &[&str] = &["rayclusters", "rayjobs", "rayservices"];

/// Where the paths of objects of Ray begin.
const OBJECTS: &str = "/apis/ray.io/v1/";

/// A request without the slash at the end of a path of objects; `None` if there is none.
///
/// The API server reads the same object from both, so the slash is left out before the path is read, reviewed and sent on. To a
/// head a slash means something, so the paths of Services stay as they are.
#[must_use]
pub fn without_last_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/').filter(|_| uri.path().starts_with(OBJECTS))?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{path}{query}").parse().ok()
}

/// A request that the API answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RayApiRequest<'a> {
    /// A probe.
    Health,
    /// Objects of `ray.io/v1`, on the manager cluster.
    Objects {
        /// The namespace of the compute templates that the body may name; `None` if the body is passed on as it is.
        templates_in: Option<&'a str>,
    },
    /// Events about objects of `ray.io/v1`, on the manager cluster.
    Events,
    /// A request to a Service of a Ray cluster, on the cluster that runs it.
    Service(ServiceCall<'a>),
}

/// A request to a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceCall<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The Service.
    pub service: ServiceReference<'a>,
}

impl<'a> RayApiRequest<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// If the request is none of the API, or its path has two meanings.
    pub fn of(method: &Method, path: &'a str) -> Result<Self, RayApiRefusal> {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
        match *parts.as_slice() {
            ["healthz"] => Ok(Self::Health),
            ["apis", "ray.io", "v1", ref rest @ ..] => {
                // The API server must read the same object from the path as the review did.
                check(rest, is_plain)?;
                Ok(Self::Objects { templates_in: templates_in(method, rest) })
            }
            ["apis", "events.k8s.io", "v1", "namespaces", namespace, "events"] => {
                check(&[namespace], is_plain)?;
                match *method {
                    Method::GET => Ok(Self::Events),
                    _ => Err(RayApiRefusal::WrongMethod),
                }
            }
            ["api", "v1", "namespaces", namespace, "services", service, "proxy", ref rest @ ..] => {
                check(&[namespace], is_plain)?;
                check(rest, is_not_relative)?;
                let service = ServiceReference::read(service)?;
                Ok(Self::Service(ServiceCall { namespace, service }))
            }
            _ => Err(RayApiRefusal::UnknownPath),
        }
    }
}

fn templates_in<'a>(method: &Method, parts: &[&'a str]) -> Option<&'a str> {
    let (namespace, kind) = match (method.as_str(), parts) {
        ("POST", ["namespaces", namespace, kind]) => (*namespace, *kind),
        ("PUT", ["namespaces", namespace, kind, _]) => (*namespace, *kind),
        _ => return None,
    };
    WITH_TEMPLATES.contains(&kind).then_some(namespace)
}

fn check(parts: &[&str], holds: impl Fn(&str) -> bool) -> Result<(), RayApiRefusal> {
    if parts.iter().all(|part| holds(part)) { Ok(()) } else { Err(RayApiRefusal::AmbiguousPath) }
}

/// A segment that every reader of a path takes for the same text.
fn is_plain(part: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !part.is_empty() && part.bytes().all(allowed) && is_not_relative(part)
}

/// A segment of a path of a Ray head. Only one that leads to another path is refused.
fn is_not_relative(part: &str) -> bool {
    let decoded = percent_decode_str(part).collect::<Vec<u8>>();
    let mut inner = decoded.split(|byte| *byte == b'/');
    !inner.any(|part| [&b"."[..], b".."].contains(&part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn objects(templates_in: Option<&str>) -> Result<RayApiRequest<'_>, RayApiRefusal> {
        Ok(RayApiRequest::Objects { templates_in })
    }

    fn service(text: &str) -> Result<RayApiRequest<'_>, RayApiRefusal> {
        let service = ServiceReference::read(text).expect("a service");
        Ok(RayApiRequest::Service(ServiceCall { namespace: "ml", service }))
    }

    #[test]
    fn every_request_has_one_meaning() {
        use RayApiRefusal::{AmbiguousPath, MalformedService, UnknownPath, WrongMethod};
        let ray = "/apis/ray.io/v1";
        let proxy = "/api/v1/namespaces/ml/services";
        for (method, path, expected) in [
            ("GET", "/healthz".to_owned(), Ok(RayApiRequest::Health)),
            ("GET", format!("{ray}/rayclusters"), objects(None)),
            ("GET", format!("{ray}/namespaces/ml/rayjobs/train"), objects(None)),
            ("POST", format!("{ray}/namespaces/ml/rayjobs"), objects(Some("ml"))),
            ("POST", format!("{ray}/namespaces/ml/raycronjobs"), objects(None)),
            ("PUT", format!("{ray}/namespaces/ml/rayservices/s"), objects(Some("ml"))),
            ("PUT", format!("{ray}/namespaces/ml/rayservices/s/status"), objects(None)),
            ("PATCH", format!("{ray}/namespaces/ml/rayclusters/c"), objects(None)),
            ("GET", format!("{ray}/namespaces/ml/../../secrets"), Err(AmbiguousPath)),
            ("GET", format!("{ray}/namespaces/ml//rayjobs"), Err(AmbiguousPath)),
            ("GET", format!("{ray}/namespaces/ml/rayjobs//"), Err(AmbiguousPath)),
            ("GET", format!("{ray}/namespaces/ml/rayjobs%2fa"), Err(AmbiguousPath)),
            ("GET", "/apis/ray.io/v1alpha1/rayjobs".to_owned(), Err(UnknownPath)),
            (
                "GET",
                "/apis/events.k8s.io/v1/namespaces/ml/events".to_owned(),
                Ok(RayApiRequest::Events),
            ),
            ("POST", "/apis/events.k8s.io/v1/namespaces/ml/events".to_owned(), Err(WrongMethod)),
            ("GET", "/apis/events.k8s.io/v1/events".to_owned(), Err(UnknownPath)),
            ("GET", format!("{proxy}/a-head-svc/proxy"), service("a-head-svc")),
            ("POST", format!("{proxy}/http:a:8265/proxy/api/jobs/"), service("http:a:8265")),
            ("GET", format!("{proxy}/a/proxy/logs/a%2Fb"), service("a")),
            ("GET", format!("{proxy}/a/proxy/../../../secrets"), Err(AmbiguousPath)),
            ("GET", format!("{proxy}/a/proxy/%2e%2E/x"), Err(AmbiguousPath)),
            ("GET", format!("{proxy}/a/proxy/x%2F..%2Fy"), Err(AmbiguousPath)),
            ("GET", format!("{proxy}/a:b:c:d/proxy/"), Err(MalformedService("a:b:c:d".to_owned()))),
            ("GET", format!("{proxy}/a"), Err(UnknownPath)),
            ("GET", "/api/v1/namespaces/ml/secrets".to_owned(), Err(UnknownPath)),
            ("GET", "//healthz".to_owned(), Err(UnknownPath)),
            ("GET", "/".to_owned(), Err(UnknownPath)),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(RayApiRequest::of(&method, &path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_slash_at_the_end_of_a_path_of_objects_is_left_out() {
        for (given, sent) in [
            ("/apis/ray.io/v1/", Some("/apis/ray.io/v1")),
            (
                "/apis/ray.io/v1/rayclusters/?watch=true",
                Some("/apis/ray.io/v1/rayclusters?watch=true"),
            ),
            (
                "/apis/ray.io/v1/namespaces/ml/rayjobs/",
                Some("/apis/ray.io/v1/namespaces/ml/rayjobs"),
            ),
            ("/apis/ray.io/v1/rayclusters//", Some("/apis/ray.io/v1/rayclusters/")),
            ("/apis/ray.io/v1/rayclusters?a=/", None),
            ("/apis/ray.io/v1alpha1/", None),
            ("/api/v1/namespaces/ml/services/a/proxy/api/jobs/", None),
            ("/", None),
        ] {
            let found = without_last_slash(&given.parse().expect("a URI"));
            assert_eq!(found.map(|uri| uri.to_string()).as_deref(), sent, "{given}");
        }
        assert!(RayApiRequest::of(&Method::GET, "/apis/ray.io/v1").is_ok());
        // A second slash stays, and is refused.
        assert!(RayApiRequest::of(&Method::GET, "/apis/ray.io/v1/rayclusters/").is_err());
    }

    proptest! {
        #[test]
        fn no_path_is_read_with_a_relative_segment(path in "(/(apis|ray.io|v1|[.]{1,2}|%2e|a|namespaces|services|proxy|api)){1,9}") {
            if RayApiRequest::of(&Method::GET, &path).is_ok() {
                prop_assert!(!path.split('/').any(|part| [".", "..", "%2e"].contains(&part)), "{path}");
            }
        }
    }
}
