//! The reasons per cluster in a message of the manager: `…: east: REASON; west: REASON; and 3 more`.

use serde::Serialize;

/// Why one worker does not take the Workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterReason {
    /// The worker.
    pub cluster: String,
    /// The reason.
    pub reason: String,
}

/// Reads the reasons of these clusters. A reason may contain the separators, so it ends where the name of a known cluster
/// follows, or at the count of clusters that the message leaves out.
pub(super) fn read(message: &str, clusters: &[String]) -> Vec<ClusterReason> {
    let starts_at = |at: usize| {
        let rest = message.get(at..).unwrap_or_default();
        let named = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(": "))
        };
        // Of two names that begin alike only one is followed by the colon.
        clusters.iter().find(named).map(|name| (at, name))
    };
    let first = message.match_indices(": ").map(|(at, text)| at + text.len());
    let others = message.match_indices("; ").map(|(at, text)| at + text.len());
    let Some(first) = first.filter_map(starts_at).next() else {
        return Vec::new();
    };
    let others = others.filter(|at| *at > first.0).filter_map(starts_at);
    let starts: Vec<(usize, &String)> = std::iter::once(first).chain(others).collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([message.len()]);
    let reasons = starts.iter().zip(ends).map(|((at, name), end)| {
        let reason = message.get(at + name.len() + 2..end).unwrap_or_default();
        ClusterReason { cluster: (*name).clone(), reason: without_rest(reason).to_owned() }
    });
    reasons.collect()
}

/// Without the separator, and without `and N more`.
fn without_rest(reason: &str) -> &str {
    let reason = reason.trim_end_matches("; ");
    match reason.rsplit_once("; and ") {
        Some((before, rest)) if is_count(rest) => before,
        _ => reason,
    }
}

fn is_count(rest: &str) -> bool {
    rest.strip_suffix(" more").is_some_and(|count| count.parse::<usize>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(message: &str, clusters: &[&str]) -> Vec<(String, String)> {
        let clusters: Vec<String> = clusters.iter().map(|name| (*name).to_owned()).collect();
        read(message, &clusters).into_iter().map(|one| (one.cluster, one.reason)).collect()
    }

    #[test]
    fn a_reason_ends_where_the_next_cluster_begins() {
        let message = "no cluster has room: east: left out for now: a; b: c; west: not connected";
        let expected = [("east", "left out for now: a; b: c"), ("west", "not connected")];
        let expected = expected.map(|(cluster, reason)| (cluster.to_owned(), reason.to_owned()));
        assert_eq!(reasons(message, &["west", "east", "eas"]), expected);
    }

    #[test]
    fn clusters_that_the_message_leaves_out_are_no_reason() {
        let message = "no cluster has room: a: is being drained; and 12 more";
        assert_eq!(reasons(message, &["a"]), [("a".to_owned(), "is being drained".to_owned())]);
    }

    #[test]
    fn a_message_about_something_else_has_no_reasons() {
        assert!(reasons("insufficient unused quota: cpu", &["east"]).is_empty());
        assert!(reasons("", &["east"]).is_empty());
        assert!(reasons("größe: x; y", &["x"]).is_empty());
    }
}
