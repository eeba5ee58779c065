//! The text of an error with its causes.
//!
//! Some libraries include the cause in their own text, others do not; each cause appears once.

use std::error::Error;

/// The text of an error and of its causes, without those that it already contains.
#[must_use]
pub fn describe(error: &(dyn Error + 'static)) -> String {
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
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failure {
        text: &'static str,
        #[source]
        cause: Option<Box<Self>>,
    }

    fn failure(text: &'static str, cause: Option<Failure>) -> Failure {
        Failure { text, cause: cause.map(Box::new) }
    }

    #[test]
    fn a_cause_appears_once() {
        let error = failure("cannot read x: no file", Some(failure("no file", None)));
        let error = failure("starting", Some(error));
        assert_eq!(describe(&error), "starting: cannot read x: no file");
    }
}
