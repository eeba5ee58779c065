//! The mark of objects that a command has made.

use crds::names::{SLUICECTL, labels::MANAGED_BY};
use kube::api::ObjectMeta;

/// Whether `sluicectl` made an object.
pub(crate) fn is_made_by_sluicectl(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.and_then(|all| all.get(MANAGED_BY)).is_some_and(|tool| tool == SLUICECTL)
}
