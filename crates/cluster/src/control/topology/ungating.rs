//! Gated pods of an admitted Workload get their domains: one write per pod sets the node selector and takes the gate off.

use std::collections::BTreeSet;

use ::jobs::{
    pods,
    topology_ungater::{NodeLabels, UngaterPod, domains_of_gated_pods, is_assigned},
};
use crds::{
    meta::is_true,
    names::{
        conditions::{ADMITTED, EVICTED},
        gates::TOPOLOGY,
    },
    v1beta2::Workload,
};
use runtime::{watch::Key, write::Write};
use serde_json::{Value, json};

use super::topology_pods::{TopologyPods, TrackedPod};
use crate::control::{
    context::Context,
    jobs::resource,
    outbox::{Intent, Purpose, Subject, Target},
    timers::Reevaluation,
};

/// Gives the gated pods of a Workload their domains, but none on nodes that are failing.
pub(super) fn ungate(
    pods: &mut TopologyPods,
    (key, workload): (&Key, &Workload),
    failing: &BTreeSet<String>,
    ctx: &mut Context,
) {
    // Pods of an evicted Workload end, and must not start before.
    let conditions = &workload.status.conditions;
    if !is_true(conditions, ADMITTED) || is_true(conditions, EVICTED) {
        return;
    }
    repeat(pods, (key, workload), ctx);
    let mut given: Vec<(Key, NodeLabels)> = Vec::new();
    for (pod_set, members) in pods.by_pod_set(key) {
        let view: Vec<UngaterPod<'_>> = members.iter().map(|(_, pod)| pod.for_ungater()).collect();
        for (index, labels) in domains_of_gated_pods(workload, pod_set, failing, &view) {
            given.push((members[index].0.clone(), labels));
        }
    }
    for (pod, labels) in given {
        // A pod that may not be written now is given a domain when it may.
        if submit(pods, key, &pod, &labels, ctx) {
            pods.give(&pod, labels);
        }
    }
}

/// Repeats writes that may have had no effect. Those for an assignment that is over are taken back.
fn repeat(pods: &mut TopologyPods, (key, workload): (&Key, &Workload), ctx: &mut Context) {
    let given = pods.of(key).filter_map(|(pod, tracked)| {
        let labels = tracked.given()?.clone();
        let valid = is_assigned(workload, &tracked.content().pod_set, &labels);
        Some((pod.clone(), labels, valid))
    });
    for (pod, labels, valid) in given.collect::<Vec<_>>() {
        if ctx.outbox.writes().is_in_flight(&target(&pod)) {
            continue;
        }
        if valid {
            submit(pods, key, &pod, &labels, ctx);
        } else {
            pods.take_back(&pod);
        }
    }
}

/// Submits the write of a pod. Returns false if it may not be written now; its Workload is evaluated when it may.
fn submit(
    pods: &TopologyPods,
    workload: &Key,
    key: &Key,
    labels: &NodeLabels,
    ctx: &mut Context,
) -> bool {
    let Some(pod) = pods.get(key) else {
        return false;
    };
    let (target, base) = (target(key), pod.stamp());
    let waiter = Reevaluation::Ungating(workload.clone());
    if !ctx.is_free(&target, &base, &waiter) {
        return false;
    }
    let patch = patch(pod, labels);
    let intent = Intent { target, purpose: Purpose::UngateTopology, base, waiter };
    ctx.outbox.submit(intent, |purpose, key| {
        Write::of(purpose, &resource(pods::kind())).merge(key, None, &patch)
    })
}

/// Node selector and remaining gates. The version keeps the write from a pod that another leader has ungated.
fn patch(pod: &TrackedPod, labels: &NodeLabels) -> Value {
    let content = pod.content();
    let others = content.gates.iter().filter(|gate| ***gate != *TOPOLOGY);
    let others: Vec<Value> = others.map(|gate| json!({ "name": gate })).collect();
    let gates = if others.is_empty() { Value::Null } else { Value::Array(others) };
    json!({
        "metadata": { "uid": content.uid, "resourceVersion": pod.resource_version() },
        "spec": { "nodeSelector": labels, "schedulingGates": gates },
    })
}

fn target(pod: &Key) -> Target {
    Target::home(Subject::Job(pods::kind().clone()), pod)
}
