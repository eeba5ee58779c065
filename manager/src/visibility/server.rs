//! The way of a request: room, user, access, response.

use std::{sync::Arc, time::Duration};

use ::access::{RequestUser, ReviewedRequest};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
    request::Parts,
};
use jiff::Timestamp;
use runtime::client_certificate::PeerCertificates;
use tokio::{sync::Semaphore, time::timeout};
use visibility::{
    VisibilityAnswer, answer,
    answer::VisibilityRequest,
    is_probe, status,
    workload_pods::{LogQuery, PodsRefusal, WorkloadCall},
};

use super::{
    authentication::Authenticator, observed_queues::ObservedQueues, pods::WorkloadPodsApi,
};
use crate::{
    access::{AuthenticationError, Authorizer},
    build_info,
};

/// Requests in flight. Further ones are refused at once, and their clients try again.
const IN_FLIGHT: usize = 100;

/// The most time that reviews of a request may take.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// What requests are answered with.
pub(super) struct VisibilityApi {
    /// Pending Workloads.
    pub(super) queues: ObservedQueues,
    /// Finds users.
    pub(super) authenticator: Authenticator,
    /// Decides about access.
    pub(super) authorizer: Authorizer,
    /// Pods and logs of Workloads.
    pub(super) pods: WorkloadPodsApi,
}

/// The API, and the room for its requests.
struct SharedApi {
    api: VisibilityApi,
    room: Semaphore,
}

/// Serves the API under every path: which paths there are is decided after a request was authorized.
pub(super) fn router(api: VisibilityApi) -> Router {
    let shared = Arc::new(SharedApi { api, room: Semaphore::new(IN_FLIGHT) });
    Router::new().fallback(serve).with_state(shared)
}

async fn serve(State(shared): State<Arc<SharedApi>>, request: Request) -> Response {
    // No request has a body that matters; a body cannot be shared between tasks.
    let (request, _) = request.into_parts();
    // Probes are answered without a review, and also while there is no room.
    if is_probe(request.uri.path()) {
        return respond(shared.answer(&request));
    }
    let Ok(permit) = shared.room.try_acquire() else {
        return respond(status::too_many_requests());
    };
    let call = WorkloadCall::of(request.uri.path());
    let query = match call.map(|_| SharedApi::log_query(&request)).transpose() {
        Ok(query) => query,
        Err(refusal) => return respond(refusal.answer()),
    };
    let review = shared.review(&request, call.zip(query.as_ref()));
    if let Err(refusal) = Box::pin(timeout(REVIEW_TIMEOUT, review))
        .await
        .unwrap_or_else(|_| Err(status::internal_error("the API server did not answer in time")))
    {
        return respond(refusal);
    }
    if let Some((call, query)) = call.zip(query) {
        // Requests that wait for workers have room of their own.
        drop(permit);
        return shared.api.pods.serve(&call, &query).await;
    }
    let worker = shared.clone();
    // A page may have 100,000 Workloads, whose text should not delay other tasks.
    let answered = tokio::task::spawn_blocking(move || worker.answer(&request)).await;
    respond(answered.unwrap_or_else(|error| {
        tracing::warn!(%error, "a request about pending Workloads failed");
        status::internal_error("the request failed")
    }))
}

impl SharedApi {
    /// Whether the request may be answered; otherwise the refusal. One about pods needs rights on them as well.
    async fn review(
        &self,
        request: &Parts,
        pods: Option<(WorkloadCall<'_>, &LogQuery)>,
    ) -> Result<(), VisibilityAnswer> {
        let peer = request.extensions.get::<PeerCertificates>();
        let user = self.api.authenticator.user(&request.headers, peer, Timestamp::now()).await;
        let user = user.map_err(|error| match error {
            AuthenticationError::Invalid => status::unauthorized(),
            AuthenticationError::Review(error) => unreviewed(&error),
        })?;
        let reviewed = ReviewedRequest::of(&request.method, request.uri.path());
        self.check(&user, &reviewed).await?;
        match pods {
            Some((call, query)) => self.check(&user, &call.review(query)).await,
            None => Ok(()),
        }
    }

    async fn check(
        &self,
        user: &RequestUser,
        reviewed: &ReviewedRequest,
    ) -> Result<(), VisibilityAnswer> {
        let decision = self.api.authorizer.decide(user, reviewed).await;
        let decision = decision.map_err(|error| unreviewed(&error))?;
        if decision.allowed {
            Ok(())
        } else {
            Err(status::forbidden(reviewed, &user.name, &decision.reason))
        }
    }

    fn log_query(request: &Parts) -> Result<LogQuery, PodsRefusal> {
        if request.method != Method::GET {
            return Err(PodsRefusal::WrongMethod);
        }
        LogQuery::of(request.uri.query().unwrap_or_default())
    }

    fn answer(&self, request: &Parts) -> VisibilityAnswer {
        let (uri, headers) = (&request.uri, &request.headers);
        let request = VisibilityRequest {
            method: &request.method,
            path: uri.path(),
            query: uri.query().unwrap_or_default(),
            accept: text(headers, &ACCEPT),
            if_none_match: text(headers, &IF_NONE_MATCH),
            program_version: build_info::VERSION,
        };
        answer(&request, |queue, page| self.api.queues.page(queue, page))
    }
}

/// Without a review access is refused, and the client tries again.
fn unreviewed(error: &kube::Error) -> VisibilityAnswer {
    tracing::warn!(%error, "cannot review a request");
    status::internal_error("cannot ask the API server")
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The response of an answer.
pub(super) fn respond(answer: VisibilityAnswer) -> Response {
    let VisibilityAnswer { status, content_type, etag, retry_after, body } = answer;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let seconds = retry_after.map(|seconds| seconds.to_string());
    let headers = [
        (CONTENT_TYPE, Some(content_type)),
        (ETAG, etag),
        (RETRY_AFTER, seconds),
        (X_CONTENT_TYPE_OPTIONS, Some("nosniff".to_owned())),
    ];
    for (name, value) in headers {
        // All values are made here, of characters that headers may have.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests;
