//! The parts of the life of a kind, and which of them a recorded case shows.

use serde_json::Value;

use crate::kinds_recording::RecordedCase;

/// Parts of a life, in the order of columns.
pub(crate) const PARTS: [&str; 10] = [
    "webhook",
    "pod sets",
    "start",
    "evict",
    "restore",
    "finish",
    "reclaim",
    "mirror",
    "status back",
    "delete",
];

/// Kinds of which pods or roles are reclaimed before the job ends.
const RECLAIMING: &[&str] = &["Job", "JobSet", "PodGroup", "TrainJob"];

/// Parts that the lives of kinds do not have: kinds that serve do not end, the status of a set stays that of its own pods, a
/// SparkApplication is not dispatched, and the webhooks of a group are those of its pods.
const ABSENT: &[(&str, &[&str])] = &[
    ("LeaderWorkerSet", &["finish", "status back"]),
    ("PodGroup", &["webhook"]),
    ("RayCluster", &["finish"]),
    ("RayService", &["finish"]),
    ("SparkApplication", &["mirror", "status back"]),
    ("StatefulSet", &["finish", "status back"]),
];

/// Whether the life of a kind has a part.
pub(crate) fn has_part(kind: &str, part: &str) -> bool {
    let is_absent = ABSENT.iter().any(|(of, parts)| *of == kind && parts.contains(&part));
    !is_absent && (part != "reclaim" || RECLAIMING.contains(&kind))
}

/// Whether a case shows a part of the life of its kind.
pub(crate) fn shows(case: &RecordedCase, part: &str) -> bool {
    // The pods of a group are what is started.
    let kind = if case.kind() == "PodGroup" { "Pod" } else { case.kind() };
    let started =
        if matches!(kind, "Deployment" | "StatefulSet" | "LeaderWorkerSet") { "Pod" } else { kind };
    let is_trace = !case.name().contains("/create/");
    let of_several_clusters = case.name().starts_with("MultiKueue/");
    let steps = case.all_steps();
    let mut of_manager = steps.iter().map(|step| step.on_cluster("manager"));
    let event = |about: &str, begins: &str| {
        let about = format!("{about}/");
        let begins = begins.to_owned();
        move |then: &Value| {
            listed(then, "events", |one| {
                let text = |field: &str| one[field].as_str().unwrap_or_default();
                text("about").starts_with(&about) && text("reason").starts_with(&begins)
            })
        }
    };
    match part {
        "webhook" => !is_trace && !of_several_clusters,
        "pod sets" => {
            of_manager.any(|then| has_workload(then, |one| one["spec"]["podSets"].is_array()))
        }
        "start" => of_manager.any(event(started, "Started")),
        "evict" => of_manager.any(event("Workload", "EvictedDueTo")),
        "restore" => of_manager.any(event(started, "Stopped")),
        "finish" => of_manager.any(|then| has_workload(then, is_over)),
        "reclaim" => of_manager
            .any(|then| has_workload(then, |one| one["status"]["reclaimablePods"].is_array())),
        "mirror" => {
            let mut of_worker = steps.iter().map(|step| step.on_cluster("worker"));
            of_several_clusters
                && of_worker.any(|then| listed(then, "changed", |one| one["kind"] == kind))
        }
        "status back" => steps.iter().any(|step| {
            let there = step.on_cluster("manager");
            step.is_sent_to_worker() && listed(there, "changed", |one| one["kind"] == kind)
        }),
        _ => of_manager.any(|then| {
            let own = format!("{kind}/");
            listed(then, "gone", |one| one.as_str().is_some_and(|name| name.starts_with(&own)))
        }),
    }
}

/// Whether a Workload ended with its job.
fn is_over(workload: &Value) -> bool {
    let conditions = workload["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "Finished" && (one["reason"] == "Succeeded" || one["reason"] == "Failed")
    })
}

fn has_workload(then: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    listed(then, "changed", |one| one["kind"] == "Workload" && holds(one))
}

fn listed(then: &Value, list: &str, holds: impl Fn(&Value) -> bool) -> bool {
    then[list].as_array().into_iter().flatten().any(holds)
}
