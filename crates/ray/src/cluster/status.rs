//! The status of a RayCluster.
//!
//! Source: docs/reference/ray.md §3 "Status".

use serde_json::{Map, Value, json};

use super::{
    conditions::{self, rfc3339},
    context::ClusterContext,
    failure::Failure,
    group_size::{desired_replicas, hosts},
    pod_health::{is_running_and_ready, phase, runs},
    resources::desired_resources,
    services::is_head_service,
    suspension::Suspension,
};
use crate::{
    conditions_of,
    json::{items, name, object, text},
    names,
    v1::WorkerGroupSpec,
};

/// Fields that do not count as a change.
const NOT_COMPARED: &[&str] = &["lastUpdateTime", "observedGeneration"];

/// The status after a pass, if it differs from the present one. `created` are objects of this pass, which the children do not have yet.
///
/// Without a head service there is no status.
pub(crate) fn next_status(
    context: &ClusterContext<'_>,
    created: &[&Value],
    failure: Option<&Failure>,
) -> Option<Value> {
    let new =
        |kind: &'static str| created.iter().copied().filter(move |object| object["kind"] == kind);
    let mut services = context.of_kind("Service").chain(new("Service"));
    let service = services.find(|service| is_head_service(context, service))?;
    let heads: Vec<&Value> = context.heads().chain(new_pods(created, "head")).collect();
    let workers: Vec<&Value> = context.workers().chain(new_pods(created, "worker")).collect();
    let present = &context.cluster["status"];
    let mut status = json!({});
    sizes(context, &workers, &mut status);
    resources(context, &mut status);
    insert(&mut status, "endpoints", endpoints(service));
    insert(&mut status, "head", head_info(heads.first().copied(), service));
    let pods: Vec<&Value> = heads.iter().chain(&workers).copied().collect();
    state(context, &pods, failure, &mut status);
    if context.settings.gates.status_conditions {
        let head = heads.first().copied();
        status["conditions"] = conditions(context, head, &pods, failure).into();
    }
    if same_status(present, &status) {
        return None;
    }
    status["lastUpdateTime"] = json!(rfc3339(context.inputs.now));
    status["observedGeneration"] = context.cluster["metadata"]["generation"].clone();
    Some(status)
}

fn new_pods<'a>(created: &'a [&'a Value], node_type: &'a str) -> impl Iterator<Item = &'a Value> {
    created.iter().copied().filter(move |object| {
        object["kind"] == "Pod" && crate::json::label(object, names::NODE_TYPE_LABEL) == node_type
    })
}

/// Whether two statuses say the same, apart from the time of the write and the order of conditions.
pub(crate) fn same_status(present: &Value, next: &Value) -> bool {
    let reduced = |status: &Value| {
        let mut status = status.as_object().cloned().unwrap_or_default();
        for name in NOT_COMPARED {
            status.remove(*name);
        }
        let mut conditions = items(&status.remove("conditions").unwrap_or_default()).to_vec();
        // Conditions are a map by type, so another order is no change.
        conditions.sort_by(|a, b| text(&a["type"]).cmp(text(&b["type"])));
        (status, conditions)
    };
    reduced(present) == reduced(next)
}

/// Sets a field, unless it is empty: the official operator leaves those out.
fn insert(status: &mut Value, name: &str, value: Value) {
    let is_empty = match &value {
        Value::Null => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) => false,
    };
    if !is_empty {
        object(status).insert(name.to_owned(), value);
    }
}

fn sizes(context: &ClusterContext<'_>, workers: &[&Value], status: &mut Value) {
    let groups = &context.spec.worker_group_specs;
    let sum = |size: fn(&WorkerGroupSpec) -> i64| {
        let active = groups.iter().filter(|group| group.suspend != Some(true));
        let sum = active.map(|group| size(group).saturating_mul(hosts(group)));
        let sum = sum.fold(0_i64, i64::saturating_add);
        // The default of `maxReplicas` is the greatest number already, so two groups exceed it.
        json!(i32::try_from(sum).unwrap_or(i32::MAX))
    };
    insert(status, "desiredWorkerReplicas", sum(desired_replicas));
    let fewest = |group: &WorkerGroupSpec| group.min_replicas.map_or(0, i64::from);
    insert(status, "minWorkerReplicas", sum(fewest));
    let most = |group: &WorkerGroupSpec| i64::from(group.max_replicas.unwrap_or(i32::MAX));
    insert(status, "maxWorkerReplicas", sum(most));
    let running = workers.iter().filter(|pod| phase(pod) == "Running").count();
    insert(status, "availableWorkerReplicas", json!(running));
    let ready = workers.iter().filter(|pod| is_running_and_ready(pod)).count();
    insert(status, "readyWorkerReplicas", json!(ready));
}

fn resources(context: &ClusterContext<'_>, status: &mut Value) {
    let desired = desired_resources(context.spec);
    for (name, amount) in [
        ("desiredCPU", desired.cpu),
        ("desiredMemory", desired.memory),
        ("desiredGPU", desired.gpu),
        ("desiredTPU", desired.tpu),
    ] {
        insert(status, name, json!(amount.to_string()));
    }
}

/// Node ports by name; where there is none, target ports.
fn endpoints(service: &Value) -> Value {
    let ports = items(&service["spec"]["ports"]).iter();
    let endpoint = |port: &Value| {
        let number = [&port["nodePort"], &port["targetPort"], &port["port"]];
        let number = number.into_iter().find(|number| !number.is_null() && **number != 0)?;
        let text = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
        let name = text_of(&port["name"])?;
        Some((name, Value::String(text)))
    };
    ports.filter_map(endpoint).collect::<Map<String, Value>>().into()
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn head_info(head: Option<&Value>, service: &Value) -> Value {
    let pod_ip = head.map_or("", |head| text(&head["status"]["podIP"]));
    let service_ip = match text(&service["spec"]["clusterIP"]) {
        // A headless Service has no address.
        "None" => pod_ip,
        address => address,
    };
    let mut info = json!({});
    insert(&mut info, "podIP", json!(pod_ip));
    insert(&mut info, "podName", json!(head.map_or("", name)));
    insert(&mut info, "serviceIP", json!(service_ip));
    insert(&mut info, "serviceName", json!(name(service)));
    info
}

/// The state stays until another one is reached, also when pods die.
fn state(
    context: &ClusterContext<'_>,
    pods: &[&Value],
    failure: Option<&Failure>,
    status: &mut Value,
) {
    let present = &context.cluster["status"];
    let wanted = status["desiredWorkerReplicas"].as_u64().unwrap_or_default();
    let is_complete = u64::try_from(pods.len()).is_ok_and(|count| count == wanted + 1);
    let mut state = text(&present["state"]);
    if failure.is_none() && is_complete && pods.iter().all(|pod| runs(pod)) {
        state = names::STATE_READY;
    }
    if context.spec.suspend == Some(true) && pods.is_empty() {
        state = names::STATE_SUSPENDED;
    }
    insert(status, "state", json!(state));
    let mut times = present["stateTransitionTimes"].as_object().cloned().unwrap_or_default();
    if state != text(&present["state"]) {
        times.insert(state.to_owned(), json!(rfc3339(context.inputs.now)));
    }
    insert(status, "stateTransitionTimes", times.into());
}

fn conditions(
    context: &ClusterContext<'_>,
    head: Option<&Value>,
    pods: &[&Value],
    failure: Option<&Failure>,
) -> Vec<Value> {
    let now = context.inputs.now;
    let recorded = Suspension::recorded(context.cluster);
    let suspension = recorded.next(context.spec.suspend, pods.len());
    let mut list = items(&context.cluster["status"]["conditions"]).to_vec();
    match conditions::replica_failure(failure) {
        Some(wanted) => conditions::set(&mut list, &wanted, now),
        // Another error ended the pass, perhaps before the pods.
        None if failure.is_some() => {}
        // The condition exists while such a failure stands, and is never False.
        None => list.retain(|condition| condition["type"] != names::REPLICA_FAILURE),
    }
    conditions::set(&mut list, &conditions::head_pod_ready(head), now);
    let was_provisioned = conditions_of::is_true(context.cluster, names::PROVISIONED);
    if let Some(wanted) = conditions::provisioned(was_provisioned, suspension, head, pods) {
        conditions::set(&mut list, &wanted, now);
    }
    for wanted in conditions::suspension(suspension) {
        conditions::set(&mut list, &wanted, now);
    }
    list
}

/// The status of no cluster, as the official operator writes it where it copies one.
pub(crate) fn no_cluster_status() -> Value {
    json!({"desiredCPU": "0", "desiredGPU": "0", "desiredMemory": "0", "desiredTPU": "0", "head": {}})
}
