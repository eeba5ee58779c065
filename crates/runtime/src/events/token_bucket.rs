//! A token bucket: a rate of writes per second, and a burst of one second's worth. Pure.

use std::time::{Duration, Instant};

/// Refills with time, up to one second's worth of tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    /// Time in which one token is refilled.
    each: Duration,
    /// Time in which an empty bucket is refilled.
    full: Duration,
    /// The current content, as refill time.
    filled: Duration,
    last: Option<Instant>,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn per_second(tokens: u32) -> Self {
        let full = Duration::from_secs(1);
        Self { each: full / tokens.max(1), full, filled: full, last: None }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// If the bucket is empty: the time until the next token.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let since = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        // A content in units of time keeps the fraction of a token between two calls.
        self.filled = self.filled.saturating_add(since).min(self.full);
        match self.filled.checked_sub(self.each) {
            Some(rest) => {
                self.filled = rest;
                Ok(())
            }
            None => Err(self.each - self.filled),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_bucket_holds_one_second_of_tokens() {
        let mut bucket = TokenBucket::per_second(4);
        let start = Instant::now();
        let taken =
            |bucket: &mut TokenBucket, now| (0..9).filter(|_| bucket.take(now).is_ok()).count();
        assert_eq!(taken(&mut bucket, start), 4);
        assert_eq!(bucket.take(start), Err(Duration::from_millis(250)));
        assert_eq!(taken(&mut bucket, start + Duration::from_millis(250)), 1);
        assert_eq!(taken(&mut bucket, start + Duration::from_secs(3600)), 4);
    }

    proptest! {
        #[test]
        fn any_second_grants_at_most_two_seconds_of_tokens(
            pauses in prop::collection::vec(0_u64..200, 1..200),
        ) {
            let mut bucket = TokenBucket::per_second(5);
            let mut now = Instant::now();
            let mut taken = Vec::new();
            for pause in pauses {
                now += Duration::from_millis(pause);
                if bucket.take(now).is_ok() {
                    taken.push(now);
                }
            }
            for first in &taken {
                let within = |at: &&Instant| *at >= first && **at < *first + Duration::from_secs(1);
                prop_assert!(taken.iter().filter(within).count() <= 10);
            }
        }

        #[test]
        fn a_token_is_available_after_the_returned_wait(burst in 1_usize..20) {
            let mut bucket = TokenBucket::per_second(5);
            let now = Instant::now();
            for _ in 0..burst {
                if let Err(wait) = bucket.take(now) {
                    prop_assert_eq!(bucket.take(now + wait), Ok(()));
                    return Ok(());
                }
            }
        }
    }
}
