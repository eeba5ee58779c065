//! The ClusterQueue of an agent-mode worker. Source: docs/reference/dispatch.md §4.
//!
//! An agent-mode worker has no queues of its own; one internal queue takes every Workload. It has one flavor and one
//! resource group with the resources of the cluster. A resource that the cluster does not have is not covered, so a
//! Workload that requests it is not admitted.

use crds::names::THIN_QUEUE;
use engine::spec::{
    ClusterQueueInfo, FairSharingWeight, FlavorQuotaSpec, FlavorSpec, FungibilitySpec,
    LocalQueueInfo, NamespaceSelector, PreemptionSpec, QueueingStrategy, QuotaSpec,
    ResourceGroupSpec,
};
use engine::{Amount, Event, Names};

/// Sets the nominal quota of the internal queue: one amount per resource of the cluster.
pub(crate) fn agent_mode_quota(names: &mut Names, totals: &[(&str, Amount)]) -> Vec<Event> {
    let flavor = names.flavors.intern(THIN_QUEUE);
    let queue = names.queues.intern(THIN_QUEUE);
    let local_queue = names.local_queues.intern(THIN_QUEUE);
    let mut resources: Vec<QuotaSpec> = Vec::new();
    for &(name, nominal) in totals {
        let resource = names.resources.intern(name);
        resources.push(QuotaSpec { resource, nominal, borrowing_limit: None, lending_limit: None });
    }
    let group = ResourceGroupSpec {
        // One group covers all resources, so that one flavor is assigned for all of them.
        resources: resources.iter().map(|quota| quota.resource).collect(),
        flavors: vec![FlavorQuotaSpec { flavor, resources }],
    };
    vec![
        Event::Flavor(flavor, Some(FlavorSpec::default())),
        Event::ClusterQueue(queue, Some(Box::new(agent_mode_queue(group)))),
        Event::LocalQueue(
            local_queue,
            Some(LocalQueueInfo { queue, stopped: false, weight: FairSharingWeight::default() }),
        ),
    ]
}

fn agent_mode_queue(group: ResourceGroupSpec) -> ClusterQueueInfo {
    ClusterQueueInfo {
        cohort: None,
        groups: vec![group],
        strategy: QueueingStrategy::BestEffortFifo,
        // The manager decides about preemption; an agent only admits by room.
        preemption: PreemptionSpec::default(),
        flavor_fungibility: FungibilitySpec::default(),
        weight: FairSharingWeight::default(),
        stopped: false,
        ready: true,
        namespaces: NamespaceSelector::All(Vec::new()),
        checks: Vec::new(),
        generation: 0,
        last_acceptable_flavor: None,
        admission_fair_sharing: false,
    }
}
