//! What a decision about a RayJob reads of its namespace, and the objects that it looks up by their names, so that also those of users
//! count, which have no label of the RayJob.
//!
//! Source: docs/reference/ray.md §8 "Children of RayJob".

use crds::decode::from_value;
use serde_json::Value;

use super::context::SubmissionMode;
use crate::{
    json::{is_owned, is_run_elsewhere, is_terminating, label, name, text},
    names,
    step::ObjectTarget,
    v1::RayJobSpec,
};

/// The Job that submits and the Service of the present head, in the phases of a RayJob that look them up.
#[must_use]
pub fn named_objects(job: &Value, children: &[&Value]) -> Vec<ObjectTarget> {
    let runs = match text(&job["status"]["jobDeploymentStatus"]) {
        "Initializing" if has_ready_cluster(job, children) => false,
        "Running" => true,
        _ => return Vec::new(),
    };
    if is_terminating(job) || is_run_elsewhere(job) {
        return Vec::new();
    }
    let Ok(spec) = from_value::<RayJobSpec>(&job["spec"]) else { return Vec::new() };
    let submits = SubmissionMode::of(&spec) == SubmissionMode::Job;
    let submitter = submits.then(|| ObjectTarget::named("batch/v1", "Job", name(job)));
    let has_service = runs && spec.cluster_selector.is_empty();
    let service = has_service
        .then(|| ObjectTarget::named("v1", "Service", names::head_service_name(name(job))));
    submitter.into_iter().chain(service).collect()
}

/// Returns whether the decision about a RayJob reads an object of its namespace.
#[must_use]
pub fn reads(job: &Value, object: &Value) -> bool {
    let cluster = text(&job["status"]["rayClusterName"]);
    let of = match text(&object["kind"]) {
        "RayCluster" => name(object),
        "Pod" => label(object, names::CLUSTER_LABEL),
        _ => "",
    };
    (!of.is_empty() && of == cluster) || is_owned(object, job)
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
