//! Jobs whose operator renders a JobSet from a runtime: TrainJob (docs/reference/kueue.md §7.8).
//!
//! The pod sets are those of the rendered JobSet. A start writes what it adds to their pods into an entry of the job's patches,
//! which belongs to Kueue, and unsuspends the job in a second write: some versions of the operator refuse a change of patches that
//! comes with the switch. A stop empties the entry when no pod is active, because the operator refuses the change before.
//!
//! | file | concept |
//! |---|---|
//! | `rendered` | the replicated Jobs of the JobSet: templates and counts |
//! | `strategic_merge` | how a patch changes a template |
//! | `patches` | the entry of Kueue in the patches of a job |
//! | `stored_additions` | what an API server has stored of that entry |

mod patches;
mod rendered;
mod stored_additions;
mod strategic_merge;
#[cfg(test)]
mod tests;

pub use stored_additions::{StartAdditions, StartObstacle};

use crds::v1beta2::PodSet;
use serde::Deserialize;
use serde_json::Value;

use super::{
    declared_pod_set::{DeclaredPodSet, IndexLabels, decode_template},
    probe::Probe,
};
use crate::{pointer::Pointer, start::pod_set_info::PodSetInfo};

/// Label of a pod with its index in a Job.
const POD_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Label of a pod with the index of its Job in a JobSet.
const JOB_INDEX: &str = "jobset.sigs.k8s.io/job-index";

/// What a refusal for a topology annotation adds: the annotation stands in another object.
pub(super) const ADVICE: &str = ". Adjust either the \"TrainJob.spec.runtimePatches\" or the \"TrainingRuntime.Template\" annotations for the corresponding Job";

/// Where a job has what its operator renders a runtime with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrainingSpec {
    /// The spec of the job.
    pub job: Pointer,
    /// The manager of the entry in the patches of the job that a start fills.
    pub manager: String,
}

impl TrainingSpec {
    /// The pod sets of a job with this runtime.
    ///
    /// # Errors
    /// If a template does not decode, or contradicts what a start added to it.
    pub(super) fn pod_sets(
        &self,
        object: &Value,
        job: &str,
        runtime: &Value,
    ) -> Result<Vec<DeclaredPodSet>, String> {
        let jobs = rendered::jobs(self, object, job, runtime).into_iter();
        let sets = jobs.map(|job| {
            let at = Pointer::of(&[&job.name]);
            let base = decode_template(Some(&job.template), &at)?;
            let mut template = base.clone();
            if let Some(added) = self.added_to(object, &job.name) {
                let added = decode_template(Some(added), &at)?;
                let added = PodSet { name: job.name.clone(), template: added, ..PodSet::default() };
                let merged = PodSetInfo::of(&added).merge_into(&mut template, false);
                merged.map_err(|error| error.to_string())?;
            }
            Ok(DeclaredPodSet {
                path: format!("job[{}]", job.name),
                name: job.name.to_lowercase(),
                called: Some(job.name),
                at,
                template,
                base: Some(base),
                replicas: job.replicas,
                pods_per_replica: job.pods_per_replica,
                written: None,
                n_groups: None,
                index_labels: IndexLabels {
                    pod: Some(POD_INDEX.to_owned()),
                    replica: Some(JOB_INDEX.to_owned()),
                },
            })
        });
        sets.collect()
    }

    /// Whether all replicated Jobs are ready or have succeeded.
    pub(super) fn is_ready(&self, object: &Value, sets: &[DeclaredPodSet]) -> bool {
        let numbers = |field: &str| -> i64 {
            job_counts(field).all(object).into_iter().filter_map(Value::as_i64).sum()
        };
        let wanted: i64 = sets.iter().map(|set| i64::from(set.replicas)).sum();
        numbers("ready") + numbers("succeeded") == wanted
    }

    /// What the status counts for readiness. Left over from a former run, it would show the pods of the next one as ready.
    pub(crate) fn ready_counts(&self) -> Probe {
        Probe::AnyAbove(["ready", "succeeded"].map(job_counts).into())
    }
}

/// A number of every replicated Job in the status.
fn job_counts(field: &str) -> Pointer {
    Pointer::of(&["status", "jobsStatus", "*", field])
}
