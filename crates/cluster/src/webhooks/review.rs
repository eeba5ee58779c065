//! AdmissionReview, version v1: the question and the answer.

use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A question from the API server, or its answer.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review {
    api_version: String,
    kind: String,
    #[serde(skip_serializing)]
    request: Option<Request>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
}

/// What somebody wants to do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    uid: String,
    pub(super) operation: Operation,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    pub(super) old_object: Value,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// Whether it may happen.
#[derive(Debug, PartialEq)]
pub(super) enum Response {
    Allowed { patch: Vec<Value> },
    Refused { code: u16, reason: Option<&'static str>, message: String },
}

impl Review {
    /// Answers the question with what `decide` says.
    pub(super) fn answer(self, decide: impl FnOnce(&Request) -> Response) -> Json<Self> {
        let response = match &self.request {
            Some(request) => decide(request).encode(&request.uid),
            None => Response::undecodable("the review has no request").encode(""),
        };
        Json(Self { request: None, response: Some(response), ..self })
    }
}

impl Response {
    pub(super) fn allowed() -> Self {
        Self::Allowed { patch: vec![] }
    }

    pub(super) fn denied(message: &str) -> Self {
        Self::Refused { code: 403, reason: Some("Forbidden"), message: message.to_owned() }
    }

    pub(super) fn undecodable(message: &str) -> Self {
        Self::Refused { code: 400, reason: None, message: message.to_owned() }
    }

    fn encode(&self, uid: &str) -> Value {
        match self {
            Self::Allowed { patch } if patch.is_empty() => json!({"uid": uid, "allowed": true}),
            Self::Allowed { patch } => json!({
                "uid": uid,
                "allowed": true,
                "patchType": "JSONPatch",
                "patch": base64(json!(patch).to_string().as_bytes()),
            }),
            Self::Refused { code, reason, message } => {
                let mut status = json!({"code": code, "message": message});
                if let Some(reason) = reason {
                    status["reason"] = (*reason).into();
                }
                json!({"uid": uid, "allowed": false, "status": status})
            }
        }
    }
}

/// Standard base64 with padding, as JSON carries bytes.
fn base64(bytes: &[u8]) -> String {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()))
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}
