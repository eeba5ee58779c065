//! An error with its causes, each told once.
//!
//! Some libraries print their cause as part of their own text, others do not.

use std::error::Error;

/// The text of an error and of those causes that it does not contain.
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let error = anyhow!("no file").context("cannot read x: no file").context("starting");
        assert_eq!(describe(error.as_ref()), "starting: cannot read x: no file");
    }
}
