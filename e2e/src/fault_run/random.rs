//! Random numbers from a seed, so that a report can name it.

use std::{ops::RangeInclusive, time::Duration};

/// Xorshift: equal seeds give equal numbers.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A time of these seconds, in milliseconds.
    pub(super) fn pause(&mut self, seconds: &RangeInclusive<u64>) -> Duration {
        let (least, most) = (seconds.start() * 1000, seconds.end() * 1000);
        Duration::from_millis(least + self.next() % (most.saturating_sub(least) + 1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_within_their_range_and_differ() {
        let mut random = Random::new(7);
        let pauses: Vec<u128> = (0..100).map(|_| random.pause(&(2..=5)).as_millis()).collect();
        assert!(pauses.iter().all(|one| (2000..=5000).contains(one)), "{pauses:?}");
        assert!(pauses.iter().any(|one| *one < 3000) && pauses.iter().any(|one| *one > 4000));
    }
}
