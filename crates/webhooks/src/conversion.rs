//! `/convert`: ConversionReview, version v1.

use axum::Json;
use crds::conversion;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::ReviewBody;

/// A ConversionReview: request or response.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversionReview {
    api_version: String,
    kind: String,
    #[serde(skip_serializing)]
    request: Option<ConversionRequest>,
    #[serde(skip_deserializing)]
    response: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionRequest {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(default)]
    objects: Vec<Value>,
}

/// Converts all objects of a review, or fails for all.
pub(super) async fn convert(
    ReviewBody(mut review): ReviewBody<ConversionReview>,
) -> Json<ConversionReview> {
    review.response = match review.request.take() {
        Some(request) => answer(request),
        None => failed("", "the review has no request"),
    };
    Json(review)
}

fn answer(request: ConversionRequest) -> Value {
    let ConversionRequest { uid, desired_api_version, objects } = request;
    // One failure fails all: the API server accepts as many objects as it sent, in their order.
    let converted: Result<Vec<Value>, _> = objects
        .into_iter()
        .map(|object| conversion::convert(object, &desired_api_version))
        .collect();
    match converted {
        Ok(objects) => {
            json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects})
        }
        Err(error) => failed(&uid, &error.to_string()),
    }
}

fn failed(uid: &str, message: &str) -> Value {
    tracing::warn!(message, "conversion refused");
    json!({"uid": uid, "result": {"status": "Failure", "message": message}})
}
