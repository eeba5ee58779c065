//! The headroom that an agent reports (docs/reference/dispatch.md §2), and clones that it admits on it (§4).

use crds::decode::Decode;
use jiff::{Timestamp, ToSpan};
use provisioning::headroom::{AutoscalerStatus, MachineDeployment, NodeClaim, NodePool};
use serde_json::{Value, json};

use super::{
    NOW, batch_job, jobs, kinds, list,
    reports::report_order,
    unschedulable::{evictions, pod as unschedulable_pod},
    workload,
};
use crate::control::{
    AgentControl, AgentInput, AgentPolicy, AgentSettings, AutoscalerInput, Control, Purpose,
};
use runtime::watch::Change;

const STATUS: &str = "autoscalerStatus: Running\nnodeGroups:\n\
- name: pool\n  health: {status: Healthy, nodeCounts: {registered: {ready: 1}}, cloudProviderTarget: 1, maxSize: 4}\n\
- name: MachineDeployment/fleet/gpu\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 2}\n\
- name: unknown\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 9}\n";

fn listed<K: Decode>(objects: Vec<Value>) -> Change<K> {
    let decode = |value: Value| std::sync::Arc::new(K::decode(&value).expect("an object"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

fn status(text: &str) -> AgentInput {
    status_of_version("1", text)
}

fn status_of_version(version: &str, text: &str) -> AgentInput {
    let meta = json!({
        "namespace": "kube-system", "name": "cluster-autoscaler-status", "resourceVersion": version,
    });
    let map = json!({"metadata": meta, "data": {"status": text}});
    AgentInput::Autoscaler(AutoscalerInput::Status(listed::<AutoscalerStatus>(vec![map])))
}

/// An agent of one node of the group `pool`, on which a DaemonSet has a pod.
fn agent(autoscalers: Vec<AgentInput>) -> AgentControl {
    agent_of("4", (vec![], vec![]), autoscalers)
}

/// The same with so many cpus on the node, and further pods and clones.
fn agent_of(
    cpu: &str,
    (more_pods, clones): (Vec<Value>, Vec<Value>),
    autoscalers: Vec<AgentInput>,
) -> AgentControl {
    let mut control =
        AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    let node = json!({
        "metadata": {"name": "node", "resourceVersion": "1", "labels": {
            "kwok-nodegroup": "pool", "zone": "a", "kubernetes.io/hostname": "node",
        }},
        "spec": {"taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": cpu, "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let owner = |kind: &str| json!([{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": true}]);
    let pod = |name: &str, owners: Value| {
        json!({
            "metadata": {"namespace": "ns", "name": name, "ownerReferences": owners},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
        })
    };
    let mut pods = vec![pod("daemon", owner("DaemonSet")), pod("other", owner("ReplicaSet"))];
    pods.extend(more_pods);
    let local = json!({
        "metadata": {"name": "local", "resourceVersion": "2"},
        "spec": {"labelKeys": ["zone", "gpu"]},
    });
    for input in [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![node])),
        AgentInput::Pod(list(pods)),
        AgentInput::Capacity(list(vec![local])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![])),
        AgentInput::Workload(list(clones)),
    ]
    .into_iter()
    .chain(autoscalers)
    {
        control.observe(input, NOW);
    }
    control
}

/// What the report that is written now says about new nodes; `None` if none is written.
fn elastic(control: &mut AgentControl, now: Timestamp) -> Option<Value> {
    let step = control.decide(now);
    let order = report_order(&step)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    Some(body["status"]["elastic"].clone())
}

#[test]
fn a_cluster_without_an_autoscaler_reports_no_headroom() {
    assert_eq!(elastic(&mut agent(vec![]), NOW), Some(Value::Null));
}

#[test]
fn headroom_has_the_shape_that_is_declared_or_that_a_node_shows() {
    let prefix = "capacity.cluster-autoscaler.kubernetes.io";
    let gpu = json!({"metadata": {"namespace": "fleet", "name": "gpu", "annotations": {
        (format!("{prefix}/cpu")): "16", (format!("{prefix}/memory")): "1Gi",
        (format!("{prefix}/labels")): "gpu=h100,rack=1",
    }}});
    let gpu = AutoscalerInput::MachineDeployment(listed::<MachineDeployment>(vec![gpu]));
    let mut control = agent(vec![status(STATUS), AgentInput::Autoscaler(gpu)]);
    // The group without a known shape is left out.
    let wanted = json!([
        {"maxMore": 3, "nodeShape": {
            "labels": {"zone": "a"}, "taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}],
            "allocatable": {"cpu": "3500m", "pods": "9"},
        }},
        {"maxMore": 2, "nodeShape": {
            "labels": {"gpu": "h100"}, "allocatable": {"cpu": "16", "memory": "1Gi", "pods": "110"},
        }},
    ]);
    assert_eq!(elastic(&mut control, NOW), Some(wanted));
}

#[test]
fn a_status_that_is_not_written_any_more_counts_no_longer() {
    let mut control = agent(vec![status(STATUS)]);
    assert!(elastic(&mut control, NOW + 299.seconds()).expect("a report").is_array());
    let mut control = agent(vec![status(STATUS)]);
    control.observe(status(STATUS), NOW + 200.seconds());
    assert_eq!(elastic(&mut control, NOW + 301.seconds()), Some(Value::Null), "listed again");
}

#[test]
fn node_pools_have_headroom_within_their_limits() {
    let pool = json!({
        "metadata": {"name": "gpu"}, "spec": {"limits": {"cpu": "20"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let claim = json!({
        "metadata": {"name": "gpu-x", "labels": {"karpenter.sh/nodepool": "gpu", "zone": "b"}},
        "status": {"nodeName": "node", "capacity": {"cpu": "5"}, "allocatable": {"cpu": "4"}},
    });
    let inputs = [
        AutoscalerInput::NodePool(listed::<NodePool>(vec![pool])),
        AutoscalerInput::NodeClaim(listed::<NodeClaim>(vec![claim])),
    ];
    let mut control = agent(inputs.into_iter().map(AgentInput::Autoscaler).collect());
    let shape = json!({"labels": {"zone": "b"}, "allocatable": {"cpu": "3500m"}});
    let wanted = json!([{"maxMore": 3, "nodeShape": shape}]);
    assert_eq!(elastic(&mut control, NOW), Some(wanted));
}

/// The clone of a Job of two pods with a cpu each. It tolerates the taint of the nodes.
fn clone(status: Option<Value>) -> Value {
    let mut clone = workload();
    clone["metadata"]["ownerReferences"] = json!([]);
    clone["spec"]["podSets"][0]["template"]["spec"]["tolerations"] =
        json!([{"key": "team", "operator": "Exists"}]);
    if let Some(status) = status {
        clone["status"] = status;
    }
    clone
}

#[test]
fn a_clone_that_fits_no_present_node_is_admitted_on_headroom() {
    let pending = || (vec![], vec![clone(Some(json!({})))]);
    let admits = |control: &mut AgentControl| {
        let step = control.decide(NOW);
        let reserves = step.orders.iter().any(|one| one.ticket.purpose == Purpose::Reserve);
        let body = report_order(&step).expect("a report").write.request().body();
        let body: Value = serde_json::from_slice(body).expect("JSON");
        (reserves, body["status"]["elastic"][0]["maxMore"].clone())
    };
    // A new node has one cpu beside the pod of the DaemonSet.
    let mut control = agent_of("1500m", pending(), vec![status(STATUS)]);
    assert_eq!(admits(&mut control), (true, json!(1)), "two of three new nodes are for the clone");
    let mut control = agent_of("1500m", pending(), vec![]);
    assert_eq!(admits(&mut control), (false, Value::Null));
    let full = STATUS.replace("maxSize: 4", "maxSize: 2");
    let mut control = agent_of("1500m", pending(), vec![status(&full)]);
    assert_eq!(admits(&mut control), (false, Value::Null), "one new node is too few");
}

#[test]
fn a_clone_that_waits_for_new_nodes_is_evicted_when_they_do_not_come() {
    let waiting = || {
        let running = (vec![unschedulable_pod("Unschedulable")], vec![clone(None)]);
        agent_of("1500m", running, vec![status(STATUS)])
    };
    assert_eq!(evictions(&waiting().decide(NOW + 200.seconds())), 0, "the group can grow");
    // The status is written again, and the group is in backoff.
    let failed = STATUS.replace("maxSize: 4}", "maxSize: 4}\n  scaleUp: {status: Backoff}");
    let newer = || status_of_version("2", &failed);
    for (second, wanted) in [(69, 0), (70, 1)] {
        let mut control = waiting();
        control.decide(NOW);
        control.observe(newer(), NOW + 5.seconds());
        assert_eq!(evictions(&control.decide(NOW + 5.seconds())), 0, "it has its minute");
        let later = control.decide(NOW + second.seconds());
        assert_eq!(evictions(&later), wanted, "at {second}");
    }
}

#[test]
fn a_clone_says_how_many_nodes_its_pods_wait_for() {
    let shown = |autoscalers: Vec<AgentInput>| {
        let running = (vec![unschedulable_pod("Unschedulable")], vec![clone(None)]);
        let mut control = agent_of("1500m", running, autoscalers);
        control.decide(NOW);
        let step = control.decide(NOW + 10.seconds());
        let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::PodsReady);
        let body = order.expect("the condition").write.request().body();
        let body: Value = serde_json::from_slice(body).expect("JSON");
        let mut all = body["status"]["conditions"].as_array().cloned().expect("a list").into_iter();
        let failing = all.find(|one| one["type"] == "sluice.dev/PodsFailing");
        failing.expect("the condition")["message"].clone()
    };
    let said = "pod train-1: 0/1 nodes";
    assert_eq!(shown(vec![status(STATUS)]), format!("needs 2 new nodes: {said}"));
    assert_eq!(shown(vec![]), said, "none can come");
}

#[test]
fn a_clone_waits_for_new_nodes_for_a_quarter_of_an_hour() {
    let pool = json!({
        "metadata": {"name": "gpu"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let claim = json!({
        "metadata": {"name": "gpu-x", "labels": {"karpenter.sh/nodepool": "gpu"}},
        "status": {"capacity": {"cpu": "5"}, "allocatable": {"cpu": "4", "pods": "10"}},
    });
    let pools = || AutoscalerInput::NodePool(listed::<NodePool>(vec![pool.clone()]));
    let claims = || AutoscalerInput::NodeClaim(listed::<NodeClaim>(vec![claim.clone()]));
    // The pod is unschedulable since second 10.
    for (second, wanted) in [(909, 0), (910, 1)] {
        let running = (vec![unschedulable_pod("Unschedulable")], vec![clone(None)]);
        let autoscalers = [pools(), claims()].map(AgentInput::Autoscaler).into();
        let mut control = agent_of("1500m", running, autoscalers);
        control.decide(NOW);
        let step = control.decide(NOW + second.seconds());
        assert_eq!(evictions(&step), wanted, "at {second}");
    }
}
