//! How long finished Workloads ran, and which Workloads run about as long. Source: docs/reference/dispatch.md §1.

use crds::meta::Condition;
use crds::names::conditions::{ADMITTED, FINISHED, QUOTA_RESERVED};
use crds::names::reasons::SUCCEEDED;
use crds::v1beta2::Workload;
use dispatch::RunTimeGroup;
use jiff::Timestamp;

/// Characters of the suffixes that API servers generate.
const GENERATED: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Length of such a suffix.
const GENERATED_LENGTH: usize = 5;

/// A run that ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedRun {
    /// Nanoseconds from its admission to its end.
    pub nanos: i64,
    /// Its end.
    pub end: Timestamp,
}

/// The run of a Workload that succeeded; `None` for any other, and for one that ran in parts.
#[must_use]
pub fn finished_run(workload: &Workload) -> Option<FinishedRun> {
    let status = &workload.status;
    let of = |name: &str| {
        let named = |one: &&Condition| one.r#type == name && one.status == "True";
        status.conditions.iter().find(named)
    };
    let finished = of(FINISHED).filter(|one| one.reason == SUCCEEDED)?;
    // A run after an eviction may go on from a checkpoint, so that it says nothing about a whole one.
    if status.accumulated_past_execution_time_seconds.is_some_and(|seconds| seconds > 0) {
        return None;
    }
    let start = of(ADMITTED).or_else(|| of(QUOTA_RESERVED))?.transitioned_at()?;
    let end = finished.transitioned_at()?;
    let nanos = i64::try_from(end.duration_since(start).as_nanos()).ok()?;
    // Times of conditions are whole seconds. A clock that was set back makes negative ones.
    (nanos >= 0).then_some(FinishedRun { nanos: nanos.max(1), end })
}

/// The Workloads that run about as long: those of one LocalQueue whose jobs have the same kind and the same name, but for numbers
/// and generated suffixes.
#[must_use]
pub fn run_time_group(workload: &Workload) -> RunTimeGroup {
    let meta = &workload.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    // A pod group has many owners and no controller.
    let owner = owners.iter().find(|owner| owner.controller == Some(true)).or(owners.first());
    let owner = match owner {
        Some(owner) => format!("{}/{}", owner.kind, common_name(&owner.name)),
        None => common_name(meta.name.as_deref().unwrap_or_default()).to_owned(),
    };
    let queue = &workload.spec.queue_name;
    RunTimeGroup { queue: format!("{namespace}/{queue}").into(), owner: owner.into() }
}

/// What names of one origin have in common: `nightly` of `nightly-28931230`, `train` of `train-7x2kq`, `step` of `step12`.
fn common_name(mut name: &str) -> &str {
    loop {
        let shorter = match name.rsplit_once('-') {
            Some((base, last)) if is_generated(last) => base,
            _ => name.trim_end_matches(|one: char| one.is_ascii_digit()).trim_end_matches('-'),
        };
        // A name of digits only is no number of anything.
        if shorter.is_empty() || shorter == name {
            return name;
        }
        name = shorter;
    }
}

fn is_generated(last: &str) -> bool {
    let is_suffix =
        last.len() == GENERATED_LENGTH && last.chars().all(|one| GENERATED.contains(one));
    is_suffix || !last.is_empty() && last.chars().all(|one| one.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workload(value: Value) -> Workload {
        serde_json::from_value(value).expect("a Workload")
    }

    #[test]
    fn numbers_and_generated_suffixes_do_not_distinguish_owners() {
        for (name, common) in [
            ("nightly-28931230", "nightly"),
            ("train-7x2kq", "train"),
            ("nightly-28931230-7x2kq", "nightly"),
            ("step12", "step"),
            ("step-12", "step"),
            ("resnet-50-lr-1", "resnet-50-lr"),
            ("train-small", "train-small"),
            ("train", "train"),
            ("2024", "2024"),
            ("", ""),
            ("-7x2kq", "-7x2kq"),
            ("7x2kq", "7x2kq"),
        ] {
            assert_eq!(common_name(name), common, "{name}");
        }
    }

    #[test]
    fn a_group_is_a_queue_with_an_owner() {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "train-7", "uid": "u", "controller": true});
        let group = |metadata: Value| {
            let spec = json!({"queueName": "q"});
            run_time_group(&workload(json!({"metadata": metadata, "spec": spec})))
        };
        let of = |owner: &str| RunTimeGroup { queue: "ns/q".into(), owner: owner.into() };
        let named = json!({"name": "job-train-7-ab12f", "namespace": "ns"});
        assert_eq!(group(named.clone()), of("job-train-7-ab12f"));
        let mut owned = named;
        owned["ownerReferences"] = json!([owner]);
        assert_eq!(group(owned), of("Job/train"));
    }

    #[test]
    fn a_run_lasts_from_admission_to_a_good_end() {
        let condition = |r#type: &str, reason: &str, at: &str| {
            json!({"type": r#type, "status": "True", "reason": reason, "message": "",
                   "lastTransitionTime": format!("2026-01-01T00:00:{at}Z")})
        };
        let seconds = |conditions: &[Value], past: i32| {
            let status =
                json!({"conditions": conditions, "accumulatedPastExecutionTimeSeconds": past});
            let run = finished_run(&workload(json!({"metadata": {}, "status": status})));
            run.map(|run| run.nanos / 1_000_000_000)
        };
        let reserved = condition("QuotaReserved", "QuotaReserved", "01");
        let admitted = condition("Admitted", "Admitted", "03");
        let ended = |reason, at| condition("Finished", reason, at);
        let all = [reserved.clone(), admitted.clone(), ended("Succeeded", "33")];
        assert_eq!(seconds(&all, 0), Some(30));
        assert_eq!(seconds(&all, 5), None, "only the rest of a run");
        assert_eq!(seconds(&[reserved.clone(), ended("Succeeded", "33")], 0), Some(32));
        assert_eq!(seconds(&[reserved.clone(), admitted.clone()], 0), None);
        assert_eq!(seconds(&[reserved, admitted.clone(), ended("Failed", "33")], 0), None);
        assert_eq!(seconds(&[admitted, ended("Succeeded", "02")], 0), None, "the clock was set");
        assert_eq!(seconds(&[ended("Succeeded", "33")], 0), None, "it never ran");
    }
}
