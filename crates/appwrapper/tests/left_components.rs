//! Components without the reference to their AppWrapper: after a deletion with the propagation Orphan, or by hand.

use std::collections::BTreeMap;

use appwrapper::{WrapperFacts, decide, settings::WrapperSettings, step::WrapperStep};
use jiff::Timestamp;
use serde_json::{Value, json};

const LABEL: &str = "workload.codeflare.dev/appwrapper";

fn condition(status: &str) -> Value {
    json!([{
        "type": "ResourcesDeployed", "status": status, "reason": "r", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }])
}

/// An AppWrapper in a phase that has made its component, or not.
fn wrapper(phase: &str, made: &str) -> Value {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    });
    let component = json!({
        "name": "j", "kind": "Job", "apiVersion": "batch/v1", "conditions": condition(made),
        "podSets": [{"path": "template.spec.template", "replicas": 1}],
    });
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {
            "name": "w", "namespace": "ns", "uid": "u1",
            "finalizers": ["workload.codeflare.dev/finalizer"],
        },
        "spec": {"suspend": phase == "Suspending", "components": [{"template": job}]},
        "status": {
            "phase": phase, "conditions": condition("True"), "componentStatus": [component],
        },
    })
}

fn job(label: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "j", "namespace": "ns", "uid": "u2", "labels": {LABEL: label},
            "ownerReferences": owners,
        },
    })
}

fn steps(wrapper: &Value, job: &Value) -> Vec<WrapperStep> {
    let facts = WrapperFacts { now: Timestamp::UNIX_EPOCH, evicted_nodes: BTreeMap::new() };
    decide(wrapper, &[job], &[], &facts, &WrapperSettings::default())
}

fn deletes(wrapper: &Value, job: &Value) -> bool {
    let is_deletion =
        |step: &WrapperStep| matches!(step, WrapperStep::Delete { name, .. } if name == "j");
    steps(wrapper, job).iter().any(is_deletion)
}

#[test]
fn a_component_without_a_controller_is_deleted_with_its_app_wrapper() {
    let mut deleted = wrapper("Running", "True");
    deleted["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    for of in [deleted, wrapper("Suspending", "True")] {
        for owners in [json!(null), json!([]), json!([{"uid": "u3", "kind": "ConfigMap"}])] {
            assert!(deletes(&of, &job("w", &owners)), "{owners}");
        }
        let other = json!([{"uid": "u3", "controller": true}]);
        assert!(!deletes(&of, &job("w", &other)), "it is of another controller");
        assert!(!deletes(&of, &job("v", &json!([]))), "it has another label");
    }
}

/// It may be of a former AppWrapper of the name, or of a user.
#[test]
fn an_object_that_an_app_wrapper_did_not_make_is_not_its_own_by_its_label() {
    assert!(!deletes(&wrapper("Suspending", "False"), &job("w", &json!([]))));
    let of_this = json!([{"uid": "u1", "controller": true}]);
    assert!(deletes(&wrapper("Suspending", "False"), &job("w", &of_this)));
    let made = steps(&wrapper("Resuming", "False"), &job("w", &json!([])));
    assert!(format!("{made:?}").contains("exists, but is not controlled by appwrapper"));
}

#[test]
fn a_component_without_a_controller_is_not_missing() {
    let running = steps(&wrapper("Running", "True"), &job("w", &json!([])));
    assert!(!format!("{running:?}").contains("MissingComponent"), "{running:?}");
}
