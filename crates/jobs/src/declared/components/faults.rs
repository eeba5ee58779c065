//! What is refused of wrapped objects when a job is created or changed.
//!
//! Quota is for the pod sets of a job, so these have to be those of its objects. The operator of a worker has the same rules, but its
//! webhook does not run on the cluster of the manager. Source: docs/reference/appwrapper.md §5.

use appwrapper::declared_pod_sets::{contradiction, replicas_fault};
use crds::validation::{Errors, FieldError};
use serde_json::Value;

use super::{POD_SETS, PlacedComponent, decode, field_path, pod_template_at, wrapped_pod_sets};
use crate::pointer::Pointer;

/// What is wrong with the components of a job.
pub(crate) fn faults(components: &Pointer, object: &Value) -> Errors {
    let decoded = match decode(components, object) {
        Ok(decoded) => decoded,
        Err(error) => return vec![error],
    };
    let errors = decoded.iter().filter_map(fault);
    let mut errors: Errors = errors.collect();
    if errors.is_empty() {
        errors.extend(wrapped_pod_sets(components, object, "").err());
    }
    errors
}

fn fault(placed: &PlacedComponent) -> Option<FieldError> {
    let PlacedComponent { at, component } = placed;
    // Upstream's manager accepts a path to nothing, and finishes the job when it would start.
    let leads_nowhere = |path: &str| pod_template_at(component, path).is_none();
    if component.pod_sets.iter().any(|declared| leads_nowhere(&declared.path)) {
        return None;
    }
    if let Some(fault) = replicas_fault(&component.template) {
        let detail = format!("error inferring PodSets: {fault}");
        return Some(FieldError::invalid_together(field_path(at, "template"), detail));
    }
    let detail = contradiction(component)?;
    Some(FieldError::invalid_together(field_path(at, POD_SETS), detail))
}
