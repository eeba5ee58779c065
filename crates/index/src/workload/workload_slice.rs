//! Workload slices of elastic jobs. Source: docs/reference/kueue.md §4.13.

use crds::names::annotations::{ELASTIC_JOB, WORKLOAD_SLICE_NAME, WORKLOAD_SLICE_REPLACEMENT_FOR};
use crds::v1beta2::Workload;

/// The replaced workload slice, as `namespace/name`.
pub(super) fn replaced_slice(workload: &Workload) -> Option<&str> {
    let annotations = workload.metadata.annotations.as_ref()?;
    annotations.get(WORKLOAD_SLICE_REPLACEMENT_FOR).map(String::as_str)
}

/// Whether a Workload is a slice of an elastic job, which gets more pods without a new start.
pub(super) fn is_elastic(workload: &Workload) -> bool {
    let annotations = workload.metadata.annotations.as_ref();
    annotations.is_some_and(|all| {
        all.contains_key(WORKLOAD_SLICE_NAME) || all.get(ELASTIC_JOB).is_some_and(|on| on == "true")
    })
}
