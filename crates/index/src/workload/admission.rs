//! Reserved quota of a Workload object.
//!
//! The charged amount is that of the status, less reclaimable pods. Source: docs/reference/kueue.md §2.7.

use crds::names::conditions;
use crds::v1beta2::{PodSetAssignment, TopologyAssignment, Workload};
use engine::Names;
use engine::spec::{AdmissionSpec, AssignedResource, PodSetAdmission};
use engine::topology::DomainAssignment;

use crate::amount::amount;
use crate::config::IndexConfig;
use crate::status;
use crate::time::time;

/// The admission of a Workload; `None` without QuotaReserved.
pub(super) fn admission(
    config: &IndexConfig,
    names: &mut Names,
    workload: &Workload,
) -> Option<AdmissionSpec> {
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
        evicted: workload.is_evicted(),
        pod_sets: pod_sets
            .map(|one| pod_set(names, workload, one, config.reclaimable(workload, &one.name)))
            .collect(),
    })
}

fn pod_set(
    names: &mut Names,
    workload: &Workload,
    one: &PodSetAssignment,
    reclaimable: i32,
) -> PodSetAdmission {
    let pod_set = workload.spec.pod_sets.iter().find(|pod_set| pod_set.name == one.name);
    let requested = pod_set.map(|pod_set| pod_set.count.unwrap_or(1));
    // An assignment without a count is one of all pods.
    let count = one.count.or(requested).unwrap_or_default();
    let mut resources = Vec::new();
    for (resource, usage) in one.resource_usage.iter() {
        // A usage without a flavor can be charged to no pair.
        if let Some(flavor) = one.flavors.get(resource) {
            resources.push(AssignedResource {
                resource: names.resources.intern(resource),
                flavor: names.flavors.intern(flavor),
                amount: amount(resource, usage),
            });
        }
    }
    PodSetAdmission {
        count: i64::from(count),
        reclaimed: i64::from(count - charged_pods(count, requested, reclaimable)),
        resources,
        domains: one.topology_assignment.as_ref().map(domains).unwrap_or_default(),
        delayed_topology: status::awaits_topology(one),
    }
}

/// Charged pods of a pod set: at most the requested pods less the reclaimable ones. A partially admitted pod set
/// releases nothing before that.
fn charged_pods(granted: i32, requested: Option<i32>, reclaimable: i32) -> i32 {
    granted.min(requested.unwrap_or(granted).saturating_sub(reclaimable)).max(0)
}

fn domains(assignment: &TopologyAssignment) -> Vec<DomainAssignment> {
    let domain = |(values, count): (Vec<String>, i32)| DomainAssignment {
        values: values.into_iter().map(Into::into).collect(),
        count: i64::from(count),
    };
    assignment.domains().map(domain).collect()
}
