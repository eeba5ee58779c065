//! Sends a request to a cluster, again if its answer says so, and passes on the answer.

use axum::{body::Body, response::Response};
use http::{
    HeaderMap, HeaderValue, Method, header::CONTENT_LENGTH, header::X_CONTENT_TYPE_OPTIONS,
};
use hyper::upgrade::{self, OnUpgrade};
use kube::{Client, client::Body as ClientBody};
use ray_api::{RayApiRefusal, headers, is_upgraded, retry};
use runtime::transport::StreamedAnswer;
use tokio::time::{Instant, sleep, timeout};

use super::request_body::HeldBody;
use crate::answer_body::{AnswerLimits, passed_on};

/// A request that is sent on.
pub(super) struct ForwardedRequest {
    /// The method.
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    /// The headers of the caller.
    pub(super) headers: HeaderMap,
    /// The body.
    pub(super) body: HeldBody,
    /// Whether it is the handshake of an upgrade.
    pub(super) upgrade: bool,
}

/// An answer.
pub(super) struct ForwardedAnswer {
    /// What the caller gets.
    pub(super) response: Response,
    /// The connection to the server, if it changes its protocol.
    pub(super) upgraded: Option<OnUpgrade>,
}

/// Sends the request. `held` is dropped at the end of the answer.
///
/// # Errors
/// If there is no answer in time, the cluster is not reached, or the answer is too long.
pub(super) async fn forward(
    client: &Client,
    request: ForwardedRequest,
    limits: AnswerLimits,
    held: impl Send + 'static,
) -> Result<ForwardedAnswer, RayApiRefusal> {
    let mut answer = answer(client, &request).await?;
    if is_upgraded(request.upgrade, answer.status(), answer.headers())? {
        let upgraded = Some(upgrade::on(&mut answer));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = headers::of_upgrade(answer.headers());
        return Ok(ForwardedAnswer { response, upgraded });
    }
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length = length.and_then(|text| text.parse::<usize>().ok());
    if length.is_some_and(|length| length > limits.most) && request.method != Method::HEAD {
        return Err(RayApiRefusal::AnswerTooLong(limits.most));
    }
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(passed_on(Body::new(body), limits, held));
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers::of_answer(&parts.headers);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(ForwardedAnswer { response, upgraded: None })
}

/// The answer that stands.
async fn answer(
    client: &Client,
    request: &ForwardedRequest,
) -> Result<http::Response<ClientBody>, RayApiRefusal> {
    let begin = Instant::now();
    for attempts in 1.. {
        let left = retry::OVERALL.saturating_sub(begin.elapsed());
        let sent = timeout(left, client.send(attempt(request)?)).await;
        let answer = sent.map_err(|_| RayApiRefusal::Late)?.map_err(|error| {
            let error = runtime::error_chain::describe(&error);
            tracing::debug!(error, "a request of the Ray API was not answered");
            // The client of a worker has a deadline of the same length, which may fire first.
            if begin.elapsed() < retry::OVERALL {
                RayApiRefusal::NotReached
            } else {
                RayApiRefusal::Late
            }
        })?;
        match retry::pause(&request.method, answer.status(), attempts, begin.elapsed()) {
            Some(pause) => sleep(pause).await,
            None => return Ok(answer),
        }
    }
    Err(RayApiRefusal::NotReached)
}

fn attempt(request: &ForwardedRequest) -> Result<http::Request<ClientBody>, RayApiRefusal> {
    let body = ClientBody::from(request.body.bytes.clone());
    let mut attempt = http::Request::new(body);
    *attempt.method_mut() = request.method.clone();
    // The target comes from a request that was read already, so it is one.
    *attempt.uri_mut() = request.target.parse().map_err(|_| RayApiRefusal::AmbiguousPath)?;
    if request.upgrade {
        *attempt.headers_mut() = headers::of_handshake(&request.headers);
        // A connection over HTTP/1.1 that no other request uses.
        attempt.extensions_mut().insert(StreamedAnswer);
    } else {
        *attempt.headers_mut() = headers::of_request(&request.headers);
    }
    Ok(attempt)
}
