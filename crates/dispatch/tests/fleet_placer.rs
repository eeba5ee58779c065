//! The fleet as the placer of an engine: quota is reserved only together with a cluster.

mod bound_flavors;

use std::{collections::BTreeMap, sync::Arc};

use dispatch::{
    AssignedPodSet, AssignedWorkload, CapacityReport, CheckpointCluster, DispatchedEntry, Fleet,
    FleetPlacer, JobGvk, NodeClassCapacity, PlacementConfig, QueueOrder, RequestedPodSet,
    UNREPORTED_WINDOW, WorkloadRequest, refusals_message,
};
use engine::ids::{FlavorId, ResourceId, WorkloadId};
use engine::node_selection::NodeSelection;
use engine::spec::{
    ClusterQueueInfo, FairSharingWeight, FlavorQuotaSpec, FlavorSpec, FungibilitySpec,
    LocalQueueInfo, NamespaceSelector, PodSetSpec, PreemptionPolicy, PreemptionSpec,
    QueueEligibility, QueueingStrategy, QuotaSpec, ResourceGroupSpec, WorkloadInfo,
};
use engine::{Amount, CycleOutcome, Engine, EngineSettings, Event, Time};

/// An engine with one queue of so many cpus, in which higher priorities preempt lower ones.
fn engine(cpus: i64) -> (Engine, ResourceId) {
    engine_with_flavors(cpus, &["any"])
}

/// The same, with so many cpus of each flavor.
fn engine_with_flavors(cpus: i64, flavors: &[&str]) -> (Engine, ResourceId) {
    let mut engine = Engine::new(EngineSettings::default());
    let names = engine.names_mut();
    let cpu = names.resources.intern("cpu");
    let flavors: Vec<_> = flavors.iter().map(|name| names.flavors.intern(name)).collect();
    let (queue, local) = (names.queues.intern("team"), names.local_queues.intern("ns/team"));
    let namespace = names.namespaces.intern("ns");
    let quota = QuotaSpec {
        resource: cpu,
        nominal: Amount(cpus),
        borrowing_limit: None,
        lending_limit: None,
    };
    let of = |&flavor: &FlavorId| FlavorQuotaSpec { flavor, resources: vec![quota] };
    let quotas = flavors.iter().map(of).collect();
    let spec = ClusterQueueInfo {
        cohort: None,
        groups: vec![ResourceGroupSpec { resources: vec![cpu], flavors: quotas }],
        strategy: QueueingStrategy::BestEffortFifo,
        preemption: PreemptionSpec {
            within_cluster_queue: PreemptionPolicy::LowerPriority,
            ..PreemptionSpec::default()
        },
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
    for flavor in flavors {
        engine.apply(Event::Flavor(flavor, Some(FlavorSpec::default())));
    }
    engine.apply(Event::ClusterQueue(queue, Some(Box::new(spec))));
    engine.apply(Event::LocalQueue(
        local,
        Some(LocalQueueInfo { queue, stopped: false, weight: FairSharingWeight::default() }),
    ));
    (engine, cpu)
}

fn submit(engine: &mut Engine, name: &str, cpu: ResourceId, amount: i64) -> WorkloadId {
    submit_with_priority(engine, name, (cpu, amount), 0)
}

fn submit_with_priority(
    engine: &mut Engine,
    name: &str,
    (cpu, amount): (ResourceId, i64),
    priority: i64,
) -> WorkloadId {
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
    let spec = WorkloadInfo {
        namespace: names.namespaces.intern("ns"),
        local_queue: Some(names.local_queues.intern("ns/team")),
        uid: name.into(),
        priority,
        queued_at: Time(0),
        pod_sets: vec![pods],
        eligibility: QueueEligibility::Eligible,
        invalid: None,
        preemption_gated: false,
        has_priority_class: false,
        allowed_flavors: None,
        variant_of: None,
        replaced_slice: None,
        elastic: false,
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

/// The request of a Workload with one pod of so many cpus.
fn one_pod((cpu, amount): (ResourceId, i64), priority: i64) -> DispatchedEntry {
    let requests = vec![(cpu, Amount(amount))];
    let pods = RequestedPodSet { count: 1, requests, ..RequestedPodSet::default() };
    let request = Arc::new(WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() });
    let work = Arc::new(AssignedWorkload::new(request, Vec::new()));
    let order = QueueOrder { priority, queued_at: Time(0) };
    DispatchedEntry { config: "all".to_owned(), work, order, group: None, extends: None }
}

#[test]
fn hazard_10_quota_is_reserved_only_together_with_a_cluster() {
    let (mut engine, cpu) = engine(100);
    let mut fleet = Fleet::new();
    let east = fleet.intern_cluster("east");
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
        Some(one_pod((cpu, amount), 0))
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
    assert_eq!(outcomes(&mut engine, &mut fleet), [], "it is inadmissible");
    fleet.workload_removed(first);
    assert_eq!(fleet.woken_keys(Time(1)), [key]);
    engine.apply(Event::ClusterCapacity(key));
    assert_eq!(outcomes(&mut engine, &mut fleet), [(second, reserved)]);
}

#[test]
fn only_a_few_workloads_without_known_room_wait_for_the_queues_of_a_cluster_without_a_report() {
    let (mut engine, cpu) = engine(1000);
    let mut fleet = Fleet::new();
    let (east, kueue) = (fleet.intern_cluster("east"), fleet.intern_cluster("kueue"));
    fleet.set_connected(east, true);
    fleet.set_report(east, Some(report(cpu, 4)));
    fleet.set_connected(kueue, true);
    let clusters = vec![kueue, east];
    fleet.set_config("all", Some(PlacementConfig { clusters, ..PlacementConfig::default() }));
    let lookup = |_: &engine::CycleEntry| Some(one_pod((cpu, 3), 0));
    let outcome = |engine: &mut Engine, fleet: &mut Fleet| {
        let entries = engine.cycle(Time(1), &mut FleetPlacer::new(fleet, &lookup, Time(1)));
        entries.first().expect("an entry").outcome
    };
    submit(&mut engine, "ns/on-east", cpu, 3);
    let on_east = CycleOutcome::Reserved { cluster: Some(east) };
    assert_eq!(outcome(&mut engine, &mut fleet), on_east, "known room comes first");

    let first = submit(&mut engine, "ns/00", cpu, 3);
    let CycleOutcome::NoClusterCapacity(key) = outcome(&mut engine, &mut fleet) else {
        panic!("it is not known whether the other cluster reports");
    };
    fleet.set_report_listed(kueue, true);
    assert_eq!(fleet.woken_keys(Time(1)), [key]);
    engine.apply(Event::ClusterCapacity(key));
    let races = CycleOutcome::Reserved { cluster: None };
    assert_eq!(outcome(&mut engine, &mut fleet), races);
    assert!(fleet.is_racing(first));
    for n in 1..UNREPORTED_WINDOW {
        submit(&mut engine, &format!("ns/{n:02}"), cpu, 3);
        assert_eq!(outcome(&mut engine, &mut fleet), races, "{n}");
    }
    submit(&mut engine, "ns/more", cpu, 3);
    let CycleOutcome::NoClusterCapacity(key) = outcome(&mut engine, &mut fleet) else {
        panic!("enough wait already");
    };
    assert!(fleet.woken_keys(Time(1)).is_empty());
    // Its queues have admitted one.
    fleet.place(first, kueue, one_pod((cpu, 3), 0).work, Time(2));
    assert!(!fleet.is_racing(first));
    assert_eq!(fleet.woken_keys(Time(2)), [key]);
    engine.apply(Event::ClusterCapacity(key));
    assert_eq!(outcome(&mut engine, &mut fleet), races);
}

#[test]
fn a_race_without_reports_needs_no_cluster_but_the_one_with_a_required_checkpoint() {
    let outcome = |checkpoint: Option<bool>, connected: bool| {
        let (mut engine, cpu) = engine(100);
        let mut fleet = Fleet::new();
        let clusters: Vec<_> = ["east", "west"].map(|name| fleet.intern_cluster(name)).into();
        for &cluster in &clusters {
            fleet.set_report_listed(cluster, true);
        }
        fleet.set_connected(clusters[0], true);
        fleet.set_connected(clusters[1], connected);
        fleet.set_config("all", Some(PlacementConfig { clusters, ..PlacementConfig::default() }));
        submit(&mut engine, "ns/train", cpu, 3);
        let lookup = |_: &engine::CycleEntry| {
            let plain = one_pod((cpu, 3), 0);
            let checkpoint =
                checkpoint.map(|required| CheckpointCluster { name: "west".into(), required });
            let request = WorkloadRequest { checkpoint, ..(*plain.work.request).clone() };
            let work = Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()));
            Some(DispatchedEntry { work, ..plain })
        };
        let entries = engine.cycle(Time(1), &mut FleetPlacer::new(&mut fleet, &lookup, Time(1)));
        entries.first().expect("an entry").outcome
    };
    let races = CycleOutcome::Reserved { cluster: None };
    for (checkpoint, connected) in [(None, false), (Some(false), false), (Some(true), true)] {
        assert_eq!(outcome(checkpoint, connected), races, "{checkpoint:?} {connected}");
    }
    let waits = outcome(Some(true), false);
    assert!(matches!(waits, CycleOutcome::NoClusterCapacity(_)), "{waits:?}");
}

/// Two clusters, each with one node of 4 cpus, all of it in use: `small-1` and `small-3` are on the first, `small-2` and
/// `small-4` on the second. Then a Workload of a higher priority asks for one pod.
struct PreemptionCase {
    /// The quota in cpus.
    quota: i64,
    /// What the pod asks for.
    large: i64,
    /// The second node is larger by so much once the Workload was refused.
    grows: i64,
}

impl PreemptionCase {
    fn new(quota: i64, large: i64) -> Self {
        Self { quota, large, grows: 0 }
    }

    /// Its outcome, and the names of its targets.
    fn run(self) -> (CycleOutcome, Vec<String>) {
        let (mut engine, cpu) = engine(self.quota);
        let mut fleet = Fleet::new();
        let clusters: Vec<_> = ["east", "west"].map(|name| fleet.intern_cluster(name)).into();
        for &cluster in &clusters {
            fleet.set_connected(cluster, true);
            fleet.set_report(cluster, Some(report(cpu, 4)));
        }
        let west = clusters[1];
        fleet.set_config("all", Some(PlacementConfig { clusters, ..PlacementConfig::default() }));
        let lookup = |entry: &engine::CycleEntry| {
            let (amount, priority) =
                if entry.workload.index() < 4 { (2, 0) } else { (self.large, 1) };
            Some(one_pod((cpu, amount), priority))
        };
        for n in 1..=4_u8 {
            submit(&mut engine, &format!("ns/small-{n}"), cpu, 2);
            let now = Time(i64::from(n));
            engine.cycle(now, &mut FleetPlacer::new(&mut fleet, &lookup, now));
        }
        let id = submit_with_priority(&mut engine, "ns/large", (cpu, self.large), 1);
        engine.cycle(Time(9), &mut FleetPlacer::new(&mut fleet, &lookup, Time(9)));
        if self.grows > 0 {
            fleet.set_report(west, Some(report(cpu, 4 + self.grows)));
            let woken = fleet.woken_keys(Time(10));
            woken.into_iter().for_each(|key| engine.apply(Event::ClusterCapacity(key)));
        }
        let mut placer = FleetPlacer::new(&mut fleet, &lookup, Time(11));
        if self.grows > 0 {
            engine.cycle(Time(11), &mut placer);
        }
        let entry = engine.entries().first().expect("an entry").clone();
        assert_eq!(entry.workload, id);
        let names = engine.names();
        let name = |target: &engine::PreemptionTarget| {
            names.workloads.name(target.workload).trim_start_matches("ns/").to_owned()
        };
        let mut targets: Vec<String> = entry.targets.iter().map(name).collect();
        targets.sort();
        (entry.outcome, targets)
    }
}

#[test]
fn preemption_targets_are_on_one_cluster_that_then_has_room() {
    // By quota alone the targets were small-3 and small-4, and no cluster had a node of 4 free.
    let (outcome, targets) = PreemptionCase::new(8, 4).run();
    assert_eq!(outcome, CycleOutcome::Preempting);
    assert_eq!(targets, ["small-2", "small-4"]);
    assert_eq!(PreemptionCase::new(8, 2).run().1, ["small-4"], "one suffices");
}

#[test]
fn a_workload_without_room_preempts_although_its_quota_is_free() {
    let (outcome, targets) = PreemptionCase::new(100, 4).run();
    assert_eq!(outcome, CycleOutcome::Preempting);
    assert_eq!(targets, ["small-2", "small-4"], "of one cluster");
    assert_eq!(PreemptionCase::new(100, 2).run().1, ["small-4"], "one suffices, the last");
}

#[test]
fn more_is_preempted_than_quota_asks_for_if_room_needs_it() {
    // A quota of 10 leaves 2 free: for 4 cpus one target frees the quota, and two the room.
    let (outcome, targets) = PreemptionCase::new(10, 4).run();
    assert_eq!(outcome, CycleOutcome::Preempting);
    assert_eq!(targets, ["small-2", "small-4"]);
}

#[test]
fn nothing_is_preempted_for_a_workload_that_no_cluster_can_hold() {
    for quota in [8, 100] {
        let (outcome, targets) = PreemptionCase::new(quota, 6).run();
        assert!(matches!(outcome, CycleOutcome::NoClusterCapacity(_)), "{outcome:?}");
        assert!(targets.is_empty(), "{targets:?}");
    }
}

#[test]
fn a_preemptor_wakes_when_new_nodes_suffice_together_with_an_eviction() {
    let quota_and_room: &[&str] = &["small-2", "small-3", "small-4"];
    for (quota, expected) in [(8, quota_and_room), (100, &["small-2", "small-4"])] {
        let case = PreemptionCase { grows: 2, ..PreemptionCase::new(quota, 6) };
        let (outcome, targets) = case.run();
        assert_eq!(outcome, CycleOutcome::Preempting, "{quota}");
        assert_eq!(targets, expected, "{quota}");
    }
}

/// The place of a cluster, its name, and cpus and priorities of what runs there.
type RunningWork<'a> = (usize, &'a str, &'a [(i64, i64)]);

/// Two clusters, each with one node of 4 cpus. What runs there has these cpus and priorities, that of `west` was admitted last. Then a
/// Workload of priority 9 asks for one pod. Gives its outcome, and the names of its targets.
fn preempts(east: &[(i64, i64)], west: &[(i64, i64)], large: i64) -> (CycleOutcome, Vec<String>) {
    preempts_in_turn([(0, "east", east), (1, "west", west)], large)
}

/// The same with what runs on each cluster in the order of its admission.
fn preempts_in_turn(admitted: [RunningWork<'_>; 2], large: i64) -> (CycleOutcome, Vec<String>) {
    let (mut engine, cpu) = engine(100);
    let mut fleet = Fleet::new();
    let clusters = ["east", "west"].map(|name| fleet.intern_cluster(name));
    for cluster in clusters {
        fleet.set_connected(cluster, true);
        fleet.set_report(cluster, Some(report(cpu, 4)));
    }
    let only = |clusters| Some(PlacementConfig { clusters, ..PlacementConfig::default() });
    let mut asked = BTreeMap::new();
    let mut now = Time(0);
    let mut ask = |engine: &mut Engine, fleet: &mut Fleet, name: &str, size: (i64, i64)| {
        let id = submit_with_priority(engine, name, (cpu, size.0), size.1);
        asked.insert(id, size);
        now.0 += 1;
        let lookup = |entry: &engine::CycleEntry| {
            let &(amount, priority) = asked.get(&entry.workload)?;
            Some(one_pod((cpu, amount), priority))
        };
        engine.cycle(now, &mut FleetPlacer::new(fleet, &lookup, now));
        engine.entries().first().expect("an entry").clone()
    };
    for (at, name, running) in admitted {
        let cluster = clusters[at];
        fleet.set_config("all", only(vec![cluster]));
        for (n, &size) in (1..).zip(running) {
            let placed = ask(&mut engine, &mut fleet, &format!("{name}-{n}"), size);
            assert_eq!(placed.outcome, CycleOutcome::Reserved { cluster: Some(cluster) });
        }
    }
    fleet.set_config("all", only(clusters.to_vec()));
    let entry = ask(&mut engine, &mut fleet, "large", (large, 9));
    let names = &engine.names().workloads;
    let targets = entry.targets.iter().map(|one| names.name(one.workload).to_owned());
    let mut targets: Vec<String> = targets.collect();
    targets.sort();
    (entry.outcome, targets)
}

#[test]
fn the_cluster_with_the_fewest_targets_is_preempted_on() {
    assert_eq!(preempts(&[(4, 0)], &[(2, 0), (2, 0)], 4).1, ["east-1"], "west came last");
    assert_eq!(preempts(&[(4, 5)], &[(2, 0), (2, 0)], 4).1, ["east-1"], "whatever its priority");
    assert_eq!(preempts(&[(2, 0), (2, 0)], &[(4, 0)], 4).1, ["west-1"]);
    assert_eq!(preempts(&[(1, 0), (1, 0), (2, 0)], &[(2, 0), (2, 0)], 4).1, ["west-1", "west-2"]);
}

#[test]
fn of_equally_many_targets_those_of_the_lowest_priority_go() {
    assert_eq!(preempts(&[(4, 0)], &[(4, 3)], 4).1, ["east-1"], "west came last");
    assert_eq!(preempts(&[(4, 3)], &[(4, 0)], 4).1, ["west-1"]);
    let (low, high) = ([(2, 0), (2, 0)], [(2, 3), (2, 3)]);
    assert_eq!(preempts(&low, &high, 4).1, ["east-1", "east-2"]);
    assert_eq!(preempts(&high, &low, 4).1, ["west-1", "west-2"]);
    assert_eq!(preempts(&[(4, 9)], &[(4, 3)], 4).1, ["west-1"], "an equal priority stays");
}

#[test]
fn of_equal_targets_those_go_that_lose_the_least_time() {
    let (one, two) = (&[(4, 0)][..], &[(2, 0), (2, 0)][..]);
    for (size, running, last) in [(4, one, &["1"][..]), (4, two, &["1", "2"]), (2, two, &["2"])] {
        let (east, west) = ((0, "east", running), (1, "west", running));
        let on = |name: &str| last.iter().map(|at| format!("{name}-{at}")).collect::<Vec<_>>();
        assert_eq!(preempts_in_turn([east, west], size).1, on("west"), "west came last");
        assert_eq!(preempts_in_turn([west, east], size).1, on("east"), "east came last");
    }
    // A lower priority counts for more than the time.
    let (low, high) = (&[(4, 0)][..], &[(4, 3)][..]);
    assert_eq!(preempts_in_turn([(1, "west", low), (0, "east", high)], 4).1, ["west-1"]);
}

#[test]
fn nothing_is_preempted_while_another_cluster_has_room() {
    for (east, west, cluster) in
        [(&[(4, 0)][..], &[][..], 1), (&[], &[(4, 0)], 0), (&[(4, 0)], &[(1, 0)], 1)]
    {
        let (outcome, targets) = preempts(east, west, 3);
        let CycleOutcome::Reserved { cluster: Some(taken) } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((taken.index(), targets), (cluster, Vec::new()));
    }
}

/// An engine with 10 cpus of a flavor on premises and 10 in a cloud, and a fleet with nodes of 4 and 8 cpus for these: east
/// and west.
fn two_flavors() -> (Engine, ResourceId, Fleet) {
    let (engine, cpu) = engine_with_flavors(10, &["on-prem", "cloud"]);
    let mut fleet = Fleet::new();
    let clusters: Vec<_> = ["east", "west"].map(|name| fleet.intern_cluster(name)).into();
    for &cluster in &clusters {
        fleet.set_connected(cluster, true);
    }
    fleet.set_report(clusters[0], Some(report_of("on-prem", cpu, 4)));
    fleet.set_report(clusters[1], Some(report_of("cloud", cpu, 8)));
    fleet.set_config("all", Some(PlacementConfig { clusters, ..PlacementConfig::default() }));
    (engine, cpu, fleet)
}

fn report_of(pool: &str, cpu: ResourceId, free: i64) -> CapacityReport {
    let mut all = report(cpu, free);
    all.classes[0].labels = vec![("pool".into(), pool.into())];
    CapacityReport { label_keys: vec!["pool".into()], ..all }
}

/// One pod of so many cpus, on nodes of the flavor that the entry has.
fn on_nodes_of_flavor(entry: &engine::CycleEntry, cpu: ResourceId, amount: i64) -> DispatchedEntry {
    let plain = one_pod((cpu, amount), 0);
    let chosen = &entry.assignment.pod_sets[0].flavor_assignments[0];
    let pool = if chosen.flavor.index() == 0 { "on-prem" } else { "cloud" };
    let labels = vec![("pool".into(), pool.into())];
    let assigned = vec![AssignedPodSet { count: 1, labels, ..AssignedPodSet::default() }];
    let work = Arc::new(AssignedWorkload::new(Arc::clone(&plain.work.request), assigned));
    DispatchedEntry { work, ..plain }
}

#[test]
fn a_workload_without_room_in_a_flavor_is_placed_in_the_next_one() {
    let (mut engine, cpu, mut fleet) = two_flavors();
    let mut outcomes = Vec::new();
    for (name, amount) in [("ns/small", 3), ("ns/large", 6), ("ns/second", 2)] {
        submit(&mut engine, name, cpu, amount);
        let lookup = |entry: &engine::CycleEntry| Some(on_nodes_of_flavor(entry, cpu, amount));
        let entries = engine.cycle(Time(1), &mut FleetPlacer::new(&mut fleet, &lookup, Time(1)));
        outcomes.extend(entries.iter().map(|entry| entry.outcome));
    }
    let on = |name: &str| CycleOutcome::Reserved { cluster: fleet.find(name) };
    assert_eq!(outcomes, [on("east"), on("west"), on("west")]);
}

#[test]
fn a_workload_without_room_in_any_flavor_waits_for_that_of_each() {
    for pool in ["on-prem", "cloud"] {
        let (mut engine, cpu, mut fleet) = two_flavors();
        submit(&mut engine, "ns/large", cpu, 9);
        let lookup = |entry: &engine::CycleEntry| Some(on_nodes_of_flavor(entry, cpu, 9));
        let mut placer = FleetPlacer::new(&mut fleet, &lookup, Time(1));
        let entries = engine.cycle(Time(1), &mut placer).to_vec();
        let [refused] = &placer.refusals.into_values().collect::<Vec<_>>()[..] else {
            panic!("one Workload is refused");
        };
        let name = if pool == "on-prem" { "east" } else { "west" };
        let message = refusals_message(refused, &fleet, engine.names());
        assert_eq!(
            message,
            "no cluster has room in on-prem: east: never fits: pod set : one pod needs 9m cpu, the most free on a node \
             is 4m; west: never fits: pod set : no node has suitable labels and taints. \
             no cluster has room in cloud: east: never fits: pod set : no node has suitable labels and taints; \
             west: never fits: pod set : one pod needs 9m cpu, the most free on a node is 8m"
        );
        assert!(matches!(entries[0].outcome, CycleOutcome::NoClusterCapacity(_)), "{pool}");
        let cluster = fleet.find(name).expect("a cluster");
        fleet.set_report(cluster, Some(report_of(pool, cpu, 9)));
        let woken = fleet.woken_keys(Time(2));
        assert_eq!(woken.len(), 1, "{pool}");
        woken.into_iter().for_each(|key| engine.apply(Event::ClusterCapacity(key)));
        let entries = engine.cycle(Time(2), &mut FleetPlacer::new(&mut fleet, &lookup, Time(2)));
        let outcomes: Vec<_> = entries.iter().map(|entry| entry.outcome).collect();
        assert_eq!(outcomes, [CycleOutcome::Reserved { cluster: Some(cluster) }], "{pool}");
        assert_eq!(fleet.woken_keys(Time(3)), [], "it waits for nothing any more");
    }
}
