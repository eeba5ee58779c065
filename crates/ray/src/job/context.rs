//! What all phases of a RayJob read.

use crds::meta::is_controlled_by;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{children::JobAttempt, status::AttemptStatus};
use crate::{
    PassInputs,
    json::{label, name, text},
    names,
    settings::OperatorSettings,
    v1::RayJobSpec,
};

/// How the job reaches Ray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmissionMode {
    /// A Job with a pod that submits.
    Job,
    /// A container beside the head.
    Sidecar,
    /// The operator itself.
    Http,
    /// The user submits, and names the job afterwards.
    Interactive,
    /// A mode without a submitter: the CRD does not bound the value.
    Unknown,
}

impl SubmissionMode {
    pub(super) fn of(spec: &RayJobSpec) -> Self {
        match spec.submission_mode.as_str() {
            "" | "K8sJobMode" => Self::Job,
            "SidecarMode" => Self::Sidecar,
            "HTTPMode" => Self::Http,
            "InteractiveMode" => Self::Interactive,
            _ => Self::Unknown,
        }
    }
}

/// A RayJob, the objects around it, the settings and the time.
pub(super) struct JobContext<'a> {
    pub(super) job: &'a Value,
    pub(super) spec: &'a RayJobSpec,
    pub(super) children: &'a [&'a Value],
    pub(super) settings: &'a OperatorSettings,
    pub(super) inputs: &'a PassInputs,
}

impl<'a> JobContext<'a> {
    pub(super) fn name(&self) -> &'a str {
        name(self.job)
    }

    /// `namespace/name` of an object beside the RayJob, for messages.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", text(&self.job["metadata"]["namespace"]))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inputs.now
    }

    pub(super) fn mode(&self) -> SubmissionMode {
        SubmissionMode::of(self.spec)
    }

    /// Whether the job runs in a cluster that does not belong to it.
    pub(super) fn selects_cluster(&self) -> bool {
        !self.spec.cluster_selector.is_empty()
    }

    pub(super) fn attempt<'b>(&'b self, status: &'b AttemptStatus) -> JobAttempt<'b> {
        JobAttempt {
            job: self.job,
            spec: self.spec,
            cluster_name: &status.fields.ray_cluster_name,
            job_id: &status.fields.job_id,
            dashboard_url: &status.fields.dashboard_url,
            settings: self.settings,
        }
    }

    pub(super) fn child(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.children.iter().copied().find(|it| it["kind"] == kind && name(it) == wanted)
    }

    /// An object of this name that the RayJob made. A foreign object of the name is none.
    pub(super) fn own(&self, kind: &str, wanted: &str) -> Option<&'a Value> {
        self.child(kind, wanted).filter(|object| self.owns(object))
    }

    pub(super) fn owns(&self, object: &Value) -> bool {
        is_controlled_by(object, self.job)
    }

    /// The pod of the head of a cluster.
    pub(super) fn head_pod(&self, cluster: &str) -> Option<&'a Value> {
        self.children.iter().copied().find(|pod| {
            pod["kind"] == "Pod"
                && label(pod, names::CLUSTER_LABEL) == cluster
                && label(pod, names::NODE_TYPE_LABEL) == "head"
        })
    }

    /// Whether so many seconds have passed since a time of the status.
    pub(super) fn has_passed(&self, since: Option<&str>, seconds: Option<i32>) -> bool {
        let since = since.and_then(|since| since.parse::<Timestamp>().ok());
        match (since, seconds) {
            (Some(since), Some(seconds)) => {
                self.now().duration_since(since) > SignedDuration::from_secs(seconds.into())
            }
            _ => false,
        }
    }
}
