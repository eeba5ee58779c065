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
    let (required, preferred) = (text(POD_SET_REQUIRED_TOPOLOGY), text(POD_SET_PREFERRED_TOPOLOGY));
    // Half of a slice request is none, and pod sets are placed together by a level. A webhook refuses both.
    let slice =
        text(POD_SET_SLICE_REQUIRED_TOPOLOGY).zip(size.and_then(|size| i32::try_from(size).ok()));
    let (slice_level, slice_size) = slice.unzip();
    let is_placed = required.is_some() || preferred.is_some();
    PodSetTopologyRequest {
        required,
        preferred,
        unconstrained: annotations
            .get(POD_SET_UNCONSTRAINED_TOPOLOGY)
            .and_then(|text| go_parse::boolean(text).ok()),
        pod_set_slice_required_topology: slice_level,
        pod_set_slice_size: slice_size,
        podset_slice_required_topology_constraints: layers.unwrap_or_default(),
        pod_set_group_name: text(POD_SET_GROUP_NAME).filter(|_| is_placed),
        ..PodSetTopologyRequest::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The request of a template with these annotations.
    fn request(annotations: &Value) -> Option<PodSetTopologyRequest> {
        let template = json!({"metadata": {"annotations": annotations}, "spec": {}});
        let template: PodTemplate = serde_json::from_value(template).expect("a template");
        of_template(&template, PodIndexLabels::default(), JobGates::default())
    }

    #[test]
    fn half_of_a_slice_request_is_none() {
        for half in [
            json!({POD_SET_SLICE_REQUIRED_TOPOLOGY: "rack"}),
            json!({POD_SET_SLICE_SIZE: "2"}),
            json!({POD_SET_SLICE_REQUIRED_TOPOLOGY: "rack", POD_SET_SLICE_SIZE: "two"}),
            json!({POD_SET_GROUP_NAME: "all"}),
        ] {
            assert_eq!(request(&half), None, "{half}");
        }
        let whole = json!({
            POD_SET_SLICE_REQUIRED_TOPOLOGY: "rack", POD_SET_SLICE_SIZE: "2", POD_SET_GROUP_NAME: "all",
        });
        let slices = request(&whole).expect("it asks for slices");
        assert_eq!(slices.pod_set_slice_size, Some(2));
        assert_eq!(slices.pod_set_group_name, None);
        let group = json!({POD_SET_PREFERRED_TOPOLOGY: "rack", POD_SET_GROUP_NAME: "all"});
        assert_eq!(request(&group).expect("a group").pod_set_group_name.as_deref(), Some("all"));
    }
}
