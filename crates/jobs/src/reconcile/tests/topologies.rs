//! Topology annotations that the webhook would have refused.

use super::*;
use crate::Pod;

const SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
const SLICE: &str = "kueue.x-k8s.io/podset-slice-required-topology";
const UNCONSTRAINED: &str = "kueue.x-k8s.io/podset-unconstrained-topology";
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";
const LAYERS: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";

/// A job with these annotations in its template.
fn annotated(annotations: &Value) -> Job {
    job(&json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}))
}

#[test]
fn a_job_whose_topology_cannot_be_read_gets_no_workload() {
    let message = |annotations: &Value| {
        let mut steps = reconcile(&annotated(annotations), context(&[], &flavors()));
        match steps.pop() {
            Some(ReconcileStep::Refuse { reason: reasons::ERR_WORKLOAD_COMPOSE, message }) => {
                message
            }
            other => format!("{other:?}"),
        }
    };
    let of =
        |key: &str, problem: &str| format!("spec.template.metadata.annotations[{key}]: {problem}");
    let word = "strconv.ParseInt: parsing \"two\": invalid syntax";
    assert_eq!(message(&json!({SLICE: "rack", SIZE: "two"})), of(SIZE, word));
    let large = "strconv.ParseInt: parsing \"2147483648\": value out of range";
    assert_eq!(message(&json!({SLICE: "rack", SIZE: "2147483648"})), of(SIZE, large));
    let maybe = "strconv.ParseBool: parsing \"maybe\": invalid syntax";
    assert_eq!(message(&json!({UNCONSTRAINED: "maybe"})), of(UNCONSTRAINED, maybe));
    let cut =
        "failed to parse multi-layer topology constraints annotation: unexpected end of JSON input";
    assert_eq!(message(&json!({LAYERS: "["})), of(LAYERS, cut));
    let none = "topology constraints must contain between 1 and 3 entries: got 0";
    assert_eq!(message(&json!({LAYERS: "[]"})), of(LAYERS, none));
}

#[test]
fn what_the_request_does_not_read_refuses_no_job() {
    for annotations in [
        json!({SIZE: "two"}),
        json!({SLICE: "rack"}),
        json!({REQUIRED: "rack", UNCONSTRAINED: "maybe"}),
    ] {
        assert_eq!(steps(&annotated(&annotations), &[]), ["create"], "{annotations}");
    }
    let off = JobGates { topology: false, ..GATES() };
    let flavors = flavors();
    let context = ReconcileContext { gates: off, ..context(&[], &flavors) };
    let bad = annotated(&json!({UNCONSTRAINED: "maybe"}));
    assert_eq!(words(reconcile(&bad, context)), ["create"], "topologies are off");
}

#[test]
fn a_waiting_workload_does_not_follow_a_topology_that_cannot_be_read() {
    let waits = workload(&[]);
    let mut bad = annotated(&json!({UNCONSTRAINED: "maybe"}));
    bad.spec.parallelism = Some(3);
    assert_eq!(steps(&bad, &[&waits]), ["refuse ErrWorkloadCompose"]);
}

#[test]
fn a_slice_does_not_follow_a_topology_that_cannot_be_read() {
    let elastic = |pods: i32, suspend: bool, annotations: &Value| {
        job(&json!({
            "metadata": { "annotations": { "kueue.x-k8s.io/elastic-job": "true" } },
            "spec": {
                "parallelism": pods, "suspend": suspend,
                "template": { "metadata": { "annotations": annotations } },
            },
        }))
    };
    let slice = |conditions: &[&str]| {
        let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
        let mut slice =
            construct_workload(&elastic(2, true, &json!({})), priority, &copied, GATES());
        slice.status = workload(conditions).status;
        slice
    };
    let (holder, waits) = (slice(&["QuotaReserved", "Admitted"]), slice(&[]));
    let bad = json!({UNCONSTRAINED: "maybe"});
    let refused = ["refuse ErrWorkloadCompose"];
    assert_eq!(steps(&elastic(3, false, &bad), &[&holder]), refused, "no replacement");
    assert_eq!(steps(&elastic(3, true, &bad), &[&waits]), refused);
    assert_eq!(steps(&elastic(1, false, &bad), &[&holder]), ["resize to 1"], "of its counts alone");
    assert_eq!(steps(&elastic(3, false, &json!({})), &[&holder]), ["create slice"]);
}

#[test]
fn a_pod_has_its_topology_from_its_own_annotations() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "u-1", "annotations": {UNCONSTRAINED: "maybe"},
            "labels": {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true"},
            "finalizers": ["kueue.x-k8s.io/managed"],
        },
        "spec": {
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            "containers": [{"name": "c"}],
        },
        "status": {"phase": "Pending"},
    }))
    .expect("a pod decodes");
    let steps = reconcile(&pod, context(&[], &flavors()));
    assert!(matches!(steps[..], [ReconcileStep::Refuse { .. }]), "{steps:?}");
}
