//! Answers of the API itself, in the form of Kubernetes. Those about Services are plain text, as KubeRay's API server has them.

use access::status;
use http::StatusCode;
use serde_json::{Map, Value, json};

/// After how many seconds a client that was refused for want of room may try again.
pub(crate) const RETRY_AFTER: u32 = 1;

/// Why a request is not passed on, or has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RayApiRefusal {
    /// The path has no meaning here.
    #[error("the server could not find the requested resource")]
    UnknownPath,
    /// The route has other methods.
    #[error("the server does not allow this method on the requested resource")]
    WrongMethod,
    /// A segment of the path would change the meaning of the others.
    #[error("the path has an empty, relative or encoded segment")]
    AmbiguousPath,
    /// The protocol of the upgrade is not WebSocket.
    #[error("an upgrade to {0:?} is not passed on, only one to websocket")]
    UnknownUpgrade(String),
    /// A request for objects or events asks for an upgrade.
    #[error("only requests to Services of Ray clusters are upgraded")]
    NoUpgrade,
    /// A head changed the protocol otherwise than it was asked to.
    #[error("the server changed to a protocol that was not asked for")]
    WrongUpgrade,
    /// The name of a Service is neither `name`, `name:port` nor `scheme:name:port`.
    #[error("invalid service format: {0}")]
    MalformedService(String),
    /// The Service does not exist, or is not one of a Ray cluster.
    #[error("kuberay service not found")]
    NotRayService,
    /// The cluster with the Service could not be asked about it.
    #[error("failed to list kuberay services")]
    LookupFailed,
    /// The body is no object.
    #[error("cannot read the body as {0}")]
    UnreadableBody(&'static str),
    /// The type of the body is neither JSON nor YAML.
    #[error("the content type {0:?} is neither JSON nor YAML")]
    UnknownContentType(String),
    /// The compute template does not exist.
    #[error("compute template {0:?} not found")]
    UnknownTemplate(String),
    /// A value of the compute template cannot be read.
    #[error("compute template {name:?} has an invalid value of {field}")]
    InvalidTemplate {
        /// The name of the template.
        name: String,
        /// The key in its ConfigMap.
        field: &'static str,
    },
    /// The request has no credentials, or invalid ones.
    #[error("Unauthorized")]
    Unauthorized,
    /// The body of the request exceeds the limit.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// The body of the request did not arrive in time, or broke off.
    #[error("the body was not received")]
    BodyNotReceived,
    /// Too many requests are in flight, all together or to the same head.
    #[error("Too many requests, please try again later.")]
    TooManyRequests,
    /// Reviews failed.
    #[error("Internal error occurred: cannot ask the API server")]
    NotReviewed,
    /// The worker cluster is not connected.
    #[error("cluster {0:?} is not connected")]
    NotConnected(String),
    /// The cluster was not reached.
    #[error("the server was not reached")]
    NotReached,
    /// The answer exceeds the limit.
    #[error("the answer is longer than {0} bytes")]
    AnswerTooLong(usize),
    /// No answer before the deadline.
    #[error("no answer in time")]
    Late,
}

impl RayApiRefusal {
    /// The status code.
    #[must_use]
    pub fn code(&self) -> StatusCode {
        match self {
            Self::UnknownPath | Self::NotRayService => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::AmbiguousPath
            | Self::MalformedService(_)
            | Self::UnknownUpgrade(_)
            | Self::NoUpgrade
            | Self::UnreadableBody(_)
            | Self::UnknownContentType(_)
            | Self::BodyNotReceived => StatusCode::BAD_REQUEST,
            Self::LookupFailed | Self::NotReviewed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::UnknownTemplate(_) | Self::InvalidTemplate { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::NotConnected(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotReached | Self::AnswerTooLong(_) | Self::WrongUpgrade => {
                StatusCode::BAD_GATEWAY
            }
            Self::Late => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// After how many seconds a client may try again; `None` if another attempt has the same end.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        matches!(self, Self::TooManyRequests | Self::NotConnected(_)).then_some(RETRY_AFTER)
    }

    /// The `Status` object.
    #[must_use]
    pub fn status(&self) -> Value {
        let seconds = self.retry_after().map(|it| ("retryAfterSeconds".to_owned(), json!(it)));
        let details: Map<String, Value> = seconds.into_iter().collect();
        status::failure(self.code(), self.reason(), &self.to_string(), details)
    }

    /// The body of a refusal that is plain text; none if it is a `Status`.
    ///
    /// A client that is made with client-go reads the text from `details.causes`, which client-go makes of a body of plain text only.
    #[must_use]
    pub fn plain_text(&self) -> Option<String> {
        let is_plain =
            matches!(self, Self::MalformedService(_) | Self::NotRayService | Self::LookupFailed);
        is_plain.then(|| format!("{self}\n"))
    }

    fn reason(&self) -> &'static str {
        match self.code() {
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
            StatusCode::UNAUTHORIZED => "Unauthorized",
            StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
            StatusCode::GATEWAY_TIMEOUT => "Timeout",
            // Kubernetes has no reason of its own for a bad gateway.
            _ => "InternalError",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_status_with_its_code() {
        for (refusal, code, reason) in [
            (RayApiRefusal::UnknownUpgrade("h2c".to_owned()), 400, "BadRequest"),
            (RayApiRefusal::Unauthorized, 401, "Unauthorized"),
            (RayApiRefusal::UnknownPath, 404, "NotFound"),
            (RayApiRefusal::WrongMethod, 405, "MethodNotAllowed"),
            (RayApiRefusal::TooLong(1), 413, "RequestEntityTooLarge"),
            (RayApiRefusal::UnknownTemplate("big".to_owned()), 422, "Invalid"),
            (RayApiRefusal::TooManyRequests, 429, "TooManyRequests"),
            (RayApiRefusal::NotReviewed, 500, "InternalError"),
            (RayApiRefusal::NotReached, 502, "InternalError"),
            (RayApiRefusal::NotConnected("east".to_owned()), 503, "ServiceUnavailable"),
            (RayApiRefusal::Late, 504, "Timeout"),
        ] {
            let status = refusal.status();
            assert_eq!((&status["code"], &status["reason"]), (&json!(code), &json!(reason)));
            assert_eq!(refusal.plain_text(), None);
        }
        assert_eq!(RayApiRefusal::UnknownPath.status()["details"], Value::Null);
        assert_eq!(RayApiRefusal::TooManyRequests.status()["details"]["retryAfterSeconds"], 1);
    }

    #[test]
    fn a_refusal_about_a_service_is_plain_text() {
        for (refusal, code, text) in [
            (
                RayApiRefusal::MalformedService("a:b:c:d".to_owned()),
                400,
                "invalid service format: a:b:c:d\n",
            ),
            (RayApiRefusal::NotRayService, 404, "kuberay service not found\n"),
            (RayApiRefusal::LookupFailed, 500, "failed to list kuberay services\n"),
        ] {
            assert_eq!(refusal.code(), code);
            assert_eq!(refusal.plain_text().as_deref(), Some(text));
        }
    }
}
