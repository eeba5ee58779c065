//! Validation of ResourceFlavors (docs/reference/kueue.md §1.4).

use std::collections::BTreeSet;

use crds::{
    meta::{Taint, Toleration},
    v1beta2::ResourceFlavor,
    validation::{Errors, FieldError, labels},
};

use super::{Validate, WebhookGates};

impl Validate for ResourceFlavor {
    fn validate(&self, _: Option<&Self>, _: &WebhookGates) -> Errors {
        let mut errors = labels::check_labels("spec.nodeLabels", &self.spec.node_labels);
        errors.extend(check_taints("spec.nodeTaints", &self.spec.node_taints));
        errors.extend(check_tolerations("spec.tolerations", &self.spec.tolerations));
        errors
    }
}

fn check_taints(field: &str, taints: &[Taint]) -> Errors {
    let mut seen = BTreeSet::new();
    let mut errors = Errors::new();
    for (at, taint) in taints.iter().enumerate() {
        let field = format!("{field}[{at}]");
        errors.extend(labels::check_key(&format!("{field}.key"), &taint.key));
        errors.extend(labels::check_value(&format!("{field}.value"), &taint.value));
        // Kubernetes identifies a taint by this pair, whatever its value is.
        if !seen.insert((&taint.key, &taint.effect)) {
            errors.push(FieldError::duplicate(
                &field,
                taint,
                "taints must be unique by key and effect pair",
            ));
        }
    }
    errors
}

/// Errors of toleration keys. The schema validates the rest.
pub(super) fn check_tolerations(field: &str, tolerations: &[Toleration]) -> Errors {
    // A toleration without a key matches every taint.
    let with_key =
        tolerations.iter().enumerate().filter(|(_, toleration)| !toleration.key.is_empty());
    with_key
        .flat_map(|(at, toleration)| {
            labels::check_key(&format!("{field}[{at}].key"), &toleration.key)
        })
        .collect()
}
