//! A Pod, as topologies see it: what it takes of a node, or that it belongs to a Workload with a topology assignment.

use std::{collections::BTreeMap, sync::Arc};

use ::jobs::Pod;
use crds::names::{
    annotations::{
        POD_INDEX_OFFSET, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY,
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_UNCONSTRAINED_TOPOLOGY, WORKLOAD,
    },
    labels::POD_SET,
};
use engine::Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::Key;

use crate::control::{
    observed::Reduced,
    pod_fields::PodFields,
    pod_on_node::{has_ended, node_of, requests_on_node},
};

/// Annotations of pods that get their domain from Kueue.
const OF_TOPOLOGY: &[&str] = &[
    POD_SET_REQUIRED_TOPOLOGY,
    POD_SET_PREFERRED_TOPOLOGY,
    POD_SET_UNCONSTRAINED_TOPOLOGY,
    POD_SET_SLICE_REQUIRED_TOPOLOGY,
    POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
];

/// A pod. One that has ended, or is neither bound nor assigned, does not matter.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchedPod {
    /// It does not matter.
    Other,
    /// It is bound, and takes something of its node that no Workload accounts for.
    Foreign(ForeignPod),
    /// It belongs to a Workload with a topology request, which accounts for it.
    Assigned(Arc<AssignedPod>),
}

/// What a pod takes of its node.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignPod {
    pub(super) node: Box<str>,
    pub(super) requests: BTreeMap<String, Amount>,
}

/// A pod of a Workload with a topology request.
#[derive(Debug, Clone, PartialEq)]
pub struct AssignedPod {
    pub(super) uid: Option<Box<str>>,
    pub(super) workload: Option<Key>,
    pub(super) pod_set: Box<str>,
    /// Its labels have its index.
    pub(super) labels: BTreeMap<String, String>,
    /// The annotation with the offset of its index, if any.
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    /// Scheduling gates, in order.
    pub(super) gates: Vec<Box<str>>,
    /// The node that it is bound to.
    pub(super) node: Option<Box<str>>,
    pub(super) deleting: bool,
}

impl WatchedPod {
    /// What it takes of a node.
    pub(super) fn foreign(&self) -> Option<&ForeignPod> {
        match self {
            Self::Foreign(pod) => Some(pod),
            _ => None,
        }
    }

    /// The pod, if a Workload accounts for it.
    pub(super) fn assigned(&self) -> Option<&Arc<AssignedPod>> {
        match self {
            Self::Assigned(pod) => Some(pod),
            _ => None,
        }
    }
}

impl Reduced for WatchedPod {
    type Kind = k8s_openapi::api::core::v1::Pod;
    type Object = PodFields;

    fn metadata(pod: &PodFields) -> &ObjectMeta {
        &pod.0.metadata
    }

    fn of(PodFields(pod): &PodFields) -> Self {
        if has_ended(pod) {
            return Self::Other;
        }
        if let Some(assigned) = AssignedPod::of(pod) {
            return Self::Assigned(Arc::new(assigned));
        }
        match node_of(pod) {
            Some(node) => {
                Self::Foreign(ForeignPod { node: node.into(), requests: requests_on_node(pod) })
            }
            None => Self::Other,
        }
    }
}

impl AssignedPod {
    /// `None` for a pod that no Workload accounts for. The annotations of the topology alone prove nothing: anyone may set
    /// them on a pod that is in no queue.
    fn of(pod: &Pod) -> Option<Self> {
        let (labels, annotations) =
            (pod.metadata.labels.as_ref()?, pod.metadata.annotations.as_ref()?);
        OF_TOPOLOGY.iter().find(|key| annotations.contains_key(**key))?;
        let name = annotations.get(WORKLOAD)?;
        let namespace = pod.metadata.namespace.as_deref().map(Into::into);
        let offset = annotations.get_key_value(POD_INDEX_OFFSET);
        Some(Self {
            uid: pod.metadata.uid.as_deref().map(Into::into),
            workload: Some(Key { namespace, name: name.as_str().into() }),
            pod_set: labels.get(POD_SET)?.as_str().into(),
            labels: labels.clone(),
            annotations: offset
                .map(|(key, value)| (key.clone(), value.clone()))
                .into_iter()
                .collect(),
            node_selector: pod.spec.node_selector.clone(),
            gates: ::jobs::pods::gates(&pod.spec).map(Into::into).collect(),
            node: node_of(pod).map(Into::into),
            deleting: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}
