//! The end of HTTP/1 connections that the server wants back.
//!
//! A client cannot tell a connection that the server closes while the next request is on its way from a request that was lost,
//! and Go does not send a POST again: the API server fails the create that a webhook should have reviewed. A connection that ends
//! with an answer has no such moment. HTTP/2 needs no header for it: GOAWAY names the requests that were not handled.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderValue, Version, header::CONNECTION};
use tokio::sync::Semaphore;

use crate::Stop;

/// When an answer is the last one of its connection.
#[derive(Clone)]
pub(super) struct LastAnswer {
    /// Cancelled some time before the server stops.
    pub(super) leaving: Option<Stop>,
    /// Places of connections, and how many of them are to stay free. The API server keeps up to 25 idle connections for each
    /// webhook, so that a few of its replicas could take all places.
    pub(super) places: Arc<Semaphore>,
    pub(super) kept_free: usize,
}

impl LastAnswer {
    fn is_due(&self) -> bool {
        self.leaving.as_ref().is_some_and(Stop::is_cancelled)
            || self.places.available_permits() < self.kept_free
    }
}

/// Adds `Connection: close` to HTTP/1 answers that are the last ones of their connection.
pub(super) async fn close_after_answer(
    State(last): State<LastAnswer>,
    request: Request,
    next: Next,
) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    // An answer that upgrades its connection has this header already.
    if version < Version::HTTP_2 && last.is_due() {
        response.headers_mut().entry(CONNECTION).or_insert(HeaderValue::from_static("close"));
    }
    response
}
