//! The results as a table and as JSON, with their targets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::burst::Burst;
use super::sequence::Sequence;
use crate::counters::{Counters, RequestKind};
use crate::figures::{Figure, mebibytes, per};
use crate::quantiles::Quantiles;

/// Kinds whose writes count for a Job. Queue status, capacity, leases and events are counted separately.
const OBJECTS: &[&str] = &["workloads", "workloads/status", "jobs", "jobs/status"];

/// Writes after admission.
const AFTER_ADMISSION: &[&str] = &[
    "start",
    "sync-status",
    "idle",
    "finish",
    "unfinalize",
    "clone-delete",
    "job-delete",
    "reclaim",
    "pods-ready",
];

/// All that was measured.
pub(super) struct DispatchReport {
    pub(super) unloaded: Sequence,
    pub(super) bursts: Vec<Burst>,
    pub(super) audited: Sequence,
    /// Seconds, if measured.
    pub(super) failover: Option<f64>,
}

impl Sequence {
    /// Object writes of a whole Job, including its creation.
    fn writes(&self) -> f64 {
        let writes = self.counters.writes_of(|resource| OBJECTS.contains(&resource));
        1.0 + per(writes, self.jobs)
    }

    /// Object writes up to admission.
    fn writes_to_admission(&self) -> f64 {
        let counted = self.counters.writes.iter().filter(|(kind, _)| {
            let purpose = kind.purpose.as_str();
            !AFTER_ADMISSION.contains(&purpose) && !is_apart(purpose)
        });
        1.0 + per(counted.map(|(_, count)| count).sum(), self.jobs)
    }

    fn gets(&self) -> u64 {
        let gets =
            self.counters.requests.iter().filter(|(kind, _)| {
                kind.verb == "get" && OBJECTS.contains(&kind.resource.as_str())
            });
        gets.map(|(_, count)| count).sum()
    }

    /// Differences between metrics and audit logs, metrics first.
    fn differences(&self) -> Vec<(RequestKind, u64, u64)> {
        let Some(audit) = &self.audit else {
            return Vec::new();
        };
        let ours = &self.counters.requests;
        let of = |counts: &BTreeMap<RequestKind, u64>, kind| {
            counts.get(kind).copied().unwrap_or_default()
        };
        let kinds: BTreeSet<&RequestKind> = ours.keys().chain(audit.keys()).collect();
        let compared = kinds.into_iter().filter(|kind| {
            let objects = OBJECTS.contains(&kind.resource.as_str()) || kind.resource == "events";
            objects && !matches!(kind.verb.as_str(), "list" | "watch")
        });
        let counted = compared.map(|kind| (kind.clone(), of(ours, kind), of(audit, kind)));
        counted.filter(|(_, ours, audit)| ours != audit).collect()
    }
}

/// Writes of queues, reports and events.
fn is_apart(purpose: &str) -> bool {
    ["queue-status", "capacity", "report", "event", "cluster-status", "check-status", "labels"]
        .iter()
        .any(|word| purpose.contains(word))
}

impl DispatchReport {
    /// The figures that have targets (docs/reference/performance.md).
    pub(super) fn figures(&self) -> Vec<Figure> {
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        let admitted = self.unloaded.admitted;
        let mut figures = vec![
            Figure::at_most("admitted_p50_ms", millis(admitted.p50), 60.0, 30.0),
            Figure::at_most("admitted_p99_ms", millis(admitted.p99), 120.0, 60.0),
            Figure::at_most("writes_to_admitted", self.audited.writes_to_admission(), 8.0, 7.0),
            Figure::at_most("writes_life", self.audited.writes(), 18.0, 17.0),
            Figure::at_most("gets", per(self.gets(), 1), 0.0, 0.0),
        ];
        for burst in &self.bursts {
            let key = format!("burst_w{}", burst.workers);
            figures.push(match burst.workers {
                3 => Figure::at_least(&key, burst.rate(), 50.0, 65.0),
                6 => Figure::at_least(&key, burst.rate(), 45.0, 60.0),
                _ => Figure::plain(&key, burst.rate()),
            });
        }
        if let Some(burst) = self.bursts.first() {
            let thousand = |cpu: f64| cpu * 1000.0 / per(burst.jobs as u64, 1);
            let (manager, agents) = (burst.manager_cpu_seconds, burst.agents_cpu_seconds);
            figures.push(Figure::at_most("cpu_s_per_1000", thousand(manager), 2.0, 1.0));
            figures.push(Figure::at_most("agent_cpu_s_per_1000", thousand(agents), 0.8, 0.5));
        }
        figures.extend(self.failover.map(|s| Figure::at_most("failover_s", s, 30.0, 18.0)));
        figures.push(Figure::at_most("agent_rss_mb", mebibytes(self.agent_bytes()), 25.0, 15.0));
        let denied = self.audited.differences().len() as u64;
        figures.push(Figure::at_most("counts_that_audit_logs_deny", per(denied, 1), 0.0, 0.0));
        figures
    }

    fn gets(&self) -> u64 {
        self.unloaded.gets() + self.audited.gets()
    }

    fn agent_bytes(&self) -> u64 {
        let bursts = self.bursts.iter().map(|burst| burst.agent.resident_bytes);
        bursts.chain([self.unloaded.agent.resident_bytes]).max().unwrap_or_default()
    }

    /// All that was measured.
    pub(super) fn details(&self) -> Map<String, Value> {
        let bursts: Vec<Value> = self.bursts.iter().map(burst_details).collect();
        [
            ("unloaded", sequence(&self.unloaded)),
            ("audited", sequence(&self.audited)),
            ("bursts", json!(bursts)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
    }
}

fn burst_details(burst: &Burst) -> Value {
    json!({
        "workers": burst.workers,
        "jobs": burst.jobs,
        "podsMade": false,
        "jobsPerSecond": burst.rate(),
        "submittedPerSecond": burst.offered(),
        "admitted": burst.admitted.to_json(),
        "unsuspended": burst.unsuspended.to_json(),
        "managerCpuSeconds": burst.manager_cpu_seconds,
        "agentsCpuSeconds": burst.agents_cpu_seconds,
        "managerResidentBytes": burst.manager.resident_bytes,
        "agentResidentBytes": burst.agent.resident_bytes,
        "counters": counters(&burst.counters),
    })
}

fn sequence(one: &Sequence) -> Value {
    let differences = one.differences();
    let differences = differences
        .iter()
        .map(|(kind, ours, audit)| json!({"request": words(kind), "ours": ours, "audit": audit}));
    json!({
        "jobs": one.jobs,
        "admitted": one.admitted.to_json(),
        "unsuspended": one.unsuspended.to_json(),
        "statusBack": one.pod_on_manager.to_json(),
        "endTold": one.end_on_manager.to_json(),
        "writesToAdmission": one.writes_to_admission(),
        "writes": one.writes(),
        "gets": one.gets(),
        "managerCpuSeconds": one.manager_cpu_seconds,
        "agentsCpuSeconds": one.agents_cpu_seconds,
        "managerResidentBytes": one.manager.resident_bytes,
        "agentResidentBytes": one.agent.resident_bytes,
        "auditDiffers": differences.collect::<Vec<_>>(),
        "counters": counters(&one.counters),
    })
}

fn words(kind: &RequestKind) -> String {
    format!("{} on {}: {} {}", kind.writer, kind.cluster, kind.verb, kind.resource)
}

fn counters(counters: &Counters) -> Value {
    let requests = counters.requests.iter().map(|(kind, count)| (words(kind), json!(count)));
    let writes = counters.writes.iter().map(|(kind, count)| {
        let name =
            format!("{} on {}: {} ({})", kind.writer, kind.cluster, kind.purpose, kind.answer);
        (name, json!(count))
    });
    json!({
        "requests": requests.collect::<Map<_, _>>(),
        "writes": writes.collect::<Map<_, _>>(),
    })
}

impl fmt::Display for DispatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unloaded, audited) = (&self.unloaded, &self.audited);
        writeln!(
            f,
            "{} Jobs one after the other, 3 workers         p50        p99",
            unloaded.jobs
        )?;
        quantiles(f, "submit to Admitted on the manager", unloaded.admitted)?;
        quantiles(f, "submit to unsuspended on the worker", unloaded.unsuspended)?;
        quantiles(f, "submit to a running pod reported on the manager", unloaded.pod_on_manager)?;
        quantiles(f, "complete on the worker to complete on the manager", unloaded.end_on_manager)?;
        self.bursts.iter().try_for_each(|burst| burst_table(f, burst))?;
        writeln!(
            f,
            "\nrequests per Job over a whole life, 1 worker, by our counters and by audit logs"
        )?;
        requests(f, audited)?;
        writeln!(f, "\nwrites per Job by purpose")?;
        purposes(f, audited)
    }
}

fn burst_table(f: &mut fmt::Formatter<'_>, burst: &Burst) -> fmt::Result {
    writeln!(f, "\n{} Jobs at once, {} workers, no pods made", burst.jobs, burst.workers)?;
    writeln!(f, "  {:.1} Jobs/s admitted, {:.1}/s submitted", burst.rate(), burst.offered())?;
    quantiles(f, "submit to Admitted on the manager", burst.admitted)?;
    quantiles(f, "submit to unsuspended on the worker", burst.unsuspended)?;
    usage(f, "manager", burst.manager_cpu_seconds, burst.manager.resident_bytes, burst.jobs)?;
    let (cpu, bytes) = (burst.agents_cpu_seconds, burst.agent.resident_bytes);
    usage(f, "agents, largest", cpu, bytes, burst.jobs)
}

fn quantiles(f: &mut fmt::Formatter<'_>, what: &str, figures: Quantiles) -> fmt::Result {
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    writeln!(f, "  {what:<50} {:>7.1} ms {:>7.1} ms", millis(figures.p50), millis(figures.p99))
}

fn usage(
    f: &mut fmt::Formatter<'_>,
    program: &str,
    cpu: f64,
    bytes: u64,
    jobs: usize,
) -> fmt::Result {
    let per_thousand = cpu * 1000.0 / per(jobs as u64, 1);
    let size = mebibytes(bytes);
    writeln!(
        f,
        "  {program}: {cpu:.2} s CPU ({per_thousand:.2} s per 1,000 Jobs), {size:.1} MiB resident"
    )
}

fn requests(f: &mut fmt::Formatter<'_>, one: &Sequence) -> fmt::Result {
    let audit = one.audit.clone().unwrap_or_default();
    for (kind, count) in &one.counters.requests {
        let ours = per(*count, one.jobs);
        let known = audit.get(kind).map(|count| format!("{:.2}", per(*count, one.jobs)));
        let known = known.unwrap_or_else(|| "-".to_owned());
        writeln!(f, "  {:<58} {ours:>6.2} {known:>6}", words(kind))?;
    }
    for (kind, ours, audit) in one.differences() {
        writeln!(f, "  DIFFERS {}: ours {ours}, audit {audit}", words(&kind))?;
    }
    Ok(())
}

fn purposes(f: &mut fmt::Formatter<'_>, one: &Sequence) -> fmt::Result {
    for (kind, count) in &one.counters.writes {
        let name = format!("{} on {}: {}", kind.writer, kind.cluster, kind.purpose);
        writeln!(f, "  {name:<50} {:<8} {:>6.2}", kind.answer, per(*count, one.jobs))?;
    }
    Ok(())
}
