//! The pod set of a batch/v1 Job.

use crds::{names::JOB_COMPLETION_INDEX, pod::PodTemplate, v1beta2::PodSet};

use super::Job;
use crate::{
    JobGates, container_env,
    topology_request::{self, PodIndexLabels},
};

/// Name of the only pod set.
pub(super) const MAIN: &str = "main";

/// Labels that old Job controllers set on templates. They name one Job and would make equal pod sets differ.
const LEGACY_LABELS: [&str; 3] =
    ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid"];

/// Labels that the Job controller needs on the template; a restore keeps them.
const CONTROLLER_LABELS: [&str; 4] = [
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];

/// Whether a label of the template belongs to the Job controller.
pub(super) fn is_controllers(label: &str) -> bool {
    CONTROLLER_LABELS.contains(&label)
}

/// Builds the pod set.
pub(super) fn pod_set(job: &Job, gates: JobGates) -> PodSet {
    let min_count = job.min_parallelism().filter(|_| gates.partial_admission);
    let template = clean(&job.spec.template);
    let labels = PodIndexLabels { pod: Some(JOB_COMPLETION_INDEX), ..PodIndexLabels::default() };
    let topology_request = topology_request::of_template(&template, labels, gates);
    PodSet {
        name: MAIN.to_owned(),
        count: Some(job.count()),
        min_count,
        template,
        topology_request,
    }
}

/// The template without the additions of the Job controller.
fn clean(template: &PodTemplate) -> PodTemplate {
    let mut template = template.clone();
    container_env::deduplicate(&mut template);
    if let Some(metadata) = template.metadata.as_mut() {
        metadata.labels.retain(|key, _| !LEGACY_LABELS.contains(&key));
    }
    template
}
