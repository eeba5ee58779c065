//! The metrics of managers and agents.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::environment::BenchEnvironment;

/// Requests of one kind: client, cluster, verb and resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestKind {
    pub(crate) cluster: String,
    pub(crate) writer: &'static str,
    pub(crate) verb: String,
    pub(crate) resource: String,
}

/// Writes of one purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WritePurpose {
    pub(crate) cluster: String,
    pub(crate) writer: &'static str,
    pub(crate) purpose: String,
    pub(crate) answer: String,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: BTreeMap<RequestKind, u64>,
    pub(crate) writes: BTreeMap<WritePurpose, u64>,
    /// Decisions of the manager that took at most so many microseconds.
    decisions: BTreeMap<u64, u64>,
}

/// The bound of a bucket in microseconds; the largest one for the bucket without a bound.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
fn micros(bound: &str) -> u64 {
    bound.parse::<f64>().map_or(u64::MAX, |seconds| (seconds * 1e6) as u64)
}

impl Counters {
    /// Reads the current values.
    pub(crate) async fn read(field: &BenchEnvironment<'_>) -> Result<Self> {
        let mut counters = Self::default();
        counters.enter(&field.manager.scrape().await?, "manager", "manager");
        for (worker, agent) in field.installation.workers.iter().zip(&field.agents) {
            counters.enter(&agent.scrape().await?, "agent", worker.name());
        }
        Ok(counters)
    }

    /// What was counted since `before`.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        subtract(&mut self.requests, &before.requests);
        subtract(&mut self.writes, &before.writes);
        subtract(&mut self.decisions, &before.decisions);
        self
    }

    /// The bound of the bucket of the longest decision, in milliseconds; 0 without decisions.
    pub(crate) fn longest_decision_ms(&self) -> u64 {
        // Buckets count all decisions up to their bound.
        let all = self.decisions.values().max();
        let longest = self.decisions.iter().find(|(_, count)| Some(*count) == all);
        longest.map_or(0, |(bound, _)| bound / 1000)
    }

    /// Writes of these resources.
    pub(crate) fn writes_of(&self, of: impl Fn(&str) -> bool) -> u64 {
        let writes = self.requests.iter().filter(|(kind, _)| {
            let verb = matches!(kind.verb.as_str(), "create" | "update" | "patch" | "delete");
            verb && of(&kind.resource)
        });
        writes.map(|(_, count)| count).sum()
    }

    fn enter(&mut self, text: &str, writer: &'static str, home: &str) {
        let place = |name: &str| if name == "home" { home.to_owned() } else { name.to_owned() };
        for line in text.lines() {
            let Some((metric, labels, count)) = sample(line) else {
                continue;
            };
            let label =
                |name: &str| labels.get(name).map(|one| (*one).to_owned()).unwrap_or_default();
            let cluster = place(&label("cluster"));
            if metric == "sluice_requests_total" {
                let (verb, resource) = (label("verb"), label("resource"));
                self.requests.insert(RequestKind { cluster, writer, verb, resource }, count);
            } else if metric == "sluice_writes_total" {
                let (purpose, answer) = (label("purpose"), label("answer"));
                self.writes.insert(WritePurpose { cluster, writer, purpose, answer }, count);
            } else if metric == "sluice_decision_duration_seconds_bucket" && writer == "manager" {
                self.decisions.insert(micros(&label("le")), count);
            }
        }
    }
}

fn subtract<K: Ord>(counts: &mut BTreeMap<K, u64>, before: &BTreeMap<K, u64>) {
    for (kind, count) in counts.iter_mut() {
        *count -= before.get(kind).copied().unwrap_or_default();
    }
    counts.retain(|_, count| *count > 0);
}

/// One line of the text format: metric, labels, value. Labels contain no quotes.
fn sample(line: &str) -> Option<(&str, BTreeMap<&str, &str>, u64)> {
    let (metric, rest) = line.split_once('{')?;
    let (labels, count) = rest.rsplit_once("} ")?;
    let labels = labels.split("\",").filter_map(|pair| {
        let (name, value) = pair.split_once("=\"")?;
        Some((name, value.trim_end_matches('"')))
    });
    Some((metric, labels.collect(), count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_parsed() {
        let line =
            r#"sluice_requests_total{cluster="home",verb="patch",resource="jobs/status"} 12"#;
        let (metric, labels, count) = sample(line).expect("a sample");
        assert_eq!((metric, count), ("sluice_requests_total", 12));
        assert_eq!(labels["resource"], "jobs/status");
        assert_eq!(labels["cluster"], "home");
        assert!(sample("# HELP sluice_requests Requests").is_none());
    }

    #[test]
    fn the_longest_decision_is_that_of_the_highest_bucket_which_grew() {
        let read = |counts: [u64; 3]| {
            let mut counters = Counters::default();
            let lines = ["0.001", "0.002", "+Inf"].iter().zip(counts).map(|(bound, count)| {
                format!("sluice_decision_duration_seconds_bucket{{le=\"{bound}\"}} {count}\n")
            });
            counters.enter(&lines.collect::<String>(), "manager", "manager");
            counters
        };
        let before = read([5, 7, 8]);
        assert_eq!(read([6, 8, 9]).since(&before).longest_decision_ms(), 1);
        assert_eq!(read([6, 9, 10]).since(&before).longest_decision_ms(), 2);
        assert_eq!(read([6, 9, 11]).since(&before).longest_decision_ms(), u64::MAX / 1000);
        assert_eq!(before.clone().since(&before).longest_decision_ms(), 0);
    }
}
