//! Workload slices of elastic jobs. Source: docs/reference/kueue.md §4.13.

use crds::names::annotations::WORKLOAD_SLICE_REPLACEMENT_FOR;
use crds::v1beta2::Workload;

/// The replaced workload slice, as `namespace/name`.
pub(super) fn replaced_slice(workload: &Workload) -> Option<&str> {
    let annotations = workload.metadata.annotations.as_ref()?;
    annotations.get(WORKLOAD_SLICE_REPLACEMENT_FOR).map(String::as_str)
}
