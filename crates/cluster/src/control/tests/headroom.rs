//! The headroom that an agent reports (docs/reference/dispatch.md §2).

use crds::decode::Decode;
use jiff::{Timestamp, ToSpan};
use provisioning::headroom::{AutoscalerStatus, MachineDeployment, NodeClaim, NodePool};
use serde_json::{Value, json};

use super::{NOW, batch_job, jobs, kinds, list};
use crate::control::{
    AgentControl, AgentInput, AgentPolicy, AgentSettings, AutoscalerInput, Control, Purpose,
};
use runtime::watch::Change;

const STATUS: &str = "autoscalerStatus: Running\nnodeGroups:\n\
- name: pool\n  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 4}\n\
- name: MachineDeployment/fleet/gpu\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 2}\n\
- name: unknown\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 9}\n";

fn listed<K: Decode>(objects: Vec<Value>) -> Change<K> {
    let decode = |value| std::sync::Arc::new(K::decode(value).expect("an object"));
    Change::Reset { objects: objects.into_iter().map(decode).collect(), removed: vec![] }
}

fn status(text: &str) -> AgentInput {
    let meta = json!({"namespace": "kube-system", "name": "cluster-autoscaler-status", "resourceVersion": "1"});
    let map = json!({"metadata": meta, "data": {"status": text}});
    AgentInput::Autoscaler(AutoscalerInput::Status(listed::<AutoscalerStatus>(vec![map])))
}

/// An agent of one node of the group `pool`, on which a DaemonSet has a pod.
fn agent(autoscalers: Vec<AgentInput>) -> AgentControl {
    let mut control =
        AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    let node = json!({
        "metadata": {"name": "node", "resourceVersion": "1", "labels": {
            "kwok-nodegroup": "pool", "zone": "a", "kubernetes.io/hostname": "node",
        }},
        "spec": {"taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "pods": "10"},
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
    let pods = vec![pod("daemon", owner("DaemonSet")), pod("other", owner("ReplicaSet"))];
    let local = json!({
        "metadata": {"name": "local", "resourceVersion": "2"},
        "spec": {"labelKeys": ["zone", "gpu"]},
    });
    for input in [
        AgentInput::Node(list(vec![node])),
        AgentInput::Pod(list(pods)),
        AgentInput::Capacity(list(vec![local])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![])),
        AgentInput::Workload(list(vec![])),
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
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Capacity)?;
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
