//! Fields that the webhook of a declared kind sets in new jobs.

use serde::Deserialize;
use serde_json::Value;

use crate::{JobGates, pointer::Pointer};

/// A field that is set in some jobs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DefaultField {
    /// The field.
    pub at: Pointer,
    /// Its value.
    pub value: Value,
    /// Fields that must be there and not false.
    #[serde(default)]
    pub when: Vec<Pointer>,
    /// Fields that must not be there.
    #[serde(default)]
    pub unless: Vec<Pointer>,
    /// It is set with the gate TopologyAwareScheduling only.
    #[serde(default)]
    pub topology: bool,
}

impl DefaultField {
    /// Whether the field is set in an object.
    pub(super) fn applies(&self, object: &Value, gates: JobGates) -> bool {
        let is_on = |at: &Pointer| at.get(object).is_some_and(|value| *value != Value::Bool(false));
        (gates.topology || !self.topology)
            && self.when.iter().all(is_on)
            && self.unless.iter().all(|at| at.get(object).is_none())
    }
}
