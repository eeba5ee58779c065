//! Quantiles of durations.

use std::time::Duration;

use serde_json::{Value, json};

/// Quantiles of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quantiles {
    pub(crate) samples: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Quantiles {
    /// The nearest rank: with fewer than a hundred samples, p99 is the longest.
    pub(crate) fn of(samples: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<Duration> = samples.into_iter().collect();
        sorted.sort();
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(rank).copied().unwrap_or_default()
        };
        Self { samples: sorted.len(), p50: at(50), p99: at(99) }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "samples": self.samples,
            "p50Micros": micros(self.p50),
            "p99Micros": micros(self.p99),
        })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_samples() {
        let quantiles = |most: u64| Quantiles::of((1..=most).rev().map(Duration::from_millis));
        let expected = |samples, p50, p99| Quantiles {
            samples,
            p50: Duration::from_millis(p50),
            p99: Duration::from_millis(p99),
        };
        assert_eq!(quantiles(200), expected(200, 100, 198));
        assert_eq!(quantiles(20), expected(20, 10, 20));
        assert_eq!(quantiles(0), expected(0, 0, 0));
    }
}
