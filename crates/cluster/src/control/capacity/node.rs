//! A Node and a Pod as far as they decide about room.

use std::collections::BTreeMap;

use crds::{meta::Taint, names::labels::POD_SET, pod::PodSpec};
use engine::Amount;
use k8s_openapi::api::core::v1::{Node, Pod};
use runtime::watch::Key;

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NodeInfo {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) allocatable: BTreeMap<String, Amount>,
    /// It is Ready and not cordoned.
    pub(super) usable: bool,
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

impl NodeInfo {
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

impl BoundPod {
    /// `None` for a pod that is not bound or has ended.
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
