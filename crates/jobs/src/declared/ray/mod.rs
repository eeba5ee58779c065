//! A RayCluster in a job: the RayCluster itself, or the one that the operator makes of a RayJob or a RayService
//! (docs/reference/kueue.md §7.8, docs/reference/ray.md §3, §8).
//!
//! Templates and counts of its groups are declared like those of every kind. What is not in the templates stands here: containers
//! that the operator adds to pods, the pod that submits a RayJob, and what webhooks refuse.
//!
//! | file | concept |
//! |---|---|
//! | `additions` | containers and requests that Workloads count beside those of the templates |
//! | `submitter` | the pod set of the pod that submits a RayJob |
//! | `check` | refusals |

mod additions;
mod check;
mod submitter;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::Value;

use crate::{declared::declared_pod_set::DeclaredPodSet, pointer::Pointer};

/// Name of the pod set of the head.
const HEAD: &str = "head";

/// Field of the RayCluster that has the operator add an autoscaler to the head.
const AUTOSCALING: &str = "enableInTreeAutoscaling";

/// Field of the RayCluster with the groups of workers.
const WORKER_GROUPS: &str = "workerGroupSpecs";

/// Where a job has a RayCluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RaySpec {
    /// The spec of the RayCluster.
    pub cluster: Pointer,
    /// The field of it in error messages, if that is another one.
    #[serde(default)]
    pub called: Option<Pointer>,
    /// The spec of a RayJob that is submitted to the RayCluster.
    #[serde(default)]
    pub job: Option<Pointer>,
    /// Name of the lookup rule of the RayCluster that the operator makes, if the job is none itself.
    #[serde(default)]
    pub live: Option<String>,
    /// Finalizer of the operator that keeps a deleted job until its RayClusters are gone.
    #[serde(default)]
    pub operator_finalizer: Option<String>,
}

impl RaySpec {
    /// Names the fields of the pod sets as error messages do.
    pub(super) fn place_fields(&self, sets: &mut [DeclaredPodSet]) {
        let (from, to) = (format!("{}.", self.cluster.field_path()), format!("{}.", self.path()));
        for set in sets {
            if let Some(rest) = set.path.strip_prefix(&from) {
                set.path = format!("{to}{rest}");
            }
        }
    }

    /// The path of the RayCluster in error messages.
    fn path(&self) -> String {
        self.called.as_ref().unwrap_or(&self.cluster).field_path()
    }

    /// How a RayJob is submitted; the API's default without a value, nothing for other kinds.
    fn submission_mode<'a>(&self, object: &'a Value) -> Option<&'a str> {
        let spec = self.job.as_ref()?.get(object)?;
        Some(
            spec["submissionMode"].as_str().filter(|mode| !mode.is_empty()).unwrap_or("K8sJobMode"),
        )
    }

    /// Whether a container of the head submits the RayJob.
    pub(super) fn is_submitted_by_head(&self, object: &Value) -> bool {
        self.submission_mode(object) == Some("SidecarMode")
    }
}
