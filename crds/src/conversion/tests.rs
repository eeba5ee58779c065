use serde_json::json;

use super::*;

const V1BETA1: &str = "kueue.x-k8s.io/v1beta1";
const V1BETA2: &str = "kueue.x-k8s.io/v1beta2";

fn object(version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

fn spec_after(version: &str, kind: &str, spec: &Value, to: &str) -> Value {
    convert(object(version, kind, spec), to).expect("convertible")["spec"].clone()
}

#[test]
fn flat_checks_win_over_a_strategy() {
    let spec = json!({
        "admissionChecks": ["a"],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "b"}]},
    });
    let expected = json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}});
    assert_eq!(spec_after(V1BETA1, "ClusterQueue", &spec, V1BETA2), expected);
}

#[test]
fn a_class_without_a_source_is_dropped() {
    let spec = json!({"podSets": [], "priorityClassName": "high", "priorityClassSource": ""});
    assert_eq!(spec_after(V1BETA1, "Workload", &spec, V1BETA2), json!({}));
}

#[test]
fn a_source_without_a_class_keeps_its_kind() {
    let spec = json!({"priorityClassSource": "scheduling.k8s.io/priorityclass"});
    let expected =
        json!({"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass"}});
    assert_eq!(spec_after(V1BETA1, "Workload", &spec, V1BETA2), expected);
}

#[test]
fn metadata_is_not_changed() {
    let mut workload = object(V1BETA2, "Workload", &json!({}));
    workload["metadata"] = json!({"name": "x", "managedFields": [{"manager": "m"}], "labels": {}});
    let converted = convert(workload.clone(), V1BETA1).expect("convertible");
    assert_eq!(converted["metadata"], workload["metadata"]);
}

#[test]
fn unknown_kinds_and_versions_are_errors() {
    for (kind, to) in [("Topology", V1BETA2), ("Workload", "kueue.x-k8s.io/v1"), ("Workload", "v1")]
    {
        let error = convert(object(V1BETA1, kind, &json!({})), to).expect_err("refused");
        assert!(matches!(error, ConversionError::Unknown { .. }), "{error}");
    }
}

#[test]
fn a_malformed_object_is_named() {
    let error = convert(object(V1BETA1, "Workload", &json!({"priority": "high"})), V1BETA2);
    let text = error.expect_err("refused").to_string();
    assert!(
        text.starts_with("cannot convert Workload \"x\": spec.priority: must be a 32-bit integer"),
        "{text}"
    );
}

fn status_after(version: &str, kind: &str, status: &Value, to: &str) -> Value {
    let mut object = object(version, kind, &json!({}));
    object["status"] = status.clone();
    convert(object, to).expect("convertible")["status"].clone()
}

/// A Workload of v1beta1 with a topology assignment of two levels.
fn assigned(domains: &Value) -> Value {
    let assignment = json!({"levels": ["rack", "host"], "domains": domains});
    let pod_set = json!({"name": "main", "topologyAssignment": assignment});
    let mut workload = object(V1BETA1, "Workload", &json!({}));
    workload["status"] =
        json!({"admission": {"clusterQueue": "cq", "podSetAssignments": [pod_set]}});
    workload
}

#[test]
fn a_domain_with_fewer_values_than_levels_is_refused() {
    let full = json!({"count": 1, "values": ["r1", "n1"]});
    for short in [json!({"count": 1, "values": ["r1"]}), json!({"count": 1})] {
        let text = convert(assigned(&json!([full, short])), V1BETA2).expect_err("refused");
        assert_eq!(
            text.to_string(),
            "cannot convert Workload \"x\": status.admission.podSetAssignments[0].topologyAssignment.domains[1].values: must be a list with a value for each of 2 levels, not a shorter list"
        );
    }
    let more = json!({"count": 1, "values": ["r1", "n2", "more"]});
    let converted = convert(assigned(&json!([full, more])), V1BETA2).expect("convertible");
    let assignment =
        &converted["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"];
    assert_eq!(
        assignment["slices"][0]["valuesPerLevel"],
        json!([{"universal": "r1"}, {"individual": {"prefix": "n", "roots": ["1", "2"]}}])
    );
}

#[test]
fn unset_amounts_of_usage_become_zero_in_both_directions() {
    let list = |usage: Value| json!([{"name": "f", "resources": [usage]}]);
    let unset = || list(json!({"name": "cpu", "total": null}));
    let status = json!({"flavorsReservation": unset(), "flavorsUsage": unset()});
    let zero = list(json!({"name": "cpu", "total": "0", "borrowed": "0"}));
    for (from, to) in [(V1BETA1, V1BETA2), (V1BETA2, V1BETA1)] {
        let converted = status_after(from, "ClusterQueue", &status, to);
        assert_eq!(converted["flavorsReservation"], zero, "to {to}");
        assert_eq!(converted["flavorsUsage"], zero, "to {to}");
    }
    let zero = list(json!({"name": "cpu", "total": "0"}));
    let to = status_after(V1BETA1, "LocalQueue", &json!({"flavorUsage": unset()}), V1BETA2);
    assert_eq!(to["flavorsUsage"], zero);
    let to = status_after(V1BETA2, "LocalQueue", &status, V1BETA1);
    assert_eq!((&to["flavorUsage"], &to["flavorsReservation"]), (&zero, &zero));
}
