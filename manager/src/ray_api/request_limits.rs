//! Limits of requests in flight: of all together, of watches, per head, and of the heads of a namespace. Open WebSockets have limits of
//! their own.
//!
//! A head that never answers exhausts its own limit only, and all heads of a namespace a part of the total. Watches last long and have
//! a limit of their own, so that they do not keep others out.

use std::sync::Arc;

use ray_api::RayApiRefusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::in_flight_limits::{InFlightCounts, InFlightPermit};

/// Requests in flight that are no watches.
const REQUESTS: usize = 256;

/// Watches.
const WATCHES: usize = 512;

/// Requests in flight to Services of one name.
const PER_HEAD: usize = 16;

/// Requests in flight to all Services of a namespace.
const PER_NAMESPACE: usize = 64;

/// Open upgrades.
const UPGRADES: usize = 256;

/// Open upgrades to Services of one name.
pub(super) const UPGRADES_PER_HEAD: usize = 32;

/// Open upgrades to all Services of a namespace.
const UPGRADES_PER_NAMESPACE: usize = 64;

/// Requests in flight to heads, and open upgrades.
pub(super) struct HeadRequestLimits {
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    /// By namespace and Service.
    heads: InFlightCounts,
    /// By namespace and Service.
    upgrades: InFlightCounts,
}

impl Default for HeadRequestLimits {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(REQUESTS)),
            watches: Arc::new(Semaphore::new(WATCHES)),
            heads: InFlightCounts::default(),
            upgrades: InFlightCounts::default(),
        }
    }
}

impl HeadRequestLimits {
    /// A permit for a request, which is in flight until the permit is dropped.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(super) fn try_acquire(&self, watch: bool) -> Result<OwnedSemaphorePermit, RayApiRefusal> {
        let permits = if watch { &self.watches } else { &self.requests };
        permits.clone().try_acquire_owned().map_err(|_| RayApiRefusal::TooManyRequests)
    }

    /// A permit for a request to a head.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(super) fn try_acquire_head(
        &self,
        namespace: &str,
        service: &str,
    ) -> Result<InFlightPermit, RayApiRefusal> {
        let permit = self.heads.try_acquire(namespace, service, |in_flight| {
            in_flight.with_both < PER_HEAD && in_flight.with_outer < PER_NAMESPACE
        });
        permit.ok_or(RayApiRefusal::TooManyRequests)
    }

    /// A permit for an upgrade to a head.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(super) fn try_acquire_upgrade(
        &self,
        namespace: &str,
        service: &str,
    ) -> Result<InFlightPermit, RayApiRefusal> {
        let permit = self.upgrades.try_acquire(namespace, service, |in_flight| {
            in_flight.with_both < UPGRADES_PER_HEAD
                && in_flight.with_outer < UPGRADES_PER_NAMESPACE
                && in_flight.all < UPGRADES
        });
        permit.ok_or(RayApiRefusal::TooManyRequests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_exhausts_its_own_limit_only() {
        let limits = HeadRequestLimits::default();
        let full: Vec<InFlightPermit> = (0..PER_HEAD)
            .map(|_| limits.try_acquire_head("ml", "hung").expect("a permit"))
            .collect();
        assert!(limits.try_acquire_head("ml", "hung").is_err());
        assert!(
            limits.try_acquire_head("ml", "other").is_ok()
                && limits.try_acquire_head("x", "hung").is_ok()
        );
        drop(full);
        assert!(limits.try_acquire_head("ml", "hung").is_ok());
        assert!(limits.heads.is_empty());
    }

    #[test]
    fn the_heads_of_a_namespace_leave_permits_to_others() {
        let limits = HeadRequestLimits::default();
        let enter = |namespace: &str, number: usize| {
            limits.try_acquire_head(namespace, &format!("hung-{number}"))
        };
        let full: Vec<InFlightPermit> =
            (0..PER_NAMESPACE).map(|number| enter("ml", number).expect("a permit")).collect();
        assert!(enter("ml", PER_NAMESPACE).is_err() && enter("other", 0).is_ok());
        drop(full);
        assert!(enter("ml", PER_NAMESPACE).is_ok());
    }

    #[test]
    fn watches_keep_no_request_out() {
        let limits = HeadRequestLimits::default();
        let _all: Vec<OwnedSemaphorePermit> =
            (0..WATCHES).map(|_| limits.try_acquire(true).expect("a permit")).collect();
        assert!(limits.try_acquire(true).is_err() && limits.try_acquire(false).is_ok());
    }

    #[test]
    fn open_upgrades_have_limits_of_their_own() {
        let limits = HeadRequestLimits::default();
        let enter = |namespace: usize, service: usize| {
            limits.try_acquire_upgrade(&namespace.to_string(), &service.to_string())
        };
        let heads = UPGRADES_PER_NAMESPACE / UPGRADES_PER_HEAD;
        let names = (0..UPGRADES).map(|at| (at / UPGRADES_PER_NAMESPACE, at % heads));
        let _all: Vec<InFlightPermit> = names
            .map(|(namespace, service)| enter(namespace, service).expect("a permit"))
            .collect();
        assert!(enter(0, 0).is_err() && enter(0, heads).is_err() && enter(99, 0).is_err());
        assert!(limits.try_acquire_head("0", "0").is_ok() && limits.try_acquire(false).is_ok());
    }
}
