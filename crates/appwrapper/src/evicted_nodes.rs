//! Nodes that pods must leave: Autopilot marks them by a label.
//!
//! Source: docs/reference/appwrapper.md §6.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{json::text, names::AUTOPILOT_LABEL, settings::WrapperSettings};

/// The health of a node that pods must leave.
const EVICT: &str = "EVICT";

/// The nodes that pods must leave, with the resources of which they are the reason. `nodes` may be any nodes.
#[must_use]
pub fn evicted_nodes<'a>(
    nodes: impl IntoIterator<Item = &'a Value>,
    settings: &WrapperSettings,
) -> BTreeMap<String, BTreeSet<String>> {
    let resources: BTreeSet<String> = settings.autopilot_resources.iter().cloned().collect();
    if !settings.monitors_nodes || resources.is_empty() {
        return BTreeMap::new();
    }
    let evicted =
        nodes.into_iter().filter(|node| node["metadata"]["labels"][AUTOPILOT_LABEL] == EVICT);
    evicted.map(|node| (text(&node["metadata"]["name"]).to_owned(), resources.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_nodes_that_autopilot_evicts_are_left() {
        let node =
            |name: &str, labels: &Value| json!({"metadata": {"name": name, "labels": labels}});
        let nodes = [
            node("a", &json!({"autopilot.ibm.com/gpuhealth": "EVICT"})),
            node("b", &json!({"autopilot.ibm.com/gpuhealth": "WARN"})),
            node("c", &json!({"autopilot.ibm.com/gpuhealth": "TESTING"})),
            node("d", &Value::Null),
        ];
        let settings = WrapperSettings::default();
        let found = evicted_nodes(&nodes, &settings);
        assert_eq!(
            found,
            BTreeMap::from([("a".to_owned(), BTreeSet::from(["nvidia.com/gpu".to_owned()]))])
        );
        let off = WrapperSettings { autopilot_resources: Vec::new(), ..settings.clone() };
        assert_eq!(evicted_nodes(&nodes, &off), BTreeMap::new());
        let unmonitored = WrapperSettings { monitors_nodes: false, ..settings };
        assert_eq!(evicted_nodes(&nodes, &unmonitored), BTreeMap::new());
    }
}
