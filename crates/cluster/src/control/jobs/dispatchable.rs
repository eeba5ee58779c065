//! Whether the job of a Workload can be dispatched to workers (docs/reference/multikueue.md §2.3).

use ::jobs::{GenericJob, Job};
use crds::{names::MULTI_KUEUE_CONTROLLER, v1beta2::Workload};

/// Why it cannot, in upstream's words. `job` is `None` if it was not observed.
pub(super) fn refusal(job: Option<&Job>, workload: &Workload) -> Option<String> {
    let Some(job) = job else {
        let mut owners = workload.metadata.owner_references.iter().flatten();
        return match owners.next().map(|owner| owner.kind.as_str()) {
            // The watch may report the Job later than its Workload.
            Some("Job") => None,
            Some(kind) => Some(format!("No multikueue adapter found for owner kind \"{kind}\"")),
            None => Some("No multikueue adapter found".to_owned()),
        };
    };
    let manager = job.managed_by().unwrap_or_default();
    (manager != MULTI_KUEUE_CONTROLLER).then(|| {
        format!(
            "The owner is not managed by Kueue: Expecting spec.managedBy to be \"{MULTI_KUEUE_CONTROLLER}\" not \"{manager}\""
        )
    })
}
