//! AdmissionReview, version v1.

use axum::Json;
use k8s_openapi::ByteString;
use runtime::api_object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An AdmissionReview: request or response.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionReview {
    api_version: String,
    kind: String,
    #[serde(skip_serializing)]
    request: Option<AdmissionRequest>,
    /// Of the request that was taken.
    #[serde(skip)]
    uid: String,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
}

/// The request of a review.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionRequest {
    uid: String,
    pub(super) operation: Operation,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default, deserialize_with = "api_object::deserialize_tree")]
    pub(super) object: Value,
    #[serde(default, deserialize_with = "api_object::deserialize_tree")]
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

/// The decision about a request.
#[derive(Debug, PartialEq)]
pub(super) enum AdmissionResponse {
    Allowed {
        patch: Vec<Value>,
    },
    /// Allowed unchanged, with a warning that clients show.
    Warned {
        warning: String,
    },
    Refused {
        code: u16,
        reason: Option<String>,
        message: String,
        details: Option<Value>,
    },
}

impl AdmissionReview {
    /// Responds with the decision of `decide`.
    pub(super) fn answer(
        mut self,
        decide: impl FnOnce(AdmissionRequest) -> AdmissionResponse,
    ) -> Json<Self> {
        let response = match self.take_request() {
            Some(request) => decide(request),
            None => AdmissionResponse::without_request(),
        };
        self.respond(&response)
    }

    /// The request, for handlers that await. Later calls return none.
    pub(super) fn take_request(&mut self) -> Option<AdmissionRequest> {
        let request = self.request.take()?;
        self.uid.clone_from(&request.uid);
        Some(request)
    }

    /// Responds with a decision.
    pub(super) fn respond(self, response: &AdmissionResponse) -> Json<Self> {
        // The API server compares the uid with that of its request.
        let response = Some(response.encode(&self.uid));
        Json(Self { response, ..self })
    }
}

impl AdmissionResponse {
    pub(super) fn allowed() -> Self {
        Self::Allowed { patch: vec![] }
    }

    pub(super) fn denied(message: &str) -> Self {
        let (reason, message) = (Some("Forbidden".to_owned()), message.to_owned());
        Self::Refused { code: 403, reason, message, details: None }
    }

    pub(super) fn undecodable(message: &str) -> Self {
        Self::Refused { code: 400, reason: None, message: message.to_owned(), details: None }
    }

    pub(super) fn without_request() -> Self {
        Self::undecodable("the review has no request")
    }

    fn encode(&self, uid: &str) -> Value {
        match self {
            // A patch type without a patch is an invalid response.
            Self::Allowed { patch } if patch.is_empty() => json!({"uid": uid, "allowed": true}),
            Self::Allowed { patch } => json!({
                "uid": uid,
                "allowed": true,
                "patchType": "JSONPatch",
                "patch": ByteString(json!(patch).to_string().into_bytes()),
            }),
            Self::Warned { warning } => json!({"uid": uid, "allowed": true, "warnings": [warning]}),
            Self::Refused { code, reason, message, details } => {
                let mut status = json!({"code": code, "message": message});
                if let Some(reason) = reason {
                    status["reason"] = reason.as_str().into();
                }
                if let Some(details) = details {
                    status["details"] = details.clone();
                }
                json!({"uid": uid, "allowed": false, "status": status})
            }
        }
    }
}
