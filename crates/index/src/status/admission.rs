//! Admission of an assignment. Source: docs/reference/kueue.md §1.2.

use crds::names::labels::HOSTNAME;
use crds::v1beta1;
use crds::v1beta2::{Admission, PodSetAssignment, TopologyAssignment};
use dispatch::WorkloadRequest;
use engine::spec::PodSetAdmission;
use engine::{AssignedTopology, CycleEntry, Engine};

use super::admitted::PENDING;
use super::topology::PodSetTopology;
use crate::amount::quantity;

/// The `status.admission` of a cycle entry.
///
/// The pod sets of an unknown Workload have no names, so it has no assignments.
pub(crate) fn admission(
    engine: &Engine,
    entry: &CycleEntry,
    request: Option<&WorkloadRequest>,
) -> Admission {
    let names = engine.names();
    let pod_sets = request.map_or(&[][..], |one| &one.pod_sets);
    let all = pod_sets.iter().zip(&entry.assignment.pod_sets);
    Admission {
        cluster_queue: names.queues.name(entry.queue).to_owned(),
        pod_set_assignments: all.map(|(pods, one)| assignment(engine, &pods.name, one)).collect(),
    }
}

fn assignment(
    engine: &Engine,
    name: &str,
    one: &engine::PodSetFlavorAssignment,
) -> PodSetAssignment {
    let names = engine.names();
    let mut assignment = PodSetAssignment {
        count: Some(small(one.count)),
        name: name.to_owned(),
        ..PodSetAssignment::default()
    };
    for choice in &one.flavor_assignments {
        let resource = names.resources.name(choice.resource);
        let flavor = names.flavors.name(choice.flavor);
        assignment.flavors.insert(resource.to_owned(), flavor.to_owned());
        assignment.resource_usage.insert(resource.to_owned(), quantity(resource, choice.amount));
    }
    if !one.domains.is_empty() {
        assignment.topology_assignment = engine.topology_assignment(one).map(topology);
    }
    if one.delayed_topology {
        assignment.delayed_topology_request = Some(PENDING.to_owned());
    }
    assignment
}

/// The topologies of pod sets after a second pass, in their order. A worker cluster assigns those that are still delayed.
#[must_use]
pub fn settled_topologies(engine: &Engine, pod_sets: &[PodSetAdmission]) -> Vec<PodSetTopology> {
    let settled = pod_sets.iter().map(|one| {
        if one.delayed_topology {
            return PodSetTopology::Unchanged;
        }
        // The second pass placed no pod although there are some: with the gate TopologyAwareScheduling off, for example.
        if one.domains.is_empty() && one.reclaimed < one.count {
            return PodSetTopology::NotNeeded;
        }
        let held = (!one.domains.is_empty()).then(|| engine.held_topology_assignment(one));
        PodSetTopology::Settled(held.flatten().map(topology))
    });
    settled.collect()
}

/// The topologies of a Workload after its pods left a failed node, by pod set.
#[must_use]
pub fn moved_topologies(engine: &Engine, entry: &CycleEntry) -> Vec<PodSetTopology> {
    let moved = entry.assignment.pod_sets.iter().map(|one| {
        let held = (!one.domains.is_empty()).then(|| engine.topology_assignment(one)).flatten();
        held.map_or(PodSetTopology::Unchanged, |one| PodSetTopology::Settled(Some(topology(one))))
    });
    moved.collect()
}

/// The nodes that an agent assigned to the pods of a pod set, by hostname; `None` if there are none.
#[must_use]
pub fn on_hosts(hosts: &[(Box<str>, i64)]) -> Option<TopologyAssignment> {
    let domain = |(host, count): &(Box<str>, i64)| (vec![host.to_string()], *count);
    let assigned = AssignedTopology {
        levels: vec![HOSTNAME.to_owned()],
        domains: hosts.iter().map(domain).collect(),
    };
    (!hosts.is_empty()).then(|| topology(assigned))
}

fn topology(placement: AssignedTopology) -> TopologyAssignment {
    let domain = |(values, count): (Vec<String>, i64)| v1beta1::TopologyDomainAssignment {
        count: small(count),
        values,
    };
    TopologyAssignment::from(&v1beta1::TopologyAssignment {
        levels: placement.levels,
        domains: placement.domains.into_iter().map(domain).collect(),
    })
}

fn small(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
