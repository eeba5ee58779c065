//! Validation of `metrics.customLabels` (docs/reference/kueue.md §6.2).

use std::collections::BTreeSet;

use crds::validation::{Errors, FieldError, labels::check_key};

use crate::{CustomLabel, SourceKind};

const PATH: &str = "metrics.customLabels";
const MOST_LABELS: usize = 20;
/// Most labels of one kind of object.
const MOST_OF_KIND: [(SourceKind, usize); 4] = [
    (SourceKind::ClusterQueue, 6),
    (SourceKind::LocalQueue, 6),
    (SourceKind::Cohort, 6),
    (SourceKind::Workload, 2),
];
const MOST_TRACKED: usize = 16;
/// Most values of a label of Workloads. One queue has series of all of them at once.
const MOST_TRACKED_OF_WORKLOADS: usize = 12;

/// Errors of the labels.
pub(super) fn check(labels: &[CustomLabel]) -> Errors {
    let mut errors = check_numbers(labels);
    let mut names = BTreeSet::new();
    for (i, label) in labels.iter().enumerate() {
        let path = format!("{PATH}[{i}]");
        // A series with the same label twice is refused by Prometheus.
        if !names.insert(&label.name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), &label.name, ""));
        }
        errors.extend(check_name_and_source(&path, label));
        errors.extend(check_tracked(&format!("{path}.trackedValues"), label));
    }
    errors
}

fn check_numbers(labels: &[CustomLabel]) -> Errors {
    let mut errors = Errors::new();
    if labels.len() > MOST_LABELS {
        errors.push(FieldError::too_many(PATH, labels.len(), MOST_LABELS));
    }
    for (kind, most) in MOST_OF_KIND {
        let found = labels.iter().filter(|label| label.source_kind == kind).count();
        if found > most {
            let detail = format!(
                "too many custom labels for source kind {kind:?}: found {found}, expected <= {most}"
            );
            errors.push(FieldError::invalid_together(PATH, detail));
        }
    }
    errors
}

fn check_name_and_source(path: &str, label: &CustomLabel) -> Errors {
    let name_path = format!("{path}.name");
    let mut errors = Errors::new();
    if !is_metric_label(&label.name) {
        let detail = "must match ^[a-zA-Z][a-zA-Z0-9_]*$";
        errors.push(FieldError::invalid(&name_path, &label.name, detail));
    }
    let keys = [
        (label.label_key(), format!("{path}.sourceLabelKey")),
        (label.annotation_key(), format!("{path}.sourceAnnotationKey")),
    ];
    let n_keys = keys.iter().filter(|(key, _)| key.is_some()).count();
    for (key, path) in keys {
        errors.extend(key.map(|key| check_key(&path, key)).unwrap_or_default());
    }
    match n_keys {
        // The label of the object has the same name then.
        0 => errors.extend(check_key(&name_path, &label.name)),
        1 => {}
        _ => errors.push(FieldError::invalid_together(
            path,
            "sourceLabelKey and sourceAnnotationKey are mutually exclusive",
        )),
    }
    errors
}

fn is_metric_label(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_tracked(path: &str, label: &CustomLabel) -> Errors {
    let values = &label.tracked_values;
    let mut errors = Errors::new();
    let mut refuse = |detail: &str| errors.push(FieldError::invalid_together(path, detail));
    if label.source_kind == SourceKind::Workload {
        // Values of Workloads are unbounded, so only listed ones become series.
        if values.is_empty() {
            refuse("must not be empty when sourceKind is 'Workload'");
        }
        if values.len() > MOST_TRACKED_OF_WORKLOADS {
            refuse(&format!(
                "must not be greater than {MOST_TRACKED_OF_WORKLOADS} when sourceKind is 'Workload'"
            ));
        }
    }
    if values.iter().collect::<BTreeSet<_>>().len() < values.len() {
        refuse("must not contain duplicates");
    }
    if label.source_kind != SourceKind::Workload && values.len() > MOST_TRACKED {
        errors.push(FieldError::too_many(path, values.len(), MOST_TRACKED));
    }
    errors
}
