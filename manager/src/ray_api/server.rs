//! The way of a request: limits, user, access, place, body, answer.

use std::{sync::Arc, time::Duration};

use ::access::{RequestUser, ReviewedRequest, asks_for_watch, status};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
    request::Parts,
};
use hyper::upgrade::OnUpgrade;
use kube::Client;
use ray_api::{
    ObjectBody, RayApiRefusal, RayApiRequest, ServiceCall, asks_for_upgrade, with_ray_events,
    without_last_slash,
};
use remote::WorkerClients;
use runtime::Stop;
use serde_json::Value;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{
    forward::{ForwardedRequest, forward},
    open_upgrade::OpenUpgrade,
    request_body::{self, BodyMemory, HeldBody},
    request_limits::HeadRequestLimits,
    service_place::{ServicePlace, ServiceSearch},
    templates,
};
use crate::{
    access::{AuthenticationError, Authorizer, TokenAuthenticator, reviews},
    answer_body::AnswerLimits,
};

/// The most time that the reviews of a request may take, one after another.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which a caller may take nothing.
const STALLED: Duration = Duration::from_secs(30);

/// An answer of a head, which is not trusted.
const OF_HEAD: AnswerLimits =
    AnswerLimits { most: 32 << 20, within: Some(Duration::from_secs(60)), stalled: STALLED };

/// An answer of the API server.
const OF_OBJECTS: AnswerLimits =
    AnswerLimits { most: usize::MAX, within: Some(Duration::from_secs(120)), stalled: STALLED };

/// A watch lasts as long as the API server wants.
const OF_WATCH: AnswerLimits = AnswerLimits { most: usize::MAX, within: None, stalled: STALLED };

/// What requests are answered with.
pub(super) struct RayApiServer {
    home: Client,
    tokens: TokenAuthenticator,
    authorizer: Authorizer,
    services: ServiceSearch,
    limits: HeadRequestLimits,
    bodies: BodyMemory,
    /// Open upgrades end with the process.
    pub(super) stop: Stop,
}

/// Why a request is refused: by a rule of the API, or by a review.
pub(super) enum Refused {
    /// A rule.
    Rule(RayApiRefusal),
    /// The `Status` object of a denied access.
    Denied(Value),
}

impl From<RayApiRefusal> for Refused {
    fn from(refusal: RayApiRefusal) -> Self {
        Self::Rule(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        const JSON: &str = "application/json";
        let (code, retry_after, content_type, body) = match self {
            Self::Rule(refusal) => {
                let plain = refusal.plain_text().map(|text| ("text/plain; charset=utf-8", text));
                let (content_type, body) =
                    plain.unwrap_or_else(|| (JSON, refusal.status().to_string()));
                (refusal.code(), refusal.retry_after(), content_type, body)
            }
            Self::Denied(status) => (StatusCode::FORBIDDEN, None, JSON, status.to_string()),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl RayApiServer {
    pub(super) fn new(home: &Client, workers: WorkerClients, stop: &Stop) -> Self {
        Self {
            home: home.clone(),
            tokens: TokenAuthenticator::new(home.clone()),
            authorizer: Authorizer::new(home.clone()),
            services: ServiceSearch::new(home.clone(), workers),
            limits: HeadRequestLimits::default(),
            bodies: BodyMemory::default(),
            stop: stop.clone(),
        }
    }
}

/// Serves the API under every path.
pub(super) fn router(server: RayApiServer) -> Router {
    Router::new().fallback(serve).with_state(Arc::new(server))
}

async fn serve(State(server): State<Arc<RayApiServer>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Some(uri) = without_last_slash(&parts.uri) {
        parts.uri = uri;
    }
    let path = parts.uri.path().to_owned();
    match RayApiRequest::of(&parts.method, &path) {
        // A probe has no token, and is answered also when the limits are reached.
        Ok(RayApiRequest::Health) => "ok".into_response(),
        read => {
            Box::pin(server.answer(read, parts, body)).await.unwrap_or_else(Refused::into_response)
        }
    }
}

impl RayApiServer {
    /// Answers a request. A path without meaning is refused after the authentication only.
    async fn answer(
        self: &Arc<Self>,
        request: Result<RayApiRequest<'_>, RayApiRefusal>,
        parts: Parts,
        body: Body,
    ) -> Result<Response, Refused> {
        let query = parts.uri.query().unwrap_or_default();
        // A head decides itself what its queries mean, so that a request to it is never a watch.
        let of_head = matches!(request, Ok(RayApiRequest::Service(_)));
        let watch = !of_head && asks_for_watch(query);
        let permit = self.limits.try_acquire(watch)?;
        let user = self.user(&parts.headers).await?;
        let request = request?;
        let upgrade = asks_for_upgrade(&request, &parts.method, parts.version, &parts.headers)?;
        match request {
            RayApiRequest::Service(call) if upgrade => {
                self.upgraded(&call, user, parts, body, permit).await
            }
            RayApiRequest::Service(call) => {
                self.of_service(&call, &user, parts, body, permit).await
            }
            RayApiRequest::Objects { templates_in } => {
                self.review_as_sent(&user, &parts).await?;
                let request = self.with_templates(templates_in, &user, parts, body).await?;
                self.of_api_server(request, watch, permit).await
            }
            RayApiRequest::Events => {
                self.review_as_sent(&user, &parts).await?;
                let target = format!("{}?{}", parts.uri.path(), with_ray_events(query));
                let body = self.bodies.read(body, request_body::OBJECT).await?;
                let request = ForwardedRequest { target, ..forwarded(parts, body) };
                self.of_api_server(request, watch, permit).await
            }
            RayApiRequest::Health => Err(RayApiRefusal::UnknownPath.into()),
        }
    }

    /// A request to the API server of the manager cluster.
    async fn of_api_server(
        &self,
        request: ForwardedRequest,
        watch: bool,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response, Refused> {
        let limits = if watch { OF_WATCH } else { OF_OBJECTS };
        Ok(forward(&self.home, request, limits, permit).await?.response)
    }

    /// A request to a Service of a Ray cluster, on the cluster that runs it.
    async fn of_service(
        &self,
        call: &ServiceCall<'_>,
        user: &RequestUser,
        parts: Parts,
        body: Body,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response, Refused> {
        self.review(user, &call.review(&parts.method)).await?;
        let head = self.limits.try_acquire_head(call.namespace, call.service.name)?;
        let place = self.place(call, user).await?;
        let body = self.bodies.read(body, request_body::FOR_HEAD).await?;
        let request = forwarded(parts, body);
        Ok(forward(&place.client, request, OF_HEAD, (permit, head)).await?.response)
    }

    /// The handshake of an upgrade. The connection has a permit of its own while it is open.
    async fn upgraded(
        self: &Arc<Self>,
        call: &ServiceCall<'_>,
        user: RequestUser,
        mut parts: Parts,
        body: Body,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response, Refused> {
        let caller = parts.extensions.remove::<OnUpgrade>().ok_or(RayApiRefusal::NoUpgrade)?;
        self.review(&user, &call.review(&parts.method)).await?;
        let head = self.limits.try_acquire_head(call.namespace, call.service.name)?;
        let upgrade = self.limits.try_acquire_upgrade(call.namespace, call.service.name)?;
        let place = self.place(call, &user).await?;
        let body = self.bodies.read(body, request_body::OF_HANDSHAKE).await?;
        let path = parts.uri.path().to_owned();
        let request = ForwardedRequest { upgrade: true, ..forwarded(parts, body) };
        let answer = forward(&place.client, request, OF_HEAD, (permit, head)).await?;
        if let Some(head) = answer.upgraded {
            let (server, ServicePlace { cluster, owner, .. }) = (Arc::clone(self), place);
            let open = OpenUpgrade { server, user, path, cluster, owner, permit: upgrade };
            tokio::spawn(open.run(caller, head));
        }
        Ok(answer.response)
    }

    /// The place of a Service. The user may get the object that it belongs to.
    pub(super) async fn place(
        &self,
        call: &ServiceCall<'_>,
        user: &RequestUser,
    ) -> Result<ServicePlace, Refused> {
        let place = self.services.place(call).await?;
        if let Some(owner) = &place.owner {
            self.review(user, &owner.review(call.namespace)).await?;
        }
        Ok(place)
    }

    /// The user of the request's token.
    async fn user(&self, headers: &HeaderMap) -> Result<RequestUser, Refused> {
        let token = reviews::bearer(headers).ok_or(RayApiRefusal::Unauthorized)?;
        let review = timeout(REVIEW_TIMEOUT, self.tokens.user(token)).await;
        match review.map_err(|_| RayApiRefusal::NotReviewed)? {
            Ok(user) => Ok(user),
            Err(AuthenticationError::Invalid) => Err(RayApiRefusal::Unauthorized.into()),
            Err(AuthenticationError::Review(error)) => Err(unreviewed(&error)),
        }
    }

    /// Whether the user may send the same request to the API server.
    async fn review_as_sent(&self, user: &RequestUser, parts: &Parts) -> Result<(), Refused> {
        let query = parts.uri.query().unwrap_or_default();
        let reviewed = ReviewedRequest::of_query(&parts.method, parts.uri.path(), query);
        self.review(user, &reviewed).await
    }

    /// Whether the user may make the request.
    pub(super) async fn review(
        &self,
        user: &RequestUser,
        request: &ReviewedRequest,
    ) -> Result<(), Refused> {
        let decision = timeout(REVIEW_TIMEOUT, self.authorizer.decide(user, request)).await;
        let decision = decision.map_err(|_| RayApiRefusal::NotReviewed)?;
        let decision = decision.map_err(|error| unreviewed(&error))?;
        if decision.allowed {
            Ok(())
        } else {
            Err(Refused::Denied(status::forbidden(request, &user.name, &decision.reason)))
        }
    }

    /// The request with the compute templates of its body filled in.
    async fn with_templates(
        &self,
        namespace: Option<&str>,
        user: &RequestUser,
        mut parts: Parts,
        body: Body,
    ) -> Result<ForwardedRequest, Refused> {
        let mut body = self.bodies.read(body, request_body::OBJECT).await?;
        let Some(namespace) = namespace else { return Ok(forwarded(parts, body)) };
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let content_type = content_type.unwrap_or_default();
        let mut object = ObjectBody::read(content_type, &body.bytes)?;
        let review = |request: ReviewedRequest| async move { self.review(user, &request).await };
        let read = templates::read(&self.home, namespace, &object, review);
        let templates = timeout(REVIEW_TIMEOUT, read).await;
        let templates = templates.map_err(|_| RayApiRefusal::NotReviewed)??;
        // JSON that nothing is filled into is passed on as it was written.
        if templates.is_empty() && ObjectBody::is_json(content_type) {
            return Ok(forwarded(parts, body));
        }
        object.apply(&templates);
        body.bytes = object.to_json().into();
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(forwarded(parts, body))
    }
}

fn forwarded(parts: Parts, body: HeldBody) -> ForwardedRequest {
    let target = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    ForwardedRequest { method: parts.method, target, headers: parts.headers, body, upgrade: false }
}

/// Without a review access is refused, and the client tries again.
fn unreviewed(error: &kube::Error) -> Refused {
    tracing::warn!(%error, "cannot review a request of the Ray API");
    RayApiRefusal::NotReviewed.into()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upgrade_tests;
