//! What the Workload of a group follows of its members, and what is announced about them.

use super::cluster::{Cluster, json_merge};
use super::*;

const PREBUILT: &str = "kueue.x-k8s.io/prebuilt-workload-name";
const CLASS: &str = "kueue.x-k8s.io/priority-class";

pub(super) fn pod_kind() -> Kind {
    ::jobs::pods::kind().clone()
}

/// Feature gates with which the requests of members are compared with those of their role.
pub(super) fn verifying_role_requests() -> Gates {
    Gates::parse("PodIntegrationVerifyRoleRequests=true").expect("gates")
}

/// A manager of Jobs and pods, with two classes of Workloads and one of pods.
pub(super) fn cluster() -> Cluster {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = ["batch/job", "pod"].map(str::to_owned).to_vec();
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let settings = ManagerSettings::new(&file, &verifying_role_requests(), &kinds, false);
    let mut cluster = Cluster::with(settings);
    let empty = Change::Reset { objects: vec![], removed: vec![] };
    cluster.observe(ManagerInput::Job(pod_kind(), empty));
    let class = |name: &str, value: i32| json!({"metadata": {"name": name, "resourceVersion": "1"}, "value": value});
    for (name, value) in [("low", -10), ("high", 1000)] {
        let class = Change::Apply(shared(class(name, value)));
        cluster.observe(ManagerInput::WorkloadPriorityClass(class));
    }
    let class = Change::Apply(shared(class("pod-high", 500)));
    cluster.observe(ManagerInput::PriorityClass(class));
    cluster
}

/// Shows the manager a member of the group `team` with two pods. They do not fit: a start would be in flight.
pub(super) fn member(cluster: &mut Cluster, name: &str, version: u32, fields: &Value) {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kueue.x-k8s.io/managed"],
            "labels": {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true"},
            "annotations": {
                "kueue.x-k8s.io/pod-group-name": "team",
                "kueue.x-k8s.io/pod-group-total-count": "2", "kueue.x-k8s.io/role-hash": "role",
            },
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "9"}}}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        },
        "status": {"phase": "Pending"},
    });
    json_merge(&mut pod, fields);
    let pod = Arc::new(pod_kind().decode(pod).expect("a pod decodes"));
    cluster.observe(ManagerInput::Job(pod_kind(), Change::Apply(pod)));
}

/// Shows the manager both members with these fields.
fn members(cluster: &mut Cluster, version: u32, fields: &Value) {
    for name in ["a", "b"] {
        member(cluster, name, version, fields);
    }
    cluster.settle();
}

/// Makes the Workload that the members of the group name.
fn prebuilt(cluster: &mut Cluster) {
    let of_group = json!({
        "metadata": {"annotations": {"kueue.x-k8s.io/is-group-workload": "true"}},
        "spec": {"podSets": [{"name": "role", "count": 2, "template": {"spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": "9"}}},
        ]}}}]},
    });
    cluster.workload("team", 2, &of_group).settle();
}

fn label(name: &str, value: &str) -> Value {
    json!({"metadata": {"labels": {name: value}}})
}

/// Events about pods.
pub(super) fn events_of_pods(cluster: &mut Cluster) -> Vec<String> {
    let events = cluster.take_events().into_iter();
    events.filter(|event| event.contains(" pod-kueue-controller ")).collect()
}

/// Value and class of the priority of the group's Workload.
fn priority(cluster: &Cluster) -> (i64, &str) {
    let spec = &cluster.workloads["team"]["spec"];
    let class = spec["priorityClassRef"]["name"].as_str().unwrap_or_default();
    (spec["priority"].as_i64().unwrap_or_default(), class)
}

#[test]
fn an_admission_gate_that_is_taken_off_the_members_reaches_the_workload() {
    let mut cluster = cluster();
    let gate = "kueue.x-k8s.io/admission-gated-by";
    let gated = |gates: Value| json!({"metadata": {"annotations": {gate: gates}}});
    members(&mut cluster, 20, &gated(json!("a.b/c")));
    assert_eq!(cluster.workloads["team"]["metadata"]["annotations"][gate], "a.b/c");
    cluster.take_events();
    members(&mut cluster, 21, &gated(Value::Null));
    assert_eq!(cluster.workloads["team"]["metadata"]["annotations"].get(gate), None);
    let updated =
        "a pod-kueue-controller UpdatedWorkload: Updated workload AdmissionGatedBy to \"\"";
    assert_eq!(events_of_pods(&mut cluster), [updated]);
}

#[test]
fn a_class_that_is_changed_on_the_members_reaches_the_workload() {
    let mut cluster = cluster();
    members(&mut cluster, 20, &label(CLASS, "high"));
    assert_eq!(priority(&cluster), (1000, "high"));
    cluster.take_events();
    members(&mut cluster, 21, &label(CLASS, "low"));
    assert_eq!(priority(&cluster), (-10, "low"));
    let updated =
        "a pod-kueue-controller UpdatedWorkload: Updated workload priority class: ns/team";
    assert_eq!(events_of_pods(&mut cluster), [updated]);
}

#[test]
fn a_prebuilt_workload_has_gates_and_priority_of_its_own() {
    let mut cluster = cluster();
    let mut fields = label(CLASS, "high");
    json_merge(
        &mut fields,
        &json!({"metadata": {"annotations": {PREBUILT: "team", "kueue.x-k8s.io/admission-gated-by": "a.b/c"}}}),
    );
    prebuilt(&mut cluster);
    members(&mut cluster, 20, &fields);
    assert_eq!(priority(&cluster), (0, ""));
    let annotations = &cluster.workloads["team"]["metadata"]["annotations"];
    assert_eq!(annotations.get("kueue.x-k8s.io/admission-gated-by"), None);
}

#[test]
fn the_end_of_a_prebuilt_workload_of_a_group_is_announced_about_the_oldest_member() {
    let mut cluster = cluster();
    prebuilt(&mut cluster);
    let prebuilt = json!({"metadata": {"annotations": {PREBUILT: "team"}}});
    members(&mut cluster, 20, &prebuilt);
    cluster.take_events();
    let mut succeeded = prebuilt;
    json_merge(
        &mut succeeded,
        &json!({"spec": {"schedulingGates": []}, "status": {"phase": "Succeeded"}}),
    );
    members(&mut cluster, 21, &succeeded);
    assert!(cluster.condition("team", "Finished").starts_with("True Succeeded"));
    let finished =
        "a pod-kueue-controller FinishedWorkload: Workload 'ns/team' is declared finished";
    assert_eq!(events_of_pods(&mut cluster), [finished]);
    members(&mut cluster, 22, &succeeded);
    assert_eq!(events_of_pods(&mut cluster), [""; 0], "once");
}

#[test]
fn the_priority_of_a_group_is_that_of_the_first_pod_set_with_a_class() {
    let mut cluster = cluster();
    let role =
        |role: &str| json!({"metadata": {"annotations": {"kueue.x-k8s.io/role-hash": role}}});
    member(&mut cluster, "a", 20, &role("aa"));
    let mut second = role("bb");
    json_merge(&mut second, &json!({"spec": {"priorityClassName": "pod-high"}}));
    member(&mut cluster, "b", 20, &second);
    cluster.settle();
    assert_eq!(priority(&cluster), (500, "pod-high"));
}

#[test]
fn a_waiting_group_of_other_members_has_their_priority() {
    let mut cluster = cluster();
    members(&mut cluster, 20, &json!({"spec": {"priorityClassName": "pod-high"}}));
    assert_eq!(priority(&cluster), (500, "pod-high"));
    let role = json!({"metadata": {"annotations": {"kueue.x-k8s.io/role-hash": "other"}}});
    members(&mut cluster, 21, &role);
    assert_eq!(cluster.workloads["team"]["spec"]["podSets"][0]["name"], "other");
    assert_eq!(priority(&cluster), (0, ""));
}

#[test]
fn a_conflict_of_names_is_an_event_of_the_admission() {
    let mut cluster = cluster();
    cluster.workload("team", 2, &json!({})).settle();
    members(&mut cluster, 20, &json!({}));
    let events = cluster.events.iter().filter(|event| event.reason == "WorkloadNameConflict");
    let actions: Vec<&str> = events.map(|event| event.action.as_str()).collect();
    assert_eq!(actions, ["Admission"]);
}

#[test]
fn a_replacement_is_announced_as_started_in_the_queue_of_its_group() {
    let mut cluster = cluster();
    let small = json!({"spec": {"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "1"}}},
    ]}});
    members(&mut cluster, 20, &small);
    assert!(cluster.condition("team", "Admitted").starts_with("True"));
    cluster.answer_job("a", &WriteOutcome::Stale).answer_job("b", &WriteOutcome::Stale);
    let mut failed = small.clone();
    json_merge(
        &mut failed,
        &json!({"spec": {"schedulingGates": []}, "status": {"phase": "Failed"}}),
    );
    member(&mut cluster, "a", 21, &failed);
    member(&mut cluster, "c", 21, &small);
    cluster.settle();
    let pod = json!({"metadata": {
        "name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": "22",
        "annotations": {"kueue.x-k8s.io/pod-group-name": "team"},
    }});
    cluster.answer_job("c", &WriteOutcome::done(pod));
    let events = events_of_pods(&mut cluster);
    let started = "c pod-kueue-controller Started: Admitted by clusterQueue cq";
    assert!(events.iter().any(|event| event == started), "{events:?}");
}

#[test]
fn a_member_that_is_gone_does_not_end_a_workload_that_others_own() {
    let mut cluster = cluster();
    prebuilt(&mut cluster);
    // It was not made for a group, and its members own it all the same.
    cluster.workload("team", 2, &json!({"metadata": {"annotations": null}})).settle();
    let mut fields = json!({"metadata": {"annotations": {PREBUILT: "team"}}});
    members(&mut cluster, 20, &fields);
    let owners = &cluster.workloads["team"]["metadata"]["ownerReferences"];
    assert_eq!(owners.as_array().map(Vec::len), Some(2));
    fields["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:10Z");
    member(&mut cluster, "a", 21, &fields);
    let gone = Key { namespace: Some("ns".into()), name: "a".into() };
    cluster.observe(ManagerInput::Job(pod_kind(), Change::Delete(gone))).settle();
    assert_eq!(cluster.condition("team", "Finished"), "none");
}
