//! Runs the cache of the job webhooks, and the readiness check that waits for it.
//!
//! The process is ready once the cache is synced. Listing may need the conversion webhook, for objects that an older release
//! stored, and the API server calls that only in a ready process. So the process becomes ready after [`SYNC_TIMEOUT`] even
//! without a synced cache; the job webhooks then refuse with "try again" until it is.

use std::time::Duration;

use runtime::{Stop, health::HealthChecks, watch::Stores};
use tokio::{task::JoinSet, time::Instant};
use webhooks::cache::{SharedWebhookCache, follow_stores};

/// How long readiness waits for the cache.
const SYNC_TIMEOUT: Duration = Duration::from_secs(15);

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

/// Adds the check `facts`: the cache is synced, or [`SYNC_TIMEOUT`] has passed.
pub(crate) fn add_check(checks: HealthChecks, cache: SharedWebhookCache) -> HealthChecks {
    checks.with("facts", synced_or_timed_out(move || cache.is_synced()))
}

fn synced_or_timed_out(is_synced: impl Fn() -> bool) -> impl Fn() -> bool {
    let start = Instant::now();
    move || is_synced() || start.elapsed() >= SYNC_TIMEOUT
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readiness_waits_for_the_cache_only_until_the_timeout() {
        let (synced, unsynced) = (synced_or_timed_out(|| true), synced_or_timed_out(|| false));
        assert!(synced() && !unsynced());
        advance(SYNC_TIMEOUT - Duration::from_millis(1)).await;
        assert!(!unsynced());
        advance(Duration::from_millis(1)).await;
        assert!(unsynced());
    }
}
