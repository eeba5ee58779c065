//! A client whose way to the server can be replaced while it is used.
//!
//! Credentials are rotated beneath everything that stands on the client: watches go on, writers stay. Requests under way
//! and streams that are open end as they began; the next request goes the new way. That is only right for the same
//! server: another one has another history.

use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::Client;
use tower::service_fn;

/// The end at which the way is chosen.
#[derive(Clone)]
pub(super) struct Switch(Arc<ArcSwap<Client>>);

impl Switch {
    /// A client that goes the way of another one, until told otherwise.
    pub(super) fn new(way: Client) -> (Self, Client) {
        let namespace = way.default_namespace().to_owned();
        let current = Arc::new(ArcSwap::from_pointee(way));
        let chosen = Arc::clone(&current);
        let service = service_fn(move |request| {
            let way = Client::clone(&chosen.load());
            async move { way.send(request).await }
        });
        (Self(current), Client::new(service, namespace))
    }

    /// From the next request on.
    pub(super) fn choose(&self, way: Client) {
        self.0.store(Arc::new(way));
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
    async fn the_next_request_goes_the_way_that_was_chosen_last() {
        let (switch, client) = Switch::new(to("old"));
        let ask = || client.request_text(Request::new(Vec::new()));
        assert_eq!(ask().await.expect("an answer"), "old");
        switch.choose(to("new"));
        assert_eq!(ask().await.expect("an answer"), "new");
    }
}
