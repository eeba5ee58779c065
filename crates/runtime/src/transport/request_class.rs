//! What a request says about its connection: a watch, a streamed answer, or neither.

use std::time::Duration;

/// An extension of a request for an answer that lasts as long as its reader, such as a log. It has a connection to itself, and
/// no limits of its length or its time other than those of the reader.
#[derive(Clone, Copy, Debug)]
pub struct StreamedAnswer;

/// Whether a request with this query is a watch.
#[must_use]
pub fn is_watch(query: &str) -> bool {
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// How long the server watches, in seconds, by the query of a watch; as client-go and kube ask for if it says nothing.
const DEFAULT_PERIOD: u64 = 290;

/// The longest period in seconds. A user may ask for any number with a request that is forwarded, also for one that no time can hold.
const LONGEST_PERIOD: u64 = 3_600;

/// How long the server goes on with the watch of this query, after which it ends its answer; an hour at most.
#[must_use]
pub fn watch_period(query: &str) -> Duration {
    let seconds = query.split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds="));
    let seconds = seconds.and_then(|seconds| seconds.parse().ok()).filter(|seconds| *seconds > 0);
    Duration::from_secs(seconds.unwrap_or(DEFAULT_PERIOD).min(LONGEST_PERIOD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_recognised_by_its_query() {
        assert!(is_watch("labelSelector=a&watch=true&timeoutSeconds=60"));
        assert!(!is_watch("labelSelector=watch%3Dtrue&limit=500"));
    }

    #[test]
    fn the_period_of_a_watch_is_bounded() {
        let seconds = |query| watch_period(query).as_secs();
        assert_eq!(seconds("watch=true"), 290);
        assert_eq!(seconds("watch=true&timeoutSeconds=60"), 60);
        assert_eq!(seconds("watch=true&timeoutSeconds=18446744073709551615"), 3_600);
    }
}
