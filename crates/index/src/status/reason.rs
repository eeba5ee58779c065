//! What a condition's reason may be. The API server refuses a write with another one, so the reason that a worker gives for an end would
//! keep the Workload from finishing.

use std::borrow::Cow;

const LONGEST: usize = 1024;

/// In place of a reason without any character of one.
const UNKNOWN: &str = "Unknown";

/// A reason that a condition may have: what others have written is freed of the characters that it may not.
pub(super) fn for_condition(reason: &str) -> Cow<'_, str> {
    if is_valid(reason) {
        return Cow::Borrowed(reason);
    }
    let begun = reason.chars().skip_while(|c| !c.is_ascii_alphabetic());
    let kept: String = begun.filter(|c| is_inner(*c)).take(LONGEST).collect();
    let kept = kept.trim_end_matches([',', ':']);
    Cow::Owned(if kept.is_empty() { UNKNOWN } else { kept }.to_owned())
}

fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_,:".contains(c)
}

/// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`, as the CRD has it.
fn is_valid(reason: &str) -> bool {
    reason.len() <= LONGEST
        && reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && reason.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reason_keeps_what_a_condition_takes() {
        for reason in ["JobFinished", "a", "A_", "Pods:3,Nodes:2"] {
            assert_eq!(for_condition(reason), reason);
        }
        for (reason, taken) in [
            ("", "Unknown"),
            ("123", "Unknown"),
            ("é", "Unknown"),
            ("job finished!", "jobfinished"),
            ("9Lives", "Lives"),
            ("Why:", "Why"),
            ("a\nb", "ab"),
        ] {
            assert_eq!(for_condition(reason), taken, "{reason:?}");
        }
        assert_eq!(for_condition(&"x".repeat(5000)).len(), LONGEST);
    }

    proptest! {
        #[test]
        fn every_text_becomes_a_reason(text in any::<String>()) {
            let taken = for_condition(&text).into_owned();
            prop_assert!(is_valid(&taken), "{taken:?}");
            prop_assert_eq!(for_condition(&taken), taken.as_str());
        }
    }
}
