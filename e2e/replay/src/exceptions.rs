//! Differences that we know of and keep, each with its reason: `exceptions.tsv`.

use std::sync::LazyLock;

use crate::compare::{Difference, Level};

/// Level, a text that the case's id or recorded message contains, and the reason.
const FILE: &str = include_str!("../exceptions.tsv");

struct Exception {
    level: Level,
    text: &'static str,
    reason: &'static str,
}

static EXCEPTIONS: LazyLock<Vec<Exception>> = LazyLock::new(|| {
    FILE.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .filter_map(parse)
        .collect()
});

fn parse(line: &'static str) -> Option<Exception> {
    let mut columns = line.split('\t');
    let level = match columns.next()? {
        "fields" => Level::Fields,
        "objects" => Level::Objects,
        "words" => Level::Words,
        _ => return None,
    };
    Some(Exception { level, text: columns.next()?, reason: columns.next()? })
}

/// The reason why a difference is expected. It must be no graver than the exception allows.
pub(crate) fn reason(id: &str, message: &str, difference: &Difference) -> Option<&'static str> {
    EXCEPTIONS
        .iter()
        .find(|exception| {
            difference.level >= exception.level
                && (id.contains(exception.text) || message.contains(exception.text))
        })
        .map(|exception| exception.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_file_is_an_exception_with_a_reason() {
        let lines = FILE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        assert_eq!(EXCEPTIONS.len(), lines);
        assert!(EXCEPTIONS.iter().all(|exception| exception.reason.len() > 20));
    }
}
