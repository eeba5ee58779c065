//! Workloads.
//!
//! Lost in v1beta1: preemption gates, in spec and status, and slice constraints of several layers.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{ConvertedParts, Encoded, Object, items, pod_template, rename, topology_assignment};
use crate::{
    names::{
        KUEUE_GROUP, POD_PRIORITY_CLASS_SOURCE, SCHEDULING_GROUP, WORKLOAD_PRIORITY_CLASS_SOURCE,
    },
    schema_check::Mismatch,
};

const PAST_TIME: &str = "accumulatedPastExecutionTimeSeconds";
// The misspelt name is the one of v1beta1.
const PAST_TIME_V1BETA1: &str = "accumulatedPastExexcutionTimeSeconds";

pub(super) fn to_v1beta2(parts: &mut ConvertedParts) {
    priority_class_to_v1beta2(&mut parts.spec);
    rename(&mut parts.status, PAST_TIME_V1BETA1, PAST_TIME);
    for assignment in topology_assignments(&mut parts.status) {
        *assignment = topology_assignment::compress(assignment);
    }
}

/// Checks the domains of all topology assignments in a v1beta1 status.
pub(super) fn check_domains(status: &Value) -> Result<(), Mismatch> {
    let assignments = crate::json::items(&status["admission"]["podSetAssignments"]);
    assignments.iter().enumerate().try_for_each(|(at, assignment)| {
        let field = format!("status.admission.podSetAssignments[{at}].topologyAssignment");
        topology_assignment::check_values(&field, &assignment["topologyAssignment"])
    })
}

pub(super) fn to_v1beta1(parts: &mut ConvertedParts) {
    priority_class_to_v1beta1(&mut parts.spec);
    rename(&mut parts.status, PAST_TIME, PAST_TIME_V1BETA1);
    for assignment in topology_assignments(&mut parts.status) {
        *assignment = topology_assignment::expand(assignment);
    }
}

pub(super) fn encode<Spec, Status>(parts: ConvertedParts) -> Encoded
where
    Spec: DeserializeOwned + Serialize,
    Status: DeserializeOwned + Serialize,
{
    let mut parts = super::encode::<Spec, Status>(parts)?;
    for pod_set in items(&mut parts.spec, "podSets") {
        if let Some(template) = pod_set.get_mut("template") {
            // No type has all fields of a template, so its schema encodes it.
            pod_template::rewrite(template);
        }
    }
    Ok(parts)
}

/// A class is used only with its source. A source without a class becomes a reference without a name, as in Kueue.
fn priority_class_to_v1beta2(spec: &mut Object) {
    let name = spec.remove("priorityClassName").unwrap_or_default();
    let (group, kind) = match spec.remove("priorityClassSource").as_ref().and_then(Value::as_str) {
        Some(WORKLOAD_PRIORITY_CLASS_SOURCE) => (KUEUE_GROUP, "WorkloadPriorityClass"),
        Some(POD_PRIORITY_CLASS_SOURCE) => (SCHEDULING_GROUP, "PriorityClass"),
        _ => return,
    };
    let reference = json!({"group": group, "kind": kind, "name": name});
    spec.insert("priorityClassRef".into(), reference);
}

fn priority_class_to_v1beta1(spec: &mut Object) {
    let Some(Value::Object(mut reference)) = spec.remove("priorityClassRef") else {
        return;
    };
    let source = match reference.get("group").and_then(Value::as_str) {
        Some(KUEUE_GROUP) => WORKLOAD_PRIORITY_CLASS_SOURCE,
        Some(SCHEDULING_GROUP) => POD_PRIORITY_CLASS_SOURCE,
        _ => "",
    };
    spec.insert("priorityClassSource".into(), source.into());
    if let Some(name) = reference.remove("name") {
        spec.insert("priorityClassName".into(), name);
    }
}

fn topology_assignments(status: &mut Object) -> impl Iterator<Item = &mut Object> {
    let admission = status.get_mut("admission").and_then(Value::as_object_mut);
    admission
        .into_iter()
        .flat_map(|admission| items(admission, "podSetAssignments"))
        .filter_map(|assignment| assignment.get_mut("topologyAssignment"))
        .filter_map(Value::as_object_mut)
}
