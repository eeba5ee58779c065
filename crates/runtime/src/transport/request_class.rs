//! What a request says about its connection: a watch, a streamed answer, or neither.

/// An extension of a request for an answer that lasts as long as its reader, such as a log. It has a connection to itself, and
/// no limits of its length or its time other than those of the reader.
#[derive(Clone, Copy, Debug)]
pub struct StreamedAnswer;

/// Whether a request with this query is a watch.
#[must_use]
pub fn is_watch(query: &str) -> bool {
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_recognised_by_its_query() {
        assert!(is_watch("labelSelector=a&watch=true&timeoutSeconds=60"));
        assert!(!is_watch("labelSelector=watch%3Dtrue&limit=500"));
    }
}
