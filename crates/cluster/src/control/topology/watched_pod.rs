//! A Pod, as topologies see it: what it takes of a node, or that it belongs to a Workload with a topology assignment.

use std::{collections::BTreeMap, sync::Arc};

use ::jobs::{Pod, reservation_owners::PodController};
use crds::names::{
    annotations::{
        POD_INDEX_OFFSET, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY,
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_UNCONSTRAINED_TOPOLOGY, WORKLOAD, WORKLOAD_SLICE_NAME,
    },
    labels::{POD_SET, TAS},
};
use engine::Amount;
use jiff::Timestamp;
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
    /// It has a topology request and names its Workload, which accounts for it while it holds a reservation.
    Assigned(Arc<AssignedPod>),
}

/// A bound pod without a topology request, or that names no Workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignPod {
    pub(super) usage: PodUsage,
    /// The Workload that it names, as [`AssignedPod::workload`], unless it is being deleted: it keeps its node for that Workload.
    pub(super) runs_for: Option<Key>,
}

/// What a pod takes of the node that it is bound to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodUsage {
    pub(super) node: Box<str>,
    pub(super) requests: BTreeMap<String, Amount>,
}

/// A pod with a topology request that names its Workload.
#[derive(Debug, Clone, PartialEq)]
pub struct AssignedPod {
    pub(super) uid: Option<Box<str>>,
    /// The chain of workload slices that it belongs to, by the name of the first one, or else its Workload. Pods run on with later
    /// slices than the one that they name.
    pub(super) workload: Key,
    /// Its pod set, if the Workload accounts for it there. The annotations alone prove nothing: a pod that is in no queue may have them.
    pub(super) pod_set: Option<Box<str>>,
    /// Its labels have its index.
    pub(super) labels: BTreeMap<String, String>,
    /// The annotation with the offset of its index, if any.
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    /// Scheduling gates, in order.
    pub(super) gates: Vec<Box<str>>,
    /// What it takes of its node, if it is bound.
    pub(super) usage: Option<PodUsage>,
    pub(super) controller: Option<PodController>,
    /// The end of its grace period, if it is being deleted.
    pub(super) deletion: Option<Timestamp>,
}

impl WatchedPod {
    /// The pod, if no Workload accounts for it.
    pub(super) fn foreign(&self) -> Option<&ForeignPod> {
        match self {
            Self::Foreign(pod) => Some(pod),
            _ => None,
        }
    }

    /// The pod, if it names the Workload of its topology request.
    pub(super) fn of_workload(&self) -> Option<&Arc<AssignedPod>> {
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
        match AssignedPod::of(pod) {
            Some(assigned) => Self::Assigned(Arc::new(assigned)),
            None => ForeignPod::of(pod).map_or(Self::Other, Self::Foreign),
        }
    }
}

impl ForeignPod {
    /// `None` for a pod that is not bound.
    fn of(pod: &Pod) -> Option<Self> {
        let stays = !pod.is_deleting();
        let runs_for = named_workload(&pod.metadata).filter(|_| stays);
        Some(Self { usage: PodUsage::of(pod)?, runs_for })
    }
}

impl PodUsage {
    /// `None` for a pod that is not bound.
    fn of(pod: &Pod) -> Option<Self> {
        let node = node_of(pod)?;
        Some(Self { node: node.into(), requests: requests_on_node(pod) })
    }
}

impl AssignedPod {
    /// The node that it is bound to.
    pub(super) fn node(&self) -> Option<&str> {
        self.usage.as_ref().map(|usage| &*usage.node)
    }

    /// `None` for a pod without a topology request, or that names no Workload.
    fn of(pod: &Pod) -> Option<Self> {
        let annotations = pod.metadata.annotations.as_ref()?;
        if !OF_TOPOLOGY.iter().any(|key| annotations.contains_key(*key))
            && !has_implied_topology(pod)
        {
            return None;
        }
        let workload = named_workload(&pod.metadata)?;
        let labels = pod.metadata.labels.as_ref();
        let pod_set = labels.and_then(|labels| labels.get(POD_SET));
        let offset = annotations.get_key_value(POD_INDEX_OFFSET);
        Some(Self {
            uid: pod.metadata.uid.as_deref().map(Into::into),
            workload,
            // Only a pod that is accounted for gets a domain.
            labels: labels.filter(|_| pod_set.is_some()).cloned().unwrap_or_default(),
            pod_set: pod_set.map(|name| name.as_str().into()),
            annotations: offset
                .map(|(key, value)| (key.clone(), value.clone()))
                .into_iter()
                .collect(),
            node_selector: pod.spec.node_selector.clone(),
            gates: ::jobs::pods::gates(&pod.spec).map(Into::into).collect(),
            usage: PodUsage::of(pod),
            controller: PodController::of(&pod.metadata),
            deletion: pod.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        })
    }
}

/// The chain of workload slices that a pod names, or else its Workload.
fn named_workload(metadata: &ObjectMeta) -> Option<Key> {
    let annotations = metadata.annotations.as_ref()?;
    let name = annotations.get(WORKLOAD_SLICE_NAME).or_else(|| annotations.get(WORKLOAD))?;
    let namespace = metadata.namespace.as_deref().map(Into::into);
    Some(Key { namespace, name: name.as_str().into() })
}

/// Whether a pod of an earlier version of Kueue has an implied topology request: only the label shows it. The gate shows nothing, because
/// it goes with the domain, and the pod would be one of no Workload then.
fn has_implied_topology(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(TAS))
}
