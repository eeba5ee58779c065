//! The fleet as the placer of an engine: quota is reserved only together with a cluster.

use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, DispatchedEntry, Fleet, FleetPlacer, JobGvk,
    NodeClassCapacity, PlacementConfig, QueueOrder, RequestedPodSet, WorkloadRequest,
};
use engine::ids::{ResourceId, WorkloadId};
use engine::node_selection::NodeSelection;
use engine::spec::{
    ClusterQueueSpec, FairSharingWeight, FlavorQuotas, FlavorSpec, FungibilitySpec, LocalQueueSpec,
    NamespaceSelector, PodSetSpec, PreemptionSpec, QueueEligibility, QueueingStrategy,
    ResourceGroup, ResourceQuota, WorkloadSpec,
};
use engine::{Amount, CycleOutcome, Engine, EngineSettings, Event, Time};

/// An engine with one queue of 100 cpus.
fn engine() -> (Engine, ResourceId) {
    let mut engine = Engine::new(EngineSettings::default());
    let names = engine.names_mut();
    let (cpu, flavor) = (names.resources.intern("cpu"), names.flavors.intern("any"));
    let (queue, local) = (names.queues.intern("team"), names.local_queues.intern("ns/team"));
    let namespace = names.namespaces.intern("ns");
    let quota = ResourceQuota {
        resource: cpu,
        nominal: Amount(100),
        borrowing_limit: None,
        lending_limit: None,
    };
    let flavors = vec![FlavorQuotas { flavor, resources: vec![quota] }];
    let spec = ClusterQueueSpec {
        cohort: None,
        groups: vec![ResourceGroup { resources: vec![cpu], flavors }],
        strategy: QueueingStrategy::BestEffortFifo,
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
    };
    engine.apply(Event::Namespace(namespace, Some(Vec::new())));
    engine.apply(Event::Flavor(flavor, Some(FlavorSpec::default())));
    engine.apply(Event::ClusterQueue(queue, Some(Box::new(spec))));
    engine.apply(Event::LocalQueue(
        local,
        Some(LocalQueueSpec { queue, stopped: false, weight: FairSharingWeight::default() }),
    ));
    (engine, cpu)
}

fn submit(engine: &mut Engine, name: &str, cpu: ResourceId, amount: i64) -> WorkloadId {
    let names = engine.names_mut();
    let id = names.workloads.intern(name);
    let pods = PodSetSpec {
        name: "main".into(),
        count: 1,
        reclaimed: 0,
        min_count: None,
        requests: vec![(cpu, Amount(amount))],
        on_node: None,
        selection: NodeSelection::default(),
        preferred: Box::default(),
        topology: None,
        template: 0,
    };
    let spec = WorkloadSpec {
        namespace: names.namespaces.intern("ns"),
        local_queue: Some(names.local_queues.intern("ns/team")),
        uid: name.into(),
        priority: 0,
        queued_at: Time(0),
        pod_sets: vec![pods],
        eligibility: QueueEligibility::Eligible,
        invalid: None,
        preemption_gated: false,
        has_priority_class: false,
        allowed_flavors: None,
        variant_of: None,
        replaced_slice: None,
        checks: Vec::new(),
        admission: None,
    };
    engine.apply(Event::Workload(id, Box::new(spec)));
    id
}

fn report(cpu: ResourceId, free: i64) -> CapacityReport {
    let class = NodeClassCapacity {
        count: 1,
        free: vec![(cpu, Amount(free))],
        ..NodeClassCapacity::default()
    };
    CapacityReport {
        kinds: vec![JobGvk::default()],
        classes: vec![class],
        ..CapacityReport::default()
    }
}

#[test]
fn quota_is_reserved_only_together_with_a_cluster() {
    let (mut engine, cpu) = engine();
    let mut fleet = Fleet::new();
    let east = fleet.cluster("east");
    fleet.set_connected(east, true);
    fleet.set_report(east, Some(report(cpu, 5)));
    fleet.set_config(
        "all",
        Some(PlacementConfig { clusters: vec![east], ..PlacementConfig::default() }),
    );
    let (first, second) =
        (submit(&mut engine, "ns/a", cpu, 4), submit(&mut engine, "ns/b", cpu, 3));
    let lookup = |entry: &engine::CycleEntry| {
        let amount = if entry.workload == first { 4 } else { 3 };
        let requests = vec![(cpu, Amount(amount))];
        let pods = RequestedPodSet { count: 1, requests, ..RequestedPodSet::default() };
        let request =
            Arc::new(WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() });
        let work = Arc::new(AssignedWorkload { request, assigned: Vec::new() });
        Some(DispatchedEntry { config: "all".to_owned(), work, order: QueueOrder::default() })
    };
    let outcomes = |engine: &mut Engine, fleet: &mut Fleet| {
        let mut placing = FleetPlacer::new(fleet, &lookup, Time(1));
        let entries = engine.cycle(Time(1), &mut placing);
        entries.iter().map(|entry| (entry.workload, entry.outcome)).collect::<Vec<_>>()
    };
    let reserved = CycleOutcome::Reserved { cluster: Some(east) };
    assert_eq!(outcomes(&mut engine, &mut fleet), [(first, reserved)]);
    let refused = outcomes(&mut engine, &mut fleet);
    let [(_, CycleOutcome::NoClusterCapacity(key))] = refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!(outcomes(&mut engine, &mut fleet), [], "it is parked");
    fleet.workload_removed(first);
    assert_eq!(fleet.woken_keys(Time(1)), [key]);
    engine.apply(Event::ClusterCapacity(key));
    assert_eq!(outcomes(&mut engine, &mut fleet), [(second, reserved)]);
}
