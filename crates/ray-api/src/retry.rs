//! Which answers are asked for again, and after what pause.
//!
//! As KubeRay's proxy: up to three more attempts with growing pauses, within half a minute. A request that is not idempotent is
//! repeated after 429 only: after any other answer it may have been carried out, and a Ray job would be submitted twice.

use std::time::Duration;

use http::{Method, StatusCode};

/// Attempts after the first one.
const RETRIES: u32 = 3;

/// The pause before the first of them. Each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The time that all attempts and pauses may take, until the head of an answer.
pub const OVERALL: Duration = Duration::from_secs(30);

/// The pause before the next attempt; `None` if the answer stands. `attempts` were made in the time `elapsed`.
#[must_use]
pub fn pause(
    method: &Method,
    code: StatusCode,
    attempts: u32,
    elapsed: Duration,
) -> Option<Duration> {
    if attempts > RETRIES || !is_repeated(method, code) {
        return None;
    }
    let factor = 2_u32.saturating_pow(attempts.saturating_sub(1));
    let pause = FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE);
    // An attempt that cannot begin in time would hide the answer that is there.
    (elapsed.saturating_add(pause) < OVERALL).then_some(pause)
}

fn is_repeated(method: &Method, code: StatusCode) -> bool {
    match code.as_u16() {
        429 => true,
        408 | 500 | 502 | 503 | 504 => method.is_idempotent(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_asked_for_again_three_times() {
        let millis = |attempts| {
            let pause = pause(&Method::GET, StatusCode::BAD_GATEWAY, attempts, Duration::ZERO);
            pause.map(|pause| pause.as_millis())
        };
        assert_eq!([1, 2, 3, 4].map(millis), [Some(500), Some(1000), Some(2000), None]);
    }

    #[test]
    fn code_and_method_decide() {
        for (code, get, post) in [
            (200, false, false),
            (404, false, false),
            (408, true, false),
            (409, false, false),
            (429, true, true),
            (500, true, false),
            (501, false, false),
            (502, true, false),
            (503, true, false),
            (504, true, false),
        ] {
            let code = StatusCode::from_u16(code).expect("a code");
            let again = |method| pause(&method, code, 1, Duration::ZERO).is_some();
            assert_eq!((again(Method::GET), again(Method::POST)), (get, post), "{code}");
            assert_eq!((again(Method::PUT), again(Method::PATCH)), (get, post), "{code}");
        }
    }

    #[test]
    fn no_attempt_begins_after_the_end() {
        let again = |elapsed| pause(&Method::GET, StatusCode::BAD_GATEWAY, 1, elapsed);
        assert!(again(Duration::from_secs(29)).is_some());
        assert!(again(Duration::from_millis(29_600)).is_none());
    }
}
