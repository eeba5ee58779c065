//! The quota that a Workload's object shows.
//!
//! What is charged is what the status says, less the pods that have finished. Source: docs/reference/kueue.md §2.7.

use crds::meta::is_true;
use crds::names::conditions;
use crds::v1beta2::{PodSetAssignment, TopologyAssignment, Workload};
use engine::Names;
use engine::spec::{AdmissionSpec, PodSetAdmission};
use engine::topology::DomainAssignment;

use crate::amount::amount;
use crate::time::time;

/// What the Workload holds; `None` while its quota is not reserved.
pub(super) fn admission(names: &mut Names, workload: &Workload) -> Option<AdmissionSpec> {
    let status = &workload.status;
    let admission = status.admission.as_ref()?;
    let reserved = status.conditions.iter().find(|one| one.r#type == conditions::QUOTA_RESERVED)?;
    if reserved.status != "True" {
        return None;
    }
    let pod_sets = admission.pod_set_assignments.iter();
    Some(AdmissionSpec {
        queue: names.queues.intern(&admission.cluster_queue),
        reserved_at: reserved.last_transition_time.as_ref().map(time).unwrap_or_default(),
        evicted: is_true(&status.conditions, conditions::EVICTED),
        pod_sets: pod_sets.map(|one| pod_set(names, workload, one)).collect(),
    })
}

fn pod_set(names: &mut Names, workload: &Workload, one: &PodSetAssignment) -> PodSetAdmission {
    let asked = workload.spec.pod_sets.iter().find(|pod_set| pod_set.name == one.name);
    let wanted = asked.map(|asked| asked.count.unwrap_or(1));
    let count = one.count.or(wanted).unwrap_or_default();
    let gone = workload.status.reclaimable_pods.iter().find(|gone| gone.name == one.name);
    let mut resources = Vec::new();
    for (resource, usage) in &one.resource_usage {
        if let Some(flavor) = one.flavors.get(resource) {
            let flavor = names.flavors.intern(flavor);
            resources.push((names.resources.intern(resource), flavor, amount(resource, usage)));
        }
    }
    PodSetAdmission {
        count: i64::from(count),
        reclaimed: i64::from(count - left(count, wanted, gone.map_or(0, |gone| gone.count))),
        resources,
        domains: one.topology_assignment.as_ref().map(domains).unwrap_or_default(),
        delayed_topology: false,
    }
}

/// How many of the pods that were granted are charged: no more than have not finished of all that are wanted. A pod set
/// that was granted less than it wants gives nothing back before that.
fn left(granted: i32, wanted: Option<i32>, gone: i32) -> i32 {
    granted.min(wanted.unwrap_or(granted).saturating_sub(gone)).max(0)
}

fn domains(assignment: &TopologyAssignment) -> Vec<DomainAssignment> {
    let mut domains = Vec::new();
    for slice in &assignment.slices {
        for at in 0..usize::try_from(slice.domain_count).unwrap_or_default() {
            let values = slice.values_per_level.iter().map(|level| level.of_domain(at).into());
            let count = i64::from(slice.pod_counts.of_domain(at));
            domains.push(DomainAssignment { values: values.collect(), count });
        }
    }
    domains
}
