//! How long a pod of an admitted Workload waited until its scheduling gate was removed.

use crds::{
    names::{annotations::IS_GROUP_WORKLOAD, conditions::ADMITTED},
    v1beta2::Workload,
};
use index::status::find;
use jiff::Timestamp;

use super::transitions::elapsed;
use crate::control::measurement::Measurement;

/// Measured when the write that removes `gate` from a pod of `workload` was answered. `None` if the Workload is not admitted any
/// more.
pub(crate) fn gate_removed(
    gate: &'static str,
    workload: &Workload,
    now: Timestamp,
) -> Option<Measurement> {
    let admission = workload.status.admission.as_ref()?;
    let admitted = find(&workload.status.conditions, ADMITTED)?;
    let admitted = Some(admitted).filter(|one| one.status == "True")?.transitioned_at()?;
    let annotations = workload.metadata.annotations.as_ref();
    Some(Measurement::GateRemoved {
        gate,
        cluster_queue: admission.cluster_queue.clone(),
        is_group: annotations.is_some_and(|all| all.contains_key(IS_GROUP_WORKLOAD)),
        took: elapsed(Some(admitted), now),
    })
}
