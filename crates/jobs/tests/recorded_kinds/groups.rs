//! Recorded traces of groups of pods, played through the decisions of the crate.

use std::collections::BTreeMap;

use crds::v1beta2::Workload;
use jobs::Pod;
use serde_json::{Value, json};

use crate::{
    kinds_recording::{RecordedCase, cases},
    world::World,
};

/// Traces that are not played: they need what this world does not have.
const NOT_PLAYED: &[(&str, &str)] = &[
    ("name-conflict-owned", "a Job with a Workload"),
    ("owned", "a Job"),
    ("priority-time", "the maximum execution time"),
    ("x-topology", "a topology"),
];

/// The differences that are wanted, with rule and reason, of this test as well as of the replay.
const DIFFERENCES: &str = include_str!("../../../../e2e/replay/differences.tsv");

/// Whether all that differs in a step is wanted: the file names the case and the step.
fn is_wanted(case: &str, step: u64) -> bool {
    let begin = format!("step {step} (");
    DIFFERENCES.lines().any(|line| {
        let mut columns = line.split('\t');
        columns.next() == Some(case) && columns.next().is_some_and(|text| text == begin)
    })
}

/// What of a pod is compared.
fn of_pod(pod: &Value) -> Value {
    let finalizers = pod["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
    let gates = pod["spec"]["schedulingGates"].as_array().map_or(0, Vec::len);
    json!({ "gates": gates, "finalizers": finalizers, "phase": pod["status"]["phase"] })
}

fn ours_of_pod(pod: &Pod) -> Value {
    let mut value = json!(pod);
    if pod.is_deleting() {
        value["status"]["phase"] = json!("<terminating>");
    }
    of_pod(&value)
}

/// What of a Workload is compared.
fn of_workload(workload: &Value) -> Value {
    let list = |at: &str| workload.pointer(at).and_then(Value::as_array).cloned();
    let sets: Vec<Value> = list("/spec/podSets")
        .into_iter()
        .flatten()
        .map(|set| json!([set["name"], set["count"]]))
        .collect();
    let mut owners: Vec<String> = list("/metadata/ownerReferences")
        .into_iter()
        .flatten()
        .map(|owner| owner["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    owners.sort();
    let compared =
        ["Admitted", "Evicted", "Finished", "QuotaReserved", "WaitingForReplacementPods"];
    let conditions: BTreeMap<String, Value> = list("/status/conditions")
        .into_iter()
        .flatten()
        .filter(|one| compared.iter().any(|kind| one["type"] == *kind))
        // A pending Workload has Admitted=False, which the engine's side writes.
        .filter(|one| one["type"] != "Admitted" || one["status"] == "True")
        .map(|one| (one["type"].as_str().unwrap_or_default().to_owned(), one["status"].clone()))
        .collect();
    // Upstream looks for replacements also when the group is over.
    let finished = conditions.contains_key("Finished");
    let conditions: BTreeMap<String, Value> = conditions
        .into_iter()
        .filter(|(kind, _)| !finished || kind != "WaitingForReplacementPods")
        .collect();
    json!({
        "sets": sets, "owners": owners, "conditions": conditions,
        "reclaimable": list("/status/reclaimablePods").unwrap_or_default(),
        "finalizers": list("/metadata/finalizers").unwrap_or_default(),
    })
}

fn ours_of_workload(workload: &Workload) -> Value {
    of_workload(&json!(workload))
}

fn play(case: &RecordedCase, wrong: &mut Vec<String>) -> usize {
    let (mut world, mut n_compared) = (World::default(), 0);
    for step in case.steps() {
        if let Some((method, path)) = step.request() {
            // Requests that the recorder did not wait after came within one second.
            world.request(method, path, step.body(), step.changed_anything());
        }
        if is_wanted(case.name(), step.number()) {
            continue;
        }
        let mut check = |name: &str, ours: Option<Value>, theirs: Value| {
            n_compared += 1;
            if ours.as_ref() != Some(&theirs) {
                wrong.push(format!(
                    "{} step {} {name}\n  theirs {theirs}\n  ours   {ours:?}",
                    case.name(),
                    step.number()
                ));
            }
        };
        for pod in step.changed("Pod") {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            check(name, world.pods.get(name).map(ours_of_pod), of_pod(pod));
        }
        for workload in step.changed("Workload") {
            let name = workload["metadata"]["name"].as_str().unwrap_or_default();
            check(name, world.workloads.get(name).map(ours_of_workload), of_workload(workload));
        }
        for gone in step.gone() {
            let (kind, name) = gone.split_once('/').unwrap_or_default();
            let there = match kind {
                "Pod" => world.pods.contains_key(name),
                _ => world.workloads.contains_key(name),
            };
            check(gone, Some(json!(there)), json!(false));
        }
    }
    n_compared
}

#[test]
fn groups_go_through_their_traces_as_upstream() {
    let (mut n_compared, mut wrong) = (0, Vec::new());
    for case in cases("podgroup") {
        let short = case.name().rsplit('/').next().unwrap_or_default();
        if NOT_PLAYED.iter().all(|(name, _)| *name != short) {
            n_compared += play(&case, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(n_compared, 267, "every recorded state is compared");
}
