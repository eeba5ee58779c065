//! The user of a request, in the order of upstream: the headers of a front proxy, a client certificate of the cluster, a token. A
//! request without credentials is one of `system:anonymous`; one with invalid credentials is refused.

use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use runtime::client_certificate::{ClientSubject, PeerCertificates};
use visibility::RequestUser;

use super::{review_cache::ReviewCache, trusted_proxies::TrustedProxies};
use crate::reviews;

/// Finds the user of a request.
pub(super) struct Authenticator {
    client: Client,
    proxies: TrustedProxies,
    tokens: ReviewCache<Option<RequestUser>>,
}

/// Why there is no user.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthenticationError {
    /// The credentials are not valid.
    #[error("the credentials are not valid")]
    Invalid,
    /// The API server was not reached, or refused the review.
    #[error("cannot review a token: {0}")]
    Review(#[from] Arc<kube::Error>),
}

impl Authenticator {
    pub(super) fn new(client: Client, proxies: TrustedProxies) -> Self {
        Self { client, proxies, tokens: ReviewCache::new() }
    }

    /// The user of a request with these headers, from a client with this certificate.
    ///
    /// # Errors
    /// If the credentials are not valid, or could not be reviewed.
    pub(super) async fn user(
        &self,
        headers: &HeaderMap,
        peer: Option<&PeerCertificates>,
        now: Timestamp,
    ) -> Result<RequestUser, AuthenticationError> {
        if let Some(user) = peer.and_then(|peer| self.user_of_certificate(headers, peer, now)) {
            return Ok(user);
        }
        if let Some(token) = reviews::bearer(headers) {
            return self.user_of_token(token).await?.ok_or(AuthenticationError::Invalid);
        }
        match peer {
            // A certificate that no authority signed is an attempt to be another user.
            Some(_) => Err(AuthenticationError::Invalid),
            None => Ok(RequestUser::anonymous()),
        }
    }

    fn user_of_certificate(
        &self,
        headers: &HeaderMap,
        peer: &PeerCertificates,
        now: Timestamp,
    ) -> Option<RequestUser> {
        let trusted = self.proxies.current();
        let proxied = trusted.is_front_proxy(peer, now).then(|| trusted.front_proxy.user(headers));
        proxied.flatten().or_else(|| trusted.user(peer, now).map(of_subject))
    }

    async fn user_of_token(&self, token: &str) -> Result<Option<RequestUser>, Arc<kube::Error>> {
        let ask = async { Ok(reviews::user_of(&self.client, token).await?.map(of_review)) };
        self.tokens.get(token.as_bytes(), Box::pin(ask)).await
    }
}

fn of_subject(subject: ClientSubject) -> RequestUser {
    let ClientSubject { common_name: name, organizations: groups } = subject;
    RequestUser { name, groups, ..RequestUser::default() }.authenticated()
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
