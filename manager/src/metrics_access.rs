//! Authorization of metrics: a TokenReview identifies the client, a SubjectAccessReview decides about `get /metrics`.
//!
//! Kueue serves metrics the same way. Results are not cached: a scrape every few seconds costs two requests.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use k8s_openapi::api::{
    authentication::v1::UserInfo,
    authorization::v1::{NonResourceAttributes, SubjectAccessReviewSpec},
};
use kube::Client;
use tokio::{sync::Semaphore, time::timeout};

use crate::access::reviews;

/// How many scrapes are reviewed at once. Their requests share the connection of the process with the writes of the leader.
const REVIEWED_AT_ONCE: usize = 8;

/// How long a review may take.
const REVIEWED_WITHIN: Duration = Duration::from_secs(10);

/// The API server that reviews, and places for reviews.
#[derive(Clone)]
pub(crate) struct MetricsAccess {
    client: Client,
    places: Arc<Semaphore>,
}

impl MetricsAccess {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, places: Arc::new(Semaphore::new(REVIEWED_AT_ONCE)) }
    }
}

/// Passes on a request if its bearer token is authorized.
pub(crate) async fn check(
    State(access): State<MetricsAccess>,
    request: Request,
    next: Next,
) -> Response {
    let Some(token) = reviews::bearer(request.headers()).map(str::to_owned) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    let path = request.uri().path().to_owned();
    let Ok(place) = access.places.try_acquire() else {
        return (StatusCode::TOO_MANY_REQUESTS, "too many requests are being reviewed\n")
            .into_response();
    };
    let Ok(decided) = timeout(REVIEWED_WITHIN, decide(&access.client, &token, path)).await else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the API server does not answer\n")
            .into_response();
    };
    drop(place);
    match decided {
        Ok(StatusCode::OK) => next.run(request).await,
        Ok(code) => (code, format!("{code}\n")).into_response(),
        Err(error) => {
            tracing::warn!(%error, "cannot review the access to metrics");
            // Without a decision access is refused, and the scraper tries again.
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot ask the API server\n").into_response()
        }
    }
}

async fn decide(client: &Client, token: &str, path: String) -> Result<StatusCode, kube::Error> {
    let Some(user) = reviews::user_of(client, token).await? else {
        return Ok(StatusCode::UNAUTHORIZED);
    };
    let access = reviews::access(client, access(user, path)).await?;
    Ok(if access.allowed { StatusCode::OK } else { StatusCode::FORBIDDEN })
}

fn access(user: UserInfo, path: String) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        groups: user.groups,
        uid: user.uid,
        extra: user.extra,
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(path),
            verb: Some("get".to_owned()),
        }),
        resource_attributes: None,
    }
}
