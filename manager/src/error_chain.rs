//! The text of an error with its causes.
//!
//! Some libraries include the cause in their own text, others do not; each cause appears once.

use std::error::Error;

/// The text of an error and of its causes, without those that it already contains.
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
    fn a_cause_appears_once() {
        let error = anyhow!("no file").context("cannot read x: no file").context("starting");
        assert_eq!(describe(error.as_ref()), "starting: cannot read x: no file");
    }
}
