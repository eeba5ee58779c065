//! The name of a Workload that exists already and that a job uses (docs/reference/kueue.md §7.4).

use crds::names::labels::PREBUILT_WORKLOAD_NAME;

use crate::{GenericJob, JobGates};

/// What a label can hold; a longer name can only stand in the annotation.
pub(crate) const MAX_LABEL_LENGTH: usize = 63;

/// A name and the map that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrebuiltName<'a> {
    /// The name; empty when there is none.
    pub name: &'a str,
    /// Path of the field.
    pub field: String,
}

/// The annotation goes first, the label is used where it is missing or empty. Without the gate for identifiers in
/// annotations, only a name that is too long for a label is looked for there.
pub fn prebuilt_name<J: GenericJob>(job: &J, gates: JobGates) -> PrebuiltName<'_> {
    let annotation = job
        .annotation(PREBUILT_WORKLOAD_NAME)
        .filter(|name| !name.is_empty())
        .filter(|name| gates.identifier_annotations || name.len() > MAX_LABEL_LENGTH);
    match annotation {
        Some(name) => {
            PrebuiltName { name, field: format!("metadata.annotations[{PREBUILT_WORKLOAD_NAME}]") }
        }
        None => PrebuiltName {
            name: job.label(PREBUILT_WORKLOAD_NAME).unwrap_or_default(),
            field: format!("metadata.labels[{PREBUILT_WORKLOAD_NAME}]"),
        },
    }
}
