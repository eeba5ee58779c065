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
        self
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
}
