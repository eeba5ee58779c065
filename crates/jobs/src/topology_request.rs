//! Topology request of a pod template's annotations (docs/reference/kueue.md §4.11, §5.3).

use std::collections::BTreeMap;

use crds::{
    names::annotations::{
        POD_SET_GROUP_NAME, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY,
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_SLICE_SIZE, POD_SET_UNCONSTRAINED_TOPOLOGY,
    },
    pod::PodTemplate,
    v1beta2::PodSetTopologyRequest,
};

use crate::{JobGates, go_parse, validate};

/// Labels of pods that hold their index. A topology assignment by rank reads them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodIndexLabels<'a> {
    /// Index of the pod in its replica, or in its pod set.
    pub pod: Option<&'a str>,
    /// Index of the replica, and the number of replicas.
    pub replica: Option<(&'a str, i32)>,
}

/// The request of a pod set: the annotations of its template, and the labels that the kind has. `None` without either, and
/// without topology-aware scheduling. Values that a webhook refuses are ignored.
#[must_use]
pub fn of_template(
    template: &PodTemplate,
    labels: PodIndexLabels<'_>,
    gates: JobGates,
) -> Option<PodSetTopologyRequest> {
    if !gates.topology {
        return None;
    }
    let annotations = template.metadata.as_ref().map(|metadata| &metadata.annotations);
    let request = PodSetTopologyRequest {
        pod_index_label: labels.pod.map(str::to_owned),
        sub_group_index_label: labels.replica.map(|(label, _)| label.to_owned()),
        sub_group_count: labels.replica.map(|(_, count)| count),
        ..annotations.map(|annotations| read(annotations, gates)).unwrap_or_default()
    };
    (request != PodSetTopologyRequest::default()).then_some(request)
}

/// Whether a request asks for a topology. One that only names labels applies to an assignment that the flavor implies.
#[must_use]
pub fn asks_for_topology(request: &PodSetTopologyRequest) -> bool {
    request.required.is_some()
        || request.preferred.is_some()
        || request.unconstrained.is_some()
        || request.pod_set_slice_required_topology.is_some()
        || !request.podset_slice_required_topology_constraints.is_empty()
}

fn read(annotations: &BTreeMap<String, String>, gates: JobGates) -> PodSetTopologyRequest {
    let text = |key: &str| annotations.get(key).cloned();
    let size = annotations.get(POD_SET_SLICE_SIZE).and_then(|size| go_parse::integer(size).ok());
    let layers = annotations
        .get(POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS)
        .filter(|_| gates.topology_layers)
        .and_then(|text| validate::layers(text).ok());
    PodSetTopologyRequest {
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
    }
}
