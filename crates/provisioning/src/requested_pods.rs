//! The pod sets that a request covers, and which of them share an entry (docs/reference/kueue.md §2.3).

use crds::{
    pod::{Container, PodSpec},
    v1beta2::{PodSet, PodSetAssignment, ProvisioningRequestConfigSpec, Workload},
};
use serde_json::Value;

/// Fields of a pod beside its containers that decide where it may run.
const SCHEDULING_FIELDS: [&str; 2] = ["affinity", "resourceClaims"];

/// Pods of one entry: those of a pod set and of others that are like it.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryPods<'a> {
    /// The first pod set. The entry has its name, template and flavors.
    pub pod_set: &'a PodSet,
    /// Its assignment.
    pub assignment: &'a PodSetAssignment,
    /// Pods of all pod sets of the entry.
    pub count: i32,
}

/// A pod set that needs room has no assignment, so that neither count nor flavors are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the admission of Workload {workload}: pod set {pod_set} has no assignment")]
pub struct MissingAssignment {
    /// Name of the Workload.
    pub workload: String,
    /// Name of the pod set.
    pub pod_set: String,
}

/// Pod sets with pods that use a managed resource; with any pods if the config manages no resource in particular.
pub fn covered<'a>(
    workload: &'a Workload,
    config: &'a ProvisioningRequestConfigSpec,
) -> impl Iterator<Item = &'a PodSet> {
    let managed = &config.managed_resources;
    let uses = move |pod_set: &&PodSet| {
        managed.is_empty()
            || pod_set.template.spec.as_ref().is_some_and(|pod| uses_any(pod, managed))
    };
    let pod_sets = workload.spec.pod_sets.iter().filter(|one| one.count.unwrap_or(1) > 0);
    pod_sets.filter(uses)
}

/// Entries of a request, in the order of the Workload. None are left if the Workload needs no request: no pod uses a managed
/// resource, or all counts are 0.
///
/// # Errors
/// If a pod set that needs room has no assignment.
pub fn entries<'a>(
    workload: &'a Workload,
    config: &'a ProvisioningRequestConfigSpec,
) -> Result<Vec<EntryPods<'a>>, MissingAssignment> {
    let admission = workload.status.admission.as_ref();
    let assignments = admission.map_or(&[][..], |one| one.pod_set_assignments.as_slice());
    let mut entries: Vec<EntryPods<'a>> = Vec::new();
    for pod_set in covered(workload, config) {
        let Some(assignment) = assignments.iter().find(|one| one.name == pod_set.name) else {
            let workload = workload.metadata.name.clone().unwrap_or_default();
            return Err(MissingAssignment { workload, pod_set: pod_set.name.clone() });
        };
        // Partial admission assigns fewer pods than the pod set has.
        let count = assignment.count.or(pod_set.count).unwrap_or(1);
        if count <= 0 {
            continue;
        }
        let policy = config.pod_set_merge_policy.as_deref();
        match entries.iter_mut().find(|one| are_merged(policy, one.pod_set, pod_set)) {
            Some(entry) => entry.count = entry.count.saturating_add(count),
            None => entries.push(EntryPods { pod_set, assignment, count }),
        }
    }
    Ok(entries)
}

/// Whether the merge policy gives two pod sets one entry.
fn are_merged(policy: Option<&str>, one: &PodSet, other: &PodSet) -> bool {
    match policy {
        Some("IdenticalPodTemplates") => one.template == other.template,
        Some("IdenticalWorkloadSchedulingRequirements") => {
            let none = PodSpec::default();
            let [one, other] =
                [one, other].map(|set| set.template.spec.as_deref().unwrap_or(&none));
            are_scheduled_alike(one, other)
        }
        _ => false,
    }
}

/// Whether pods request the same and may run on the same nodes.
fn are_scheduled_alike(one: &PodSpec, other: &PodSpec) -> bool {
    let of_rest = |pod: &PodSpec| SCHEDULING_FIELDS.map(|field| given(pod.rest.get(field)));
    request_alike(&one.containers, &other.containers)
        && request_alike(&one.init_containers, &other.init_containers)
        && one.resources == other.resources
        && one.node_selector == other.node_selector
        && one.tolerations == other.tolerations
        && of_rest(one) == of_rest(other)
}

/// Whether containers request the same, one by one. Limits and everything else may differ.
fn request_alike(some: &[Container], others: &[Container]) -> bool {
    let resources = |one: &Container| one.resources.clone().unwrap_or_default();
    let alike = |(one, other)| resources(one).requests == resources(other).requests;
    some.len() == others.len() && some.iter().zip(others).all(alike)
}

/// A field that is null is not given.
fn given(value: Option<&Value>) -> Option<Value> {
    value.filter(|value| !value.is_null()).cloned()
}

fn uses_any(pod: &PodSpec, resources: &[String]) -> bool {
    let containers = pod.init_containers.iter().chain(&pod.containers);
    let mut used = containers.filter_map(|one| one.resources.as_ref()).flat_map(|one| {
        // A limit counts as well: a missing request is equal to it.
        one.requests.keys().chain(one.limits.keys())
    });
    used.any(|name| resources.contains(name))
}
