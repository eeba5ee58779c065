//! When a plugin is asked for a credential again. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How long before its end a credential is replaced, if it lives long.
const LEAD: SignedDuration = SignedDuration::from_secs(60);

/// The part of the remaining lifetime after which a short credential is replaced is `1 - 1/LAST_PART`.
const LAST_PART: i32 = 5;

/// The shortest pause between two runs for one worker: a plugin may return the same credential until its end.
const SHORTEST: SignedDuration = SignedDuration::from_secs(10);

/// When the credential that was received at `now` is replaced; never if its end is unknown.
pub(crate) fn renewal_time(now: Timestamp, expires: Option<Timestamp>) -> Option<Timestamp> {
    let left = expires? - now;
    let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::MAX);
    let pause = (left - LEAD.min(left / LAST_PART)).max(SHORTEST);
    Some(now.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

/// When a failed run is repeated.
pub(crate) fn repeated(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SHORTEST);
    now.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_replaced_before_its_end_but_not_at_every_probe() {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let after = |seconds: i64| now + SignedDuration::from_secs(seconds);
        for (lives, replaced_after) in
            [(3600, 3540), (300, 240), (100, 80), (12, 10), (5, 10), (0, 10), (-50, 10)]
        {
            assert_eq!(
                renewal_time(now, Some(after(lives))),
                Some(after(replaced_after)),
                "{lives}"
            );
        }
        assert_eq!(renewal_time(now, None), None);
        assert_eq!(
            renewal_time(now, Some(Timestamp::MAX)).map(|at| at > after(1 << 30)),
            Some(true)
        );
    }
}
