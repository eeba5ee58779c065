//! Names of resources that a transformation cannot have: the number of pods is counted, not requested
//! (docs/reference/kueue.md §6.5).

use super::{InvalidField, Problems};
use crate::{
    Configuration,
    gates::{Gate, Gates},
};

/// The resource that counts pods. An amount that a transformation makes of it would compete with the count.
const PODS: &str = "pods";

/// Transformations from or to `pods`, under the gate ReservedResourceNameValidation.
pub(crate) fn check(config: &Configuration, gates: &Gates) -> Vec<InvalidField> {
    let mut problems = Problems::default();
    if !gates.enabled(Gate::ReservedResourceNameValidation) {
        return problems.0;
    }
    let problem = "is reserved: the number of pods is counted, not requested";
    for (i, one) in config.resources.transformations.iter().enumerate() {
        let path = format!("resources.transformations[{i}]");
        problems.unless(one.input != PODS, &format!("{path}.input"), problem);
        let multiplies = one.multiply_by.as_deref() == Some(PODS);
        problems.unless(!multiplies, &format!("{path}.multiplyBy"), problem);
        let is_output = one.outputs.contains_key(PODS);
        problems.unless(!is_output, &format!("{path}.outputs[{PODS}]"), problem);
    }
    problems.0
}
