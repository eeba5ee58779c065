//! Scheduling gate of elastic jobs (docs/reference/kueue.md §5.3, §4.13).
//!
//! An elastic job is not suspended while it grows. Instead its new pods are created with a gate, which is removed
//! once the workload slice that counts them is admitted.

use crds::{
    names::gates,
    pod::{PodSpec, PodTemplate},
};
use serde_json::{Value, json};

use crate::{defaulting::PatchAdd, start::pod_set_info::SCHEDULING_GATES};

/// Adds the gate to the template at `path`; `None` if it is present.
#[must_use]
pub fn add(path: &str, template: &PodTemplate) -> Option<PatchAdd> {
    let spec = template.spec.as_ref()?;
    if is_in(template) {
        return None;
    }
    let mut listed = listed(spec).to_vec();
    listed.push(json!({ "name": gates::ELASTIC_JOB }));
    Some(PatchAdd { path: format!("{path}/spec/schedulingGates"), value: Value::Array(listed) })
}

/// Whether a template has the gate.
#[must_use]
pub fn is_in(template: &PodTemplate) -> bool {
    let spec = template.spec.as_ref();
    spec.is_some_and(|spec| listed(spec).iter().any(|gate| gate["name"] == gates::ELASTIC_JOB))
}

fn listed(spec: &PodSpec) -> &[Value] {
    let gates = spec.rest.get(SCHEDULING_GATES).and_then(Value::as_array);
    gates.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_is_added_once() {
        let template = |listed: &Value| {
            let template = json!({ "spec": { "containers": [], "schedulingGates": listed } });
            serde_json::from_value(template).expect("a template decodes")
        };
        let ours = json!({ "name": "kueue.x-k8s.io/elastic-job" });
        let set = add("/t", &template(&json!([{ "name": "own" }]))).expect("a step");
        assert_eq!(set.path, "/t/spec/schedulingGates");
        assert_eq!(set.value, json!([{ "name": "own" }, ours]));
        assert_eq!(add("/t", &template(&json!([ours]))), None);
    }
}
