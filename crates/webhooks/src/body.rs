//! The body of a request of the API server.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Time for a body to arrive: the timeout of the webhooks. A client that sends a part would keep its connection for ever.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// A review as JSON.
///
/// The JSON of axum keeps the path of each field for its errors, which costs as much as reading the review. Only the API server
/// sends reviews, and it logs an error of 400 with the line and column of the text.
pub(super) struct ReviewBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for ReviewBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let read = timeout(ARRIVES_WITHIN, Bytes::from_request(request, state)).await;
        let bytes = read
            .map_err(|_| StatusCode::REQUEST_TIMEOUT.into_response())?
            .map_err(IntoResponse::into_response)?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()).into_response())
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::{StreamExt, stream};
    use serde_json::Value;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_is_refused() {
        let first = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(b"{"))]);
        let body = Body::from_stream(first.chain(stream::pending()));
        let read = ReviewBody::<Value>::from_request(Request::new(body), &()).await;
        assert_eq!(read.err().map(|response| response.status()), Some(StatusCode::REQUEST_TIMEOUT));
    }
}
