//! The part of a list that a query asks for.

use crds::go_parse;
use percent_encoding::percent_decode_str;

/// The number of Workloads without the parameter `limit`, or with 0.
const DEFAULT_LIMIT: i64 = 1000;

/// The most Workloads of an answer.
const MAX_LIMIT: i64 = 100_000;

/// Which Workloads of a list are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingPage {
    /// The position of the first one.
    pub offset: usize,
    /// The most that are returned.
    pub limit: usize,
}

/// A parameter is no number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidNumber(String);

impl PendingPage {
    /// Reads the parameters `offset` and `limit` of a query; others are ignored, and of a repeated one the first counts. A negative
    /// number counts as 0, a limit above 100,000 as that.
    ///
    /// # Errors
    /// If a parameter is no number of 64 bits.
    pub fn of_query(query: &str) -> Result<Self, InvalidNumber> {
        let (mut offset, mut limit) = (None, None);
        for (name, value) in query.split('&').filter_map(|part| part.split_once('=')) {
            match name {
                "offset" if offset.is_none() => offset = Some(number(value)?),
                "limit" if limit.is_none() => limit = Some(number(value)?),
                _ => {}
            }
        }
        // As upstream's defaults: a limit of 0 is one that was not set.
        let limit = limit.filter(|&limit| limit != 0).unwrap_or(DEFAULT_LIMIT);
        Ok(Self {
            offset: usize::try_from(offset.unwrap_or(0).max(0)).unwrap_or(usize::MAX),
            limit: usize::try_from(limit.clamp(0, MAX_LIMIT)).unwrap_or(0),
        })
    }
}

fn number(value: &str) -> Result<i64, InvalidNumber> {
    let text = percent_decode_str(value).decode_utf8_lossy();
    go_parse::integer_of_64_bits(&text).map_err(InvalidNumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_default_and_bounds() {
        for (query, offset, limit) in [
            ("", 0, 1000),
            ("limit=3", 0, 3),
            ("offset=7&limit=0", 7, 1000),
            ("offset=-2&limit=-1", 0, 0),
            ("limit=100001&timeout=5s&pretty", 0, 100_000),
            ("limit=1&limit=2&offset=%35", 5, 1),
        ] {
            assert_eq!(PendingPage::of_query(query), Ok(PendingPage { offset, limit }), "{query}");
        }
    }

    #[test]
    fn what_is_no_number_is_named_in_the_words_of_go() {
        for (query, message) in [
            ("limit=many", "strconv.ParseInt: parsing \"many\": invalid syntax"),
            ("offset=", "strconv.ParseInt: parsing \"\": invalid syntax"),
            (
                "limit=9223372036854775808",
                "strconv.ParseInt: parsing \"9223372036854775808\": value out of range",
            ),
        ] {
            let error = PendingPage::of_query(query).expect_err(query);
            assert_eq!(error.to_string(), message);
        }
    }
}
