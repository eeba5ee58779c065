//! Environment variables of containers without duplicate names (docs/reference/kueue.md §7.2).
//!
//! The API server merges duplicate names in a Workload. Pod sets of a job get the same form, or a Workload would
//! never equal its job.

use std::collections::BTreeSet;

use crds::pod::{Container, PodTemplate};
use serde_json::Value;

/// Removes duplicate names: the first position keeps the last value.
pub fn deduplicate(template: &mut PodTemplate) {
    let Some(spec) = template.spec.as_mut() else { return };
    // Most have none, and a change would copy a shared spec.
    if spec.init_containers.iter().chain(&spec.containers).any(has_duplicates) {
        let spec = &mut **spec;
        spec.init_containers.iter_mut().chain(&mut spec.containers).for_each(collapse_container);
    }
}

fn has_duplicates(container: &Container) -> bool {
    let variables = container.rest.get("env").and_then(Value::as_array);
    let mut names = BTreeSet::new();
    let mut variables = variables.into_iter().flatten();
    variables.any(|variable| !names.insert(variable.get("name").and_then(Value::as_str)))
}

fn collapse_container(container: &mut Container) {
    let Some(variables) = container.rest.get_mut("env").and_then(Value::as_array_mut) else {
        return;
    };
    let mut kept: Vec<Value> = Vec::with_capacity(variables.len());
    for variable in variables.drain(..) {
        match kept.iter_mut().find(|earlier| earlier.get("name") == variable.get("name")) {
            Some(earlier) => *earlier = variable,
            None => kept.push(variable),
        }
    }
    *variables = kept;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duplicate_name_keeps_the_first_position_and_the_last_value() {
        let container = json!({ "name": "c", "env": [
            { "name": "a", "value": "1" }, { "name": "b" }, { "name": "a", "value": "2" },
        ] });
        let template =
            json!({ "spec": { "containers": [container], "initContainers": [container] } });
        let mut template: PodTemplate = serde_json::from_value(template).expect("decodes");
        deduplicate(&mut template);
        let spec = template.spec.expect("a spec");
        let expected = json!([{ "name": "a", "value": "2" }, { "name": "b" }]);
        assert_eq!(spec.containers[0].rest["env"], expected);
        assert_eq!(spec.init_containers[0].rest["env"], expected);
    }
}
