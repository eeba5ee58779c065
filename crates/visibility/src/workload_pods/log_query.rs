//! The query of a request for a log, and the request that it becomes.

use std::fmt::Write;

use percent_encoding::percent_decode_str;

use super::{PodsRefusal, call::is_name};

/// Parameters that clients add to any request.
const OF_CLIENTS: &[&str] = &["timeout", "pretty"];

/// Which log is wanted, and how much of it. The parameters are those of Kubernetes' `pods/log`, and the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The pod. A Workload with one pod needs none.
    pub pod: Option<String>,
    /// The container. A pod with one container needs none.
    pub container: Option<String>,
    /// The log is read on as it grows.
    pub follow: bool,
    /// The log of the container before its last start.
    pub previous: bool,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// The last lines only.
    pub tail_lines: Option<u64>,
    /// Lines of the last seconds only.
    pub since_seconds: Option<u64>,
    /// The log ends after so many bytes.
    pub limit_bytes: Option<u64>,
}

impl LogQuery {
    /// Reads a query. Of a repeated parameter the first counts, as for an API server. An unknown one is an error: a log that was not
    /// restricted as it should be would look like one that was.
    ///
    /// # Errors
    /// If a parameter is unknown or invalid.
    pub fn of(query: &str) -> Result<Self, PodsRefusal> {
        let mut this = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decoded(name), decoded(value));
            if !seen.contains(&name) {
                this.set(&name, &value)?;
                seen.push(name);
            }
        }
        Ok(this)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), PodsRefusal> {
        match name {
            "pod" => self.pod = Some(checked_name(name, value)?),
            "container" => self.container = Some(checked_name(name, value)?),
            "follow" => self.follow = is_true(value),
            "previous" => self.previous = is_true(value),
            "timestamps" => self.timestamps = is_true(value),
            "tailLines" => self.tail_lines = Some(number(name, value, 0)?),
            "sinceSeconds" => self.since_seconds = Some(number(name, value, 1)?),
            "limitBytes" => self.limit_bytes = Some(number(name, value, 1)?),
            other if OF_CLIENTS.contains(&other) => {}
            other => return Err(PodsRefusal::Query(format!("unknown parameter {other:?}"))),
        }
        Ok(())
    }

    /// Path and query of the request to the cluster with the pod.
    #[must_use]
    pub fn target(&self, namespace: &str, pod: &str) -> String {
        let mut target = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?");
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Names and numbers need no escapes.
                let _ = write!(target, "{name}={value}&");
            }
        };
        let flag = |is_set: bool| is_set.then(|| "true".to_owned());
        let count = |count: Option<u64>| count.map(|count| count.to_string());
        add("container", self.container.clone());
        add("follow", flag(self.follow));
        add("previous", flag(self.previous));
        add("timestamps", flag(self.timestamps));
        add("tailLines", count(self.tail_lines));
        add("sinceSeconds", count(self.since_seconds));
        add("limitBytes", count(self.limit_bytes));
        target.pop();
        target
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// As for an API server, all but `false` and `0` mean true.
fn is_true(value: &str) -> bool {
    !["false", "0"].contains(&&*value.to_ascii_lowercase())
}

fn checked_name(parameter: &str, value: &str) -> Result<String, PodsRefusal> {
    if is_name(value) {
        Ok(value.to_owned())
    } else {
        Err(PodsRefusal::Query(format!("{parameter} is no name: {value:?}")))
    }
}

fn number(parameter: &str, value: &str, least: u64) -> Result<u64, PodsRefusal> {
    // Upstream's numbers have 64 bits with a sign.
    let read = value.parse().ok().filter(|&number| i64::try_from(number).is_ok());
    read.filter(|&number| number >= least).ok_or_else(|| {
        PodsRefusal::Query(format!("{parameter} is no number from {least}: {value:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_becomes_one_of_the_pod() {
        let base = "/api/v1/namespaces/ml/pods/train-0/log";
        for (query, expected) in [
            ("", String::new()),
            ("pod=train-0&timeout=10s", String::new()),
            ("container=main&follow", "?container=main&follow=true".to_owned()),
            ("follow=false&previous=0&timestamps=no", "?timestamps=true".to_owned()),
            ("tailLines=0&tailLines=5", "?tailLines=0".to_owned()),
            ("since%53econds=60&limitBytes=1", "?sinceSeconds=60&limitBytes=1".to_owned()),
        ] {
            let read = LogQuery::of(query).expect(query);
            assert_eq!(read.target("ml", "train-0"), format!("{base}{expected}"), "{query}");
        }
        assert_eq!(LogQuery::of("pod=a").expect("a pod").pod.as_deref(), Some("a"));
    }

    #[test]
    fn a_parameter_that_would_not_count_is_refused() {
        for (query, message) in [
            ("pod=../secrets/a", r#"pod is no name: "../secrets/a""#),
            ("pod=", r#"pod is no name: """#),
            ("container=a%26follow%3Dtrue", r#"container is no name: "a&follow=true""#),
            ("tailLines=-1", r#"tailLines is no number from 0: "-1""#),
            ("tailLines=9223372036854775808", "tailLines is no number from 0"),
            ("sinceSeconds=0", r#"sinceSeconds is no number from 1: "0""#),
            ("limitBytes=1.5", r#"limitBytes is no number from 1: "1.5""#),
            ("sinceTime=2026-01-01T00:00:00Z", r#"unknown parameter "sinceTime""#),
            ("insecureSkipTLSVerifyBackend=true", "unknown parameter"),
        ] {
            let refusal = LogQuery::of(query).expect_err(query);
            assert!(refusal.to_string().contains(message), "{refusal}");
            assert_eq!(refusal.code(), 400);
        }
    }
}
