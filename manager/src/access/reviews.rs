//! Reviews by the API server: which user a token belongs to, and whether a user may do something.

use http::{HeaderMap, header::AUTHORIZATION};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus},
};
use kube::{Api, Client, api::PostParams};

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user of a token; `None` if the token is not valid.
///
/// # Errors
/// If the API server cannot be asked.
pub(crate) async fn user_of(client: &Client, token: &str) -> Result<Option<UserInfo>, kube::Error> {
    let review = TokenReview {
        spec: TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() },
        ..TokenReview::default()
    };
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
    // The user counts only if the token was accepted.
    Ok(status.user.filter(|_| status.authenticated == Some(true)))
}

/// Whether the access is allowed, and why.
///
/// # Errors
/// If the API server cannot be asked.
pub(crate) async fn access(
    client: &Client,
    spec: SubjectAccessReviewSpec,
) -> Result<SubjectAccessReviewStatus, kube::Error> {
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    Ok(reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default())
}

#[cfg(test)]
mod tests {
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
            let value = value.parse().expect("a value");
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
            assert_eq!(bearer(&headers), token);
        }
    }
}
