//! A Pod, as workload slices see it: whether it waits for a share of the quota of its slice, or uses one.

use std::sync::Arc;

use ::jobs::{Pod, elastic_ungater::ElasticPod};
use crds::names::{
    annotations::{WORKLOAD, WORKLOAD_SLICE_NAME},
    gates::ELASTIC_JOB,
    labels::POD_SET,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::watch::Key;

use crate::control::{observed::Reduced, pod_fields::PodFields, pod_on_node::has_ended};

/// A pod. Without a slice, or at its end, nothing is kept of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedElasticPod(Option<Arc<SlicePod>>);

/// A pod of a slice.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SlicePod {
    pub(super) uid: Option<Box<str>>,
    /// The chain of slices that it belongs to, by the name of the first one.
    pub(super) chain: Key,
    pub(super) pod_set: Box<str>,
    /// Scheduling gates, in order.
    pub(super) gates: Vec<Box<str>>,
    pub(super) deleting: bool,
}

impl WatchedElasticPod {
    /// The pod, if it is of a slice.
    pub(super) fn of_slice(&self) -> Option<&Arc<SlicePod>> {
        self.0.as_ref()
    }
}

impl Reduced for WatchedElasticPod {
    type Kind = k8s_openapi::api::core::v1::Pod;
    type Object = PodFields;

    fn metadata(pod: &PodFields) -> &ObjectMeta {
        &pod.0.metadata
    }

    fn of(PodFields(pod): &PodFields) -> Self {
        Self(SlicePod::of(pod).filter(|_| !has_ended(pod)).map(Arc::new))
    }
}

impl SlicePod {
    fn of(pod: &Pod) -> Option<Self> {
        let annotations = pod.metadata.annotations.as_ref()?;
        let gates: Vec<Box<str>> = ::jobs::pods::gates(&pod.spec).map(Into::into).collect();
        // A Workload that was made without slices is the only one of its chain. The gate alone tells its pods from others.
        let alone =
            || annotations.get(WORKLOAD).filter(|_| gates.iter().any(|one| is_elastic(one)));
        let chain = annotations.get(WORKLOAD_SLICE_NAME).or_else(alone)?;
        let namespace = pod.metadata.namespace.as_deref().map(Into::into);
        Some(Self {
            uid: pod.metadata.uid.as_deref().map(Into::into),
            chain: Key { namespace, name: chain.as_str().into() },
            pod_set: pod.metadata.labels.as_ref()?.get(POD_SET)?.as_str().into(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            gates,
        })
    }

    pub(super) fn is_gated(&self) -> bool {
        self.gates.iter().any(|gate| is_elastic(gate))
    }

    /// Gates that stay when the one of elastic jobs goes.
    pub(super) fn other_gates(&self) -> impl Iterator<Item = &str> {
        self.gates.iter().map(|gate| &**gate).filter(|gate| !is_elastic(gate))
    }

    /// As the ungater reads it. While its gate is being taken off, it counts as started.
    pub(super) fn for_ungater<'a>(&'a self, name: &'a str, released: bool) -> ElasticPod<'a> {
        let gated = self.is_gated() && !released;
        ElasticPod { name, pod_set: &self.pod_set, gated, deleting: self.deleting }
    }
}

fn is_elastic(gate: &str) -> bool {
    gate == ELASTIC_JOB
}
