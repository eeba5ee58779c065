//! Slices of one elastic job on the hub, as far as they run on a worker: which slice comes before and after a Workload, and what it
//! asks for beside the earlier one (docs/reference/multikueue.md §2.13).
//!
//! All of it follows from the present objects.

use std::sync::Arc;

use ::jobs::{elastic_ungater::chain_of, remote_objects::admitted_pod_sets};
use crds::{
    meta::annotation, names::annotations::WORKLOAD_SLICE_REPLACEMENT_FOR, v1beta2::Workload,
};
use dispatch::{AssignedWorkload, SliceExtension, workload::SlicePredecessor};
use runtime::watch::Key;

use super::workloads::{TrackedWorkload, WorkloadPhase, Workloads};

/// Whether a slice replaces the one with this key.
pub(crate) fn replaces(slice: &Workload, old: &Key) -> bool {
    let claim = annotation(&slice.metadata, WORKLOAD_SLICE_REPLACEMENT_FOR);
    claim.is_some_and(|claim| claim == old.to_string())
}

/// The slice that a Workload replaces, if it has quota.
pub(crate) fn replaced<'a>(
    slice: &Workload,
    workloads: &'a Workloads,
) -> Option<&'a TrackedWorkload> {
    let claim = annotation(&slice.metadata, WORKLOAD_SLICE_REPLACEMENT_FOR)?;
    let (namespace, name) = claim.split_once('/')?;
    // The slices of a job are in one namespace.
    let own = slice.metadata.namespace.as_deref().filter(|own| *own == namespace)?;
    let old = workloads.get(&Key { namespace: Some(own.into()), name: name.into() })?;
    let is_of_chain = chain_of(slice).is_some() && chain_of(slice) == chain_of(old.object());
    (is_of_chain && old.phase().holds_quota()).then_some(old)
}

/// The slice that a Workload replaces, if a worker runs it with quota.
pub(crate) fn predecessor<'a>(
    slice: &Workload,
    workloads: &'a Workloads,
) -> Option<&'a TrackedWorkload> {
    let old = replaced(slice, workloads)?;
    old.object().status.cluster_name.is_some().then_some(old)
}

/// What becomes of that slice.
pub(crate) fn predecessor_state(slice: &Workload, workloads: &Workloads) -> SlicePredecessor {
    match predecessor(slice, workloads) {
        None => SlicePredecessor::Absent,
        Some(old) if old.is_leaving() || old.object().metadata.deletion_timestamp.is_some() => {
            SlicePredecessor::Leaves
        }
        Some(_) => SlicePredecessor::Runs,
    }
}

/// What a Workload is placed with: what it has beyond the slice that it replaces, and what it extends; all of it if it replaces none
/// that runs.
pub(crate) fn extending(
    slice: &Workload,
    whole: Arc<AssignedWorkload>,
    workloads: &Workloads,
) -> (Arc<AssignedWorkload>, Option<SliceExtension>) {
    let extended = predecessor(slice, workloads).and_then(|old| {
        let cluster = old.object().status.cluster_name.as_deref()?.into();
        Some((old, SliceExtension { old: old.id()?, cluster, whole: Arc::clone(&whole) }))
    });
    match extended {
        Some((old, extension)) => {
            (Arc::new(whole.beyond(counts_of(old.object()))), Some(extension))
        }
        None => (whole, None),
    }
}

/// Admitted pods of a slice, by pod set.
pub(crate) fn counts_of(slice: &Workload) -> impl Fn(&str) -> i64 {
    let held = admitted_pod_sets(slice);
    move |name| {
        let set = held.iter().find(|set| set.name == name);
        set.map_or(0, |set| i64::from(set.count.unwrap_or(1)))
    }
}

/// Whether a slice has quota and is not about to lose it.
pub(crate) fn keeps_quota(slice: &TrackedWorkload) -> bool {
    slice.phase().keeps_quota() && !slice.is_leaving()
}

/// Whether the old slice may be finished: the new one has its quota, and is admitted if the old one runs on a worker or is evicted.
pub(crate) fn may_finish(old: &TrackedWorkload, new: &TrackedWorkload) -> bool {
    // The worker decides as well. Until then the old slice is the one that the jobs there run with.
    let is_dispatched = old.object().status.cluster_name.is_some();
    // Else the eviction would be lost, and the pods would go on under a slice that waits for its checks.
    let needs_admission = is_dispatched || old.is_leaving();
    let stands = if needs_admission {
        new.phase() == WorkloadPhase::Admitted
    } else {
        new.phase().keeps_quota()
    };
    old.phase().holds_quota() && stands
}
