//! The user of a bearer token: a TokenReview, with its answer kept for a short time.

use std::sync::Arc;

use ::access::RequestUser;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;

use super::{review_cache::ReviewCache, reviews};

/// Finds the users of tokens.
pub(crate) struct TokenAuthenticator {
    client: Client,
    tokens: ReviewCache<Option<RequestUser>>,
}

/// Why there is no user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthenticationError {
    /// The credentials are not valid.
    #[error("the credentials are not valid")]
    Invalid,
    /// The API server was not reached, or refused the review.
    #[error("cannot review a token: {0}")]
    Review(#[from] Arc<kube::Error>),
}

impl TokenAuthenticator {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, tokens: ReviewCache::new() }
    }

    /// The user of a token.
    ///
    /// # Errors
    /// If the token is not valid, or could not be reviewed.
    pub(crate) async fn user(&self, token: &str) -> Result<RequestUser, AuthenticationError> {
        let ask = async { Ok(reviews::user_of(&self.client, token).await?.map(of_review)) };
        let user = self.tokens.get(token.as_bytes(), Box::pin(ask)).await?;
        user.ok_or(AuthenticationError::Invalid)
    }
}

fn of_review(info: UserInfo) -> RequestUser {
    let user = RequestUser {
        name: info.username.unwrap_or_default(),
        uid: info.uid,
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    };
    user.authenticated()
}
