//! Members of a group that request more than their role has quota for.

use super::{
    cluster::{Cluster, json_merge},
    dispatched::orders,
    name_holders::{group_manager, member as hub_member},
    workloads_of_groups::{cluster, events_of_pods, member, pod_kind},
    *,
};

/// A pod with requests, or with a limit that the API server has made the request.
fn container(resources: &Value) -> Value {
    json!({"spec": {"containers": [{"name": "main", "resources": resources}]}})
}

fn cpu(amount: &str) -> Value {
    container(&json!({"requests": {"cpu": amount}}))
}

/// The starts of pods in a decision.
fn starts(cluster: &mut Cluster) -> Vec<String> {
    let step = cluster.control.decide(cluster.now);
    let started = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Start);
    let names = started.map(|order| order.ticket.target.key.name.to_string()).collect();
    cluster.events.extend(step.events);
    names
}

/// Shows the manager that the members of the admitted group `team` run.
fn run(cluster: &mut Cluster, names: &[&str], fields: &Value) {
    let mut running = fields.clone();
    json_merge(
        &mut running,
        &json!({"spec": {"schedulingGates": []}, "status": {"phase": "Running"}}),
    );
    for name in names {
        cluster.answer_job(name, &WriteOutcome::Stale);
        member(cluster, name, 30, &running);
    }
    cluster.settle();
}

const HELD: &str = "b pod-kueue-controller PodExceedsRoleRequests: Pod requests more than its role \"role\" has quota for: cpu 8 instead of 1";

/// Makes a Workload of two pods for the group `team`, and these members that name it.
fn prebuilt(cluster: &mut Cluster, template: &Value, members: &[(&str, Value)]) {
    let of_group = json!({
        "metadata": {"annotations": {"kueue.x-k8s.io/is-group-workload": "true"}},
        "spec": {"podSets": [{"name": "role", "count": 2, "template": template}]},
    });
    cluster.workload("team", 2, &of_group).settle();
    let named = json!({"metadata": {"annotations": {
        "kueue.x-k8s.io/prebuilt-workload-name": "team",
    }}});
    for (name, fields) in members {
        let mut pod = fields.clone();
        json_merge(&mut pod, &named);
        member(cluster, name, 20, &pod);
    }
}

/// Takes decisions until nothing changes. Returns the pods that were started.
fn settled_starts(cluster: &mut Cluster) -> Vec<String> {
    let mut started = Vec::new();
    for _ in 0..9 {
        let step = cluster.control.decide(cluster.now);
        let names = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Start);
        started.extend(names.map(|order| order.ticket.target.key.name.to_string()));
        cluster.take(step);
    }
    started
}

/// The requests of the only container of the group's Workload.
fn composed(cluster: &Cluster) -> &Value {
    let set = &cluster.workloads["team"]["spec"]["podSets"][0];
    &set["template"]["spec"]["containers"][0]["resources"]["requests"]
}

#[test]
fn a_member_that_requests_more_than_a_prebuilt_workload_stays_gated() {
    let mut cluster = cluster();
    let pods = [("a", cpu("1")), ("b", cpu("8"))];
    prebuilt(&mut cluster, &cpu("1"), &pods);
    let started = settled_starts(&mut cluster);
    assert!(cluster.condition("team", "Admitted").starts_with("True"));
    assert_eq!(started, ["a"]);
    let events = events_of_pods(&mut cluster);
    assert_eq!(events.iter().filter(|event| *event == HELD).count(), 1, "{events:?}");
    run(&mut cluster, &["a"], &cpu("1"));
    let events = events_of_pods(&mut cluster);
    assert!(!events.contains(&HELD.to_owned()), "it is said once: {events:?}");
}

#[test]
fn a_member_that_is_made_again_under_its_name_is_reported_like_the_first() {
    let mut cluster = cluster();
    let pods = [("a", cpu("1")), ("b", cpu("8"))];
    prebuilt(&mut cluster, &cpu("1"), &pods);
    settled_starts(&mut cluster);
    assert!(events_of_pods(&mut cluster).contains(&HELD.to_owned()));
    let mut again = cpu("8");
    json_merge(
        &mut again,
        &json!({"metadata": {"uid": "another", "annotations": {
            "kueue.x-k8s.io/prebuilt-workload-name": "team",
        }}}),
    );
    member(&mut cluster, "b", 30, &again);
    settled_starts(&mut cluster);
    let events = events_of_pods(&mut cluster);
    assert!(events.contains(&HELD.to_owned()), "{events:?}");
}

#[test]
fn a_group_has_quota_for_the_largest_member_of_a_role() {
    let mut cluster = cluster();
    member(&mut cluster, "a", 20, &cpu("1"));
    member(&mut cluster, "b", 20, &cpu("4"));
    assert_eq!(settled_starts(&mut cluster), ["a", "b"]);
    assert_eq!(composed(&cluster), &json!({"cpu": "4"}));
}

#[test]
fn members_of_a_role_that_do_not_cover_each_other_make_no_workload() {
    let mut cluster = cluster();
    let requests =
        |cpu: &str, memory: &str| container(&json!({"requests": {"cpu": cpu, "memory": memory}}));
    member(&mut cluster, "a", 20, &requests("1", "2Gi"));
    member(&mut cluster, "b", 20, &requests("2", "1Gi"));
    assert_eq!(settled_starts(&mut cluster), [""; 0]);
    assert!(!cluster.workloads.contains_key("team"));
    let refused = "a pod-kueue-controller ErrWorkloadCompose: pods 'b' and 'a' of group 'team' have the role 'role', but neither requests at least as much as the other";
    assert_eq!(events_of_pods(&mut cluster), [refused]);
}

#[test]
fn a_waiting_group_is_composed_again_for_a_larger_member() {
    let mut cluster = cluster();
    for name in ["a", "b"] {
        member(&mut cluster, name, 20, &cpu("6"));
    }
    assert_eq!(settled_starts(&mut cluster), [""; 0]);
    let gone = Key { namespace: Some("ns".into()), name: "b".into() };
    cluster.observe(ManagerInput::Job(pod_kind(), Change::Delete(gone)));
    member(&mut cluster, "c", 30, &cpu("9"));
    assert_eq!(settled_starts(&mut cluster), [""; 0]);
    assert_eq!(composed(&cluster), &json!({"cpu": "9"}));
}

#[test]
fn a_prebuilt_workload_without_pod_specs_has_quota_for_no_requests() {
    let mut cluster = cluster();
    prebuilt(&mut cluster, &json!({}), &[("a", cpu("1")), ("b", container(&json!({})))]);
    let started = settled_starts(&mut cluster);
    assert!(cluster.condition("team", "Admitted").starts_with("True"));
    assert_eq!(started, ["b"]);
}

#[test]
fn a_replacement_within_the_role_starts() {
    let mut cluster = cluster();
    for name in ["a", "b"] {
        member(&mut cluster, name, 20, &cpu("1"));
    }
    cluster.settle();
    run(&mut cluster, &["a"], &cpu("1"));
    let mut failed = cpu("1");
    json_merge(
        &mut failed,
        &json!({"spec": {"schedulingGates": []}, "status": {"phase": "Failed"}}),
    );
    cluster.answer_job("b", &WriteOutcome::Stale);
    member(&mut cluster, "b", 30, &failed);
    member(&mut cluster, "large", 31, &cpu("2"));
    assert_eq!(starts(&mut cluster), [""; 0]);
    member(&mut cluster, "small", 32, &cpu("1"));
    assert_eq!(starts(&mut cluster), ["small"]);
}

#[test]
fn a_member_with_the_defaults_of_its_namespace_starts_when_they_are_known() {
    let mut cluster = cluster();
    // LimitRanger has completed the pods, and the watch of LimitRanges is late.
    let pods = [("a", cpu("1")), ("b", cpu("1"))];
    prebuilt(&mut cluster, &container(&json!({})), &pods);
    cluster.settle();
    assert!(cluster.condition("team", "Admitted").starts_with("True"));
    assert_eq!(starts(&mut cluster), [""; 0]);
    let limits = json!([{"type": "Container", "defaultRequest": {"cpu": "1"}}]);
    let range = json!({
        "metadata": {"name": "defaults", "namespace": "ns", "resourceVersion": "40"},
        "spec": {"limits": limits},
    });
    cluster.observe(ManagerInput::LimitRange(Change::Apply(shared(range))));
    assert_eq!(starts(&mut cluster), ["a", "b"]);
}

#[test]
fn a_replacement_in_a_dispatched_group_that_requests_more_than_its_role_gets_no_copy() {
    for (amount, created) in [("1", vec!["c"]), ("8", vec![])] {
        let mut control = group_manager(["a", "b"].map(|it| hub_member(it, Some("team"))).into());
        let mut pod = json!(hub_member("c", None).as_pod());
        json_merge(&mut pod, &cpu(amount));
        pod["status"] = json!({"phase": "Pending"});
        pod["metadata"]["resourceVersion"] = json!("40");
        let pod = Arc::new(pod_kind().decode(pod).expect("a pod decodes"));
        control.observe(ManagerInput::Job(pod_kind(), Change::Apply(pod)), NOW);
        let step = control.decide(NOW);
        let creates = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::JobCreate);
        let creates: Vec<&str> = creates.map(|order| &*order.ticket.target.key.name).collect();
        assert_eq!(creates, created, "{amount}: {:?}", orders(&step));
        let mut reasons = step.events.iter().map(|event| event.reason.as_str());
        let is_reported = reasons.any(|reason| reason == "PodExceedsRoleRequests");
        assert_eq!(is_reported, created.is_empty(), "{amount}");
    }
}
