//! Topology request of a pod template's annotations (docs/reference/kueue.md §4.11, §5.3).

use std::collections::BTreeMap;

use crds::{
    names::annotations::{
        POD_SET_GROUP_NAME, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY,
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_SLICE_SIZE, POD_SET_UNCONSTRAINED_TOPOLOGY,
    },
    v1beta2::PodSetTopologyRequest,
};

use crate::{JobGates, go_parse, validate};

/// Reads the request; `None` without annotations. Values that a webhook refuses are ignored.
#[must_use]
pub fn read(
    annotations: &BTreeMap<String, String>,
    gates: JobGates,
) -> Option<PodSetTopologyRequest> {
    let text = |key: &str| annotations.get(key).cloned();
    let size = annotations.get(POD_SET_SLICE_SIZE).and_then(|size| go_parse::integer(size).ok());
    let layers = annotations
        .get(POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS)
        .filter(|_| gates.topology_layers)
        .and_then(|text| validate::layers(text).ok());
    let request = PodSetTopologyRequest {
        required: text(POD_SET_REQUIRED_TOPOLOGY),
        preferred: text(POD_SET_PREFERRED_TOPOLOGY),
        unconstrained: annotations
            .get(POD_SET_UNCONSTRAINED_TOPOLOGY)
            .and_then(|text| go_parse::boolean(text).ok()),
        pod_set_slice_required_topology: text(POD_SET_SLICE_REQUIRED_TOPOLOGY),
        pod_set_slice_size: size.and_then(|size| i32::try_from(size).ok()),
        podset_slice_required_topology_constraints: layers.unwrap_or_default(),
        pod_set_group_name: text(POD_SET_GROUP_NAME),
        ..PodSetTopologyRequest::default()
    };
    (request != PodSetTopologyRequest::default()).then_some(request)
}

/// Adds the label that holds the pod index.
#[must_use]
pub fn with_index(request: PodSetTopologyRequest, label: &str) -> PodSetTopologyRequest {
    PodSetTopologyRequest { pod_index_label: Some(label.to_owned()), ..request }
}
