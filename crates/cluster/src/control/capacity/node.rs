//! A Node and a Pod as far as they decide about room.

use std::collections::BTreeMap;

use ::jobs::Pod;
use crds::{decode::Decode, meta::Taint, names::labels::POD_SET};
use engine::Amount;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::watch::Key;
use serde_json::{Error, Value};

use super::{observed::Reduced, unschedulable::UnschedulableSince, workload_of};

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeInfo {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) allocatable: BTreeMap<String, Amount>,
    /// It is Ready and not cordoned.
    pub(super) usable: bool,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodInfo {
    /// What it takes, if it is bound and has not ended.
    pub(super) bound: Option<BoundPod>,
    /// The clone that it belongs to, if it has not ended and is not being deleted.
    pub(super) lives_for: Option<Key>,
    /// The clone that it belongs to, and why no node takes it.
    pub(super) unschedulable: Option<(Key, UnschedulableSince)>,
}

/// A pod that is bound to a node and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundPod {
    pub(super) node: Box<str>,
    pub(super) requests: BTreeMap<String, Amount>,
    /// The clone that it belongs to, if any.
    pub(super) workload: Option<Key>,
    pub(super) pod_set: Option<Box<str>>,
}

/// A node and what is free on it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FreeNode<'a> {
    pub(super) info: &'a NodeInfo,
    pub(super) free: BTreeMap<String, Amount>,
    /// What would be free on it without pods of clones.
    pub(super) size: BTreeMap<String, Amount>,
}

impl Reduced for NodeInfo {
    type Kind = Node;
    type Object = Node;

    fn decode(value: Value) -> Result<Node, Error> {
        serde_json::from_value(value)
    }

    fn metadata(node: &Node) -> &ObjectMeta {
        &node.metadata
    }

    fn of(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().flatten();
        let ready = ready.filter(|one| one.type_ == "Ready").any(|one| one.status == "True");
        let taints = spec.taints.into_iter().flatten().map(|taint| Taint {
            effect: taint.effect,
            key: taint.key,
            // The time of a taint would put each tainted node into a class of its own.
            time_added: None,
            value: taint.value.unwrap_or_default(),
        });
        let allocatable = status.allocatable.unwrap_or_default().into_iter();
        let allocatable = allocatable.filter_map(|(name, quantity)| {
            // A quantity that does not parse counts as absent: the report never overstates.
            let amount = index::allocatable_amount(&name, &quantity.0.parse().ok()?);
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

impl Reduced for PodInfo {
    type Kind = k8s_openapi::api::core::v1::Pod;
    // With the fields that jobs have: those of volumes and probes are not decoded.
    type Object = Pod;

    fn decode(value: Value) -> Result<Pod, Error> {
        Pod::decode(value)
    }

    fn metadata(pod: &Pod) -> &ObjectMeta {
        &pod.metadata
    }

    fn of(pod: &Pod) -> Self {
        let since = || Some((workload_of(pod)?, UnschedulableSince::of(pod)?));
        let lives = pod.metadata.deletion_timestamp.is_none() && !has_ended(pod);
        let lives_for = workload_of(pod).filter(|_| lives);
        Self { bound: BoundPod::of(pod), lives_for, unschedulable: since() }
    }
}

impl BoundPod {
    /// `None` for a pod that is not bound or has ended.
    fn of(pod: &Pod) -> Option<Self> {
        // An ended pod keeps its node name until it is deleted, and takes no room.
        if has_ended(pod) {
            return None;
        }
        let node = pod.spec.rest.get("nodeName").and_then(Value::as_str);
        let node = node.filter(|name| !name.is_empty())?;
        let mut requests = index::pod_requests(&pod.spec);
        // `allocatable` of a node limits the number of pods as well.
        *requests.entry("pods".to_owned()).or_default() += Amount(1);
        let labels = pod.metadata.labels.as_ref();
        Some(Self {
            node: node.into(),
            requests,
            workload: workload_of(pod),
            pod_set: labels.and_then(|labels| labels.get(POD_SET)).map(|name| name.as_str().into()),
        })
    }
}

fn has_ended(pod: &Pod) -> bool {
    matches!(&*pod.status.phase, "Succeeded" | "Failed")
}
