//! The end of HTTP/1 connections of a server that will stop.
//!
//! A client cannot tell a connection that the server closes while the next request is on its way from a request that was lost,
//! and Go does not send a POST again: the API server fails the create that a webhook should have reviewed. A connection that ends
//! with an answer has no such moment. HTTP/2 needs no header for it: GOAWAY names the requests that were not handled.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderValue, Version, header::CONNECTION};

use crate::Stop;

/// Adds `Connection: close` to HTTP/1 answers once `leaving` is cancelled.
pub(super) async fn close_after_answer(
    State(leaving): State<Stop>,
    request: Request,
    next: Next,
) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    // An answer that upgrades its connection has this header already.
    if leaving.is_cancelled() && version < Version::HTTP_2 {
        response.headers_mut().entry(CONNECTION).or_insert(HeaderValue::from_static("close"));
    }
    response
}
