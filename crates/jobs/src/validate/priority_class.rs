//! WorkloadPriorityClass: changes are allowed, additions only to suspended jobs, removals never.

use crds::{
    names::labels::PRIORITY_CLASS,
    validation::{Errors, FieldError},
};

use crate::GenericJob;

pub(super) fn check_change<J: GenericJob>(new: &J, old: &J) -> Errors {
    let now = new.label(PRIORITY_CLASS).unwrap_or_default();
    let before = old.label(PRIORITY_CLASS).unwrap_or_default();
    let detail = match (before.is_empty(), now.is_empty()) {
        (false, true) => "WorkloadPriorityClass cannot be removed from a workload",
        (true, false) if !new.spec_suspended() => {
            "WorkloadPriorityClass cannot be added to a non-suspended workload"
        }
        _ => return vec![],
    };
    vec![FieldError::invalid(format!("metadata.labels[{PRIORITY_CLASS}]"), now, detail)]
}
