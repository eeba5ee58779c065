//! Topology slices of pods: one topology and size, or up to three layers as JSON.

use crds::{
    decode::from_value,
    names::annotations::{
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_SLICE_SIZE,
    },
    v1beta2::PodSetSliceTopologyConstraint,
    validation::{Errors, FieldError, labels::check_key, slice_layers},
};

use serde_json::Value;

use super::AnnotatedTemplate;
use crate::{JobGates, go_parse};

/// Layers that a template has at most.
pub(crate) const MAX_LAYERS: usize = 3;

/// Errors of a template's slice annotations.
pub(super) fn check(template: &AnnotatedTemplate<'_>, gates: JobGates) -> Errors {
    let mut errors = check_pair(template);
    match template.get(POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS) {
        Some(text) if gates.topology_layers => errors.extend(check_layers(template, text)),
        Some(_) => errors.push(FieldError::forbidden(
            template.field_of(POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS),
            "the TASMultiLayerTopology feature gate must be enabled to use this annotation",
        )),
        None => {}
    }
    errors
}

fn check_pair(template: &AnnotatedTemplate<'_>) -> Errors {
    let mut errors = Errors::new();
    if let Some(topology) = template.get(POD_SET_SLICE_REQUIRED_TOPOLOGY) {
        errors.extend(check_key(&template.field_of(POD_SET_SLICE_REQUIRED_TOPOLOGY), topology));
    }
    let pair = (template.get(POD_SET_SLICE_REQUIRED_TOPOLOGY), template.get(POD_SET_SLICE_SIZE));
    match pair {
        (Some(_), None) => errors.push(FieldError::required(
            template.field_of(POD_SET_SLICE_SIZE),
            format!("must be set when '{POD_SET_SLICE_REQUIRED_TOPOLOGY}' is specified"),
        )),
        (None, Some(_)) => errors.push(FieldError::forbidden(
            template.field_of(POD_SET_SLICE_SIZE),
            format!("may not be set when '{POD_SET_SLICE_REQUIRED_TOPOLOGY}' is not specified"),
        )),
        (Some(_), Some(_)) | (None, None) => {}
    }
    errors.extend(pair.1.and_then(|size| check_size(template, size)));
    errors
}

fn check_size(template: &AnnotatedTemplate<'_>, text: &str) -> Option<FieldError> {
    let invalid = |detail: String| {
        Some(FieldError::invalid(template.field_of(POD_SET_SLICE_SIZE), text, detail))
    };
    match go_parse::integer_of_32_bits(text) {
        Err(_) => invalid("must be a numeric value".to_owned()),
        Ok(size) if size < 1 => invalid("must be greater than or equal to 1".to_owned()),
        Ok(size) if size > template.count => {
            invalid(format!("must not be greater than pod set count {}", template.count))
        }
        Ok(_) => None,
    }
}

fn check_layers(template: &AnnotatedTemplate<'_>, text: &str) -> Errors {
    let field = template.field_of(POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS);
    let mut errors: Errors = [POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_SIZE]
        .into_iter()
        .filter(|key| template.get(key).is_some())
        .map(|key| {
            FieldError::forbidden(&field, format!("may not be set when '{key}' is specified"))
        })
        .collect();
    match layers(text) {
        Err(problem) => {
            let detail = format!("must be a valid JSON array: {problem}");
            errors.push(FieldError::invalid(&field, text, detail));
        }
        Ok(layers) if layers.is_empty() || layers.len() > MAX_LAYERS => {
            let detail =
                format!("topology constraints must contain between 1 and {MAX_LAYERS} entries");
            errors.push(FieldError::invalid(&field, text, detail));
        }
        Ok(layers) => errors.extend(check_each(&field, &layers, template.count)),
    }
    errors
}

fn check_each(field: &str, layers: &[PodSetSliceTopologyConstraint], count: i32) -> Errors {
    let mut errors = Errors::new();
    for (index, layer) in layers.iter().enumerate() {
        errors.extend(check_key(&format!("{field}[{index}].topology"), &layer.topology));
        if layer.size < 1 {
            let detail = "must be greater than or equal to 1";
            errors.push(FieldError::invalid(format!("{field}[{index}].size"), layer.size, detail));
        }
    }
    // Whether a layer is below the one before is checked by the scheduler only, which knows the topology
    // (docs/reference/kueue.md §5.3).
    errors.extend(slice_layers::check(field, layers));
    if let Some(first) = layers.first().filter(|layer| layer.size > count) {
        let detail = format!("must not be greater than pod set count {count}");
        errors.push(FieldError::invalid(field, first.size, detail));
    }
    errors
}

/// Parses the layers. The error is part of the refusal's message.
pub(crate) fn layers(text: &str) -> Result<Vec<PodSetSliceTopologyConstraint>, String> {
    // In two steps: a syntax error gets Go's words, which the recorded refusals of upstream have.
    let value: Value = serde_json::from_str(text).map_err(|error| syntax_problem(text, &error))?;
    from_value(&value).map_err(|error| error.to_string())
}

fn syntax_problem(text: &str, error: &serde_json::Error) -> String {
    match text.trim_start().chars().next() {
        _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Some(first) if !"[{\"-0123456789tfn".contains(first) => {
            format!("invalid character {first:?} looking for beginning of value")
        }
        _ => error.to_string(),
    }
}
