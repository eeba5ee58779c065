//! A Pod, as failure recovery sees it: one that is being deleted and may be deleted by force.

use std::{sync::Arc, time::Duration};

use ::jobs::Pod;
use crds::names::{annotations::SAFE_TO_FORCEFULLY_DELETE, conditions::FAILURE_RECOVERY};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::control::{
    observed::Reduced,
    pod_fields::PodFields,
    pod_on_node::{has_ended, node_of},
};

/// A pod. Nothing is kept of one that is not being deleted, or may not be deleted by force.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedTerminatingPod(Option<Arc<TerminatingPod>>);

/// A pod that its kubelet should have ended by its deletionTimestamp.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TerminatingPod {
    pub(super) uid: Option<Box<str>>,
    pub(super) node: Box<str>,
    /// When the grace period of the deletion ends.
    pub(super) deletion: Timestamp,
    pub(super) grace: Duration,
    /// It has ended: by itself, or by failure recovery, of which it has the condition.
    pub(super) ended: bool,
}

impl WatchedTerminatingPod {
    /// The pod, if it may be deleted by force.
    pub(super) fn terminating(&self) -> Option<&Arc<TerminatingPod>> {
        self.0.as_ref()
    }
}

impl Reduced for WatchedTerminatingPod {
    type Kind = k8s_openapi::api::core::v1::Pod;
    type Object = PodFields;

    fn metadata(pod: &PodFields) -> &ObjectMeta {
        &pod.0.metadata
    }

    fn of(PodFields(pod): &PodFields) -> Self {
        Self(TerminatingPod::of(pod).map(Arc::new))
    }
}

impl TerminatingPod {
    fn of(pod: &Pod) -> Option<Self> {
        let meta = &pod.metadata;
        let opted_in = meta.annotations.as_ref()?.get(SAFE_TO_FORCEFULLY_DELETE)?;
        let deletion = meta.deletion_timestamp.as_ref()?.0;
        let grace = u64::try_from(meta.deletion_grace_period_seconds.unwrap_or_default()).ok()?;
        let marked = pod.status.conditions.iter().any(|one| one.r#type == FAILURE_RECOVERY);
        let ended = marked || has_ended(pod);
        // Without a grace period it was deleted by force already: it still needs its end, which only its kubelet would write, and
        // then only a finalizer keeps it.
        let is_settled = ended && grace == 0;
        if opted_in != "true" || is_settled {
            return None;
        }
        Some(Self {
            uid: meta.uid.as_deref().map(Into::into),
            node: node_of(pod)?.into(),
            deletion,
            grace: Duration::from_secs(grace),
            ended,
        })
    }
}
