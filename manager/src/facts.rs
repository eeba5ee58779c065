//! What webhooks of jobs know about the cluster, and when that is enough for the process to be ready.
//!
//! Ready means that everything was listed once. But a list may need the conversion that only a ready process is asked
//! for: objects that an older release stored. So after a while the process is ready without; until the picture is
//! complete, its webhooks of jobs then ask to try again.

use std::time::Duration;

use cluster::facts::{Known, follow};
use kube::Client;
use runtime::{Stop, health::Checks, watch::WatchMetrics};
use tokio::{task::JoinSet, time::Instant};

/// How long the process waits for the first complete picture before it is ready without.
const PATIENCE: Duration = Duration::from_secs(15);

/// Begins to follow the facts.
pub(crate) fn begin(
    client: &Client,
    watches: &WatchMetrics,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> Known {
    let known = Known::default();
    tasks.spawn(follow(client.clone(), known.clone(), watches.clone(), stop.clone()));
    known
}

/// Adds the check that the picture is complete, or has been waited for long enough.
pub(crate) fn check(checks: Checks, known: Known) -> Checks {
    checks.with("facts", waited_for(move || known.complete()))
}

fn waited_for(complete: impl Fn() -> bool) -> impl Fn() -> bool {
    let begun = Instant::now();
    move || complete() || begun.elapsed() >= PATIENCE
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_picture_is_waited_for_only_so_long() {
        let (complete, incomplete) = (waited_for(|| true), waited_for(|| false));
        assert!(complete() && !incomplete());
        advance(PATIENCE - Duration::from_millis(1)).await;
        assert!(!incomplete());
        advance(Duration::from_millis(1)).await;
        assert!(incomplete());
    }
}
