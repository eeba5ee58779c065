//! Recorded decisions of Kueue's scheduler, played through API objects.
//!
//! Objects enter through the index; every decision is applied to the objects by the functions of `status`, and only
//! the objects enter again. The decisions must equal those of the engine with direct events. Cases with nodes or
//! other than default gates are in the engine's tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use crds::names::reasons;
use crds::v1beta2::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload, WorkloadStatus};
use engine::{AcceptAll, CycleEntry, CycleOutcome, Engine, Event, FairStrategy, Time, explain};
use flate2::read::GzDecoder;
use index::status::{self, Eviction, QuotaReservation, StatusStamp};
use index::{Index, IndexConfig};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

/// A family, the number of its cases played, and the number of those that are open in the engine's tests too.
const FAMILIES: [(&str, usize, usize); 7] = [
    ("quota", 360, 0),
    ("fungibility", 360, 0),
    ("preemption", 360, 0),
    ("partial", 360, 0),
    ("fair", 360, 0),
    ("events", 337, 0),
    ("edge", 359, 0),
];

#[test]
fn decisions_through_objects_equal_those_of_kueue() -> Result<()> {
    for (family, cases_of_it, open) in FAMILIES {
        let (mut played, mut failed) = (0, Vec::new());
        for case in cases(family)?.iter().filter(|case| is_plain(case)) {
            played += 1;
            if let Some(difference) = OraclePlayer::new(case)?.play()? {
                failed.push(format!("{}: {difference}", case["id"]));
            }
        }
        assert_eq!(played, cases_of_it, "cases of {family}");
        assert_eq!(failed.len(), open, "{family} differs\n{}", failed.join("\n"));
    }
    Ok(())
}

fn cases(family: &str) -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/oracle");
    let file = File::open(folder.join(format!("{family}.jsonl.gz"))).context(family.to_owned())?;
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

fn is_plain(case: &Value) -> bool {
    let gates = case["config"]["featureGates"].as_object();
    gates.is_none_or(|gates| gates.keys().all(|gate| gate.starts_with("Unadmitted")))
}

fn list<'a>(case: &'a Value, field: &str) -> &'a [Value] {
    case[field].as_array().map_or(&[], Vec::as_slice)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn read<T: DeserializeOwned>(object: &Value) -> Result<T> {
    serde_json::from_value(object.clone()).with_context(|| object.to_string())
}

struct OraclePlayer<'a> {
    case: &'a Value,
    index: Index,
    engine: Engine,
    workloads: BTreeMap<String, Workload>,
    queues: BTreeMap<String, ClusterQueue>,
    /// Evicted Workloads, and the step in which their pods are gone.
    stopping: BTreeMap<String, u64>,
    step: u64,
}

impl<'a> OraclePlayer<'a> {
    fn new(case: &'a Value) -> Result<Self> {
        let fair = case["config"]["fairSharing"].as_object().map(|fair| {
            let names = fair.get("preemptionStrategies").and_then(Value::as_array);
            let known = names.into_iter().flatten().map(|name| match name.as_str() {
                Some("LessThanInitialShare") => FairStrategy::LessThanInitialShare,
                _ => FairStrategy::LessThanOrEqualToFinalShare,
            });
            let known: Vec<_> = known.collect();
            if !known.is_empty() {
                return known;
            }
            vec![FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare]
        });
        let settings =
            engine::EngineSettings { fair_sharing: fair, ..engine::EngineSettings::default() };
        let mut player = Self {
            case,
            index: Index::new(IndexConfig::default()),
            engine: Engine::new(settings),
            workloads: BTreeMap::new(),
            queues: BTreeMap::new(),
            stopping: BTreeMap::new(),
            step: 0,
        };
        player.load()?;
        Ok(player)
    }

    fn load(&mut self) -> Result<()> {
        let case = self.case;
        let (index, names) = (&mut self.index, self.engine.names_mut());
        let mut events = Vec::new();
        for one in list(case, "namespaces") {
            let labels: BTreeMap<String, String> =
                read(one["metadata"].get("labels").unwrap_or(&json!({})))?;
            events.extend(index.namespace(names, name(one), Some(&labels)));
        }
        for one in list(case, "resourceFlavors") {
            let flavor: ResourceFlavor = read(one)?;
            events.extend(index.resource_flavor(names, name(one), Some(&flavor)));
        }
        for one in list(case, "cohorts") {
            let cohort: Cohort = read(one)?;
            events.extend(index.cohort(names, name(one), Some(&cohort)));
        }
        self.apply(events);
        for one in list(case, "clusterQueues") {
            self.queue(one)?;
        }
        for one in list(case, "localQueues") {
            let queue: LocalQueue = read(one)?;
            let namespace = one["metadata"]["namespace"].as_str().unwrap_or_default();
            let names = self.engine.names_mut();
            let events = self.index.local_queue(names, namespace, name(one), Some(&queue));
            self.apply(events);
        }
        for one in list(case, "workloads") {
            self.create(one)?;
        }
        Ok(())
    }

    /// Plays all steps; returns the first difference.
    fn play(mut self) -> Result<Option<String>> {
        let (case, expect) = (self.case, &self.case["expect"]);
        for step in 0..expect["steps"].as_u64().unwrap_or_default() {
            self.step = step;
            self.release();
            for event in list(case, "events").iter().filter(|one| one["step"] == step) {
                self.change(event)?;
            }
            let found = self.cycle();
            let recorded = list(expect, "cycles").iter().find(|one| one["step"] == step);
            let heads = recorded.map_or(&[][..], |one| list(one, "heads"));
            let wanted: Vec<Value> = heads.iter().filter_map(effect).collect();
            if found != wanted {
                return Ok(Some(format!(
                    "step {step}\n  recorded {wanted:?}\n  found    {found:?}"
                )));
            }
        }
        Ok(self.difference_at_the_end())
    }

    fn at(&self) -> StatusStamp {
        let seconds = START + i64::try_from(self.step).unwrap_or_default();
        StatusStamp { now: Timestamp::from_second(seconds).unwrap_or_default(), generation: 1 }
    }

    fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            self.engine.apply(event);
        }
    }

    fn create(&mut self, object: &Value) -> Result<()> {
        self.workloads.insert(name(object).to_owned(), read(object)?);
        self.enter(name(object));
        Ok(())
    }

    fn enter(&mut self, name: &str) {
        let now = Time(self.at().now.as_second() * 1_000_000_000);
        if let Some(workload) = self.workloads.get(name) {
            let events = self.index.workload(self.engine.names_mut(), workload, now);
            self.apply(events);
        }
    }

    /// Applies a status as a write does, and enters the object.
    fn write(&mut self, name: &str, change: impl FnOnce(WorkloadStatus) -> WorkloadStatus) {
        if let Some(workload) = self.workloads.get_mut(name) {
            workload.status = change(std::mem::take(&mut workload.status));
        }
        self.enter(name);
    }

    fn queue(&mut self, object: &Value) -> Result<()> {
        let queue: ClusterQueue = read(object)?;
        let policy = queue.spec.stop_policy.clone().unwrap_or_default();
        let events = self.index.cluster_queue(self.engine.names_mut(), name(object), Some(&queue));
        self.apply(events);
        let old = self.queues.insert(name(object).to_owned(), queue);
        let old = old.and_then(|old| old.spec.stop_policy).unwrap_or_default();
        if policy == "HoldAndDrain" && old != policy {
            self.drain(name(object));
        } else if matches!(policy.as_str(), "" | "None") {
            self.restart(name(object));
        }
        Ok(())
    }

    fn drain(&mut self, queue: &str) {
        for name in self.holding(queue) {
            let at = self.at();
            let eviction =
                Eviction { reason: reasons::CLUSTER_QUEUE_STOPPED, cause: "", message: "" };
            if !self.is(&name, "Evicted", "True") {
                self.write(&name, |old| status::evicted(old, eviction, at));
                self.stop(&name);
            }
        }
    }

    fn restart(&mut self, queue: &str) {
        let drained = self.workloads.iter().filter(|(name, workload)| {
            let target = self.index.cluster_queue_of(
                workload.metadata.namespace.as_deref().unwrap_or_default(),
                &workload.spec.queue_name,
            );
            target == Some(queue) && self.is(name, "Requeued", "False")
        });
        let names: Vec<String> = drained.map(|(name, _)| name.clone()).collect();
        let at = self.at();
        for name in names {
            let reason = reasons::CLUSTER_QUEUE_RESTARTED;
            self.write(&name, |old| status::requeued(old, reason, at));
        }
    }

    fn is(&self, name: &str, kind: &str, value: &str) -> bool {
        let conditions = self.workloads.get(name).map(|one| &one.status.conditions);
        conditions.and_then(|all| status::find(all, kind)).is_some_and(|one| one.status == value)
    }

    fn stop(&mut self, name: &str) {
        let delay = self.case["config"]["releaseDelaySteps"].as_u64().unwrap_or_default();
        self.stopping.entry(name.to_owned()).or_insert(self.step + 1 + delay);
    }

    fn release(&mut self) {
        let due = self.stopping.iter().filter(|(_, step)| **step <= self.step);
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        let at = self.at();
        for name in due {
            self.stopping.remove(&name);
            self.write(&name, |old| status::quota_released(old, at));
        }
    }

    fn change(&mut self, event: &Value) -> Result<()> {
        let name = event["name"].as_str().unwrap_or_default();
        let at = self.at();
        match event["type"].as_str().unwrap_or_default() {
            "create" => return self.create(&event["workload"]),
            "update_clusterqueue" => return self.queue(&event["clusterQueue"]),
            "update_cohort" => {
                let cohort: Cohort = read(&event["cohort"])?;
                let key = self::name(&event["cohort"]).to_owned();
                let events = self.index.cohort(self.engine.names_mut(), &key, Some(&cohort));
                self.apply(events);
            }
            "finish" => {
                self.stopping.remove(name);
                self.write(name, |old| status::finished(old, reasons::SUCCEEDED, "", at));
                self.workloads.remove(name);
            }
            "delete" => {
                self.stopping.remove(name);
                if let Some(workload) = self.workloads.remove(name) {
                    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
                    let events = self.index.workload_gone(self.engine.names(), namespace, name);
                    self.apply(events);
                }
            }
            "set_priority" => {
                if let Some(workload) = self.workloads.get_mut(name) {
                    workload.spec.priority = Some(read(&event["priority"])?);
                }
                self.enter(name);
            }
            "reclaim" => {
                let gone = read(&event["reclaimablePods"])?;
                self.write(name, |mut old| {
                    old.reclaimable_pods = gone;
                    old
                });
            }
            other => anyhow::bail!("unknown event {other}"),
        }
        Ok(())
    }

    /// Runs a cycle, applies its decisions, and returns the heads with an effect.
    fn cycle(&mut self) -> Vec<Value> {
        let now = Time(self.at().now.as_second() * 1_000_000_000);
        let entries = self.engine.cycle(now, &mut AcceptAll).to_vec();
        let heads: Vec<Value> =
            entries.iter().filter_map(|entry| effect(&self.head(entry))).collect();
        let mut named: Vec<(String, CycleEntry)> =
            entries.into_iter().map(|entry| (self.name_of(entry.workload), entry)).collect();
        named.sort_by(|left, right| left.0.cmp(&right.0));
        for (name, entry) in &named {
            self.carry_out(name, entry);
        }
        heads
    }

    fn carry_out(&mut self, name: &str, entry: &CycleEntry) {
        let at = self.at();
        if matches!(entry.outcome, CycleOutcome::Reserved { .. }) {
            let admission = self.index.admission(&self.engine, entry);
            let reservation = QuotaReservation { admission, checks: &[], nominated: &[] };
            return self.write(name, |old| status::quota_reserved(old, reservation, at));
        }
        let reason = explain::condition_reason(entry);
        let message = explain::condition_message(&self.engine, entry);
        let requests = Vec::new();
        let cause = status::PendingCause { reason, message: &message, requests };
        self.write(name, |old| status::pending(old, cause, at));
        if entry.outcome == CycleOutcome::Preempting {
            for target in &entry.targets {
                let victim = self.name_of(target.workload);
                if !self.is(&victim, "Evicted", "True") {
                    self.write(&victim, |old| status::preempted(old, target.reason, "", at));
                }
                self.stop(&victim);
            }
        }
    }

    fn name_of(&self, id: engine::ids::WorkloadId) -> String {
        let key = self.engine.names().workloads.name(id);
        key.split_once('/').map_or(key, |(_, name)| name).to_owned()
    }

    /// A head in the form of the recording.
    fn head(&self, entry: &CycleEntry) -> Value {
        let result = match entry.outcome {
            CycleOutcome::Reserved { .. } => "admitted",
            CycleOutcome::Preempting => "preempting",
            CycleOutcome::Deferred => "deferred",
            _ => "other",
        };
        let admission = json!(self.index.admission(&self.engine, entry));
        let pod_sets = list(&admission, "podSetAssignments").iter().map(|one| {
            let part = |field: &str| one.get(field).cloned().unwrap_or(json!({}));
            json!({"name": one["name"], "count": one["count"], "flavors": part("flavors"),
                "usage": part("resourceUsage")})
        });
        let mut targets: Vec<(String, &str)> = entry
            .targets
            .iter()
            .map(|target| (self.name_of(target.workload), target.reason.name()))
            .collect();
        targets.sort();
        let targets = targets.into_iter().map(|(wl, reason)| json!({"wl": wl, "reason": reason}));
        json!({
            "wl": self.name_of(entry.workload),
            "cq": self.engine.names().queues.name(entry.queue),
            "result": result,
            "podSets": pod_sets.collect::<Vec<_>>(),
            "targets": targets.collect::<Vec<_>>(),
        })
    }

    fn holding(&self, queue: &str) -> Vec<String> {
        let id = self.engine.names().queues.get(queue);
        let ids = id.map(|id| self.engine.reserving_workloads(id)).unwrap_or_default();
        ids.into_iter().map(|id| self.name_of(id)).collect()
    }

    fn difference_at_the_end(&self) -> Option<String> {
        let queues = self.case["expect"]["final"]["clusterQueues"].as_object()?;
        for (name, wanted) in queues {
            let found: BTreeSet<String> = self.holding(name).into_iter().collect();
            let admitted = list(wanted, "admitted").iter().filter_map(Value::as_str);
            let admitted: BTreeSet<String> = admitted.map(str::to_owned).collect();
            if found != admitted {
                return Some(format!(
                    "end of {name}\n  recorded {admitted:?}\n  found    {found:?}"
                ));
            }
        }
        None
    }
}

/// Effect of a head: Workload, admission, targets.
fn effect(head: &Value) -> Option<Value> {
    let result = head["result"].as_str()?;
    let kept = match result {
        "admitted" => "podSets",
        "preempting" => "targets",
        "deferred" => "wl",
        _ => return None,
    };
    Some(json!({"wl": head["wl"], "cq": head["cq"], "result": result, "what": what(&head[kept])}))
}

/// Pod sets and targets in one form: flavors and usage also if empty, without topology assignments.
fn what(value: &Value) -> Value {
    let Some(all) = value.as_array() else {
        return Value::Null;
    };
    let one = |one: &Value| match one.get("count") {
        None => one.clone(),
        Some(count) => json!({
            "name": one["name"], "count": count,
            "flavors": one.get("flavors").cloned().unwrap_or(json!({})),
            "usage": one.get("usage").cloned().unwrap_or(json!({})),
        }),
    };
    Value::Array(all.iter().map(one).collect())
}
