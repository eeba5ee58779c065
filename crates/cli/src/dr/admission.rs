//! The admission of a Workload on the manager, from that of its clone (docs/reference/dispatch.md §11).

use crds::{
    names::{MULTI_KUEUE_CONTROLLER, annotations::POLICY, check_states::PENDING},
    v1beta2::{Admission, ClusterQueue, PodSetAssignment, ResourceFlavor, ResourceGroup, Workload},
};
use jobs::{clone_assignment, pod_set_info::PodSetInfo};

use super::{
    not_rebuilt::NotRebuilt,
    observed::{ObservedHub, by_name},
};

/// The resource that counts pods.
const PODS: &str = "pods";

/// What a Workload had on the manager.
#[derive(Clone, Debug, PartialEq)]
pub struct RebuiltAdmission {
    /// Quota and flavors.
    pub admission: Admission,
    /// The MultiKueue check.
    pub check: String,
}

/// The admission of the Workload of a clone on a worker.
///
/// # Errors
/// If the manager cluster lacks what it was admitted by.
pub fn rebuilt_admission(
    clone: &Workload,
    cluster: &str,
    hub: &ObservedHub,
) -> Result<RebuiltAdmission, NotRebuilt> {
    let queue = cluster_queue(clone, hub)?;
    let name = queue.metadata.name.clone().unwrap_or_default();
    let of_clone = clone.status.admission.as_ref().ok_or(NotRebuilt::NotAdmitted)?;
    let assign = |one: &PodSetAssignment| assignment(clone, one, (&name, queue), hub);
    let assignments: Result<Vec<_>, _> = of_clone.pod_set_assignments.iter().map(assign).collect();
    let admission = Admission { cluster_queue: name.clone(), pod_set_assignments: assignments? };
    let check = check(queue, (&name, &admission), cluster, hub)?;
    Ok(RebuiltAdmission { admission, check })
}

fn cluster_queue<'a>(
    clone: &Workload,
    hub: &'a ObservedHub,
) -> Result<&'a ClusterQueue, NotRebuilt> {
    let namespace = clone.metadata.namespace.as_deref().unwrap_or_default();
    if !hub.namespaces.contains(namespace) {
        return Err(NotRebuilt::Missing(format!("namespace {namespace}")));
    }
    let queue = &clone.spec.queue_name;
    let mut queues = hub.local_queues.iter();
    let found = queues.find(|one| {
        one.metadata.namespace.as_deref() == Some(namespace)
            && one.metadata.name.as_deref() == Some(queue)
    });
    let missing = || NotRebuilt::Missing(format!("LocalQueue {namespace}/{queue}"));
    let target = &found.ok_or_else(missing)?.spec.cluster_queue;
    by_name(&hub.cluster_queues, target, |one| &one.metadata)
        .ok_or_else(|| NotRebuilt::Missing(format!("ClusterQueue {target}")))
}

/// Flavors and amounts of one pod set. A resource that the queue does not cover takes no quota.
fn assignment(
    clone: &Workload,
    of_clone: &PodSetAssignment,
    (name, queue): (&str, &ClusterQueue),
    hub: &ObservedHub,
) -> Result<PodSetAssignment, NotRebuilt> {
    let mut rebuilt = PodSetAssignment {
        count: of_clone.count,
        name: of_clone.name.clone(),
        ..PodSetAssignment::default()
    };
    let mut usage = of_clone.resource_usage.clone();
    if let Some(count) = of_clone.count.and_then(|count| count.to_string().parse().ok()) {
        usage.entry(PODS.to_owned()).or_insert(count);
    }
    let carried = clone_assignment::read(clone, &of_clone.name);
    for group in &queue.spec.resource_groups {
        let covered = |resource: &&String| group.covered_resources.contains(resource);
        for resource in usage.keys().filter(covered) {
            let same_name = of_clone.flavors.get(resource);
            let flavor = flavor(group, carried.as_ref(), same_name, hub);
            let (queue, of) = (name.to_owned(), resource.clone());
            let flavor = flavor.ok_or(NotRebuilt::NoFlavor { queue, resource: of })?;
            let flavor_name = flavor.metadata.name.clone().unwrap_or_default();
            if flavor.spec.topology_name.is_some() {
                // The worker has assigned the domains; the manager never knew them (docs/reference/multikueue.md §1.4).
                rebuilt.delayed_topology_request = Some(PENDING.to_owned());
            }
            rebuilt.flavors.insert(resource.clone(), flavor_name);
            let amount = usage.get(resource).cloned().unwrap_or_default();
            rebuilt.resource_usage.insert(resource.clone(), amount);
        }
    }
    Ok(rebuilt)
}

/// The flavor of a group that explains what the pods were given. A worker with queues of its own says the name of its own flavor.
fn flavor<'a>(
    group: &ResourceGroup,
    carried: Option<&PodSetInfo>,
    same_name: Option<&String>,
    hub: &'a ObservedHub,
) -> Option<&'a ResourceFlavor> {
    let named = |name: &String| by_name(&hub.flavors, name, |one| &one.metadata);
    let all = group.flavors.iter().map(|one| &one.name);
    let Some(carried) = carried else {
        let same = all.clone().find(|name| Some(*name) == same_name);
        let only = group.flavors.first().filter(|_| group.flavors.len() == 1);
        return same.or(only.map(|one| &one.name)).and_then(named);
    };
    let fits = |flavor: &&ResourceFlavor| {
        let spec = &flavor.spec;
        let has = |(key, value): (&String, &String)| carried.node_selector.get(key) == Some(value);
        spec.node_labels.iter().all(has)
            && spec.tolerations.iter().all(|one| carried.tolerations.contains(one))
    };
    // `max_by_key` returns the last of equals; the first in the order of the queue counts.
    let fitting = all.filter_map(named).filter(fits).rev();
    fitting.max_by_key(|flavor| flavor.spec.node_labels.len() + flavor.spec.tolerations.len())
}

/// The MultiKueue check of the queue, which sends work to the worker.
fn check(
    queue: &ClusterQueue,
    (name, admission): (&str, &Admission),
    cluster: &str,
    hub: &ObservedHub,
) -> Result<String, NotRebuilt> {
    let not_dispatched =
        || NotRebuilt::NotDispatched { queue: name.to_owned(), cluster: cluster.to_owned() };
    let assigned = || admission.pod_set_assignments.iter().flat_map(|one| one.flavors.values());
    let rules = queue.spec.admission_checks_strategy.iter().flat_map(|one| &one.admission_checks);
    let mut dispatches = None;
    for rule in rules {
        let applies =
            rule.on_flavors.is_empty() || assigned().any(|flavor| rule.on_flavors.contains(flavor));
        if !applies {
            continue;
        }
        let found = by_name(&hub.checks, &rule.name, |one| &one.metadata);
        let found =
            found.ok_or_else(|| NotRebuilt::Missing(format!("AdmissionCheck {}", rule.name)))?;
        if found.spec.controller_name != MULTI_KUEUE_CONTROLLER {
            let (queue, check) = (name.to_owned(), rule.name.clone());
            return Err(NotRebuilt::OtherCheck { queue, check });
        }
        let config = found.spec.parameters.as_ref().map(|one| one.name.as_str());
        let config = config.and_then(|name| by_name(&hub.configs, name, |one| &one.metadata));
        let lists = config.is_some_and(|config| {
            // A policy may select clusters by their labels.
            config.spec.clusters.iter().any(|one| one == cluster)
                || crds::meta::annotation(&config.metadata, POLICY).is_some()
        });
        dispatches = dispatches.or(lists.then(|| rule.name.clone()));
    }
    dispatches.ok_or_else(not_dispatched)
}
