//! A Pod as far as it decides about room.

use std::collections::BTreeMap;

use ::jobs::{Pod, integrations::controller};
use crds::names::{
    annotations::{WORKLOAD, WORKLOAD_SLICE_NAME},
    labels::{MULTI_KUEUE_WORKER_POD, POD_SET},
};
use engine::Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::Key;

use super::{failing_pods::PodSymptom, unschedulable::UnschedulableSince};
use crate::control::{
    observed::Reduced,
    pod_fields::PodFields,
    pod_on_node::{has_ended, node_of, requests_on_node},
};

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodInfo {
    /// What it takes, if it is bound and has not ended.
    pub(super) bound: Option<BoundPod>,
    /// The chain of the clone that it belongs to, if it has not ended and is not being deleted.
    pub(super) lives_for: Option<Key>,
    /// The clone that it belongs to, if it has not ended.
    pub(crate) of_clone: Option<CloneOfPod>,
    /// The chain of the clone that it belongs to, and why no node takes it.
    pub(super) unschedulable: Option<(Key, UnschedulableSince)>,
    /// The chain that it lives for, and why it cannot start.
    pub(super) failing: Option<Box<(Key, PodSymptom)>>,
}

/// A pod of a clone that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloneOfPod {
    pub(crate) clone: Key,
    pub(crate) uid: Option<Box<str>>,
    /// The grace period in seconds, if it is being deleted.
    pub(crate) grace: Option<i64>,
}

/// A pod that is bound to a node and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundPod {
    pub(super) node: Box<str>,
    pub(super) requests: BTreeMap<String, Amount>,
    /// The chain of the clone that it belongs to, if any.
    pub(super) workload: Option<Key>,
    pub(super) pod_set: Option<Box<str>>,
    /// It is one of a DaemonSet: a new node of the same kind gets one as well.
    pub(super) of_daemon_set: bool,
}

impl Reduced for PodInfo {
    type Kind = k8s_openapi::api::core::v1::Pod;
    type Object = PodFields;

    fn metadata(pod: &PodFields) -> &ObjectMeta {
        &pod.0.metadata
    }

    fn of(PodFields(pod): &PodFields) -> Self {
        let since = || Some((chain_of_pod(pod)?, UnschedulableSince::of(pod)?));
        let lives = pod.metadata.deletion_timestamp.is_none() && !has_ended(pod);
        let lives_for = chain_of_pod(pod).filter(|_| lives);
        let of_clone = workload_of(pod).filter(|_| !has_ended(pod)).map(|clone| CloneOfPod {
            clone,
            uid: pod.metadata.uid.as_deref().map(Into::into),
            grace: grace_of(&pod.metadata),
        });
        let failing = lives_for.clone().zip(PodSymptom::of(pod)).map(Box::new);
        Self { bound: BoundPod::of(pod), lives_for, of_clone, unschedulable: since(), failing }
    }
}

/// The grace period of a pod that is being deleted; the longest there is where none is written.
fn grace_of(metadata: &ObjectMeta) -> Option<i64> {
    metadata.deletion_timestamp.as_ref()?;
    Some(metadata.deletion_grace_period_seconds.unwrap_or(i64::MAX))
}

impl BoundPod {
    /// `None` for a pod that is not bound or has ended.
    fn of(pod: &Pod) -> Option<Self> {
        // An ended pod keeps its node name until it is deleted, and takes no room.
        if has_ended(pod) {
            return None;
        }
        let node = node_of(pod)?;
        let requests = requests_on_node(pod);
        let labels = pod.metadata.labels.as_ref();
        Some(Self {
            node: node.into(),
            requests,
            workload: chain_of_pod(pod),
            pod_set: labels.and_then(|labels| labels.get(POD_SET)).map(|name| name.as_str().into()),
            of_daemon_set: controller(&pod.metadata).is_some_and(|owner| owner.kind == "DaemonSet"),
        })
    }
}

/// What a pod of a clone is counted for: the chain of slices that it names, or else its clone.
fn chain_of_pod(pod: &Pod) -> Option<Key> {
    let clone = workload_of(pod)?;
    let annotations = pod.metadata.annotations.as_ref();
    let chain = annotations.and_then(|all| all.get(WORKLOAD_SLICE_NAME));
    Some(chain.map(|name| Key { name: name.as_str().into(), ..clone.clone() }).unwrap_or(clone))
}

/// The clone that a pod belongs to.
fn workload_of(pod: &Pod) -> Option<Key> {
    let labels = pod.metadata.labels.as_ref()?;
    // The annotation is on pods of every admitted Workload, the label on pods of clones only
    // (docs/reference/multikueue.md §1.6).
    labels.get(MULTI_KUEUE_WORKER_POD)?;
    let name = pod.metadata.annotations.as_ref()?.get(WORKLOAD)?;
    let namespace = pod.metadata.namespace.as_deref().map(Into::into);
    Some(Key { namespace, name: name.as_str().into() })
}

/// A pod of the clone `ns/clone` with this status.
#[cfg(test)]
pub(super) fn pod_of_clone(status: &serde_json::Value) -> PodInfo {
    let pod = serde_json::from_value(serde_json::json!({
        "metadata": {
            "namespace": "ns",
            "labels": {"kueue.x-k8s.io/multikueue-worker-workload-pod": "true"},
            "annotations": {"kueue.x-k8s.io/workload": "clone"},
        },
        "status": status,
    }));
    PodInfo::of(&pod.expect("a pod"))
}
