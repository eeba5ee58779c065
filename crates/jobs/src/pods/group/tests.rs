//! Groups of pods: rules that no recorded trace shows.

use crds::v1beta2::Workload;
use serde_json::{Value, json};

use super::*;
use crate::{
    StopWrite, construct_workload::WorkloadPriority, start::admitted_infos::FlavorsByName,
};

/// A member of a group of two; `more` is merged into it.
fn member(name: &str, more: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true",
                "kueue.x-k8s.io/pod-group-name": "team",
            },
            "annotations": {
                "kueue.x-k8s.io/pod-group-total-count": "2", "kueue.x-k8s.io/role-hash": "role",
            },
            "finalizers": ["kueue.x-k8s.io/managed"],
        },
        "spec": {
            "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }],
            "containers": [{ "name": "c" }],
        },
        "status": { "phase": "Pending" },
    });
    merge(&mut pod, more);
    serde_json::from_value(pod).expect("a pod decodes")
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

fn gated(name: &str) -> Pod {
    member(name, &json!({}))
}

/// A member that names a prebuilt Workload.
fn prebuilt(name: &str, more: &Value) -> Pod {
    let prebuilt = json!({ "kueue.x-k8s.io/prebuilt-workload-name": "team" });
    let mut pod = json!({ "metadata": { "annotations": prebuilt } });
    merge(&mut pod, more);
    member(name, &pod)
}

fn in_phase(name: &str, phase: &str) -> Pod {
    let spec = json!({ "schedulingGates": [], "nodeName": "n" });
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let conditions = if phase == "Running" { ready } else { json!([]) };
    let status = json!({ "phase": phase, "conditions": conditions });
    member(name, &json!({ "spec": spec, "status": status }))
}

/// The Workload of these pods, with these conditions set to true.
fn workload(pods: &[&Pod], conditions: &[&str]) -> Workload {
    let gates = JobGates::default();
    let composition = compose("team", pods, RoleComparison::NONE, gates).expect("complete");
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    let mut workload =
        group_workload("team", &composition, priority, &copied, gates).expect("members");
    let conditions: Vec<Value> =
        conditions.iter().map(|kind| json!({ "type": kind, "status": "True" })).collect();
    workload.status = serde_json::from_value(json!({
        "conditions": conditions,
        "admission": { "clusterQueue": "cq", "podSetAssignments": [
            { "name": "role", "count": 2, "flavors": {} },
        ] },
    }))
    .expect("a status decodes");
    workload
}

/// Steps as short texts; members in `busy` have a write in flight.
fn steps(pods: &[&Pod], workload: Option<&Workload>, busy: &[&str]) -> Vec<String> {
    steps_under(JobGates::default(), pods, workload, busy)
}

fn steps_under(
    gates: JobGates,
    pods: &[&Pod],
    workload: Option<&Workload>,
    busy: &[&str],
) -> Vec<String> {
    steps_copying(&KeysToCopy::default(), gates, pods, (workload, busy))
}

fn steps_copying(
    copied: &KeysToCopy,
    gates: JobGates,
    pods: &[&Pod],
    (workload, busy): (Option<&Workload>, &[&str]),
) -> Vec<String> {
    let is_free = |pod: &Pod| !busy.contains(&pod.metadata.name.as_deref().unwrap_or_default());
    let steps = reconcile(GroupContext {
        group: "team",
        pods,
        workload,
        copied,
        flavors: AssignedFlavors::Own(&FlavorsByName::new()),
        gates,
        now: "2026-01-01T01:00:00Z".parse().expect("a time"),
        is_free: &is_free,
        comparison: RoleComparison { exceeded: &exceeded, is_of_set: &is_of_set },
    });
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    let word = |step: ReconcileStep<Pod>| match step {
        ReconcileStep::Job(JobStep::Start(pod)) => format!("start {}", name(&pod)),
        ReconcileStep::Job(JobStep::Finalize(pod)) => format!("finalize {}", name(&pod)),
        ReconcileStep::Job(JobStep::DeleteExcess(pod)) => format!("delete {}", name(&pod)),
        ReconcileStep::Job(JobStep::Stop(StopWrite::Status(pod), _)) => {
            format!("mark {}", name(&pod))
        }
        ReconcileStep::Job(JobStep::Stop(StopWrite::Delete(pod), _)) => {
            format!("stop {}", name(&pod))
        }
        ReconcileStep::Refuse { reason, .. } => format!("refuse {reason}"),
        ReconcileStep::Workload { write: WorkloadStep::Finish { reason, .. }, .. } => {
            format!("finish {reason}")
        }
        ReconcileStep::CreateWorkload => "create".to_owned(),
        ReconcileStep::Workload { write: WorkloadStep::AddOwners(owners), .. } => {
            let names = owners.iter().map(|one| one.name.as_str());
            format!("own {}", names.collect::<Vec<_>>().join(" "))
        }
        ReconcileStep::ReportExcess { pod, message } => format!("report {pod}: {message}"),
        ReconcileStep::Workload { write: WorkloadStep::UpdateQueueName(queue_name), .. } => {
            format!("queue {queue_name:?}")
        }
        other => format!("{other:?}"),
    };
    steps.into_iter().map(word).collect()
}

/// Gates with which the requests of members are compared.
fn verifying() -> JobGates {
    JobGates { verify_role_requests: true, ..JobGates::default() }
}

/// A stand-in for the comparison of all resources: a pod with the label `gpus` has more than its template.
fn exceeded(pod: &Pod, _: RoleQuota<'_>) -> Option<String> {
    let gpus = pod.label("gpus")?;
    Some(format!("gpus {gpus}"))
}

/// A stand-in for the search of the set of a pod.
fn is_of_set(pod: &Pod) -> bool {
    pod.label("set").is_some()
}

#[test]
fn a_member_that_requests_more_than_its_role_stays_gated() {
    let large = json!({ "metadata": { "labels": { "gpus": "8" } } });
    let (a, b) = (gated("a"), member("b", &large));
    let admitted = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    let held = "report b: Pod requests more than its role \"role\" has quota for: gpus 8";
    assert_eq!(steps_under(verifying(), &[&a, &b], Some(&admitted), &[]), ["start a", held]);
    let gates = JobGates { verify_role_requests: false, ..verifying() };
    assert_eq!(steps_under(gates, &[&a, &b], Some(&admitted), &[]), ["start a", "start b"]);
    // A running pod may be resized in place.
    let running = json!({ "spec": { "schedulingGates": [] }, "status": { "phase": "Running" } });
    let mut resized = member("b", &large);
    resized = {
        let mut value = json!(resized);
        merge(&mut value, &running);
        serde_json::from_value(value).expect("a pod decodes")
    };
    assert_eq!(steps_under(verifying(), &[&a, &resized], Some(&admitted), &[]), ["start a"]);
}

/// A member with more than its template, and these fields.
fn large(name: &str, more: &Value) -> Pod {
    let mut fields = json!({ "metadata": { "labels": { "gpus": "8" } } });
    merge(&mut fields, more);
    member(name, &fields)
}

#[test]
fn a_member_that_may_start_is_kept_before_an_older_one_that_may_not() {
    let aged = |pod: Pod, hour: u32| {
        let mut value = json!(pod);
        value["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T0{hour}:00:00Z"));
        serde_json::from_value(value).expect("a pod decodes")
    };
    let (a, b): (Pod, Pod) = (in_phase("a", "Running"), aged(large("b", &json!({})), 1));
    let c = aged(gated("c"), 2);
    let admitted = workload(&[&a, &gated("b")], &["QuotaReserved", "Admitted"]);
    let decided = steps_under(verifying(), &[&a, &b, &c], Some(&admitted), &[]);
    assert!(decided.contains(&"finalize b".to_owned()), "{decided:?}");
    assert!(decided.contains(&"start c".to_owned()), "{decided:?}");
    let waits = |pods: &[&Pod]| {
        let comparison = RoleComparison { exceeded: &exceeded, is_of_set: &is_of_set };
        let changed = waiting_for_replacement(pods, &admitted, comparison, verifying());
        changed.map(|one| one.status)
    };
    assert_eq!(waits(&[&a, &b]), Some(true));
    assert_eq!(waits(&[&a, &b, &c]), None);
}

#[test]
fn a_group_that_does_not_go_on_ends_without_the_members_that_may_not_start() {
    let last =
        json!({ "metadata": { "annotations": { "kueue.x-k8s.io/retriable-in-group": "false" } } });
    let held = large("b", &last);
    let admitted = workload(&[&gated("a"), &gated("b")], &["QuotaReserved", "Admitted"]);
    let ends = |pods: &[&Pod]| {
        let steps = steps_under(verifying(), pods, Some(&admitted), &[]);
        steps.contains(&"finish Succeeded".to_owned())
    };
    assert!(ends(&[&in_phase("a", "Failed"), &held]));
    assert!(!ends(&[&in_phase("a", "Running"), &held]));
    assert!(!ends(&[&in_phase("a", "Failed"), &member("b", &last)]), "it starts");
    assert!(!ends(&[&held]), "none has ended");
}

#[test]
fn a_pod_of_a_set_that_requests_more_than_its_role_starts() {
    let of_set = json!({ "metadata": { "labels": { "set": "web" } } });
    let (a, b) = (gated("a"), large("b", &of_set));
    let admitted = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    let reported = "report b: Pod requests more than its role \"role\" has quota for: gpus 8";
    let decided = steps_under(verifying(), &[&a, &b], Some(&admitted), &[]);
    assert_eq!(decided, ["start a", "start b", reported]);
}

#[test]
fn a_member_with_a_clone_is_compared_by_the_manager_of_its_hub() {
    let (a, b) = (gated("a"), large("b", &json!({})));
    let mut clone = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    let origin = ("kueue.x-k8s.io/multikueue-origin".to_owned(), "hub".to_owned());
    clone.metadata.labels = Some([origin].into());
    let decided = steps_under(verifying(), &[&a, &b], Some(&clone), &[]);
    assert_eq!(decided, ["start a", "start b"]);
}

#[test]
fn a_member_of_a_dispatched_group_that_requests_too_much_is_reported() {
    let large = |phase: &str| {
        member(
            "b",
            &json!({
                "metadata": { "labels": { "gpus": "8" } }, "status": { "phase": phase },
            }),
        )
    };
    let (a, b) = (gated("a"), large("Pending"));
    let mut dispatched = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    dispatched.status.cluster_name = Some("east".to_owned());
    let held = "report b: Pod requests more than its role \"role\" has quota for: gpus 8";
    let steps = |pods: &[&Pod]| steps_under(verifying(), pods, Some(&dispatched), &[]);
    assert_eq!(steps(&[&a, &b]), [held]);
    assert_eq!(steps(&[&a, &large("Running")]), [""; 0], "it has a copy");
}

#[test]
fn a_member_with_a_write_in_flight_gets_no_further_step() {
    let (a, b) = (gated("a"), gated("b"));
    let admitted = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    assert_eq!(steps(&[&a, &b], Some(&admitted), &[]), ["start a", "start b"]);
    assert_eq!(steps(&[&a, &b], Some(&admitted), &["a"]), ["start b"]);
}

#[test]
fn members_with_a_prebuilt_workload_start_as_they_come() {
    let (a, b) = (prebuilt("a", &json!({})), prebuilt("b", &json!({})));
    let admitted = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    assert_eq!(steps(&[&a], Some(&admitted), &[]), ["start a"]);
    let mut plain = admitted.clone();
    plain.metadata.annotations = None;
    assert_eq!(steps(&[&a], Some(&plain), &[]), [""; 0], "it was not made for a group");
    let composed = gated("a");
    assert_eq!(steps(&[&composed], Some(&admitted), &[]), [""; 0], "it starts as a whole");
    let finished = workload(&[&a, &b], &["Finished"]);
    let steps = steps(&[&a], Some(&finished), &[]);
    assert_eq!(
        steps.last().map(String::as_str),
        Some("Workload { name: \"team\", write: RemoveFinalizer }")
    );
}

#[test]
fn a_prebuilt_workload_has_its_own_time_limit() {
    let (a, b) = (prebuilt("a", &json!({})), prebuilt("b", &json!({})));
    let mut limited = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    limited.spec.maximum_execution_time_seconds = Some(60);
    assert_eq!(steps(&[&a, &b], Some(&limited), &[]), ["start a", "start b"]);
    let (a, b) = (gated("a"), gated("b"));
    let steps = steps(&[&a, &b], Some(&limited), &[]);
    assert!(steps[0].contains("Delete"), "a composed one follows its members: {steps:?}");
}

#[test]
fn a_pod_set_without_pods_lacks_no_member() {
    let (a, b) = (gated("a"), gated("b"));
    let mut admitted = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    let empty = |text: Value| -> Value {
        let mut empty = text;
        (empty["name"], empty["count"]) = (json!("worker"), json!(0));
        empty
    };
    let set = empty(json!(admitted.spec.pod_sets[0]));
    admitted.spec.pod_sets.push(serde_json::from_value(set).expect("a pod set decodes"));
    let admission = admitted.status.admission.as_mut().expect("it has quota");
    let assignment = empty(json!(admission.pod_set_assignments[0]));
    let assignment = serde_json::from_value(assignment).expect("an assignment decodes");
    admission.pod_set_assignments.push(assignment);
    assert_eq!(steps(&[&a, &b], Some(&admitted), &[]), ["start a", "start b"]);
    let waits = |pods: &[&Pod]| {
        waiting_for_replacement(pods, &admitted, RoleComparison::NONE, JobGates::default())
    };
    let (a, b) = (in_phase("a", "Running"), in_phase("b", "Running"));
    assert_eq!(waits(&[&a, &b]), None);
    assert!(waits(&[&a]).is_some());
}

#[test]
fn members_own_a_prebuilt_workload_before_it_is_out_of_sync() {
    let other = json!({ "metadata": { "annotations": { "kueue.x-k8s.io/role-hash": "other" } } });
    let (a, b) = (prebuilt("a", &other), prebuilt("b", &other));
    let made = |conditions: &[&str], owners: Option<&[&Pod]>| {
        let mut made =
            workload(&[&prebuilt("x", &json!({})), &prebuilt("y", &json!({}))], conditions);
        made.metadata.owner_references = owners.map(owner_references);
        made.metadata.finalizers = None;
        made
    };
    let admitted = made(&["QuotaReserved", "Admitted"], None);
    assert_eq!(steps(&[&a], Some(&admitted), &[]), ["own a", "finish OutOfSync"]);
    let running = |name: &str| {
        let mut pod = json!({ "spec": { "schedulingGates": [], "nodeName": "n" }, "status": { "phase": "Running" } });
        merge(&mut pod, &other);
        prebuilt(name, &pod)
    };
    let b_runs = running("b");
    assert_eq!(
        steps(&[&a, &b_runs], Some(&admitted), &[]),
        ["own a b", "mark b"],
        "quota is held until none of them runs (kueue#14395)"
    );
    let mut copied = json!({ "status": { "phase": "Running" } });
    merge(&mut copied, &other);
    let mut dispatched = admitted;
    dispatched.status.cluster_name = Some("east".to_owned());
    assert_eq!(
        steps(&[&prebuilt("a", &copied)], Some(&dispatched), &[]),
        ["own a", "finish OutOfSync"],
        "the phase is that of a copy, which is not withdrawn before"
    );
    let finished = made(&["Finished"], Some(&[&a]));
    assert_eq!(
        steps(&[&a, &b], Some(&finished), &[]),
        ["own b", "finalize a", "finalize b"],
        "so does one that comes later"
    );
    let owned = made(&["Finished"], Some(&[&a, &b]));
    assert_eq!(steps(&[&a, &b], Some(&owned), &[]), ["finalize a", "finalize b"]);
}

#[test]
fn a_member_that_lost_its_gate_is_stopped_until_the_admission() {
    let (a, b) = (gated("a"), in_phase("b", "Running"));
    let pending = workload(&[&a, &b], &[]);
    assert_eq!(steps(&[&a, &b], Some(&pending), &[]), ["mark b"]);
    let marked = json!([{ "type": "TerminationTarget", "status": "True" }]);
    let b = member(
        "b",
        &json!({
            "spec": { "schedulingGates": [] }, "status": { "phase": "Running", "conditions": marked },
        }),
    );
    assert_eq!(steps(&[&a, &b], Some(&pending), &[]), ["stop b"]);
    assert_eq!(steps(&[&a, &b], None, &[]), ["stop b"], "nor does it run without a Workload");
}

#[test]
fn a_group_moves_to_the_queue_that_any_member_names_if_no_other_disagrees() {
    let of = |name: &str, queue: &str| {
        member(name, &json!({ "metadata": { "labels": { "kueue.x-k8s.io/queue-name": queue } } }))
    };
    let pending = workload(&[&gated("a"), &gated("b")], &[]);
    let moved = |a: &str, b: &str| steps(&[&of("a", a), &of("b", b)], Some(&pending), &[]);
    assert_eq!(moved("other", ""), ["queue \"other\""]);
    assert_eq!(moved("", "other"), ["queue \"other\""]);
    assert_eq!(moved("", ""), ["queue \"\""]);
    assert_eq!(moved("lq", ""), [""; 0]);
    assert_eq!(moved("lq", "other"), [""; 0]);
    let reserved = workload(&[&gated("a"), &gated("b")], &["QuotaReserved"]);
    assert_eq!(steps(&[&of("a", "other"), &of("b", "other")], Some(&reserved), &[]), [""; 0]);
}

#[test]
fn no_finalizer_outlives_the_workload() {
    let (a, b) = (in_phase("a", "Succeeded"), in_phase("b", "Failed"));
    let finished =
        workload(&[&gated("a"), &gated("b")], &["QuotaReserved", "Admitted", "Finished"]);
    let ended = steps(&[&a, &b], Some(&finished), &[]);
    assert_eq!(ended[..2], ["finalize a", "finalize b"]);
    let succeeded = [in_phase("a", "Succeeded"), in_phase("b", "Succeeded")];
    let succeeded: Vec<&Pod> = succeeded.iter().collect();
    assert_eq!(
        steps(&succeeded, None, &[]),
        ["finalize a", "finalize b"],
        "it was removed by force"
    );
}

#[test]
fn a_member_whose_finalizer_was_removed_by_hand_counts_like_any_other() {
    let without = |pod: &Pod| {
        let mut pod = pod.clone();
        pod.metadata.finalizers = None;
        pod
    };
    // Members with the finalizer come first.
    let sorted = |pods: &[&Pod], workload: Option<&Workload>| {
        let mut steps = steps(pods, workload, &[]);
        steps.sort();
        steps
    };
    let admitted = workload(&[&gated("a"), &gated("b")], &["QuotaReserved", "Admitted"]);
    for (a, b) in [
        (gated("a"), gated("b")),
        (in_phase("a", "Running"), gated("b")),
        (in_phase("a", "Running"), in_phase("b", "Running")),
    ] {
        let bare = without(&a);
        for workload in [None, Some(&admitted)] {
            assert_eq!(sorted(&[&bare, &b], workload), sorted(&[&a, &b], workload), "{a:?}");
        }
    }
    // Its end is known as long as it exists, and its finalizer is not removed again.
    let (a, b) = (in_phase("a", "Succeeded"), in_phase("b", "Succeeded"));
    let mut whole = sorted(&[&a, &b], Some(&admitted));
    whole.retain(|step| step != "finalize a");
    assert!(whole.iter().any(|step| step.starts_with("finish")), "{whole:?}");
    assert_eq!(sorted(&[&without(&a), &b], Some(&admitted)), whole);
}

#[test]
fn a_pod_that_joins_after_the_end_is_not_needed() {
    let (a, b) = (in_phase("a", "Succeeded"), in_phase("b", "Succeeded"));
    let finished =
        workload(&[&gated("a"), &gated("b")], &["QuotaReserved", "Admitted", "Finished"]);
    let late = member("late", &json!({ "metadata": { "finalizers": null } }));
    let steps = steps(&[&a, &b, &late], Some(&finished), &[]);
    assert_eq!(steps[..3], ["finalize a", "finalize b", "delete late"]);
}

#[test]
fn members_that_disagree_and_foreign_workloads_are_reported() {
    let other = json!({ "metadata": { "labels": { "kueue.x-k8s.io/queue-name": "other" } } });
    let (a, b) = (gated("a"), member("b", &other));
    assert_eq!(steps(&[&a, &b], None, &[]), ["refuse ErrWorkloadCompose"]);
    let b = gated("b");
    let mut foreign = workload(&[&a, &b], &[]);
    foreign.metadata.annotations = None;
    assert_eq!(steps(&[&a, &b], Some(&foreign), &[]), ["refuse WorkloadNameConflict"]);
    let no_total = json!({
        "metadata": { "annotations": { "kueue.x-k8s.io/pod-group-total-count": "-1" } },
    });
    assert_eq!(steps(&[&member("a", &no_total)], None, &[]), ["refuse ErrWorkloadCompose"]);
}

#[test]
fn a_succeeded_member_is_ready_unless_the_group_serves() {
    let (a, b) = (in_phase("a", "Succeeded"), in_phase("b", "Running"));
    let workload = workload(&[&gated("a"), &gated("b")], &["QuotaReserved", "Admitted"]);
    let pods_ready = |pods: &[&Pod]| pods_ready(pods, &workload);
    assert_eq!(pods_ready(&[&a, &b]), Some(true));
    let role = json!({ "metadata": { "annotations": { "kueue.x-k8s.io/role-hash": "other" } } });
    let stranger = member("z", &role);
    assert_eq!(pods_ready(&[&a, &b, &stranger]), Some(true), "it waits beside the group");
    let served = json!({
        "metadata": { "annotations": { "kueue.x-k8s.io/pod-group-serving": "true" } },
        "spec": { "schedulingGates": [] }, "status": { "phase": "Succeeded" },
    });
    let served = member("a", &served);
    assert_eq!(pods_ready(&[&served, &b]), Some(false));
    assert_eq!(pods_ready(&[&a, &in_phase("b", "Failed")]), Some(false));
    assert_eq!(pods_ready(&[&a, &in_phase("b", "Succeeded")]), None, "it is over");
}

#[test]
fn a_silent_node_holds_the_quota_of_a_deleted_pod_for_a_second_grace_period_only() {
    let deleted = json!({
        "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30 },
        "spec": { "schedulingGates": [] }, "status": { "phase": "Running" },
    });
    let pod = member("a", &deleted);
    let gates = JobGates::default();
    let until = |now: &str| active_until(&[&pod], now.parse().expect("a time"), gates);
    let end: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
    assert_eq!(until("2026-01-01T00:00:59Z"), Some(end));
    assert_eq!(until("2026-01-01T00:01:00Z"), None);
    let running = in_phase("b", "Running");
    assert_eq!(active_until(&[&pod, &running], end, gates), Some(Timestamp::MAX));
    let fast = JobGates { fast_quota_release: true, ..gates };
    let asked: Timestamp = "2026-01-01T00:00:30Z".parse().expect("a time");
    assert_eq!(active_until(&[&pod], asked, fast), None, "its deletion is enough");
    assert_eq!(active_until(&[&pod, &running], asked, fast), Some(Timestamp::MAX));
}

#[test]
fn one_replacement_ends_the_wait_of_an_evicted_group_with_fast_admission() {
    let fast = json!({ "metadata": { "annotations": {
        "kueue.x-k8s.io/pod-group-fast-admission": "true",
    } } });
    let waits = |pods: &[&Pod], conditions: &[&str]| {
        let mut workload = workload(&[&member("a", &fast)], conditions);
        let current = json!({ "type": "WaitingForReplacementPods", "status": "True" });
        workload.status.conditions.push(serde_json::from_value(current).expect("a condition"));
        waiting_for_replacement(pods, &workload, RoleComparison::NONE, JobGates::default())
            .map(|one| one.status)
    };
    // It was deleted before it had a node, and keeps its finalizer until another pod stands in for it.
    let mut evicted = fast.clone();
    merge(
        &mut evicted,
        &json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" },
            "spec": { "schedulingGates": [] },
        }),
    );
    let (old, new) = (member("a", &evicted), member("b", &fast));
    assert_ne!(waits(&[&old], &["Evicted"]), Some(false));
    assert_eq!(waits(&[&old, &new], &["Evicted"]), Some(false));
    assert_ne!(waits(&[&old, &new], &[]), Some(false), "nothing was evicted");
    assert_ne!(waits(&[&old, &gated("b")], &["Evicted"]), Some(false), "the group needs both");
}

#[test]
fn a_serving_member_that_ended_after_its_stop_gives_way_at_once() {
    const NEW: (bool, bool) = (false, false);
    const STOPPED: (bool, bool) = (true, true);
    let pod = |name: &str, phase: &str, serving: bool, (deleted, stopped): (bool, bool)| {
        let mut fields = json!({
            "metadata": { "annotations": { "kueue.x-k8s.io/pod-group-serving": serving.to_string() } },
            "status": { "phase": phase, "conditions": [] },
        });
        if stopped {
            let mark = json!([{ "type": "TerminationTarget", "status": "True" }]);
            fields["status"]["conditions"] = mark;
        }
        if deleted {
            let gone = json!({
                "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" },
                "spec": { "schedulingGates": [], "nodeName": "n" },
            });
            merge(&mut fields, &gone);
        }
        member(name, &fields)
    };
    let decided = |old: &Pod, new: Option<&Pod>| {
        let both = [pod("old", "Pending", true, NEW), pod("b", "Pending", true, NEW)];
        let mut evicted = workload(&[&both[0], &both[1]], &["Evicted"]);
        evicted.spec.pod_sets[0].count = Some(1);
        let pods: Vec<&Pod> = [old].into_iter().chain(new).collect();
        // They own it already.
        evicted.metadata.owner_references = Some(owner_references(&pods));
        steps(&pods, Some(&evicted), &[])
    };
    let new = pod("new", "Pending", true, NEW);
    for phase in ["Succeeded", "Failed"] {
        let ended = pod("old", phase, true, STOPPED);
        assert_eq!(decided(&ended, None), ["finalize old"], "{phase}");
        assert_eq!(decided(&ended, Some(&new)), ["finalize old"], "{phase}");
    }
    assert_eq!(decided(&pod("old", "Running", true, STOPPED), None), [""; 0]);
    let deleted = pod("old", "Succeeded", true, (true, false));
    assert_eq!(decided(&deleted, None), [""; 0], "nothing of Kueue has stopped it");
    let batch = pod("old", "Succeeded", false, STOPPED);
    assert!(!decided(&batch, None).contains(&"finalize old".to_owned()), "it is history");
}

#[test]
fn an_ended_or_deleted_pod_of_a_set_loses_the_finalizer_of_an_earlier_kueue() {
    let pod = |name: &str, phase: &str, deleted: bool, parent: Option<&str>| {
        let mut fields = json!({
            "metadata": { "annotations": {
                "kueue.x-k8s.io/pod-group-serving": "true",
                "kueue.x-k8s.io/pod-suspending-parent": parent,
            } },
            "spec": { "schedulingGates": [], "nodeName": "n" },
            "status": { "phase": phase },
        });
        if parent.is_none() {
            fields["metadata"]["annotations"]
                .as_object_mut()
                .map(|all| all.remove("kueue.x-k8s.io/pod-suspending-parent"));
        }
        if deleted {
            fields["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        }
        member(name, &fields)
    };
    let other = || pod("b", "Running", false, Some("statefulset"));
    for parent in ["statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"] {
        for (phase, deleted, finalized) in [
            ("Running", false, false),
            ("Running", true, true),
            ("Pending", true, true),
            ("Succeeded", false, true),
            ("Failed", false, true),
        ] {
            let (old, b) = (pod("old", phase, deleted, Some(parent)), other());
            let mut admitted = workload(&[&other(), &other()], &["QuotaReserved", "Admitted"]);
            admitted.metadata.owner_references = Some(owner_references(&[&old, &b]));
            for workload in [Some(&admitted), None] {
                let steps = steps(&[&old, &b], workload, &[]);
                let finalizes = steps.contains(&"finalize old".to_owned());
                assert_eq!(finalizes, finalized, "{parent} {phase} {deleted} {steps:?}");
            }
        }
    }
    // A pod of a group without a parent is its history.
    let (old, b) = (pod("old", "Failed", false, None), pod("b", "Running", false, None));
    let mut admitted = workload(&[&other(), &other()], &["QuotaReserved", "Admitted"]);
    admitted.metadata.owner_references = Some(owner_references(&[&old, &b]));
    assert_eq!(steps(&[&old, &b], Some(&admitted), &[]), [""; 0]);
}

#[test]
fn a_succeeded_member_of_a_held_group_that_ends_is_its_history() {
    let pod = |name: &str, phase: &str| {
        let fields = json!({
            "metadata": { "annotations": {
                "kueue.x-k8s.io/pod-suspending-parent": "example.com/rollout",
            } },
            "spec": { "schedulingGates": [], "nodeName": "n" },
            "status": { "phase": phase },
        });
        member(name, &fields)
    };
    let (old, b) = (pod("old", "Succeeded"), pod("b", "Running"));
    let mut admitted = workload(&[&b, &b], &["QuotaReserved", "Admitted"]);
    admitted.metadata.owner_references = Some(owner_references(&[&old, &b]));
    let decided = steps(&[&old, &b], Some(&admitted), &[]);
    assert!(!decided.contains(&"finalize old".to_owned()), "{decided:?}");
}

#[test]
fn the_member_that_stopped_first_is_replaced_first() {
    let stopped = |name: &str, status: &str, at: &str| {
        let ready =
            json!([{ "type": "ContainersReady", "status": status, "lastTransitionTime": at }]);
        let failed = json!({
            "spec": { "schedulingGates": [] }, "status": { "phase": "Failed", "conditions": ready },
        });
        member(name, &failed)
    };
    let replaced = |a: &Pod, b: &Pod| {
        let fresh = gated("new");
        let admitted = workload(&[&gated("a"), &gated("b")], &[]);
        let members = members::assign(&[a, b, &fresh], &admitted.spec.pod_sets, &|_| false);
        members.replaced.iter().filter_map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>()
    };
    let (early, late) = ("2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z");
    assert_eq!(replaced(&stopped("a", "False", early), &stopped("b", "False", late)), ["a"]);
    assert_eq!(replaced(&stopped("a", "False", late), &stopped("b", "False", early)), ["b"]);
    let mut deleted = stopped("b", "False", late);
    deleted.metadata.deletion_timestamp = serde_json::from_value(json!(late)).ok();
    assert_eq!(replaced(&stopped("a", "False", early), &deleted), ["b"], "nothing else keeps it");
    // Of the first one it is only known when it became ready.
    assert_eq!(replaced(&stopped("a", "True", early), &stopped("b", "False", late)), ["b"]);
}

#[test]
fn replaced_members_go_after_their_replacements_own_the_workload() {
    let deleted = |name: &str| {
        member(name, &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:30:00Z" } }))
    };
    let (a, b, c, d) = (deleted("a"), deleted("b"), gated("c"), gated("d"));
    let mut active = workload(&[&gated("a"), &gated("b")], &[]);
    assert_eq!(steps(&[&a, &b, &c, &d], Some(&active), &[]), ["own c d"]);
    let owners = workload(&[&c, &d], &[]).metadata.owner_references;
    active.metadata.owner_references.get_or_insert_default().extend(owners.unwrap_or_default());
    let released = steps(&[&a, &b, &c, &d], Some(&active), &[]);
    assert_eq!(released, ["finalize a", "finalize b"]);
}

#[test]
fn members_with_copies_on_a_worker_stay_gated() {
    let (a, b) = (gated("a"), gated("b"));
    let mut admitted = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    admitted.status.cluster_name = Some("east".to_owned());
    assert_eq!(steps(&[&a, &b], Some(&admitted), &[]), [""; 0]);
}

#[test]
fn a_gated_pod_shows_its_copy_until_that_is_gone() {
    let gated_condition =
        json!({ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" });
    let mut home = gated("a");
    home.status.conditions = vec![serde_json::from_value(gated_condition).expect("a condition")];
    let mut copy = in_phase("a", "Pending");
    let shown = home.with_remote_status(&copy);
    assert_eq!(
        shown.condition("PodScheduled"),
        home.condition("PodScheduled"),
        "it has no node yet"
    );

    let scheduled = json!({ "type": "PodScheduled", "status": "True" });
    copy.status.phase = "Running".to_owned();
    copy.status.conditions = vec![serde_json::from_value(scheduled).expect("a condition")];
    let shown = home.with_remote_status(&copy);
    assert_eq!(shown.status, copy.status);
    let idle = shown.with_idle_status().expect("it waits again");
    assert_eq!(idle.status.phase, "Pending");
    let next = shown.with_remote_status(&in_phase("a", "Pending"));
    for pod in [&idle, &next] {
        let condition = pod.condition("PodScheduled").expect("it is gated");
        assert_eq!(
            (&*condition.status, &condition.rest["reason"]),
            ("False", &json!("SchedulingGated"))
        );
    }

    copy.status.phase = "Succeeded".to_owned();
    assert_eq!(home.with_remote_status(&copy).with_idle_status(), None, "the end stays");
    assert_eq!(home.with_idle_status(), None, "it waits already");
}

#[test]
fn a_gated_pod_shows_no_copy_that_had_a_node_and_never_ran() {
    let home = gated("a");
    let shown = |status: Value| {
        let mut copy = in_phase("a", "Pending");
        copy.status = serde_json::from_value(status).expect("a status");
        home.with_remote_status(&copy)
    };
    let scheduled = json!([{ "type": "PodScheduled", "status": "True" }]);
    let containers = json!([{ "name": "main", "state": { "waiting": {} } }]);
    for status in [
        json!({ "phase": "Pending", "conditions": scheduled }),
        json!({ "phase": "Pending", "containerStatuses": containers }),
        json!({ "phase": "Pending", "initContainerStatuses": containers }),
        json!({ "phase": "Pending", "hostIP": "10.0.0.1" }),
    ] {
        let idle = shown(status.clone()).with_idle_status().expect("the copy is gone");
        let of_copy = idle.condition("PodScheduled").is_some_and(|one| one.status == "True");
        assert!(!of_copy && idle.status.rest.is_empty(), "{status}: {:?}", idle.status);
        assert_eq!(idle.with_idle_status(), None, "it waits already");
    }
    let own = json!({ "phase": "Pending", "observedGeneration": 3, "qosClass": "Burstable" });
    let mut waiting = home.clone();
    waiting.status = serde_json::from_value(own).expect("a status");
    assert_eq!(waiting.with_idle_status(), None, "its own API server has set these");
}

#[test]
fn a_workload_of_the_name_that_is_no_groups_is_taken_without_the_gate_only() {
    let (a, b) = (gated("a"), gated("b"));
    let mut foreign = workload(&[&a, &b], &["QuotaReserved", "Admitted"]);
    foreign.metadata.annotations = None;
    assert_eq!(steps(&[&a, &b], Some(&foreign), &[]), ["refuse WorkloadNameConflict"]);
    let gates = JobGates { validate_group_owner: false, ..JobGates::default() };
    assert_eq!(steps_under(gates, &[&a, &b], Some(&foreign), &[]), ["start a", "start b"]);
}

#[test]
fn a_pod_keeps_the_generation_that_its_own_api_server_has_observed() {
    let running = |generation: Option<i64>| {
        let known = generation.map(|one| json!({ "status": { "observedGeneration": one } }));
        let mut pod = json!({ "status": { "phase": "Running" } });
        merge(&mut pod, &known.unwrap_or(json!({})));
        member("a", &pod)
    };
    for (own, of_copy) in [(Some(2), None), (Some(2), Some(1)), (None, Some(1))] {
        let (pod, copy) = (running(own), running(of_copy));
        let shown = pod.with_remote_status(&copy);
        assert_eq!(shown.status, pod.status, "a write without a change would be repeated for ever");
    }
}

#[test]
fn one_evaluation_writes_some_members_and_the_next_one_goes_on() {
    let total =
        json!({ "metadata": { "annotations": { "kueue.x-k8s.io/pod-group-total-count": "600" } } });
    let names: Vec<String> = (0..600).map(|number| format!("pod-{number:03}")).collect();
    let pods: Vec<Pod> = names.iter().map(|name| member(name, &total)).collect();
    let pods: Vec<&Pod> = pods.iter().collect();
    let admitted = workload(&pods, &["QuotaReserved", "Admitted"]);
    let mut busy: Vec<&str> = Vec::new();
    for expected in [64; 9].into_iter().chain([24, 0]) {
        let steps = steps(&pods, Some(&admitted), &busy);
        assert_eq!(steps.len(), expected);
        let n_started = busy.len();
        assert!(steps.first().is_none_or(|first| *first == format!("start pod-{n_started:03}")));
        busy.extend(names[n_started..n_started + expected].iter().map(String::as_str));
    }
}

#[test]
fn members_that_are_missing_are_named_before_those_that_disagree() {
    let of_three = json!({ "kueue.x-k8s.io/pod-group-total-count": "3" });
    let other = json!({ "kueue.x-k8s.io/queue-name": "other" });
    let a = member("a", &json!({ "metadata": { "annotations": of_three } }));
    let b = member("b", &json!({ "metadata": { "annotations": of_three, "labels": other } }));
    let message = |pods: &[&Pod]| {
        let composed = compose("team", pods, RoleComparison::NONE, JobGates::default());
        composed.map(|_| ()).map_err(|error| error.to_string())
    };
    let missing = "'team' group has fewer runnable pods than expected";
    assert_eq!(message(&[&a, &b]), Err(missing.to_owned()));
    let c = member("c", &json!({ "metadata": { "annotations": of_three } }));
    let differ = "pods 'a' and 'b' of group 'team' have different queue names";
    assert_eq!(message(&[&a, &b, &c]), Err(differ.to_owned()));
}

#[test]
fn a_key_that_some_members_have_is_copied_unless_two_values_differ() {
    let of = |name: &str, metadata: Value| member(name, &json!({ "metadata": metadata }));
    let (labels, annotations) = (vec!["team".to_owned()], vec!["note".to_owned()]);
    let copied = KeysToCopy { labels, annotations, ..KeysToCopy::default() };
    let gates = JobGates::default();
    let steps = |pods: &[&Pod]| steps_copying(&copied, gates, pods, (None, &[]));
    let (a, b) = (of("a", json!({ "labels": { "team": "x" } })), gated("b"));
    let c = of("c", json!({ "annotations": { "note": "y" } }));
    for pods in [[&a, &b], [&b, &a], [&a, &c]] {
        assert_eq!(steps(&pods), ["create"]);
    }
    let composition = compose("team", &[&c, &a], RoleComparison::NONE, gates).expect("complete");
    let priority = WorkloadPriority::default();
    let workload = group_workload("team", &composition, priority, &copied, gates);
    let metadata = workload.expect("members").metadata;
    assert_eq!(metadata.labels.expect("one")["team"], "x");
    assert_eq!(metadata.annotations.expect("some")["note"], "y");
    for (other, message) in [
        (
            json!({ "labels": { "team": "z" } }),
            "pods 'a' and 'd' of group 'team' have different values of 'team'",
        ),
        (
            json!({ "labels": { "team": "" } }),
            "pods 'a' and 'd' of group 'team' have different values of 'team'",
        ),
    ] {
        let d = of("d", other);
        assert_eq!(steps(&[&a, &d]), ["refuse ErrWorkloadCompose"]);
        let error = compose("team", &[&a, &d], RoleComparison::NONE, gates)
            .and_then(|one| one.agreeing_about(&copied, "team"));
        assert_eq!(error.map(|_| ()).map_err(|error| error.to_string()), Err(message.to_owned()));
    }
    let d = of("d", json!({ "annotations": { "note": "z" } }));
    assert_eq!(steps(&[&c, &d]), ["refuse ErrWorkloadCompose"]);
    // Metrics alone keep no group from its Workload.
    let measured = KeysToCopy { measured: vec!["note".to_owned()], ..copied };
    assert_eq!(steps_copying(&measured, gates, &[&c, &d], (None, &[])), ["create"]);
}

#[test]
fn members_that_a_controller_would_make_again_do_not_expire() {
    let owned = |controller: bool| {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r",
            "controller": controller });
        member("a", &json!({ "metadata": { "ownerReferences": [owner] } }))
    };
    let now = "2026-01-01T01:00:00Z".parse().expect("a time");
    for (controller, expires) in [(false, true), (true, false)] {
        assert_eq!(may_expire(&[&owned(controller)], now, JobGates::default()), expires);
    }
}

#[test]
fn members_that_will_not_run_wait_for_no_workload() {
    let (a, b) = (in_phase("a", "Failed"), gated("b"));
    assert_eq!(steps(&[&a, &b], None, &[]), ["finalize a", "refuse ErrWorkloadCompose"]);
    let c = in_phase("c", "Failed");
    let failed = ["finalize a", "finalize c", "refuse ErrWorkloadCompose"];
    assert_eq!(steps(&[&a, &c], None, &[]), failed);
    let d = gated("d");
    assert_eq!(steps(&[&a, &b, &d], None, &[]), ["finalize a", "create"]);
}

/// A member on a node that does not answer: its deletion was long ago.
fn stuck(name: &str, phase: &str) -> Pod {
    let spec = json!({ "schedulingGates": [], "nodeName": "n" });
    let deleted = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": null });
    let more = json!({ "metadata": deleted, "spec": spec, "status": { "phase": phase } });
    member(name, &more)
}

#[test]
fn a_group_of_which_all_members_leave_gets_no_workload() {
    let a = stuck("a", "Running");
    for b in [stuck("b", "Running"), stuck("b", "Pending"), in_phase("b", "Succeeded")] {
        assert_eq!(steps(&[&a, &b], None, &[]), [""; 0], "nothing would run: {b:?}");
    }
    assert_eq!(steps(&[&a, &gated("b")], None, &[]), ["create"], "a replacement may run");
}

#[test]
fn a_group_whose_topology_cannot_be_read_gets_no_workload() {
    let annotations = json!({ "kueue.x-k8s.io/podset-unconstrained-topology": "maybe" });
    let metadata = json!({ "annotations": annotations });
    let bad = |name: &str| member(name, &json!({ "metadata": metadata }));
    let (a, b) = (bad("a"), bad("b"));
    assert_eq!(steps(&[&a, &b], None, &[]), ["refuse ErrWorkloadCompose"]);
    let mut fast = metadata.clone();
    fast["annotations"]["kueue.x-k8s.io/pod-group-fast-admission"] = json!("true");
    let first = member("a", &json!({ "metadata": fast }));
    assert_eq!(steps(&[&first], None, &[]), ["refuse ErrWorkloadCompose"]);
}

#[test]
fn the_index_of_a_member_is_below_the_total() {
    let of = |index: &str| {
        let label = json!({ "kueue.x-k8s.io/pod-group-pod-index": index });
        steps(&[&gated("a"), &member("b", &json!({ "metadata": { "labels": label } }))], None, &[])
    };
    // The webhook writes an empty one for a pod that lacks the label that its annotation names.
    for index in ["0", "1", ""] {
        assert_eq!(of(index), ["create"]);
    }
    for index in ["2", "-1", "+1", "x"] {
        assert_eq!(of(index), ["refuse ErrWorkloadCompose"], "{index:?}");
    }
}
