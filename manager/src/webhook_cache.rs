//! Runs the cache of the job webhooks, and the readiness check that waits for it.
//!
//! The process is ready once the cache is synced, or the time for it has passed (`first_lists`); the job webhooks then refuse with
//! "try again" until it is.

use runtime::{Stop, health::HealthChecks, watch::Stores};
use tokio::task::JoinSet;
use webhooks::cache::{SharedWebhookCache, follow_stores};

use crate::first_lists::synced_or_timed_out;

/// Follows the stores of the cached kinds.
pub(crate) fn start(
    stores: &mut Stores,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> SharedWebhookCache {
    let cache = SharedWebhookCache::default();
    tasks.spawn(follow_stores(stores, cache.clone(), stop.clone()));
    cache
}

/// Adds the check `facts`: the cache is synced, or the time for it has passed.
pub(crate) fn add_check(checks: HealthChecks, cache: SharedWebhookCache) -> HealthChecks {
    checks.with("facts", synced_or_timed_out(move || cache.is_synced()))
}
