//! Nodes and the pods on them, as far as they decide about room.

use std::collections::{BTreeMap, BTreeSet};

use crds::{meta::Taint, names::labels::POD_SET, pod::PodSpec};
use engine::Amount;
use k8s_openapi::api::core::v1::{Node, Pod};
use runtime::watch::Key;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeFacts {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    allocatable: BTreeMap<String, Amount>,
    /// It is ready, and takes new pods.
    usable: bool,
}

/// A pod that is bound to a node and not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundPod {
    node: Box<str>,
    requests: BTreeMap<String, Amount>,
    /// The clone that it belongs to.
    pub(super) workload: Option<Key>,
    pub(super) pod_set: Option<Box<str>>,
}

/// A node and what is free on it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FreeNode<'a> {
    pub(super) facts: &'a NodeFacts,
    pub(super) free: BTreeMap<String, Amount>,
}

impl NodeFacts {
    pub(super) fn of(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().flatten();
        let ready = ready.filter(|one| one.type_ == "Ready").any(|one| one.status == "True");
        let taints = spec.taints.into_iter().flatten().map(|taint| Taint {
            effect: taint.effect,
            key: taint.key,
            time_added: None,
            value: taint.value.unwrap_or_default(),
        });
        let allocatable = status.allocatable.unwrap_or_default().into_iter();
        let allocatable = allocatable.filter_map(|(name, quantity)| {
            let amount = index::offered(&name, &quantity.0.parse().ok()?);
            Some((name, amount))
        });
        Self {
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: taints.collect(),
            allocatable: allocatable.collect(),
            usable: ready && spec.unschedulable != Some(true),
        }
    }
}

impl BoundPod {
    /// None for a pod that is not bound, or over.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let node = spec.node_name.as_deref().filter(|name| !name.is_empty())?;
        let ours: PodSpec = serde_json::to_value(spec)
            .ok()
            .and_then(|value| serde_json::from_value(value).ok())
            .unwrap_or_default();
        let mut requests = index::pod_requests(&ours);
        *requests.entry("pods".to_owned()).or_default() += Amount(1);
        let labels = pod.metadata.labels.as_ref();
        Some(Self {
            node: node.into(),
            requests,
            workload: super::workload_of(pod),
            pod_set: labels.and_then(|labels| labels.get(POD_SET)).map(|name| name.as_str().into()),
        })
    }
}

/// What usable nodes have in all, less what pods of others take of it.
pub(super) fn totals<'a>(
    nodes: &BTreeMap<Box<str>, NodeFacts>,
    foreign: impl Iterator<Item = &'a BoundPod>,
) -> BTreeMap<String, Amount> {
    let mut totals: BTreeMap<String, Amount> = BTreeMap::new();
    for node in free(nodes, foreign) {
        for (resource, amount) in node.free {
            *totals.entry(resource).or_default() += amount;
        }
    }
    totals
}

/// Usable nodes, and what `pods` leave free on them.
pub(super) fn free<'a, 'p>(
    nodes: &'a BTreeMap<Box<str>, NodeFacts>,
    pods: impl Iterator<Item = &'p BoundPod>,
) -> Vec<FreeNode<'a>> {
    let mut free: BTreeMap<&str, FreeNode<'a>> = BTreeMap::new();
    for (name, facts) in nodes.iter().filter(|(_, facts)| facts.usable) {
        free.insert(name, FreeNode { facts, free: facts.allocatable.clone() });
    }
    for pod in pods {
        let Some(node) = free.get_mut(&*pod.node) else {
            continue;
        };
        for (resource, amount) in &pod.requests {
            if let Some(left) = node.free.get_mut(resource) {
                *left = (*left - *amount).clip();
            }
        }
    }
    free.into_values().collect()
}

/// Every label key that a node has.
pub(super) fn all_label_keys(nodes: &BTreeMap<Box<str>, NodeFacts>) -> Vec<String> {
    let keys: BTreeSet<&String> = nodes.values().flat_map(|node| node.labels.keys()).collect();
    keys.into_iter().cloned().collect()
}
