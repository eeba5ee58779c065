//! Counts requests about the benchmark's namespace in the audit logs of the API servers.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use e2e::installation;
use harness::Cluster;
use serde_json::Value;

use crate::counters::RequestKind;
use crate::environment::{BenchEnvironment, NAME};

/// The end of each log; later lines are counted.
pub(crate) struct LogPositions(Vec<usize>);

impl LogPositions {
    pub(crate) fn set(field: &BenchEnvironment<'_>) -> Result<Self> {
        let lengths = field.clusters().map(|cluster| Ok(read(cluster)?.len()));
        Ok(Self(lengths.collect::<Result<_>>()?))
    }

    /// Requests of our programs since then.
    pub(crate) fn since(&self, field: &BenchEnvironment<'_>) -> Result<BTreeMap<RequestKind, u64>> {
        let mut counts = BTreeMap::new();
        for (cluster, begin) in field.clusters().zip(&self.0) {
            let text = read(cluster)?;
            for line in text.get(*begin..).unwrap_or_default().lines() {
                // The last line may be incomplete; its request is not part of the measurement.
                let Ok(entry) = serde_json::from_str::<Value>(line) else {
                    continue;
                };
                if let Some(kind) = kind(cluster.name(), &entry) {
                    *counts.entry(kind).or_default() += 1;
                }
            }
        }
        Ok(counts)
    }
}

fn read(cluster: &Cluster) -> Result<String> {
    let path = cluster.state().audit_log();
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

fn kind(cluster: &str, entry: &Value) -> Option<RequestKind> {
    let object = &entry["objectRef"];
    if object["namespace"] != NAME {
        return None;
    }
    let account = format!("system:serviceaccount:{}:", installation::NAMESPACE);
    let writer = match entry["user"]["username"].as_str()?.strip_prefix(&account)? {
        "sluice-agent" => "agent",
        "sluice-manager" | "sluice-hub" => "manager",
        _ => return None,
    };
    let resource = object["resource"].as_str()?;
    let resource = match object["subresource"].as_str() {
        Some(part) => format!("{resource}/{part}"),
        None => resource.to_owned(),
    };
    let verb = entry["verb"].as_str()?.to_owned();
    Some(RequestKind { cluster: cluster.to_owned(), writer, verb, resource })
}
