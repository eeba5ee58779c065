//! Refusals in the form of Kubernetes: a `Status` object with upstream's texts.

use access::{ReviewedRequest, status};
use crds::names::VISIBILITY_GROUP;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{answer::VisibilityAnswer, pending_workloads::QueueReference};

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
    let status = status::forbidden(request, user, reason);
    VisibilityAnswer { status: StatusCode::FORBIDDEN, ..VisibilityAnswer::json(&status) }
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
    status::details(VISIBILITY_GROUP, name, kind)
}

pub(crate) fn refusal(
    code: StatusCode,
    reason: &str,
    message: &str,
    details: Map<String, Value>,
) -> VisibilityAnswer {
    let status = status::failure(code, reason, message, details);
    VisibilityAnswer { status: code, ..VisibilityAnswer::json(&status) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
