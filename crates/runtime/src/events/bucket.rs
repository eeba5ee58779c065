//! A bucket of tokens: so many writes a second, and as many at once after a quiet second. Pure.

use std::time::{Duration, Instant};

/// Fills with time; never holds more than one second's worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// The time that one token takes to appear.
    each: Duration,
    /// The time that a full bucket takes to appear.
    full: Duration,
    /// What is in it, as time.
    filled: Duration,
    last: Option<Instant>,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn per_second(tokens: u32) -> Self {
        let full = Duration::from_secs(1);
        Self { each: full / tokens.max(1), full, filled: full, last: None }
    }

    /// Takes a token, or says how long there will be none.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let since = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.last = Some(now);
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
    fn a_full_bucket_is_one_second_and_no_more() {
        let mut bucket = Bucket::per_second(4);
        let start = Instant::now();
        let taken = |bucket: &mut Bucket, now| (0..9).filter(|_| bucket.take(now).is_ok()).count();
        assert_eq!(taken(&mut bucket, start), 4);
        assert_eq!(bucket.take(start), Err(Duration::from_millis(250)));
        assert_eq!(taken(&mut bucket, start + Duration::from_millis(250)), 1);
        assert_eq!(taken(&mut bucket, start + Duration::from_secs(3600)), 4);
    }

    proptest! {
        #[test]
        fn no_second_gives_more_than_a_full_bucket_and_a_seconds_worth(
            pauses in prop::collection::vec(0_u64..200, 1..200),
        ) {
            let mut bucket = Bucket::per_second(5);
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
        fn who_waits_as_long_as_told_gets_a_token(burst in 1_usize..20) {
            let mut bucket = Bucket::per_second(5);
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
