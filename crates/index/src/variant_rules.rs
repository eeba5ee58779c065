//! Which Workloads have variants, and by which rules. Source: docs/reference/kueue.md §4.13.

use crds::meta::is_deleting;
use crds::names::annotations::ELASTIC_JOB;
use crds::v1beta2::{ConcurrentAdmissionPolicy, Workload};

/// The flavors that a Workload is tried with, one variant each.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantRules {
    /// The flavors of the ClusterQueue, the best one first.
    pub flavors: Vec<String>,
    /// The policy of the ClusterQueue.
    pub policy: ConcurrentAdmissionPolicy,
}

/// Whether a Workload of a ClusterQueue with variants is to become the parent of some. One that holds quota keeps it; an elastic one is no
/// parent, because its slices replace one another.
pub(crate) fn becomes_parent(workload: &Workload) -> bool {
    let annotations = workload.metadata.annotations.as_ref();
    let elastic = annotations.is_some_and(|all| all.contains_key(ELASTIC_JOB));
    !workload.has_variants()
        && workload.parent().is_none()
        && !is_deleting(&workload.metadata)
        && !workload.is_finished()
        && !workload.has_quota_reservation()
        && !elastic
}
