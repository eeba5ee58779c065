//! Room for requests in flight: all together, for watches, per head, and for the heads of a namespace. Open WebSockets have room of their own.
//!
//! A head that never answers fills its own room only, and all heads of a namespace fill a part of the room. Watches last long and have room of their own, so that they do not keep others out.

use std::sync::Arc;

use ray_api::RayApiRefusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::nested_places::{NestedPermit, NestedPlaces};

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

/// See the module.
pub(super) struct RequestRoom {
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    /// By namespace and Service.
    heads: NestedPlaces,
    /// By namespace and Service.
    upgrades: NestedPlaces,
}

/// A place for one request. Dropping it makes it free.
pub(super) struct RequestPermit {
    _permit: OwnedSemaphorePermit,
}

impl Default for RequestRoom {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(REQUESTS)),
            watches: Arc::new(Semaphore::new(WATCHES)),
            heads: NestedPlaces::default(),
            upgrades: NestedPlaces::default(),
        }
    }
}

impl RequestRoom {
    /// A place for a request.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn enter(&self, watch: bool) -> Result<RequestPermit, RayApiRefusal> {
        let places = if watch { &self.watches } else { &self.requests };
        let permit = places.clone().try_acquire_owned();
        let permit = permit.map_err(|_| RayApiRefusal::TooManyRequests)?;
        Ok(RequestPermit { _permit: permit })
    }

    /// A place for a request to a head.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn enter_head(
        &self,
        namespace: &str,
        service: &str,
    ) -> Result<NestedPermit, RayApiRefusal> {
        let place = self.heads.enter(namespace, service, |taken| {
            taken.by_both < PER_HEAD && taken.by_outer < PER_NAMESPACE
        });
        place.ok_or(RayApiRefusal::TooManyRequests)
    }

    /// A place for an upgrade to a head.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn enter_upgrade(
        &self,
        namespace: &str,
        service: &str,
    ) -> Result<NestedPermit, RayApiRefusal> {
        let place = self.upgrades.enter(namespace, service, |taken| {
            taken.by_both < UPGRADES_PER_HEAD
                && taken.by_outer < UPGRADES_PER_NAMESPACE
                && taken.by_all < UPGRADES
        });
        place.ok_or(RayApiRefusal::TooManyRequests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_fills_its_own_room_only() {
        let room = RequestRoom::default();
        let full: Vec<NestedPermit> =
            (0..PER_HEAD).map(|_| room.enter_head("ml", "hung").expect("room")).collect();
        assert!(room.enter_head("ml", "hung").is_err());
        assert!(room.enter_head("ml", "other").is_ok() && room.enter_head("x", "hung").is_ok());
        drop(full);
        assert!(room.enter_head("ml", "hung").is_ok());
        assert!(room.heads.is_empty());
    }

    #[test]
    fn the_heads_of_a_namespace_leave_room_to_others() {
        let room = RequestRoom::default();
        let enter =
            |namespace: &str, number: usize| room.enter_head(namespace, &format!("hung-{number}"));
        let full: Vec<NestedPermit> =
            (0..PER_NAMESPACE).map(|number| enter("ml", number).expect("room")).collect();
        assert!(enter("ml", PER_NAMESPACE).is_err() && enter("other", 0).is_ok());
        drop(full);
        assert!(enter("ml", PER_NAMESPACE).is_ok());
    }

    #[test]
    fn watches_keep_no_request_out() {
        let room = RequestRoom::default();
        let _all: Vec<RequestPermit> =
            (0..WATCHES).map(|_| room.enter(true).expect("room")).collect();
        assert!(room.enter(true).is_err() && room.enter(false).is_ok());
    }

    #[test]
    fn open_upgrades_have_room_of_their_own() {
        let room = RequestRoom::default();
        let enter = |namespace: usize, service: usize| {
            room.enter_upgrade(&namespace.to_string(), &service.to_string())
        };
        let heads = UPGRADES_PER_NAMESPACE / UPGRADES_PER_HEAD;
        let places = (0..UPGRADES).map(|at| (at / UPGRADES_PER_NAMESPACE, at % heads));
        let _all: Vec<NestedPermit> =
            places.map(|(namespace, service)| enter(namespace, service).expect("room")).collect();
        assert!(enter(0, 0).is_err() && enter(0, heads).is_err() && enter(99, 0).is_err());
        assert!(room.enter_head("0", "0").is_ok() && room.enter(false).is_ok());
    }
}
