//! The body of a request of the API server.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::de::DeserializeOwned;

/// A review as JSON.
///
/// The JSON of axum keeps the path of each field for its errors, which costs as much as reading the review. Only the API server
/// sends reviews, and it logs an error of 400 with the line and column of the text.
pub(super) struct ReviewBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ReviewBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let bytes =
            Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()).into_response())
    }
}
