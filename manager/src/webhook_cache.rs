//! Runs the cache of the job webhooks, and the readiness check that waits for it.
//!
//! The process is ready once the cache is synced, or the time for it has passed (`first_lists`); the job webhooks then refuse with
//! "try again" until it is.

use runtime::health::HealthChecks;
use webhooks::cache::{SharedWebhookCache, follow_stores};

use crate::{first_lists::synced_or_timed_out, process_parts::ProcessParts};

/// Follows the stores of the cached kinds.
pub(crate) fn start(parts: &mut ProcessParts<'_>) -> SharedWebhookCache {
    let (cache, stop) = (SharedWebhookCache::default(), parts.stop());
    parts.tasks.spawn(follow_stores(&mut parts.stores, cache.clone(), stop));
    cache
}

/// Adds the check `facts`: the cache is synced, or the time for it has passed.
pub(crate) fn add_check(checks: HealthChecks, cache: SharedWebhookCache) -> HealthChecks {
    checks.with("facts", synced_or_timed_out(move || cache.is_synced()))
}
