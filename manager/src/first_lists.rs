//! How long readiness waits for the first lists of stores.
//!
//! Listing may need the conversion webhook, for objects that an older release stored, and the API server calls that only in a
//! ready process. So the process becomes ready after [`SYNC_TIMEOUT`] even without the lists; what needs them says so until then.

use std::time::Duration;

use tokio::time::Instant;

/// How long readiness waits.
const SYNC_TIMEOUT: Duration = Duration::from_secs(15);

/// A readiness check: everything is listed, or [`SYNC_TIMEOUT`] has passed.
pub(crate) fn synced_or_timed_out(is_synced: impl Fn() -> bool) -> impl Fn() -> bool {
    let start = Instant::now();
    move || is_synced() || start.elapsed() >= SYNC_TIMEOUT
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readiness_waits_for_the_lists_only_until_the_timeout() {
        let (synced, unsynced) = (synced_or_timed_out(|| true), synced_or_timed_out(|| false));
        assert!(synced() && !unsynced());
        advance(SYNC_TIMEOUT - Duration::from_millis(1)).await;
        assert!(!unsynced());
        advance(Duration::from_millis(1)).await;
        assert!(unsynced());
    }
}
