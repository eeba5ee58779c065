//! Refusals in the form of Kubernetes: a `Status` object with upstream's texts.

use crds::names::VISIBILITY_GROUP;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    answer::VisibilityAnswer,
    pending_workloads::QueueReference,
    reviewed_request::{ReviewedRequest, ReviewedTarget},
};

/// After how many seconds a client that was refused for want of room may try again.
const RETRY_AFTER: u32 = 1;

/// The credentials of the request are not valid.
#[must_use]
pub fn unauthorized() -> VisibilityAnswer {
    refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", Map::new())
}

/// The user may not do what the request asks for. `reason` is that of the authorizer, and may be empty.
#[must_use]
pub fn forbidden(request: &ReviewedRequest, user: &str, reason: &str) -> VisibilityAnswer {
    let mut denied = denial(request, user);
    if !reason.is_empty() {
        denied = format!("{denied}: {reason}");
    }
    let (message, details) = match &request.target {
        ReviewedTarget::Path(_) => (format!("forbidden: {denied}"), Map::new()),
        ReviewedTarget::Resource(one) => {
            let resource = format!("{}.{}", one.resource, one.group);
            let named = match one.name.as_str() {
                "" => resource,
                name => format!("{resource} {name:?}"),
            };
            (format!("{named} is forbidden: {denied}"), details(&one.name, &one.resource))
        }
    };
    refusal(StatusCode::FORBIDDEN, "Forbidden", &message, details)
}

fn denial(request: &ReviewedRequest, user: &str) -> String {
    let verb = &request.verb;
    match &request.target {
        ReviewedTarget::Path(path) => format!("User {user:?} cannot {verb} path {path:?}"),
        ReviewedTarget::Resource(one) => {
            let (resource, group) = (one.full_resource(), &one.group);
            let scope = match one.namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            format!(
                "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
            )
        }
    }
}

/// The queue does not exist.
pub(crate) fn unknown_queue(queue: &QueueReference<'_>) -> VisibilityAnswer {
    let (kind, name) = match queue {
        QueueReference::ClusterQueue(name) => ("clusterqueue", name),
        QueueReference::LocalQueue(_, name) => ("localqueue", name),
    };
    let message = format!("{kind}.{VISIBILITY_GROUP} {name:?} not found");
    refusal(StatusCode::NOT_FOUND, "NotFound", &message, details(name, kind))
}

/// The path has no meaning.
pub(crate) fn unknown_path() -> VisibilityAnswer {
    let message = "the server could not find the requested resource";
    refusal(StatusCode::NOT_FOUND, "NotFound", message, Map::new())
}

/// The method is not GET.
pub(crate) fn wrong_method() -> VisibilityAnswer {
    let message = "the server does not allow this method on the requested resource";
    refusal(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message, Map::new())
}

/// A parameter of the query is invalid.
pub(crate) fn bad_request(message: &str) -> VisibilityAnswer {
    refusal(StatusCode::BAD_REQUEST, "BadRequest", message, Map::new())
}

/// The client accepts no JSON.
pub(crate) fn not_acceptable() -> VisibilityAnswer {
    let message = "only the following media types are accepted: application/json";
    refusal(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message, Map::new())
}

/// Too many requests are in flight.
#[must_use]
pub fn too_many_requests() -> VisibilityAnswer {
    let message = "Too many requests, please try again later.";
    retry(refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message, seconds()))
}

/// The queues are not known yet.
pub(crate) fn not_ready() -> VisibilityAnswer {
    let message = "the queues were not listed yet";
    retry(refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message, seconds()))
}

/// A request could not be decided about.
#[must_use]
pub fn internal_error(message: &str) -> VisibilityAnswer {
    let message = format!("Internal error occurred: {message}");
    refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &message, Map::new())
}

fn seconds() -> Map<String, Value> {
    Map::from_iter([("retryAfterSeconds".to_owned(), json!(RETRY_AFTER))])
}

fn retry(answer: VisibilityAnswer) -> VisibilityAnswer {
    VisibilityAnswer { retry_after: Some(RETRY_AFTER), ..answer }
}

fn details(name: &str, kind: &str) -> Map<String, Value> {
    let group = ("group".to_owned(), json!(VISIBILITY_GROUP));
    let texts = [("name", name), ("kind", kind)].into_iter().filter(|(_, text)| !text.is_empty());
    texts.map(|(field, text)| (field.to_owned(), json!(text))).chain([group]).collect()
}

fn refusal(
    code: StatusCode,
    reason: &str,
    message: &str,
    details: Map<String, Value>,
) -> VisibilityAnswer {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if !details.is_empty() {
        status["details"] = Value::Object(details);
    }
    VisibilityAnswer { status: code, ..VisibilityAnswer::json(&status) }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn message(answer: &VisibilityAnswer) -> String {
        let status: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(status["code"], answer.status.as_u16());
        status["message"].as_str().expect("a message").to_owned()
    }

    #[test]
    fn a_refused_user_reads_what_it_cannot_do() {
        let base = "/apis/visibility.kueue.x-k8s.io/v1beta2";
        let said = |method: &Method, path: &str, reason: &str| {
            message(&forbidden(&ReviewedRequest::of(method, path), "jane", reason))
        };
        assert_eq!(
            said(&Method::GET, &format!("{base}/clusterqueues/q/pendingworkloads"), ""),
            "clusterqueues.visibility.kueue.x-k8s.io \"q\" is forbidden: User \"jane\" cannot get resource \
             \"clusterqueues/pendingworkloads\" in API group \"visibility.kueue.x-k8s.io\" at the cluster scope"
        );
        assert_eq!(
            said(&Method::POST, &format!("{base}/namespaces/n/localqueues"), "because"),
            "localqueues.visibility.kueue.x-k8s.io is forbidden: User \"jane\" cannot create resource \
             \"localqueues\" in API group \"visibility.kueue.x-k8s.io\" in the namespace \"n\": because"
        );
        assert_eq!(
            said(&Method::GET, "/version", ""),
            "forbidden: User \"jane\" cannot get path \"/version\""
        );
    }

    #[test]
    fn a_client_that_may_try_again_is_given_a_time() {
        for answer in [too_many_requests(), not_ready()] {
            let status: Value = serde_json::from_slice(&answer.body).expect("JSON");
            assert_eq!(status["details"]["retryAfterSeconds"], 1);
            assert_eq!(answer.retry_after, Some(1));
        }
        assert_eq!(unauthorized().retry_after, None);
    }
}
