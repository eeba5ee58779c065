//! A Node as far as it decides about the room of its cluster.

use std::collections::BTreeMap;

use crds::meta::Taint;
use engine::Amount;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::observed::Reduced;

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeInfo {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) allocatable: BTreeMap<String, Amount>,
    /// It is Ready and not cordoned.
    pub(crate) usable: bool,
}

impl Reduced for NodeInfo {
    type Kind = Node;
    type Object = Node;

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
