//! Validation of label selectors.

use crate::meta::{LabelSelector, LabelSelectorRequirement};

use super::{Errors, FieldError, labels};

/// Errors of the selector at `field`.
pub fn check(field: &str, selector: &LabelSelector) -> Errors {
    let mut errors = labels::check_labels(&format!("{field}.matchLabels"), &selector.match_labels);
    for (at, requirement) in selector.match_expressions.iter().enumerate() {
        errors.extend(check_requirement(&format!("{field}.matchExpressions[{at}]"), requirement));
    }
    errors
}

fn check_requirement(field: &str, requirement: &LabelSelectorRequirement) -> Errors {
    let mut errors = Errors::new();
    let values = &requirement.values;
    let values_field = format!("{field}.values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &values_field,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &values_field,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            format!("{field}.operator"),
            other,
            "not a valid selector operator",
        )),
    }
    errors.extend(labels::check_key(&format!("{field}.key"), &requirement.key));
    for (at, value) in values.iter().enumerate() {
        errors.extend(labels::check_value(&format!("{values_field}[{at}]"), value));
    }
    errors
}
