//! Authorization of metrics: a TokenReview identifies the client, a SubjectAccessReview decides about `get /metrics`.
//!
//! Kueue serves metrics the same way. Results are not cached: a scrape every few seconds costs two requests.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};

/// Passes on a request if its bearer token is authorized.
pub(crate) async fn check(State(client): State<Client>, request: Request, next: Next) -> Response {
    let Some(token) = bearer(&request) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    let path = request.uri().path().to_owned();
    match decide(&client, token, path).await {
        Ok(StatusCode::OK) => next.run(request).await,
        Ok(code) => (code, format!("{code}\n")).into_response(),
        Err(error) => {
            tracing::warn!(%error, "cannot review the access to metrics");
            // Without a decision access is refused, and the scraper tries again.
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot ask the API server\n").into_response()
        }
    }
}

fn bearer(request: &Request) -> Option<String> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

async fn decide(client: &Client, token: String, path: String) -> Result<StatusCode, kube::Error> {
    let review = TokenReview {
        spec: TokenReviewSpec { token, ..TokenReviewSpec::default() },
        ..TokenReview::default()
    };
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    // The user counts only if the token was accepted.
    let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
        return Ok(StatusCode::UNAUTHORIZED);
    };
    let accesses: Api<SubjectAccessReview> = Api::all(client.clone());
    let access = accesses.create(&PostParams::default(), &access(user, path)).await?;
    let allowed = access.status.is_some_and(|status| status.allowed);
    Ok(if allowed { StatusCode::OK } else { StatusCode::FORBIDDEN })
}

fn access(user: UserInfo, path: String) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path),
                verb: Some("get".to_owned()),
            }),
            resource_attributes: None,
        },
        ..SubjectAccessReview::default()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_bearer_tokens_are_credentials() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("abc", None),
        ] {
            let request = Request::get("/").header(AUTHORIZATION, value).body(Body::empty());
            assert_eq!(bearer(&request.expect("a request")).as_deref(), token, "{value:?}");
        }
    }
}
