//! Topology request of a pod template's annotations (docs/reference/kueue.md §4.11, §5.3).

use std::collections::BTreeMap;

use crds::{
    names::annotations::{
        POD_SET_GROUP_NAME, POD_SET_PREFERRED_TOPOLOGY, POD_SET_REQUIRED_TOPOLOGY,
        POD_SET_SLICE_REQUIRED_TOPOLOGY, POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS,
        POD_SET_SLICE_SIZE, POD_SET_UNCONSTRAINED_TOPOLOGY,
    },
    pod::PodTemplate,
    v1beta2::{PodSetSliceTopologyConstraint, PodSetTopologyRequest},
};

use crate::{
    GenericJob, JobGates, go_parse,
    validate::{self, AnnotatedTemplate, MAX_LAYERS},
};

/// Labels of pods that hold their index. A topology assignment by rank reads them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodIndexLabels<'a> {
    /// Index of the pod in its replica, or in its pod set.
    pub pod: Option<&'a str>,
    /// Index of the replica, and the number of replicas.
    pub replica: Option<(&'a str, i32)>,
}

/// The request of a pod set: the annotations of its template, and the labels that the kind has. `None` without either, and
/// without topology-aware scheduling. Values that cannot be read are left out: a job with them gets no Workload ([`problem`]).
#[must_use]
pub fn of_template(
    template: &PodTemplate,
    labels: PodIndexLabels<'_>,
    gates: JobGates,
) -> Option<Box<PodSetTopologyRequest>> {
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
    (request != PodSetTopologyRequest::default()).then(|| Box::new(request))
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

/// Why a job gets no Workload although no webhook refused it: an annotation that its request needs cannot be read. The problem has
/// the words of upstream, where the pod sets of such a job cannot be built.
#[must_use]
pub fn problem<J: GenericJob>(job: &J, gates: JobGates) -> Option<String> {
    let templates = job.requesting_templates();
    templates.iter().filter(|_| gates.topology).find_map(|one| problem_of_template(one, gates))
}

fn problem_of_template(template: &AnnotatedTemplate<'_>, gates: JobGates) -> Option<String> {
    let annotations = template.annotations?;
    let unconstrained = unconstrained(annotations).and_then(Result::err);
    let size = slice_size(annotations).and_then(Result::err);
    let layers = layers(annotations, gates).and_then(Result::err);
    let problems = [
        (POD_SET_UNCONSTRAINED_TOPOLOGY, unconstrained),
        (POD_SET_SLICE_SIZE, size),
        (POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS, layers),
    ];
    let field = |key: &str| template.field_of(key);
    problems.into_iter().find_map(|(key, problem)| Some(format!("{}: {}", field(key), problem?)))
}

fn read(annotations: &BTreeMap<String, String>, gates: JobGates) -> PodSetTopologyRequest {
    let text = |key: &str| annotations.get(key).cloned();
    // Of several levels the strictest counts, pod sets are placed together by a level, and half of a slice request is none. A
    // webhook refuses all of that.
    let required = text(POD_SET_REQUIRED_TOPOLOGY);
    let preferred = text(POD_SET_PREFERRED_TOPOLOGY).filter(|_| required.is_none());
    let slice_size = slice_size(annotations).and_then(Result::ok);
    let is_placed = required.is_some() || preferred.is_some();
    PodSetTopologyRequest {
        required,
        preferred,
        unconstrained: unconstrained(annotations).and_then(Result::ok),
        pod_set_slice_required_topology: text(POD_SET_SLICE_REQUIRED_TOPOLOGY)
            .filter(|_| slice_size.is_some()),
        pod_set_slice_size: slice_size,
        podset_slice_required_topology_constraints: layers(annotations, gates)
            .and_then(Result::ok)
            .unwrap_or_default(),
        pod_set_group_name: text(POD_SET_GROUP_NAME).filter(|_| is_placed),
        ..PodSetTopologyRequest::default()
    }
}

/// Whether any domain will do; not read beside a level.
fn unconstrained(annotations: &BTreeMap<String, String>) -> Option<Result<bool, String>> {
    let levels = [POD_SET_REQUIRED_TOPOLOGY, POD_SET_PREFERRED_TOPOLOGY];
    let text = annotations.get(POD_SET_UNCONSTRAINED_TOPOLOGY)?;
    let is_read = !levels.iter().any(|key| annotations.contains_key(*key));
    is_read.then(|| go_parse::boolean(text))
}

/// The size of slices; not read without their topology.
fn slice_size(annotations: &BTreeMap<String, String>) -> Option<Result<i32, String>> {
    annotations.get(POD_SET_SLICE_REQUIRED_TOPOLOGY)?;
    annotations.get(POD_SET_SLICE_SIZE).map(|text| go_parse::integer_of_32_bits(text))
}

/// The layers of slices; not read without their gate.
fn layers(
    annotations: &BTreeMap<String, String>,
    gates: JobGates,
) -> Option<Result<Vec<PodSetSliceTopologyConstraint>, String>> {
    let text = annotations.get(POD_SET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS);
    let text = text.filter(|_| gates.topology_layers)?;
    Some(match validate::layers(text) {
        Err(problem) => {
            Err(format!("failed to parse multi-layer topology constraints annotation: {problem}"))
        }
        Ok(layers) if layers.is_empty() || layers.len() > MAX_LAYERS => Err(format!(
            "topology constraints must contain between 1 and {MAX_LAYERS} entries: got {}",
            layers.len()
        )),
        Ok(layers) => Ok(layers),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The request of a template with these annotations.
    fn request(annotations: &Value) -> Option<Box<PodSetTopologyRequest>> {
        let template = json!({"metadata": {"annotations": annotations}, "spec": {}});
        let template: PodTemplate = serde_json::from_value(template).expect("a template");
        of_template(&template, PodIndexLabels::default(), JobGates::default())
    }

    #[test]
    fn the_strictest_of_several_topologies_is_requested() {
        let several = json!({
            POD_SET_REQUIRED_TOPOLOGY: "rack", POD_SET_PREFERRED_TOPOLOGY: "block",
            POD_SET_UNCONSTRAINED_TOPOLOGY: "true",
        });
        let found = request(&several).expect("a request");
        assert_eq!(
            (found.required.as_deref(), found.preferred, found.unconstrained),
            (Some("rack"), None, None)
        );
        let preferred = json!({
            POD_SET_PREFERRED_TOPOLOGY: "block", POD_SET_UNCONSTRAINED_TOPOLOGY: "true",
        });
        let found = request(&preferred).expect("a request");
        assert_eq!((found.preferred.as_deref(), found.unconstrained), (Some("block"), None));
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
