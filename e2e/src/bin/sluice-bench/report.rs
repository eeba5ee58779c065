//! The results as a table and as JSON, with their targets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::burst::Burst;
use crate::counters::{Counters, RequestKind};
use crate::quantiles::Quantiles;
use crate::sequence::Sequence;

/// Unloaded, from submission to admission, at the median.
const ADMITTED_WITHIN: Duration = Duration::from_millis(60);

/// Targets: object writes until admission, and of a whole Job with one worker (docs/reference/dispatch.md §10).
const WRITES: (f64, f64) = (7.0, 17.0);

/// Resident memory of an agent.
const AGENT_BYTES: u64 = 25 << 20;

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
pub(crate) struct BenchReport {
    /// Which build was measured.
    pub(crate) profile: String,
    pub(crate) unloaded: Sequence,
    pub(crate) burst: Burst,
    pub(crate) audited: Sequence,
    pub(crate) took: Duration,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a short run")]
fn per(count: u64, jobs: usize) -> f64 {
    count as f64 / jobs.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "less than a petabyte")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Sequence {
    /// Object writes of a whole Job, including its creation.
    fn writes(&self) -> f64 {
        1.0 + per(writes(&self.counters.requests), self.jobs)
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

fn writes(requests: &BTreeMap<RequestKind, u64>) -> u64 {
    let objects = requests.iter().filter(|(kind, _)| {
        let write = matches!(kind.verb.as_str(), "create" | "update" | "patch" | "delete");
        write && OBJECTS.contains(&kind.resource.as_str())
    });
    objects.map(|(_, count)| count).sum()
}

/// One figure that has a target.
struct TargetValue {
    what: &'static str,
    figure: String,
    target: String,
    met: bool,
}

impl BenchReport {
    fn aims(&self) -> Vec<TargetValue> {
        let millis = |duration: Duration| format!("{:.1} ms", duration.as_secs_f64() * 1e3);
        let (to_admission, life) = (self.audited.writes_to_admission(), self.audited.writes());
        let p50 = self.unloaded.admitted.p50;
        let agent = self.unloaded.agent.resident_bytes.max(self.burst.agent.resident_bytes);
        let gets = self.unloaded.gets() + self.audited.gets();
        let differ = self.audited.differences().len();
        let aim =
            |what, figure: String, target: String, met| TargetValue { what, figure, target, met };
        vec![
            aim(
                "submit to admitted, p50",
                millis(p50),
                millis(ADMITTED_WITHIN),
                p50 <= ADMITTED_WITHIN,
            ),
            aim(
                "writes to admitted",
                format!("{to_admission:.2}"),
                format!("{}", WRITES.0),
                to_admission <= WRITES.0,
            ),
            aim(
                "writes of a whole life",
                format!("{life:.2}"),
                format!("{}", WRITES.1),
                life <= WRITES.1,
            ),
            aim("GETs of Workloads and Jobs", gets.to_string(), "0".to_owned(), gets == 0),
            aim(
                "agent's resident memory",
                format!("{:.1} MiB", mebibytes(agent)),
                format!("{:.0} MiB", mebibytes(AGENT_BYTES)),
                agent <= AGENT_BYTES,
            ),
            aim("counts that audit logs deny", differ.to_string(), "0".to_owned(), differ == 0),
        ]
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let aims = self.aims();
        let aims = aims.iter().map(|aim| {
            let TargetValue { what, figure, target, met } = aim;
            json!({"what": what, "figure": figure, "target": target, "met": met})
        });
        let burst = &self.burst;
        json!({
            "profile": self.profile,
            "cpus": std::thread::available_parallelism().map_or(0, usize::from),
            "tookSeconds": self.took.as_secs_f64(),
            "targets": aims.collect::<Vec<_>>(),
            "unloaded": sequence(&self.unloaded),
            "audited": sequence(&self.audited),
            "burst": {
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
            },
        })
    }
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
        "requests": requests.collect::<serde_json::Map<_, _>>(),
        "writes": writes.collect::<serde_json::Map<_, _>>(),
    })
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unloaded, burst, audited) = (&self.unloaded, &self.burst, &self.audited);
        writeln!(f, "profile {}, {:.0} s in all\n", self.profile, self.took.as_secs_f64())?;
        writeln!(
            f,
            "{} Jobs one after the other, 2 workers         p50        p99",
            unloaded.jobs
        )?;
        quantiles(f, "submit to Admitted on the manager", unloaded.admitted)?;
        quantiles(f, "submit to unsuspended on the worker", unloaded.unsuspended)?;
        quantiles(f, "submit to a running pod reported on the manager", unloaded.pod_on_manager)?;
        quantiles(f, "complete on the worker to complete on the manager", unloaded.end_on_manager)?;
        writeln!(f, "\n{} Jobs at once, 2 workers, no pods made", burst.jobs)?;
        writeln!(f, "  {:.1} Jobs/s admitted, {:.1}/s submitted", burst.rate(), burst.offered())?;
        quantiles(f, "submit to Admitted on the manager", burst.admitted)?;
        quantiles(f, "submit to unsuspended on the worker", burst.unsuspended)?;
        usage(f, "manager", burst.manager_cpu_seconds, burst.manager.resident_bytes, burst.jobs)?;
        usage(
            f,
            "agents, largest",
            burst.agents_cpu_seconds,
            burst.agent.resident_bytes,
            burst.jobs,
        )?;
        writeln!(
            f,
            "\nrequests per Job over a whole life, 1 worker, by our counters and by audit logs"
        )?;
        requests(f, audited)?;
        writeln!(f, "\nwrites per Job by purpose")?;
        purposes(f, audited)?;
        writeln!(f)?;
        for TargetValue { what, figure, target, met } in self.aims() {
            let verdict = if met { "met" } else { "MISSED" };
            writeln!(f, "{what:<30} {figure:>12}   target {target:<9} {verdict}")?;
        }
        Ok(())
    }
}

fn quantiles(f: &mut fmt::Formatter<'_>, what: &str, figures: Quantiles) -> fmt::Result {
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    writeln!(f, "  {what:<50} {:>7.1} ms {:>7.1} ms", millis(figures.p50), millis(figures.p99))
}

fn usage(f: &mut fmt::Formatter<'_>, who: &str, cpu: f64, bytes: u64, jobs: usize) -> fmt::Result {
    let per_thousand = cpu * 1000.0 / per(jobs as u64, 1);
    let size = mebibytes(bytes);
    writeln!(
        f,
        "  {who}: {cpu:.2} s CPU ({per_thousand:.2} s per 1,000 Jobs), {size:.1} MiB resident"
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
