//! The name of a job's prebuilt Workload (docs/reference/kueue.md §7.4).

use crds::names::labels::PREBUILT_WORKLOAD_NAME;

use crate::{GenericJob, JobGates};

/// Maximum length of a label value; longer names are only in the annotation.
pub(crate) const MAX_LABEL_LENGTH: usize = 63;

/// A prebuilt Workload's name and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrebuiltName<'a> {
    /// The name; empty without a prebuilt Workload.
    pub name: &'a str,
    in_annotation: bool,
}

impl PrebuiltName<'_> {
    /// Field path.
    #[must_use]
    pub fn field(&self) -> String {
        let map = if self.in_annotation { "annotations" } else { "labels" };
        format!("metadata.{map}[{PREBUILT_WORKLOAD_NAME}]")
    }
}

/// The annotation takes precedence; the label is read if it is missing or empty. Without
/// `WorkloadIdentifierAnnotations` only names that are too long for a label are read from the annotation.
pub fn prebuilt_name<J: GenericJob>(job: &J, gates: JobGates) -> PrebuiltName<'_> {
    let annotation = job
        .annotation(PREBUILT_WORKLOAD_NAME)
        .filter(|name| !name.is_empty())
        .filter(|name| gates.identifier_annotations || name.len() > MAX_LABEL_LENGTH);
    match annotation {
        Some(name) => PrebuiltName { name, in_annotation: true },
        None => PrebuiltName {
            name: job.label(PREBUILT_WORKLOAD_NAME).unwrap_or_default(),
            in_annotation: false,
        },
    }
}
