//! Sets whose pods are one group: StatefulSets.

use super::{
    cluster::{Cluster, json_merge},
    dispatched,
    measured::gate_removed,
    workloads_of_groups::verifying_role_requests,
    *,
};

fn set_kind() -> Kind {
    Kinds::built_in().of_framework("statefulset").expect("it is built in").clone()
}

fn pod_kind() -> Kind {
    ::jobs::pods::kind().clone()
}

fn set(replicas: u32, queue: &str, version: u32) -> ManagerInput {
    let labels =
        if queue.is_empty() { json!({}) } else { json!({"kueue.x-k8s.io/queue-name": queue}) };
    let set = json!({
        "metadata": {
            "name": "d", "namespace": "ns", "uid": "set-1", "labels": labels,
            "resourceVersion": version.to_string(),
        },
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [
                {"name": "main", "resources": {"requests": {"cpu": "1"}}},
            ]}},
        },
    });
    ManagerInput::Job(set_kind(), reset(&set_kind(), vec![set]))
}

/// Pod `d-0` of the set.
fn pod(held: bool) -> Value {
    let parent = if held { "statefulset" } else { "deployment" };
    json!({
        "metadata": {
            "name": "d-0", "namespace": "ns", "uid": "pod-1", "resourceVersion": "50",
            "annotations": {"kueue.x-k8s.io/pod-suspending-parent": parent},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "d", "uid": "set-1",
                "controller": true,
            }],
        },
        "spec": {
            "containers": [{"name": "main"}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        },
        "status": {"phase": "Pending"},
    })
}

/// The pod as a member of the group of its Workload.
fn member(workload: &str) -> Value {
    let mut member = pod(true);
    member["metadata"]["resourceVersion"] = json!("51");
    member["metadata"]["labels"] = json!({"kueue.x-k8s.io/managed": "true"});
    for (key, value) in [
        ("pod-group-name", workload),
        ("prebuilt-workload-name", workload),
        ("pod-group-total-count", "2"),
        ("pod-group-serving", "true"),
        ("pod-group-fast-admission", "true"),
        ("pod-group-pod-index-label", "apps.kubernetes.io/pod-index"),
        ("role-hash", "main"),
    ] {
        member["metadata"]["annotations"][format!("kueue.x-k8s.io/{key}")] = json!(value);
    }
    member
}

fn reset(kind: &Kind, objects: Vec<Value>) -> Change<JobObject> {
    let decode = |object| Arc::new(kind.decode(object).expect("it decodes"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

fn members(pods: Vec<Value>) -> ManagerInput {
    ManagerInput::Members(set_kind(), reset(&pod_kind(), pods))
}

/// A manager of StatefulSets and of pods that they hold.
fn cluster(without_queue_name: bool) -> Cluster {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = ["batch/job", "statefulset"].map(str::to_owned).to_vec();
    file.manage_jobs_without_queue_name = without_queue_name;
    let gates = verifying_role_requests();
    let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
    let settings = ManagerSettings::new(&file, &gates, &kinds, false);
    let mut cluster = Cluster::with(settings);
    cluster.observe(ManagerInput::Job(pod_kind(), reset(&pod_kind(), vec![])));
    cluster.observe(members(vec![]));
    cluster
}

fn only_workload(cluster: &Cluster) -> String {
    let names: Vec<&String> = cluster.workloads.keys().collect();
    let [name] = names[..] else { panic!("one Workload: {names:?}") };
    name.clone()
}

fn count(cluster: &Cluster) -> &Value {
    &cluster.workloads[&only_workload(cluster)]["spec"]["podSets"][0]["count"]
}

#[test]
fn a_set_gives_its_quota_back_at_zero_and_comes_back_with_another_size() {
    let mut cluster = cluster(false);
    cluster.observe(set(2, "lq", 30)).settle();
    let name = only_workload(&cluster);
    assert!(cluster.condition(&name, "Admitted").starts_with("True"));

    cluster.observe(set(0, "lq", 31)).settle();
    let on_hold = "False OnHold: StatefulSet scaled to zero; workload on hold";
    assert_eq!(cluster.condition(&name, "QuotaReserved"), on_hold);
    assert!(cluster.condition(&name, "Admitted").starts_with("False NoReservation"));
    assert_eq!(cluster.workloads[&name]["status"].get("admission"), None);
    cluster.wait(60).settle();
    assert_eq!(cluster.condition(&name, "QuotaReserved"), on_hold, "no queue explains it");

    cluster.observe(set(3, "lq", 32)).settle();
    assert_eq!(count(&cluster), 3);
    assert!(cluster.condition(&name, "Admitted").starts_with("True"));
}

#[test]
fn a_set_takes_over_the_workload_of_an_earlier_version() {
    let mut cluster = cluster(false);
    let former = "statefulset-d-84e49";
    let marked = json!({"kueue.x-k8s.io/is-group-workload": "true"});
    cluster.workload(former, 2, &json!({"metadata": {"annotations": marked}}));
    cluster.observe(set(1, "lq", 30)).settle();
    assert_eq!(only_workload(&cluster), former);
    let owner = &cluster.workloads[former]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("StatefulSet"), &json!("set-1")));
}

#[test]
fn a_waiting_set_that_is_scaled_to_zero_comes_back() {
    let mut cluster = cluster(false);
    cluster.observe(set(9, "lq", 30)).settle().wait(60).settle();
    let name = only_workload(&cluster);
    assert!(cluster.condition(&name, "QuotaReserved").contains("insufficient quota"));
    cluster.observe(set(0, "lq", 31)).settle().wait(60).settle();
    assert!(cluster.condition(&name, "QuotaReserved").starts_with("False OnHold"));
    cluster.observe(set(2, "lq", 32)).settle();
    assert!(cluster.condition(&name, "Admitted").starts_with("True"));
}

#[test]
fn an_evicted_set_without_pods_gives_its_quota_back() {
    let mut cluster = cluster(false);
    cluster.observe(set(2, "lq", 30)).settle();
    let name = only_workload(&cluster);
    cluster.workload(&name, 2, &json!({"spec": {"active": false}})).settle();
    assert!(cluster.condition(&name, "QuotaReserved").starts_with("False"));
    cluster.observe(set(0, "lq", 31)).settle();
    cluster.workload(&name, 2, &json!({"spec": {"active": true}})).settle();
    assert!(cluster.condition(&name, "QuotaReserved").starts_with("False OnHold"));
}

/// Names of the purposes of the writes of pods in a decision.
fn writes_of_pods(cluster: &mut Cluster) -> Vec<String> {
    purposes(&cluster.control.decide(cluster.now))
}

fn purposes(step: &Decisions) -> Vec<String> {
    let of_pods = step.orders.iter().filter(
        |one| matches!(&one.ticket.target.subject, Subject::Job(kind) if *kind == pod_kind()),
    );
    of_pods.map(|one| one.ticket.purpose.name().to_owned()).collect()
}

#[test]
fn pods_of_a_set_are_started_by_their_group_though_their_owner_is_managed() {
    let mut cluster = cluster(true);
    cluster.observe(set(2, "", 30)).settle();
    let name = only_workload(&cluster);
    cluster.observe(members(vec![pod(true)]));
    adopt(&mut cluster, member(&name));
    cluster.settle();

    cluster.observe(set(2, "lq", 31));
    let mut moved = member(&name);
    moved["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("lq");
    moved["metadata"]["resourceVersion"] = json!("52");
    adopt(&mut cluster, moved.clone());
    let step = loop {
        let step = cluster.control.decide(cluster.now);
        assert!(!step.orders.is_empty(), "the pod is not started");
        if purposes(&step) == ["start"] {
            break step;
        }
        cluster.take(step);
    };
    let admission = cluster.condition(&name, "Admitted");
    assert!(admission.starts_with("True"), "{admission}");

    moved["spec"]["schedulingGates"] = json!([]);
    moved["metadata"]["resourceVersion"] = json!("53");
    cluster.wait(2);
    dispatched::done(&mut cluster.control, &step, "start", moved, cluster.now);
    let measured = cluster.control.decide(cluster.now).measurements;
    let expected = gate_removed("kueue.x-k8s.io/admission", true, 2);
    assert!(measured.contains(&expected), "{measured:?}");
}

/// Whether the member of an admitted set starts with these fields, and the notes of the Events about what it requests.
fn starts_with(fields: &Value) -> (bool, Vec<String>) {
    let mut cluster = cluster(false);
    cluster.observe(set(2, "lq", 30)).settle();
    let name = only_workload(&cluster);
    cluster.observe(members(vec![pod(true)]));
    let mut member = member(&name);
    member["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("lq");
    json_merge(&mut member, fields);
    adopt(&mut cluster, member);
    let (mut started, mut notes) = (false, Vec::new());
    for _ in 0..9 {
        let step = cluster.control.decide(cluster.now);
        started |= purposes(&step).contains(&"start".to_owned());
        let exceeding = step.events.iter().filter(|one| one.reason == "PodExceedsRoleRequests");
        notes.extend(exceeding.map(|event| event.note.clone()));
        cluster.take(step);
    }
    (started, notes)
}

#[test]
fn a_pod_of_a_set_starts_with_requests_that_the_cluster_has_added_to_it() {
    let containers = |all: Value| json!({"spec": {"containers": all}});
    let container =
        |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
    let injected = containers(json!([container("main", "1"), container("istio-proxy", "2")]));
    assert_eq!(starts_with(&injected), (true, vec![]));
    let enlarged = containers(json!([container("main", "3")]));
    let note = "Pod requests more than its role \"main\" has quota for: cpu 3 instead of 1";
    assert_eq!(starts_with(&enlarged), (true, vec![note.to_owned()]));
    let mut foreign = enlarged;
    foreign["metadata"] = json!({"ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "d", "uid": "set-0",
        "controller": true,
    }]});
    assert_eq!(starts_with(&foreign), (false, vec![note.to_owned()]), "another set made it");
}

/// The manager makes the pod a member, and the watch shows it.
fn adopt(cluster: &mut Cluster, member: Value) {
    let step = cluster.control.decide(cluster.now);
    assert_eq!(purposes(&step), ["adopt"]);
    dispatched::done(&mut cluster.control, &step, "adopt", member.clone(), cluster.now);
    cluster.take(step);
    cluster.observe(members(vec![member]));
}

#[test]
fn a_pod_that_the_set_does_not_hold_is_left_alone() {
    let mut cluster = cluster(false);
    cluster.observe(set(2, "lq", 30)).settle();
    cluster.observe(members(vec![pod(false)]));
    assert_eq!(writes_of_pods(&mut cluster), [""; 0]);
    assert_eq!(cluster.workloads.len(), 1);
}
