//! Objects that a decision looks up by their names, so that also those of users count, which have no label of the RayJob.
//!
//! Source: docs/reference/ray.md §8 "Children of RayJob".

use crds::decode::from_value;
use serde_json::Value;

use super::context::SubmissionMode;
use crate::{
    json::{is_terminating, name, text},
    names,
    step::RayTarget,
    v1::RayJobSpec,
};

/// The Job that submits and the Service of the present head, in the phases of a RayJob that look them up.
#[must_use]
pub fn named_objects(job: &Value, children: &[&Value]) -> Vec<RayTarget> {
    let Ok(spec) = from_value::<RayJobSpec>(&job["spec"]) else { return Vec::new() };
    let managed_by = text(&job["spec"]["managedBy"]);
    let is_ours = managed_by.is_empty() || managed_by == names::BUILT_IN_CONTROLLER;
    if is_terminating(job) || !is_ours {
        return Vec::new();
    }
    let (looks_for_job, looks_for_service) = match text(&job["status"]["jobDeploymentStatus"]) {
        "Initializing" => (has_ready_cluster(job, children), false),
        "Running" => (true, spec.cluster_selector.is_empty()),
        _ => (false, false),
    };
    let submits = looks_for_job && SubmissionMode::of(&spec) == SubmissionMode::Job;
    let submitter = submits.then(|| target("batch/v1", "Job", name(job).to_owned()));
    let service =
        looks_for_service.then(|| target("v1", "Service", format!("{}-head-svc", name(job))));
    submitter.into_iter().chain(service).collect()
}

fn target(api_version: &str, kind: &str, name: String) -> RayTarget {
    let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
    RayTarget { api_version, kind, name, uid: String::new() }
}

/// Whether the submitter of a RayJob is what it waits for.
fn has_ready_cluster(job: &Value, children: &[&Value]) -> bool {
    children.iter().any(|it| {
        it["kind"] == "RayCluster"
            && it["metadata"]["name"] == job["status"]["rayClusterName"]
            && it["status"]["state"] == names::STATE_READY
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(phase: &str, fields: &Value) -> Vec<String> {
        let mut job = json!({
            "metadata": {"name": "j", "namespace": "ns"}, "spec": {"entrypoint": "e"},
            "status": {"jobDeploymentStatus": phase, "rayClusterName": "c"},
        });
        json_patch::merge(&mut job, fields);
        let cluster = json!({
            "kind": "RayCluster", "metadata": {"name": "c"}, "status": {"state": "ready"},
        });
        let targets = named_objects(&job, &[&cluster]);
        targets.into_iter().map(|it| format!("{}/{}", it.kind, it.name)).collect()
    }

    #[test]
    fn a_phase_names_what_it_looks_up() {
        assert_eq!(names("Initializing", &json!({})), ["Job/j"]);
        assert_eq!(names("Running", &json!({})), ["Job/j", "Service/j-head-svc"]);
        let http = json!({"spec": {"submissionMode": "HTTPMode"}});
        assert_eq!(names("Running", &http), ["Service/j-head-svc"]);
        let nothing: [(&str, Value); 5] = [
            ("Initializing", json!({"status": {"rayClusterName": "other"}})),
            ("Initializing", http),
            ("Complete", json!({})),
            ("Running", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
            ("Running", json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}})),
        ];
        for (phase, fields) in nothing {
            assert_eq!(names(phase, &fields), Vec::<String>::new(), "{phase} {fields}");
        }
        let selected = json!({"spec": {"clusterSelector": {"ray.io/cluster": "c"}}});
        assert_eq!(names("Running", &selected), ["Job/j"]);
    }
}
