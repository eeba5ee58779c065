//! The annotation that keeps a Workload from queueing: gates with a domain prefix, comma separated.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::annotations::ADMISSION_GATED_BY;

use super::field_error::{Errors, FieldError};

type Annotations = BTreeMap<String, String>;

const LONGEST_GATE: usize = 63;

fn field() -> String {
    format!("metadata.annotations[{ADMISSION_GATED_BY}]")
}

/// Errors of the gates as they are.
pub(super) fn check(annotations: &Annotations) -> Errors {
    let Some(value) = annotations.get(ADMISSION_GATED_BY).filter(|value| !value.is_empty()) else {
        return vec![];
    };
    let mut seen = BTreeSet::new();
    let mut errors = Errors::new();
    for gate in value.split(',').map(str::trim) {
        if gate.is_empty() {
            errors.push(FieldError::invalid(field(), value, "cannot contain empty gate names"));
        } else if !is_domain_prefixed(gate) {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(field(), gate, detail));
        } else if gate.len() > LONGEST_GATE {
            let detail = format!("must be no more than {LONGEST_GATE} characters");
            errors.push(FieldError::invalid(field(), gate, detail));
        }
        if !gate.is_empty() && !seen.insert(gate) {
            errors.push(FieldError::duplicate(field(), gate, ""));
        }
    }
    errors
}

/// Gates come with the object and can only be removed.
pub(super) fn check_update(new: &Annotations, old: &Annotations) -> Errors {
    let gates = |annotations: &Annotations| -> Option<BTreeSet<String>> {
        let value = annotations.get(ADMISSION_GATED_BY).filter(|value| !value.is_empty())?;
        Some(value.split(',').map(|gate| gate.trim().to_owned()).collect())
    };
    match (gates(new), gates(old)) {
        (Some(_), None) => {
            vec![FieldError::forbidden(field(), "cannot add admission gate after creation")]
        }
        (Some(new), Some(old)) if !new.is_subset(&old) => {
            vec![FieldError::forbidden(field(), "can only remove gates, not add new ones")]
        }
        _ => vec![],
    }
}

fn is_domain_prefixed(gate: &str) -> bool {
    gate.split_once('/')
        .is_some_and(|(domain, path)| super::labels::is_subdomain(domain) && !path.is_empty())
}
