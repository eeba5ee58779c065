//! Random differences between pauses, so that what begins together, such as the connections of a process that was restarted, does
//! not go on together.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The pause, or up to a quarter more.
#[must_use]
pub fn lengthened(pause: Duration) -> Duration {
    pause.saturating_add(part(pause / 4))
}

/// The pause, or up to a quarter less.
#[must_use]
pub fn shortened(pause: Duration) -> Duration {
    pause.saturating_sub(part(pause / 4))
}

/// A random part. The standard library seeds every hasher again.
fn part(of: Duration) -> Duration {
    let random = RandomState::new().hash_one(of);
    let nanos = u64::try_from(of.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(random % nanos.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_by_up_to_a_quarter() {
        let pause = Duration::from_secs(8);
        let quarter = Duration::from_secs(2);
        let all: Vec<Duration> = (0..50).map(|_| lengthened(pause)).collect();
        assert!(all.iter().all(|one| (pause..=pause + quarter).contains(one)), "{all:?}");
        assert!(all.iter().any(|one| *one != all[0]), "{all:?}");
        let all: Vec<Duration> = (0..50).map(|_| shortened(pause)).collect();
        assert!(all.iter().all(|one| (pause - quarter..=pause).contains(one)), "{all:?}");
        assert_eq!((lengthened(Duration::ZERO), shortened(Duration::ZERO)), Default::default());
        assert_eq!(lengthened(Duration::MAX), Duration::MAX);
    }
}
