//! Start and stop of a pod: its gates, and the mark of its termination (docs/reference/kueue.md §7.8, §7.9).

use std::collections::BTreeMap;

use crds::{
    names::{
        MANAGED,
        gates::{ADMISSION, TOPOLOGY},
    },
    pod::{PodMetadata, PodSpec, PodTemplate},
};
use serde_json::{Value, json};

use super::pod::{Pod, PodCondition};
use crate::{
    dispatch::remote_objects::metadata_for_creation,
    generic_job::{Stop, StopWrite},
    start::pod_set_info::{PodSetInfo, SCHEDULING_GATES, StartError},
};

/// Condition of a pod that is about to be deleted. Its message says why; the deletion itself cannot.
pub(super) const TERMINATION_TARGET: &str = "TerminationTarget";

/// Names of the scheduling gates of a pod.
pub fn gates(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let listed = spec.rest.get(SCHEDULING_GATES).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|gate| gate.get("name")?.as_str())
}

/// Starts a gated pod: merges the info and removes the gates. On an error the pod is unchanged.
pub(super) fn start(pod: &mut Pod, info: &PodSetInfo) -> Result<(), StartError> {
    let metadata = PodMetadata {
        labels: pod.metadata.labels.clone().unwrap_or_default().into(),
        annotations: pod.metadata.annotations.clone().unwrap_or_default().into(),
        ..PodMetadata::default()
    };
    let mut template =
        PodTemplate { metadata: Some(metadata.into()), spec: Some(pod.spec.clone()) };
    info.merge_into(&mut template, false)?;
    let metadata = template.metadata.unwrap_or_default().into_owned();
    // An empty map in place of an absent one would be a change of its own.
    pod.metadata.labels = Some(BTreeMap::from(metadata.labels)).filter(|labels| !labels.is_empty());
    pod.metadata.annotations =
        Some(metadata.annotations.into_owned()).filter(|all| !all.is_empty());
    pod.spec = template.spec.unwrap_or_default();
    // The gate of the topology stays if the admission assigns domains: they are chosen later.
    let assigned = info.scheduling_gates.iter().any(|gate| gate == TOPOLOGY);
    remove_gates(&mut pod.spec, |gate| gate == ADMISSION || (gate == TOPOLOGY && !assigned));
    Ok(())
}

/// Removes the gates of Kueue.
pub fn ungate(pod: &mut Pod) {
    remove_gates(&mut pod.spec, |gate| gate == ADMISSION || gate == TOPOLOGY);
}

fn remove_gates(spec: &mut PodSpec, removes: impl Fn(&str) -> bool) {
    let Some(listed) = spec.rest.get_mut(SCHEDULING_GATES).and_then(Value::as_array_mut) else {
        return;
    };
    listed.retain(|gate| gate["name"].as_str().is_none_or(|name| !removes(name)));
    if listed.is_empty() {
        spec.rest.remove(SCHEDULING_GATES);
    }
}

/// The next write of a stop: the mark, then the deletion. A pod that has not started stays for the next admission, unless its
/// Workload is deleted.
pub(super) fn next_stop_write(pod: &Pod, stop: &Stop<'_>) -> Option<StopWrite<Pod>> {
    let never_runs = pod.is_gated() || pod.is_terminated();
    if pod.is_deleting() || (never_runs && !stop.for_good) {
        return None;
    }
    let marked = pod.condition(TERMINATION_TARGET).is_some_and(|one| one.status == "True");
    // A pod that never runs has no end to explain.
    if marked || never_runs {
        return Some(StopWrite::Delete(Box::new(pod.clone())));
    }
    let mut next = pod.clone();
    let conditions = &mut next.status.conditions;
    conditions.retain(|one| one.r#type != TERMINATION_TARGET);
    conditions.push(PodCondition {
        r#type: TERMINATION_TARGET.to_owned(),
        status: "True".to_owned(),
        last_transition_time: stop.at.map(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time),
        rest: [("reason", stop.reason), ("message", stop.message)]
            .map(|(field, text)| (field.to_owned(), json!(text)))
            .into_iter()
            .collect(),
    });
    Some(StopWrite::Status(Box::new(next)))
}

/// The pod without the finalizer of managed pods.
pub(super) fn without_finalizer(pod: &Pod) -> Pod {
    let mut next = pod.clone();
    let finalizers = next.metadata.finalizers.take().unwrap_or_default();
    let others: Vec<String> = finalizers.into_iter().filter(|one| one != MANAGED).collect();
    next.metadata.finalizers = Some(others).filter(|others| !others.is_empty());
    next
}

/// The copy for a worker: gated, without a node, status and the volume of this cluster's token.
pub(super) fn for_worker(pod: &Pod) -> Pod {
    let mut copy = pod.clone();
    copy.metadata = metadata_for_creation(&pod.metadata);
    copy.status = Default::default();
    copy.spec.rest.remove("nodeName");
    copy
}
