//! Topologies of a manager's own cluster: nodes and other pods decide where pods go, and gated pods get their domains.

use k8s_openapi::api::core::v1::Pod;
use runtime::{watch::Unavailable, write::Write};

use super::{cluster::Cluster, *};

const RACK: &str = "example.com/rack";
const HOST: &str = "kubernetes.io/hostname";

/// A node of 4 cpus in a rack.
pub(super) fn node(name: &str, rack: &str, version: u32) -> Value {
    json!({
        "metadata": {
            "name": name, "resourceVersion": version.to_string(),
            "labels": {RACK: rack, HOST: name, "pool": "tas"},
        },
        "status": {
            "allocatable": {"cpu": "4", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// A pod of another owner that takes cpus of a node.
pub(super) fn other_pod(name: &str, node: &str, cpu: &str, phase: &str, version: u32) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
        },
        "spec": {"nodeName": node, "containers": [
            {"name": "main", "resources": {"requests": {"cpu": cpu}}},
        ]},
        "status": {"phase": phase},
    })
}

/// A pod of the Workload, gated unless it has a node selector.
pub(super) fn member(name: &str, index: u32, host: Option<&str>, version: u32) -> Value {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
            "labels": {"kueue.x-k8s.io/podset": "main", "batch.kubernetes.io/job-completion-index": index.to_string()},
            "annotations": {
                "kueue.x-k8s.io/workload": "train", "kueue.x-k8s.io/podset-required-topology": RACK,
            },
        },
        "spec": {
            "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}, {"name": "example.com/other"}],
            "containers": [{"name": "main"}],
        },
        "status": {"phase": "Pending"},
    });
    if let Some(host) = host {
        pod["spec"]["nodeSelector"] = json!({HOST: host});
        pod["spec"]["schedulingGates"] = json!([{"name": "example.com/other"}]);
    }
    pod
}

/// A pod of the Workload that runs on a node.
pub(super) fn on_node(name: &str, index: u32, node: &str, version: u32) -> Value {
    let mut pod = member(name, index, Some(node), version);
    pod["spec"]["nodeName"] = json!(node);
    pod["status"]["phase"] = json!("Running");
    pod
}

pub(super) fn reduced<K>(value: Value) -> Arc<Observed<K>>
where
    Observed<K>: DeserializeOwned,
{
    Arc::new(object(value))
}

pub(super) fn nodes(all: Vec<Value>) -> ManagerInput {
    let objects = all.into_iter().map(reduced).collect();
    ManagerInput::Node(Change::Reset { objects, removed: vec![] })
}

pub(super) fn pods(all: Vec<Value>) -> ManagerInput {
    let objects = all.into_iter().map(reduced).collect();
    ManagerInput::Pod(Change::Reset { objects, removed: vec![] })
}

pub(super) fn pod(one: Value) -> ManagerInput {
    ManagerInput::Pod(Change::Apply(reduced(one)))
}

/// A Topology of racks and nodes, the flavor `default` in it, and two racks of two nodes each.
pub(super) fn topology(cluster: &mut Cluster) {
    let api = "kueue.x-k8s.io/v1beta2";
    let topology = json!({
        "apiVersion": api, "kind": "Topology", "metadata": {"name": "racks", "resourceVersion": "40"},
        "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]},
    });
    let flavor = json!({
        "apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "default", "resourceVersion": "41"},
        "spec": {"nodeLabels": {"pool": "tas"}, "topologyName": "racks"},
    });
    let quota = json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "40"}]}],
    }]});
    cluster.queue(&quota);
    cluster.observe(ManagerInput::Topology(Change::Apply(shared(topology))));
    cluster.observe(ManagerInput::ResourceFlavor(Change::Apply(shared(flavor))));
    let racks = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")];
    cluster.observe(nodes(racks.map(|(name, rack)| node(name, rack, 50)).to_vec()));
}

pub(super) fn required(pods: u32) -> Value {
    json!({"spec": {"podSets": [{
        "name": "main", "count": pods,
        "topologyRequest": {"required": RACK, "podIndexLabel": "batch.kubernetes.io/job-completion-index"},
        "template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}},
    }]}})
}

/// A cluster with a Workload of so many pods of 2 cpus each in one rack.
pub(super) fn with_workload(n_pods: u32) -> Cluster {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    cluster.workload("train", 1, &required(n_pods)).settle();
    cluster
}

/// Nodes of the assignment of a Workload, with their pods.
pub(super) fn assigned(cluster: &Cluster, name: &str) -> Vec<(String, i32)> {
    let workload: Workload = object(cluster.workloads[name].clone());
    let sets = workload.status.admission.expect("admitted").pod_set_assignments;
    let assignment = sets[0].topology_assignment.as_ref().expect("assigned");
    assert_eq!(assignment.levels, [HOST]);
    assignment.domains().map(|(values, count)| (values.concat(), count)).collect()
}

/// The writes of pods: name, node and remaining gates.
fn ungated(step: &Decisions) -> Vec<(String, String, Value)> {
    let orders = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::UngateTopology);
    let one = |order: &Order| {
        let body = body(&order.write);
        let host = body["spec"]["nodeSelector"][HOST].as_str().expect("a node").to_owned();
        (order.ticket.target.key.name.to_string(), host, body["spec"]["schedulingGates"].clone())
    };
    orders.map(one).collect()
}

pub(super) fn body(write: &Write) -> Value {
    serde_json::from_slice(write.request().body()).expect("JSON")
}

pub(super) fn places(step: &Decisions) -> Vec<(String, String)> {
    ungated(step).into_iter().map(|(name, host, _)| (name, host)).collect()
}

pub(super) fn at(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(pod, node)| ((*pod).to_owned(), (*node).to_owned())).collect()
}

#[test]
fn pods_of_a_workload_are_assigned_to_one_rack() {
    let cluster = with_workload(4);
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
}

#[test]
fn the_removal_of_a_gate_is_measured_from_the_admission() {
    let mut cluster = with_workload(1);
    cluster.wait(5).observe(pod(member("p0", 0, None, 80)));
    let step = cluster.control.decide(cluster.now);
    let ungated = on_node("p0", 0, "a1", 81);
    dispatched::done(&mut cluster.control, &step, "ungate-topology", ungated, cluster.now);
    let measured = cluster.control.decide(cluster.now).measurements;
    let expected = measured::gate_removed("kueue.x-k8s.io/topology", false, 5);
    assert!(measured.contains(&expected), "{measured:?}");
}

#[test]
fn other_pods_take_room_until_they_end() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let other = |node: &str, phase: &str, version| {
        other_pod(&format!("other-{node}"), node, "3", phase, version)
    };
    cluster.observe(pods(vec![other("a1", "Running", 60), other("b1", "Running", 61)]));
    cluster.workload("train", 1, &required(4)).settle();
    let pending = cluster.condition("train", "QuotaReserved");
    assert!(!pending.starts_with("True"), "no rack has room: {pending}");
    // The end of the pod wakes the Workload.
    cluster.observe(pod(other("b1", "Succeeded", 70))).settle();
    assert_eq!(assigned(&cluster, "train"), [("b1".to_owned(), 2), ("b2".to_owned(), 2)]);
}

/// A manager of a cluster without a Topology, so that neither nodes nor pods are watched yet.
fn without_topologies() -> Cluster {
    let reason = Unavailable::NotServed;
    let mut control = ManagerControl::new(settings());
    for input in lists() {
        let input = match input {
            ManagerInput::Workload(_) => ManagerInput::Workload(list(vec![])),
            ManagerInput::Job(..) => ManagerInput::Job(batch_job(), jobs(vec![])),
            ManagerInput::Node(_) => {
                ManagerInput::Node(Change::Unavailable { reason, removed: vec![] })
            }
            ManagerInput::Pod(_) => {
                ManagerInput::Pod(Change::Unavailable { reason, removed: vec![] })
            }
            other => other,
        };
        control.observe(input, NOW);
    }
    Cluster::of(control, vec![])
}

#[test]
fn nodes_are_not_used_before_the_pods_on_them_are_known() {
    let mut cluster = without_topologies();
    topology(&mut cluster);
    cluster.workload("train", 1, &required(4)).settle();
    let pending = cluster.condition("train", "QuotaReserved");
    assert!(!pending.starts_with("True"), "pods were not listed: {pending}");
    cluster.observe(pods(vec![other_pod("other", "a1", "3", "Running", 60)])).settle();
    assert_eq!(assigned(&cluster, "train"), [("b1".to_owned(), 2), ("b2".to_owned(), 2)]);
}

#[test]
fn nodes_are_used_where_pods_may_not_be_read() {
    let mut cluster = without_topologies();
    topology(&mut cluster);
    let reason = Unavailable::Forbidden;
    cluster.observe(ManagerInput::Pod(Change::Unavailable { reason, removed: vec![] }));
    cluster.workload("train", 1, &required(4)).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
}

#[test]
fn pods_keep_their_room_while_they_cannot_be_observed() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let other = |node: &str| other_pod(&format!("other-{node}"), node, "3", "Running", 60);
    cluster.observe(pods(vec![other("a1"), other("b1")]));
    let removed = ["other-a1", "other-b1"];
    let removed = removed.map(|name| Key { namespace: Some("ns".into()), name: name.into() });
    let (reason, removed) = (Unavailable::NotServed, removed.to_vec());
    cluster.observe(ManagerInput::Pod(Change::Unavailable { reason, removed }));
    cluster.workload("train", 1, &required(4)).settle();
    let pending = cluster.condition("train", "QuotaReserved");
    assert!(!pending.starts_with("True"), "no rack has room: {pending}");
    // One of them is in no list any more.
    cluster.observe(pods(vec![other("a1")])).settle();
    assert_eq!(assigned(&cluster, "train"), [("b1".to_owned(), 2), ("b2".to_owned(), 2)]);
}

#[test]
fn a_pod_with_the_annotation_but_no_workload_takes_room() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let mut other = other_pod("other", "a1", "3", "Running", 60);
    other["metadata"]["annotations"] = json!({"kueue.x-k8s.io/podset-required-topology": RACK});
    cluster.observe(pods(vec![other])).workload("train", 1, &required(4)).settle();
    assert_eq!(assigned(&cluster, "train"), [("b1".to_owned(), 2), ("b2".to_owned(), 2)]);
}

/// A cluster where the one pod of `train` runs on its node as an earlier version of Kueue has started it: an implied topology request has
/// left no annotation.
fn with_pod_of_earlier_version() -> Cluster {
    let mut cluster = with_workload(1);
    let mut earlier = on_node("p0", 0, "a1", 80);
    earlier["metadata"]["annotations"] = json!({"kueue.x-k8s.io/workload": "train"});
    earlier["metadata"]["labels"]["kueue.x-k8s.io/tas"] = json!("true");
    earlier["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    cluster.observe(pods(vec![earlier])).settle().take_writes();
    cluster
}

#[test]
fn a_pod_of_an_earlier_version_is_counted_once() {
    let mut cluster = with_pod_of_earlier_version();
    cluster.workload("next", 1, &required(3)).settle();
    assert_eq!(assigned(&cluster, "next"), [("a1".to_owned(), 1), ("a2".to_owned(), 2)]);
}

#[test]
fn a_pod_of_an_earlier_version_keeps_its_node() {
    let mut cluster = with_pod_of_earlier_version();
    let mut down = node("a1", "a", 90);
    down["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    cluster.observe(ManagerInput::Node(Change::Apply(reduced(down)))).settle();
    assert_eq!(cluster.take_writes(), [""; 0], "it still runs there");
}

/// A pod of `train` that is gated, with no other sign of a topology request, or is on this node.
pub(super) fn without_request(name: &str, index: u32, node: Option<&str>, version: u32) -> Value {
    let mut pod = match node {
        Some(node) => on_node(name, index, node, version),
        None => member(name, index, None, version),
    };
    pod["metadata"]["annotations"] = json!({"kueue.x-k8s.io/workload": "train"});
    pod
}

#[test]
fn a_gate_alone_gives_no_domain() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let mut fields = required(2);
    fields["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({"cpu": "4"});
    cluster.workload("train", 1, &fields).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 1), ("a2".to_owned(), 1)]);
    cluster.observe(pods(vec![without_request("p0", 0, None, 80)]));
    let step = cluster.control.decide(cluster.now);
    // Without the gate nothing shows that the pod has the domain, so that another one would get it too.
    cluster.observe(pod(without_request("p0", 0, Some("a1"), 81)));
    cluster.observe(pod(without_request("p1", 1, None, 82)));
    let next = cluster.control.decide(cluster.now);
    assert_eq!((places(&step), places(&next)), (at(&[]), at(&[])));
}

#[test]
fn a_label_of_an_earlier_version_shows_which_domains_are_taken() {
    let mut cluster = with_workload(3);
    let labelled = |name, index, node, version| {
        let mut pod = without_request(name, index, node, version);
        pod["metadata"]["labels"]["kueue.x-k8s.io/tas"] = json!("true");
        pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = json!("none");
        pod
    };
    let bound = ["p0", "p1"].map(|name| labelled(name, 0, Some("a1"), 80));
    cluster.observe(pods(bound.to_vec())).observe(pod(labelled("p2", 2, None, 82)));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(places(&step), at(&[("p2", "a2")]));
}

#[test]
fn a_node_that_becomes_usable_wakes_a_workload() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let mut cordoned = node("a1", "a", 60);
    cordoned["spec"] = json!({"unschedulable": true});
    let without = [cordoned, node("a2", "a", 61), node("b1", "b", 62)];
    let change = Change::Reset {
        objects: without.into_iter().map(reduced).collect(),
        removed: vec![Key { namespace: None, name: "b2".into() }],
    };
    cluster.observe(ManagerInput::Node(change)).workload("train", 1, &required(4)).settle();
    assert!(!cluster.condition("train", "QuotaReserved").starts_with("True"));
    let usable = ManagerInput::Node(Change::Apply(reduced(node("a1", "a", 70))));
    cluster.observe(usable).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
}

#[test]
fn gated_pods_get_the_node_of_their_rank_in_one_write_each() {
    let mut cluster = with_workload(4);
    let all = [member("p3", 3, None, 80), member("p0", 0, None, 81)];
    cluster.observe(pods(all.to_vec()));
    let step = cluster.control.decide(cluster.now);
    let others = json!([{"name": "example.com/other"}]);
    let expected = [("p0", "a1"), ("p3", "a2")]
        .map(|(pod, node)| (pod.to_owned(), node.to_owned(), others.clone()));
    assert_eq!(ungated(&step), expected);
    let order = step.orders.iter().find(|one| *one.ticket.target.key.name == *"p0").expect("one");
    let metadata = json!({"uid": "p0", "resourceVersion": "81"});
    assert_eq!(body(&order.write)["metadata"], metadata, "only the version that was decided on");
}

#[test]
fn an_offset_that_is_no_number_keeps_all_pods_of_a_workload_gated() {
    let mut cluster = with_workload(4);
    let with_offset = |offset: &str, version| {
        let mut pod = member("p1", 1, None, version);
        pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-index-offset"] = json!(offset);
        pod
    };
    let events = |step: &Decisions| -> Vec<String> {
        let found = step.events.iter().filter(|event| event.reason == "InvalidPodIndexOffset");
        found.map(|event| format!("{} {}", event.regarding.key.name, event.note)).collect()
    };
    cluster.observe(pods(vec![member("p0", 0, None, 80), with_offset("one", 81)]));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(places(&step), at(&[]));
    let problem =
        "failed to parse offset annotation: strconv.Atoi: parsing \"one\": invalid syntax";
    let expected = format!("train No pod gets a domain of the topology: pod ns/p1: {problem}");
    assert_eq!(events(&step), [expected]);

    cluster.observe(pod(member("p2", 2, None, 82)));
    let step = cluster.control.decide(cluster.now);
    assert_eq!((places(&step), events(&step)), (at(&[]), vec![]), "it is reported once");

    cluster.observe(pod(with_offset("0", 83)));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(places(&step), at(&[("p0", "a1"), ("p1", "a1"), ("p2", "a2")]));
}

#[test]
fn a_pod_of_another_owner_keeps_no_pod_gated() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    let owner = |uid: &str| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": true}]);
    let mut fields = required(4);
    fields["metadata"] = json!({"ownerReferences": owner("present")});
    cluster.workload("train", 1, &fields).settle();
    let owned = |name, uid, version| {
        let mut pod = member(name, 0, None, version);
        pod["metadata"]["ownerReferences"] = owner(uid);
        pod
    };
    let mut other = owned("p0", "former", 80);
    other["metadata"]["annotations"]["kueue.x-k8s.io/pod-index-offset"] = json!("one");
    cluster.observe(pods(vec![other, owned("p1", "present", 81)]));
    let step = cluster.control.decide(cluster.now);
    assert_eq!(places(&step), at(&[("p1", "a1")]));
}

#[test]
fn a_domain_is_given_once_however_late_the_watch_is() {
    let mut cluster = with_workload(4);
    // Without ranks: domains are filled in order.
    let unranked = |name: &str, host: Option<&str>, version| {
        let mut pod = member(name, 0, host, version);
        pod["metadata"]["labels"] = json!({"kueue.x-k8s.io/podset": "main"});
        pod
    };
    let gated = |name: &str, version| pod(unranked(name, None, version));
    cluster.observe(gated("p0", 80)).observe(gated("p1", 81));
    let first = cluster.control.decide(cluster.now);
    assert_eq!(places(&first), at(&[("p0", "a1"), ("p1", "a1")]));
    // The watch shows neither write, and a third pod.
    cluster.observe(gated("p2", 82)).observe(gated("p0", 83));
    let second = cluster.control.decide(cluster.now);
    assert_eq!(places(&second), at(&[("p2", "a2")]));
    // One write had no effect, of another nothing is known.
    for order in &first.orders {
        let answer = match &*order.ticket.target.key.name {
            "p0" => WriteOutcome::Stale,
            _ => WriteOutcome::Unknown("no answer".to_owned()),
        };
        cluster.control.answered(&order.ticket, answer, cluster.now);
    }
    cluster.wait(1);
    let third = cluster.control.decide(cluster.now);
    assert_eq!(places(&third), at(&[("p1", "a1"), ("p0", "a1")]), "the domain of p1 is its own");
    // Answers count before the watch shows them.
    for order in &third.orders {
        let name = order.ticket.target.key.name.to_string();
        let answer = WriteOutcome::done(unranked(&name, Some("a1"), 90));
        cluster.control.answered(&order.ticket, answer, cluster.now);
    }
    cluster.observe(gated("p3", 91));
    let fourth = cluster.control.decide(cluster.now);
    assert_eq!(places(&fourth), at(&[("p3", "a2")]));
    cluster.observe(gated("p4", 92));
    assert_eq!(places(&cluster.control.decide(cluster.now)), at(&[]), "every domain is full");
}

#[test]
fn pods_of_an_evicted_workload_stay_gated() {
    let mut cluster = with_workload(4);
    cluster.workload("train", 1, &json!({"spec": {"active": false}})).settle();
    assert!(cluster.condition("train", "Evicted").starts_with("True"));
    cluster.observe(pod(member("p0", 0, None, 80)));
    assert_eq!(places(&cluster.control.decide(cluster.now)), at(&[]));
}

#[test]
fn usage_is_counted_from_the_objects_after_a_restart() {
    let before = with_workload(4);
    let mut cluster = Cluster::new();
    cluster.workload("train", 1, &before.workloads["train"]);
    topology(&mut cluster);
    cluster.workload("next", 1, &required(4)).settle();
    cluster.workload("last", 1, &required(4)).settle();
    assert_eq!(assigned(&cluster, "next"), [("b1".to_owned(), 2), ("b2".to_owned(), 2)]);
    assert!(!cluster.condition("last", "QuotaReserved").starts_with("True"), "nodes are in use");
}

#[test]
fn an_observed_pod_is_reduced_to_what_matters() {
    let kept = reduced::<WatchedPod>(other_pod("other", "a1", "3", "Running", 60));
    let whole: Pod = object(other_pod("other", "a1", "3", "Running", 60));
    assert_eq!(Key::of(&*kept), Key::of(&whole));
}

/// A check that provides nodes, in this state.
pub(super) fn provisioning(cluster: &mut Cluster) {
    let check = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
        "metadata": {"name": "nodes", "resourceVersion": "30"},
        "spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"},
        "status": {"conditions": [
            {"type": "Active", "status": "True", "reason": "Active", "message": ""},
        ]},
    });
    cluster.observe(ManagerInput::AdmissionCheck(Change::Apply(shared(check))));
    cluster.queue(&json!({
        "admissionChecksStrategy": {"admissionChecks": [{"name": "nodes"}]},
        "resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "40"}]}],
        }],
    }));
}

pub(super) fn first_assignment<'a>(cluster: &'a Cluster, name: &str) -> &'a Value {
    &cluster.workloads[name]["status"]["admission"]["podSetAssignments"][0]
}

#[test]
fn a_delayed_topology_is_assigned_in_a_second_pass_after_the_checks() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    provisioning(&mut cluster);
    // No rack has room before the check has provided nodes.
    let gone = ["a2", "b1", "b2"].map(|name| Key { namespace: None, name: name.into() });
    let only =
        Change::Reset { objects: vec![reduced(node("a1", "a", 60))], removed: gone.to_vec() };
    cluster.observe(ManagerInput::Node(only));
    cluster.workload("train", 1, &required(4)).settle();
    let assignment = first_assignment(&cluster, "train");
    assert_eq!(assignment["delayedTopologyRequest"], "Pending");
    assert!(assignment.get("topologyAssignment").is_none());
    let ready = json!({"status": {"admissionChecks": [
        {"name": "nodes", "state": "Ready", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    ]}});
    cluster.workload("train", 1, &ready).settle();
    let admitted = cluster.condition("train", "Admitted");
    assert!(admitted.starts_with("False PendingDelayedTopologyRequests"), "{admitted}");
    // A second passes from the checks to the first attempt, which finds no room.
    cluster.take_events();
    cluster.wait(1).settle();
    let events = cluster.take_events();
    assert!(events.iter().any(|one| one.contains("SecondPassFailed")), "{events:?}");
    cluster.observe(nodes(vec![node("a2", "a", 61), node("a3", "a", 62)])).wait(2).settle();
    assert_eq!(first_assignment(&cluster, "train")["delayedTopologyRequest"], "Ready");
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
    let events = cluster.take_events();
    let admitted = "train kueue-admission Admitted: Admitted by ClusterQueue cq";
    assert!(events.iter().any(|one| one.starts_with(admitted)), "{events:?}");
}

#[test]
fn pods_with_a_delayed_topology_wait_for_it_after_a_restart_too() {
    let mut first = Cluster::new();
    topology(&mut first);
    provisioning(&mut first);
    first.workload("train", 1, &required(4)).settle();
    let ready = json!({"status": {"admissionChecks": [
        {"name": "nodes", "state": "Ready", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    ]}});
    first.workload("train", 1, &ready);
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    provisioning(&mut cluster);
    cluster.workload("train", 1, &first.workloads["train"]).settle();
    cluster.wait(1).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2), ("a2".to_owned(), 2)]);
}

/// The check `nodes` of a Workload is ready.
pub(super) fn checked() -> Value {
    json!({"status": {"admissionChecks": [
        {"name": "nodes", "state": "Ready", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    ]}})
}

/// A Workload with a pod set of two pods and one of none.
fn with_empty_pod_set() -> Value {
    let mut fields = required(2);
    let mut empty = fields["spec"]["podSets"][0].clone();
    (empty["name"], empty["count"]) = (json!("spare"), json!(0));
    fields["spec"]["podSets"].as_array_mut().expect("pod sets").push(empty);
    fields
}

#[test]
fn a_pod_set_without_pods_delays_no_topology() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    provisioning(&mut cluster);
    cluster.workload("train", 1, &with_empty_pod_set()).settle();
    assert_eq!(first_assignment(&cluster, "train")["delayedTopologyRequest"], "Pending");
    let all = &cluster.workloads["train"]["status"]["admission"]["podSetAssignments"];
    assert_eq!(all[1].get("delayedTopologyRequest"), None, "{all}");
    cluster.workload("train", 1, &checked()).settle().wait(1).settle();
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2)]);
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
}

#[test]
fn a_stored_delay_of_a_pod_set_without_pods_ends_with_the_second_pass() {
    let mut cluster = Cluster::new();
    topology(&mut cluster);
    provisioning(&mut cluster);
    cluster.workload("train", 1, &with_empty_pod_set()).settle();
    let mut admission = cluster.workloads["train"]["status"]["admission"].clone();
    admission["podSetAssignments"][1]["delayedTopologyRequest"] = json!("Pending");
    cluster.workload("train", 1, &json!({"status": {"admission": admission}})).settle();
    cluster.workload("train", 1, &checked()).settle().wait(1).settle();
    let all = &cluster.workloads["train"]["status"]["admission"]["podSetAssignments"];
    assert_eq!(all[1]["delayedTopologyRequest"], "Ready", "{all}");
    assert_eq!(all[1].get("topologyAssignment"), None);
    assert_eq!(assigned(&cluster, "train"), [("a1".to_owned(), 2)]);
    assert!(cluster.condition("train", "Admitted").starts_with("True"));
}
