//! A WebSocket between a caller and a head, from the answer to the handshake to its end.
//!
//! Rights and place were asked before the handshake, and are asked again while the connection is open: a right that is withdrawn, a
//! worker that is not active any more, or an object that runs elsewhere ends it.

use std::{sync::Arc, time::Duration};

use ::access::RequestUser;
use http::Method;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use ray_api::{RayApiRequest, ServiceCall, ServiceOwner};
use tokio::time::{sleep, timeout};

use super::{
    passed_bytes::{UpgradeLimits, pass_bytes},
    server::{RayApiServer, Refused},
    service_place::ServicePlace,
};
use crate::in_flight_limits::InFlightPermit;

/// The time between two questions for rights and place.
const ASKED_EVERY: Duration = Duration::from_secs(30);

/// The time that both connections may take to change their protocol.
const CHANGED_WITHIN: Duration = Duration::from_secs(10);

/// The log of a job that writes nothing for hours is as quiet as a caller that is gone. The idle time is that of a kubelet for
/// `kubectl exec`.
const LIMITS: UpgradeLimits = UpgradeLimits {
    idle: Duration::from_secs(4 * 3600),
    stalled: Duration::from_secs(30),
    within: Duration::from_secs(24 * 3600),
};

/// A WebSocket between a caller and a head.
pub(super) struct OpenUpgrade {
    pub(super) server: Arc<RayApiServer>,
    pub(super) user: RequestUser,
    /// The path of the request.
    pub(super) path: String,
    pub(super) cluster: Option<String>,
    pub(super) owner: Option<ServiceOwner>,
    pub(super) permit: InFlightPermit,
}

impl OpenUpgrade {
    /// Passes on bytes until the end of the connection.
    pub(super) async fn run(self, caller: OnUpgrade, head: OnUpgrade) {
        let both = async { tokio::try_join!(caller, head) };
        let (caller, head) = match timeout(CHANGED_WITHIN, both).await {
            Ok(Ok(both)) => both,
            // The other connection is closed with its upgrade.
            Ok(Err(error)) => return tracing::debug!(%error, "a connection was not upgraded"),
            Err(_) => return tracing::debug!("a connection was not upgraded in time"),
        };
        let io = |upgraded: Upgraded| TokioIo::new(upgraded);
        let end = async {
            tokio::select! {
                () = self.server.stop.cancelled() => {}
                () = self.until_refused() => {}
            }
        };
        pass_bytes(io(caller), io(head), LIMITS, end).await;
        drop(self.permit);
    }

    /// Returns when a request for this connection would be refused.
    async fn until_refused(&self) {
        loop {
            sleep(ASKED_EVERY).await;
            if !self.is_allowed().await {
                return;
            }
        }
    }

    /// Whether the same request would be sent on, or that cannot be said.
    pub(super) async fn is_allowed(&self) -> bool {
        let Ok(RayApiRequest::Service(call)) = RayApiRequest::of(&Method::GET, &self.path) else {
            return false;
        };
        match self.asked_again(&call).await {
            Ok(place) => place.cluster == self.cluster && place.owner == self.owner,
            Err(Refused::Denied(_)) => false,
            Err(Refused::Rule(refusal)) => !refusal.ends_upgrade(),
        }
    }

    async fn asked_again(&self, call: &ServiceCall<'_>) -> Result<ServicePlace, Refused> {
        self.server.review(&self.user, &call.review(&Method::GET)).await?;
        self.server.place(call, &self.user).await
    }
}
