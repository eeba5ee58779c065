//! Maximum lengths of messages. The API server refuses a write with a longer message.

use std::borrow::Cow;

const LONGEST_OF_CONDITIONS: usize = 32 * 1024;
const LONGEST_OF_EVENTS: usize = 1024;
const CUT: &str = " ...";

/// A message within the limit of conditions.
#[must_use]
pub fn for_condition(message: &str) -> Cow<'_, str> {
    bounded(message, LONGEST_OF_CONDITIONS)
}

/// A message within the limit of events.
#[must_use]
pub fn for_event(message: &str) -> Cow<'_, str> {
    bounded(message, LONGEST_OF_EVENTS)
}

fn bounded(message: &str, longest: usize) -> Cow<'_, str> {
    if message.len() <= longest {
        return Cow::Borrowed(message);
    }
    let end = message.floor_char_boundary(longest - CUT.len());
    Cow::Owned([message.get(..end).unwrap_or_default(), CUT].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(for_event("short"), "short");
        let cut = for_event(&"é".repeat(1000)).into_owned();
        assert!(cut.len() <= 1024 && cut.ends_with("é ..."), "{}", cut.len());
        assert_eq!(for_condition(&"x".repeat(40_000)).len(), 32 * 1024);
        assert_eq!(for_condition(&"x".repeat(32 * 1024)), "x".repeat(32 * 1024));
    }
}
