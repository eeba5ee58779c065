//! The maximum length of a condition's message. The API server refuses a write with a longer one.

use std::borrow::Cow;

const LONGEST: usize = 32 * 1024;
const CUT: &str = " ...";

/// A message within the limit of conditions.
pub fn for_condition(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST {
        return Cow::Borrowed(message);
    }
    let end = message.floor_char_boundary(LONGEST - CUT.len());
    Cow::Owned([message.get(..end).unwrap_or_default(), CUT].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(for_condition("short"), "short");
        let cut = for_condition(&"é".repeat(20_000)).into_owned();
        assert!(cut.len() <= 32 * 1024 && cut.ends_with("é ..."), "{}", cut.len());
        assert_eq!(for_condition(&"x".repeat(40_000)).len(), 32 * 1024);
        assert_eq!(for_condition(&"x".repeat(32 * 1024)), "x".repeat(32 * 1024));
    }
}
