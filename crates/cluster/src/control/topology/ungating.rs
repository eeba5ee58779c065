//! Gated pods of an admitted Workload get their domains: one write per pod sets the node selector and takes the gate off.

use std::collections::{BTreeMap, BTreeSet};

use ::jobs::{
    pods,
    reservation_owners::ReservationOwners,
    topology_ungater::{
        AssignedDomains, NodeLabels, OffsetError, UngaterPod, check_offsets, domains_of_gated_pods,
    },
};
use crds::{
    names::{gates::TOPOLOGY, reasons, reporters},
    v1beta2::Workload,
};
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::Write,
};
use serde_json::{Value, json};

use super::{
    keyed_workload::KeyedWorkload,
    topology_pods::{KeyedPod, TopologyPods, TrackedPod},
};
use crate::control::{
    context::Context,
    jobs::resource,
    outbox::{Intent, Purpose, Subject, Target},
    timers::Reevaluation,
};

/// Gives the gated pods of a Workload their domains, but none on nodes that are failing. `key` is the name that pods have of it.
pub(super) fn ungate(
    pods: &mut TopologyPods,
    keyed: KeyedWorkload<'_>,
    failing: &BTreeSet<String>,
    ctx: &mut Context,
) {
    let KeyedWorkload { key, workload } = keyed;
    // Pods of an evicted Workload end, and must not start before. Domains of a finished one are not its own any more.
    if !workload.runs() {
        return;
    }
    repeat(pods, keyed, ctx);
    match domains(pods, keyed, failing) {
        Ok(given) => {
            for (pod, labels) in given {
                // A pod that may not be written now is given a domain when it may.
                if submit(pods, key, &pod, &labels, ctx) {
                    pods.give(&pod, labels);
                }
            }
        }
        Err((pod, problem)) => {
            // Every evaluation finds it again.
            if pods.report(&pod) {
                ctx.outbox.publish(withheld_domains(workload, &pod, &problem));
            }
        }
    }
}

/// The domains of the gated pods of a Workload.
///
/// # Errors
/// The first pod with an offset that is no number: then no pod gets a domain.
fn domains(
    pods: &TopologyPods,
    keyed: KeyedWorkload<'_>,
    failing: &BTreeSet<String>,
) -> Result<Vec<(Key, NodeLabels)>, (Key, OffsetError)> {
    let mut given = Vec::new();
    let workload = keyed.workload;
    for (pod_set, members) in own_pods(pods, keyed) {
        let view: Vec<UngaterPod<'_>> = members.iter().map(|one| one.pod.for_ungater()).collect();
        let name = |index: usize| members[index].key.clone();
        check_offsets(workload, pod_set, &view).map_err(|error| (name(error.pod), error))?;
        let found = domains_of_gated_pods(workload, pod_set, failing, &view).into_iter();
        given.extend(found.map(|(index, labels)| (name(index), labels)));
    }
    Ok(given)
}

/// The pods of a Workload by pod set, without those of another owner that have its name.
fn own_pods<'p>(
    pods: &'p TopologyPods,
    KeyedWorkload { key, workload }: KeyedWorkload<'_>,
) -> BTreeMap<&'p str, Vec<KeyedPod<'p>>> {
    let owners = ReservationOwners::of(workload);
    let mut all = pods.by_pod_set(key);
    for members in all.values_mut() {
        members.retain(|one| {
            let pod = one.pod.content();
            owners.account_for(pod.uid.as_deref(), pod.controller.as_ref())
        });
    }
    all
}

/// The Event about a Workload without domains for its gated pods.
fn withheld_domains(workload: &Workload, pod: &Key, problem: &OffsetError) -> EventRecord {
    EventRecord {
        regarding: Regarding::of(workload),
        event_type: EventType::Warning,
        action: reasons::INVALID_POD_INDEX_OFFSET.to_owned(),
        reason: reasons::INVALID_POD_INDEX_OFFSET.to_owned(),
        note: format!("No pod gets a domain of the topology: pod {pod}: {problem}"),
        controller: Some(reporters::WORKLOAD_CONTROLLER.to_owned()),
    }
}

/// Repeats writes that may have had no effect. Those for an assignment that is over are taken back.
fn repeat(
    pods: &mut TopologyPods,
    KeyedWorkload { key, workload }: KeyedWorkload<'_>,
    ctx: &mut Context,
) {
    let in_flight = |pod: &Key| ctx.outbox.writes().is_in_flight(&target(pod));
    let domains = |pod_set: &str| AssignedDomains::of(workload, pod_set);
    for (pod, labels, valid) in unconfirmed(pods, key, in_flight, domains) {
        if valid {
            submit(pods, key, &pod, &labels, ctx);
        } else {
            pods.take_back(&pod);
        }
    }
}

/// Pods that do not show their domain yet although their write is answered: the domain, and whether its pod set still has it. A
/// large Workload has thousands of pods and domains, so `domains` is called once per pod set, and not for writes in flight.
fn unconfirmed<'a>(
    pods: &TopologyPods,
    workload: &Key,
    in_flight: impl Fn(&Key) -> bool,
    mut domains: impl FnMut(&str) -> AssignedDomains<'a>,
) -> Vec<(Key, NodeLabels, bool)> {
    let mut by_pod_set = BTreeMap::new();
    let given =
        pods.of(workload).filter_map(|KeyedPod { key, pod }| Some((key, pod, pod.given()?)));
    let answered = given.filter(|(pod, ..)| !in_flight(pod));
    // Only pods of a pod set were given one.
    let unconfirmed = answered.map(|(pod, one, labels)| {
        let pod_set = one.content().pod_set.as_deref().unwrap_or_default();
        let assigned = by_pod_set.entry(pod_set).or_insert_with(|| domains(pod_set));
        (pod.clone(), labels.clone(), assigned.have(labels))
    });
    unconfirmed.collect()
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
    if !ctx.free_or_wait(&target, &base, &waiter) {
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

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, sync::Arc};

    use super::*;
    use crate::control::{observed::Observed, topology::WatchedPod};

    /// A gated pod of a pod set of the Workload `train`, which was given a domain.
    fn give(pods: &mut TopologyPods, name: &str, pod_set: &str) {
        let pod: Observed<WatchedPod> = serde_json::from_value(json!({
            "metadata": {
                "name": name, "namespace": "ns", "uid": name, "resourceVersion": "1",
                "labels": {"kueue.x-k8s.io/podset": pod_set},
                "annotations": {
                    "kueue.x-k8s.io/workload": "train",
                    "kueue.x-k8s.io/podset-unconstrained-topology": "true",
                },
            },
            "spec": {"schedulingGates": [{"name": TOPOLOGY}], "containers": []},
        }))
        .expect("a pod decodes");
        pods.set(&key(name), TrackedPod::of(&Arc::new(pod)));
        pods.give(&key(name), NodeLabels::from([("rack".to_owned(), pod_set.to_owned())]));
    }

    fn key(name: &str) -> Key {
        Key { namespace: Some("ns".into()), name: name.into() }
    }

    #[test]
    fn domains_are_decoded_once_per_pod_set_with_answered_writes() {
        let mut pods = TopologyPods::default();
        for (name, pod_set) in [("a0", "a"), ("a1", "a"), ("a2", "a"), ("b0", "b"), ("b1", "b")] {
            give(&mut pods, name, pod_set);
        }
        let workload: Workload = serde_json::from_value(json!({
            "spec": {"podSets": []},
            "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [
                {"name": "a", "count": 2, "topologyAssignment": {"levels": ["rack"], "slices": [{
                    "domainCount": 1,
                    "valuesPerLevel": [{"individual": {"roots": ["a"]}}],
                    "podCounts": {"individual": [2]},
                }]}},
            ]}},
        }))
        .expect("a Workload decodes");
        let decoded = RefCell::new(Vec::new());
        let domains = |pod_set: &str| {
            decoded.borrow_mut().push(pod_set.to_owned());
            AssignedDomains::of(&workload, pod_set)
        };
        let in_flight = |pod: &Key| pod.name.starts_with('b') || *pod.name == *"a0";
        let found = unconfirmed(&pods, &key("train"), in_flight, domains);
        let found: Vec<(&str, bool)> =
            found.iter().map(|(pod, _, valid)| (&*pod.name, *valid)).collect();
        assert_eq!(found, [("a1", true), ("a2", true)]);
        assert_eq!(decoded.into_inner(), ["a"]);
    }
}
