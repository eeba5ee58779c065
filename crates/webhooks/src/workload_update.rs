//! Immutable fields of Workloads.

use crds::{
    conversion::rewrite_template,
    names::annotations::WORKLOAD_SLICE_REPLACEMENT_FOR,
    v1beta2::{Admission, AdmissionCheckState, PodSet, Workload},
    validation::{Errors, FieldError, gated_by, immutable},
};
use jobs::pod_counts::count;
use serde_json::{Value, json};

use super::{
    WebhookGates,
    pod_set_meaning::mean_the_same,
    workload::{annotations, is_elastic},
};

/// Errors of an update.
pub(super) fn check(new: &Workload, old: &Workload, gates: &WebhookGates) -> Errors {
    let mut errors = Errors::new();
    // The update that releases the quota may reset reclaimable pods, but not change pod sets.
    if old.has_quota_reservation() {
        errors.extend(check_pod_sets(new, old, gates));
    }
    if new.has_quota_reservation() && old.has_quota_reservation() {
        errors.extend(check_reclaimable(new, old, gates));
    }
    errors.extend(check_admission(new, old, gates));
    // By the place in the former list, as upstream reports it.
    for (at, before) in old.status.admission_checks.iter().enumerate() {
        errors.extend(check_ready(at, before, &new.status.admission_checks));
    }
    errors.extend(check_cluster_name(new, old));
    if gates.admission_gated_by {
        errors.extend(gated_by::check_update(annotations(new), annotations(old)));
    }
    errors
}

/// Pod sets of a Workload with quota are immutable. With ElasticJobsViaWorkloadSlices counts may decrease, also without the
/// annotation.
fn check_pod_sets(new: &Workload, old: &Workload, gates: &WebhookGates) -> Errors {
    let (new, old) = (&new.spec.pod_sets, &old.spec.pod_sets);
    if new.len() != old.len() {
        return vec![immutable("spec.podSets", new)];
    }
    let pairs = new.iter().zip(old).enumerate();
    pairs
        .filter(|(_, (new, old))| {
            let shrinks = gates.elastic_jobs && is_smaller(old, new);
            !shrinks && !mean_the_same(new, old)
        })
        .map(|(at, (new, _))| immutable(format!("spec.podSets.{at}"), as_written(new)))
        .collect()
}

/// A pod set as Kueue prints it.
fn as_written(pod_set: &PodSet) -> Value {
    let mut written = json!(pod_set);
    rewrite_template(&mut written["template"]);
    written
}

fn is_smaller(old: &PodSet, new: &PodSet) -> bool {
    let shrunk = PodSet { count: new.count, ..old.clone() };
    new.count <= old.count && mean_the_same(&shrunk, new)
}

/// Reclaimable pods must not decrease, except after an elastic job was scaled down.
fn check_reclaimable(new: &Workload, old: &Workload, gates: &WebhookGates) -> Errors {
    let mut errors = Errors::new();
    for before in &old.status.reclaimable_pods {
        let field = format!("status.reclaimablePods[{}]", before.name);
        let shrunk = is_elastic(new, gates) && has_shrunk(new, &before.name);
        match new.status.reclaimable_pods.iter().find(|pods| pods.name == before.name) {
            None if shrunk => {}
            None => errors.push(FieldError::required(field, "cannot be removed")),
            Some(now) if now.count < before.count && !shrunk => {
                let detail = format!("cannot be less than {}", before.count);
                errors.push(FieldError::invalid(format!("{field}.count"), now.count, detail));
            }
            Some(_) => {}
        }
    }
    errors
}

/// Whether the pod set has fewer pods than were admitted.
pub(super) fn has_shrunk(workload: &Workload, pod_set: &str) -> bool {
    let wanted = workload.spec.pod_sets.iter().find(|wanted| wanted.name == pod_set);
    let assignments =
        workload.status.admission.iter().flat_map(|admission| &admission.pod_set_assignments);
    let admitted = assignments.into_iter().find(|assignment| assignment.name == pod_set);
    let admitted = admitted.and_then(|assignment| assignment.count);
    wanted.zip(admitted).is_some_and(|(wanted, admitted)| count(wanted) < admitted)
}

/// The admission can be removed, but not changed, except for the topology assignment with topology-aware scheduling.
fn check_admission(new: &Workload, old: &Workload, gates: &WebhookGates) -> Option<FieldError> {
    let (now, before) = (new.status.admission.as_ref()?, old.status.admission.as_ref()?);
    let frozen = |admission: &Admission| {
        let mut admission = admission.clone();
        if gates.topology_aware_scheduling {
            for assignment in &mut admission.pod_set_assignments {
                assignment.topology_assignment = None;
                assignment.delayed_topology_request = None;
            }
        }
        admission
    };
    (frozen(now) != frozen(before)).then(|| immutable("status.admission", now))
}

/// The pod set updates of an admission check are immutable once the check is ready.
fn check_ready(
    at: usize,
    before: &AdmissionCheckState,
    now: &[AdmissionCheckState],
) -> Option<FieldError> {
    let now = now.iter().find(|check| check.name == before.name)?;
    // Until then the controller of the check may still change them.
    let ready = now.state == "Ready" && before.state == "Ready";
    // The message prints an empty list as null, as Go does.
    let updates = (!now.pod_set_updates.is_empty()).then_some(&now.pod_set_updates);
    (ready && now.pod_set_updates != before.pod_set_updates)
        .then(|| immutable(format!("status.admissionChecks[{at}].podSetUpdates"), updates))
}

/// The cluster must be one of the nominated clusters; the replacement of a slice uses the cluster of its predecessor.
fn check_cluster_name(new: &Workload, old: &Workload) -> Option<FieldError> {
    let name = new.status.cluster_name.as_ref()?;
    // CEL forbids to change a name that is set (docs/reference/multikueue.md §1.5).
    let chosen_before = old.status.cluster_name.is_some();
    let replacement = annotations(new).contains_key(WORKLOAD_SLICE_REPLACEMENT_FOR);
    let detail = "when setting clusterName it must be one of the nominatedClusterNames";
    (!chosen_before && !replacement && !old.status.nominated_cluster_names.contains(name))
        .then(|| FieldError::invalid("status.clusterName", name, detail))
}
