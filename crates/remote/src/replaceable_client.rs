//! A client whose target client can be replaced while it is in use.
//!
//! It allows to rotate credentials without restarting watches and writers. Requests in flight and open streams end as they
//! began; the next request uses the new client. The new client must reach the same server, because resourceVersions of another
//! server mean something else.

use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::Client;
use tower::service_fn;

/// The handle that replaces the client.
#[derive(Clone)]
pub(super) struct ReplaceableClient(Arc<ArcSwap<Client>>);

impl ReplaceableClient {
    /// A client that forwards requests to `target` until it is replaced.
    pub(super) fn new(endpoint: Client) -> (Self, Client) {
        let namespace = endpoint.default_namespace().to_owned();
        let current = Arc::new(ArcSwap::from_pointee(endpoint));
        let forwarded = Arc::clone(&current);
        let service = service_fn(move |request| {
            // Loaded for each request, so that a replacement counts from the next one on.
            let endpoint = Client::clone(&forwarded.load());
            async move { endpoint.send(request).await }
        });
        (Self(current), Client::new(service, namespace))
    }

    /// Replaces the target from the next request on.
    pub(super) fn replace(&self, endpoint: Client) {
        self.0.store(Arc::new(endpoint));
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    fn to(name: &'static str) -> Client {
        let service = service_fn(move |_: Request<Body>| async move {
            Ok::<_, Infallible>(Response::new(Body::from(name.as_bytes().to_vec())))
        });
        Client::new(service, name)
    }

    #[tokio::test]
    async fn the_next_request_uses_the_replaced_client() {
        let (replaceable, client) = ReplaceableClient::new(to("old"));
        let ask = || client.request_text(Request::new(Vec::new()));
        assert_eq!(ask().await.expect("an answer"), "old");
        replaceable.replace(to("new"));
        assert_eq!(ask().await.expect("an answer"), "new");
    }
}
