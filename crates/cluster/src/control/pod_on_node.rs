//! Where a Pod is, and what it takes there.

use std::collections::BTreeMap;

use ::jobs::Pod;
use engine::Amount;
use serde_json::Value;

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    let node = pod.spec.rest.get("nodeName").and_then(Value::as_str);
    node.filter(|name| !name.is_empty())
}

/// Whether a pod has ended. It keeps its node until it is deleted, and takes no room there.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(&*pod.status.phase, "Succeeded" | "Failed")
}

/// What a pod takes of its node.
pub(crate) fn requests_on_node(pod: &Pod) -> BTreeMap<String, Amount> {
    let mut requests = index::pod_requests(&pod.spec);
    // `allocatable` of a node limits the number of pods as well.
    *requests.entry("pods".to_owned()).or_default() += Amount(1);
    requests
}
