//! A deadline on the command line: a duration from now, or a time.

use std::{str::FromStr, time::Duration};

use crds::go_duration;
use jiff::Timestamp;

/// `30m` or `2026-12-01T00:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineArgument {
    /// So long from now.
    After(Duration),
    /// At this time.
    At(Timestamp),
}

/// A text that is no deadline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a duration such as 30m nor a time such as 2026-12-01T00:00:00Z")]
pub struct DeadlineParseFailure(String);

impl FromStr for DeadlineArgument {
    type Err = DeadlineParseFailure;

    fn from_str(text: &str) -> Result<Self, DeadlineParseFailure> {
        let duration = go_duration::parse(text).map(Self::After);
        let time = || text.parse().ok().map(Self::At);
        duration.or_else(time).ok_or_else(|| DeadlineParseFailure(text.to_owned()))
    }
}

impl DeadlineArgument {
    /// The time, in whole seconds; the largest one if the duration is longer.
    #[must_use]
    pub fn time(self, now: Timestamp) -> Timestamp {
        let time = match self {
            Self::At(time) => time,
            Self::After(duration) => now.checked_add(duration).unwrap_or(Timestamp::MAX),
        };
        Timestamp::from_second(time.as_second()).unwrap_or(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_duration_or_a_time() {
        let now: Timestamp = "2026-11-24T12:00:00.5Z".parse().expect("a time");
        let deadline =
            |text: &str| text.parse::<DeadlineArgument>().map(|one| one.time(now).to_string()).ok();
        assert_eq!(deadline("1h30m").as_deref(), Some("2026-11-24T13:30:00Z"));
        assert_eq!(deadline("0s").as_deref(), Some("2026-11-24T12:00:00Z"));
        assert_eq!(deadline("2026-12-01T00:00:00Z").as_deref(), Some("2026-12-01T00:00:00Z"));
        for text in ["", "soon", "5", "-1h", "2026-12-01"] {
            assert_eq!(deadline(text), None, "{text}");
        }
    }
}
