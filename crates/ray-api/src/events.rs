//! The query of a request for events: only events about objects of Ray are listed.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The parameter with the selector.
const FIELD_SELECTOR: &str = "fieldSelector";

/// What is added to the selector of the caller.
const OF_RAY: &str = "regarding.apiVersion=ray.io/v1";

/// Characters of a value that are encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The query with the selector of events about Ray. Of several selectors the first one counts, as for the API server; the others are
/// left out.
#[must_use]
pub fn with_ray_events(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let (selectors, mut others): (Vec<&str>, Vec<&str>) =
        pairs.partition(|pair| text(key(pair)) == FIELD_SELECTOR);
    let given = selectors.first().and_then(|pair| pair.split_once('=')).map(|(_, value)| value);
    let selector = match given.map(text).filter(|selector| !selector.is_empty()) {
        Some(selector) => format!("{selector},{OF_RAY}"),
        None => OF_RAY.to_owned(),
    };
    let selector = format!("{FIELD_SELECTOR}={}", utf8_percent_encode(&selector, ENCODED));
    others.push(&selector);
    others.join("&")
}

fn key(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key)
}

fn text(encoded: &str) -> String {
    percent_decode_str(&encoded.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selector_is_added_to_that_of_the_caller() {
        let of_ray = "regarding.apiVersion%3Dray.io%2Fv1";
        for (query, expected) in [
            ("", format!("fieldSelector={of_ray}")),
            ("limit=5&watch=true", format!("limit=5&watch=true&fieldSelector={of_ray}")),
            (
                "fieldSelector=regarding.name%3Dtrain&limit=5",
                format!("limit=5&fieldSelector=regarding.name%3Dtrain%2C{of_ray}"),
            ),
            ("fieldSelector=", format!("fieldSelector={of_ray}")),
            ("fieldSelector", format!("fieldSelector={of_ray}")),
            ("field%53elector=a&fieldSelector=b", format!("fieldSelector=a%2C{of_ray}")),
        ] {
            assert_eq!(with_ray_events(query), expected, "{query}");
        }
    }
}
