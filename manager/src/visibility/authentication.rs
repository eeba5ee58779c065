//! The user of a request, in the order of upstream: the headers of a front proxy, a client certificate of the cluster, a token. A
//! request without credentials is one of `system:anonymous`; one with invalid credentials is refused.

use ::access::RequestUser;
use http::HeaderMap;
use jiff::Timestamp;
use kube::Client;
use runtime::client_certificate::{ClientSubject, PeerCertificates};

use super::trusted_proxies::TrustedProxies;
use crate::access::{AuthenticationError, TokenAuthenticator, reviews};

/// Finds the user of a request.
pub(super) struct Authenticator {
    proxies: TrustedProxies,
    tokens: TokenAuthenticator,
}

impl Authenticator {
    pub(super) fn new(client: Client, proxies: TrustedProxies) -> Self {
        Self { proxies, tokens: TokenAuthenticator::new(client) }
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
            return self.tokens.user(token).await;
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
}

fn of_subject(subject: ClientSubject) -> RequestUser {
    let ClientSubject { common_name: name, organizations: groups } = subject;
    RequestUser { name, groups, ..RequestUser::default() }.authenticated()
}
