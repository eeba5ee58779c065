//! Rules of a batch/v1 Job as tables.

use serde_json::{Value, json};

use super::Job;
use crate::{
    GenericJob, JobGates,
    start::pod_set_info::{PodSetInfo, StartError},
};

fn job(spec: &Value) -> Job {
    with(spec, &json!({}), &json!({}))
}

fn with(spec: &Value, annotations: &Value, status: &Value) -> Job {
    let object = json!({
        "metadata": { "name": "train", "uid": "u-1", "annotations": annotations },
        "spec": spec,
        "status": status,
    });
    serde_json::from_value(object).expect("a Job decodes")
}

fn minimum(n: &str) -> Value {
    json!({ "kueue.x-k8s.io/job-min-parallelism": n })
}

#[test]
fn the_count_is_the_smaller_of_parallelism_and_completions() {
    let table = [
        (json!({}), 1),
        (json!({ "parallelism": 3 }), 3),
        (json!({ "parallelism": 3, "completions": 2 }), 2),
        (json!({ "parallelism": 3, "completions": 5 }), 3),
        (json!({ "parallelism": 0 }), 0),
    ];
    for (spec, count) in table {
        let sets = job(&spec).pod_sets(JobGates::default());
        assert_eq!(sets.len(), 1);
        assert_eq!((sets[0].name.as_str(), sets[0].count), ("main", Some(count)), "{spec}");
        assert_eq!(sets[0].min_count, None);
    }
}

#[test]
fn a_minimum_count_needs_partial_admission() {
    let job = with(&json!({ "parallelism": 3 }), &minimum("2"), &json!({}));
    assert_eq!(job.pod_sets(JobGates::default())[0].min_count, Some(2));
    let off = JobGates { partial_admission: false, ..JobGates::default() };
    assert_eq!(job.pod_sets(off)[0].min_count, None);
}

/// A shared Job is allocated in 640 bytes; the next size of the allocator is 768.
#[test]
fn a_job_is_small() {
    let size = size_of::<Job>() + 2 * size_of::<usize>();
    assert!(size <= 640, "{size} bytes");
}

#[test]
fn labels_of_the_job_controller_are_not_in_the_pod_set() {
    let job = job(&json!({ "template": { "metadata": { "labels": {
        "app": "a", "controller-uid": "u", "job-name": "train",
        "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "train",
    } } } }));
    let set = job.pod_sets(JobGates::default()).remove(0);
    let metadata = set.template.metadata.expect("metadata");
    let labels: Vec<&str> = metadata.labels.iter().map(|(key, _)| key).collect();
    assert_eq!(labels, ["app", "batch.kubernetes.io/job-name"]);
}

#[test]
fn the_topology_request_is_read_from_the_template() {
    let job = job(&json!({ "parallelism": 4, "template": { "metadata": { "annotations": {
        "kueue.x-k8s.io/podset-required-topology": "rack",
        "kueue.x-k8s.io/podset-slice-required-topology": "host",
        "kueue.x-k8s.io/podset-slice-size": "2",
    } } } }));
    let request = job.pod_sets(JobGates::default()).remove(0).topology_request;
    let expected = json!({
        "required": "rack", "podSetSliceRequiredTopology": "host", "podSetSliceSize": 2,
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
    });
    assert_eq!(serde_json::to_value(request).expect("encodes"), expected);
    let off = JobGates { topology: false, ..JobGates::default() };
    assert_eq!(job.pod_sets(off).remove(0).topology_request, None);
}

#[test]
fn a_job_that_is_stopping_is_not_suspended() {
    let stopping = json!({ "kueue.x-k8s.io/stopping": "true" });
    assert!(job(&json!({ "suspend": true })).is_suspended());
    assert!(!with(&json!({ "suspend": true }), &stopping, &json!({})).is_suspended());
    assert!(!job(&json!({})).is_suspended());
}

#[test]
fn a_job_is_finished_when_it_has_a_terminal_condition() {
    let ended = |kind: &str, status: &str| {
        let conditions = json!([{ "type": kind, "status": status, "message": "m" }]);
        let job = with(&json!({}), &json!({}), &json!({ "conditions": conditions }));
        job.finished().map(|outcome| (outcome.success, outcome.message))
    };
    assert_eq!(ended("Complete", "True"), Some((true, "m".to_owned())));
    assert_eq!(ended("Failed", "True"), Some((false, "m".to_owned())));
    assert_eq!(ended("Complete", "False"), None);
    assert_eq!(ended("FailureTarget", "True"), None);
}

#[test]
fn pods_are_ready_when_enough_are_ready_or_succeeded() {
    let ready =
        |status: Value| with(&json!({ "parallelism": 3 }), &json!({}), &status).pods_ready();
    assert!(!ready(json!({ "ready": 2 })));
    assert!(ready(json!({ "ready": 2, "succeeded": 1 })));
    let uncounted = json!({ "ready": 2, "uncountedTerminatedPods": { "succeeded": ["u"] } });
    assert!(ready(uncounted));
    assert!(!ready(json!({ "ready": 2, "uncountedTerminatedPods": { "failed": ["u"] } })));
}

#[test]
fn pods_that_will_not_run_again_are_reclaimable() {
    let indexed = |completions: i32| json!({ "parallelism": 4, "completions": completions, "completionMode": "Indexed" });
    let table = [
        (json!({ "parallelism": 1 }), json!({ "succeeded": 1 }), None),
        (json!({ "parallelism": 4, "completions": 8 }), json!({ "succeeded": 4 }), None),
        (json!({ "parallelism": 4, "completions": 8 }), json!({ "succeeded": 6 }), Some(2)),
        (json!({ "parallelism": 4 }), json!({ "succeeded": 1 }), Some(1)),
        (json!({ "parallelism": 4, "completions": 2 }), json!({}), None),
        (json!({ "parallelism": 4, "completions": 2 }), json!({ "succeeded": 1 }), Some(1)),
        (json!({ "parallelism": 4, "completions": 2 }), json!({ "succeeded": 9 }), Some(2)),
        (indexed(2), json!({ "failedIndexes": "1" }), Some(1)),
        (indexed(4), json!({ "completedIndexes": "0,2-3" }), Some(3)),
        (indexed(4), json!({ "completedIndexes": "0-1", "failedIndexes": "1,3" }), Some(3)),
        (indexed(4), json!({ "completedIndexes": "3-9" }), Some(1)),
        (indexed(4), json!({ "completedIndexes": "", "succeeded": 2 }), None),
    ];
    for (spec, status, count) in table {
        let pods = with(&spec, &json!({}), &status).reclaimable_pods();
        assert_eq!(pods.first().map(|pods| pods.count), count, "{spec} {status}");
    }
}

fn info() -> PodSetInfo {
    PodSetInfo {
        name: "main".to_owned(),
        count: 2,
        labels: [("l".to_owned(), "1".to_owned())].into(),
        node_selector: [("gpu".to_owned(), "h100".to_owned())].into(),
        scheduling_gates: vec!["g".to_owned()],
        ..PodSetInfo::default()
    }
}

#[test]
fn a_start_and_a_restore_are_inverse() {
    let template = json!({
        "metadata": { "labels": { "controller-uid": "u" } },
        "spec": { "nodeSelector": { "zone": "a" }, "schedulingGates": [{ "name": "own" }] },
    });
    let spec = json!({
        "parallelism": 3, "completions": 3, "completionMode": "Indexed", "suspend": true,
        "template": template,
    });
    let mut annotations = minimum("1");
    annotations["kueue.x-k8s.io/job-completions-equal-parallelism"] = json!("true");
    let before = with(&spec, &annotations, &json!({}));
    let gates = JobGates::default();
    let mut job = before.clone();
    job.run_with_pod_sets_info(&[info()], gates).expect("starts");
    assert_eq!(
        serde_json::to_value(&job.spec).expect("encodes"),
        json!({
            "parallelism": 2, "completions": 2, "completionMode": "Indexed", "suspend": false,
            "template": {
                "metadata": { "labels": { "controller-uid": "u", "l": "1" } },
                "spec": {
                    "nodeSelector": { "zone": "a", "gpu": "h100" },
                    "schedulingGates": [{ "name": "own" }, { "name": "g" }],
                },
            },
        })
    );
    let original: Vec<PodSetInfo> = before.pod_sets(gates).iter().map(PodSetInfo::of).collect();
    assert!(job.restore_pod_sets_info(&original, gates));
    assert!(!job.restore_pod_sets_info(&original, gates), "a second time changes nothing");
    assert!(!job.restore_pod_sets_info(&[], gates));
    job.spec.suspend = Some(true);
    assert_eq!(job, before);
}

#[test]
fn a_conflict_leaves_the_job_unchanged() {
    let spec =
        json!({ "suspend": true, "template": { "spec": { "nodeSelector": { "gpu": "a" } } } });
    let before = job(&spec);
    let mut job = before.clone();
    let conflict = job.run_with_pod_sets_info(&[info()], JobGates::default());
    assert!(matches!(conflict, Err(StartError::Conflict { kind: "nodeSelector", .. })));
    assert_eq!(job, before);
    let number = job.run_with_pod_sets_info(&[], JobGates::default());
    assert_eq!(number, Err(StartError::WrongNumber { expected: 1, admitted: 0 }));
}

#[test]
fn an_equal_value_is_no_conflict() {
    let spec = json!({ "template": { "spec": { "nodeSelector": { "gpu": "h100" } } } });
    assert_eq!(job(&spec).run_with_pod_sets_info(&[info()], JobGates::default()), Ok(()));
}

#[test]
fn a_job_is_kept_without_spare_room_for_conditions_and_shares_the_fields_of_its_status() {
    let decode = |name: &str| {
        let status = json!({"conditions": [{"type": "Suspended"}], "terminating": 0});
        let job = json!({"metadata": {"name": name}, "status": status});
        serde_json::from_value::<Job>(job).expect("a Job decodes")
    };
    let (one, other) = (decode("a"), decode("b"));
    let conditions = one.status.conditions.as_ref().expect("conditions");
    assert_eq!((conditions.len(), conditions.capacity()), (1, 1));
    assert!(std::ptr::eq(&*one.status.rest, &*other.status.rest));
}
