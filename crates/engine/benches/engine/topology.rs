//! S6: one topology assignment among 2,500 nodes, the request of upstream's own benchmark: 2,304 pods with a
//! preferred rack, with and without a leader, balanced or not, and with preferred node affinity. Source:
//! docs/reference/performance.md §6.2.
//!
//! Measures the search alone, then a cycle that reserves its result. Time is that of this thread, so that other
//! load on the machine counts little.

use std::time::Duration;

use allocation_counter::measure;
use engine::ids::{FlavorId, WorkloadId};
use engine::node_selection::{LabelOperator, LabelRequirement, NodeSelection, NodeSelectorTerm};
use engine::spec::{
    ClusterQueueInfo, FairSharingWeight, FlavorQuotaSpec, FlavorSpec, FungibilitySpec,
    LocalQueueInfo, NamespaceSelector, PodSetSpec, PreemptionSpec, QueueEligibility,
    QueueingStrategy, QuotaSpec, ResourceGroupSpec, WorkloadInfo,
};
use engine::topology::{
    HOSTNAME_LABEL, PreferredTerm, TopologyLevels, TopologyMode, TopologyNodeSpec, TopologyRequest,
};
use engine::{AcceptAll, Amount, CycleOutcome, Engine, EngineSettings, Event, Time};
use rustix::time::{ClockId, clock_gettime};

const BLOCK: &str = "cloud.provider.com/topology-block";
const RACK: &str = "cloud.provider.com/topology-rack";
const PER_RACK: usize = 16;
const PER_BLOCK: usize = 256;
const ROUNDS: u32 = 200;

/// Nodes of 96 cores, 16 per rack, 16 racks per block; one queue with quota for all of them.
fn machines(count: usize, balanced: bool) -> (Engine, FlavorId) {
    let settings = EngineSettings {
        tas_balanced_placement: balanced,
        tas_respect_node_affinity_preferred: true,
        ..EngineSettings::default()
    };
    let mut engine = Engine::new(settings);
    let names = engine.names_mut();
    let topology = names.topologies.intern("racks");
    let flavor = names.flavors.intern("machines");
    let levels = vec![BLOCK.into(), RACK.into(), HOSTNAME_LABEL.into()];
    engine.apply(Event::Topology(topology, Some(TopologyLevels { levels })));
    let spec = FlavorSpec { topology: Some(topology), ..FlavorSpec::default() };
    engine.apply(Event::Flavor(flavor, Some(spec)));
    for index in 0..count {
        machine(&mut engine, index);
    }
    queue(&mut engine, flavor);
    (engine, flavor)
}

fn machine(engine: &mut Engine, index: usize) {
    let name = format!("node-{index}");
    let names = engine.names_mut();
    let offers = [("cpu", 96_000), ("memory", 384 << 30), ("pods", 110)];
    let spec = TopologyNodeSpec {
        name: name.as_str().into(),
        labels: vec![
            (BLOCK.into(), format!("block-{}", index / PER_BLOCK).into()),
            (RACK.into(), format!("rack-{}", index / PER_RACK).into()),
            (HOSTNAME_LABEL.into(), name.as_str().into()),
        ],
        taints: Vec::new(),
        usable: true,
        allocatable: offers
            .map(|(one, amount)| (names.resources.intern(one), Amount(amount)))
            .into(),
        foreign: Vec::new(),
        leaving: Vec::new(),
    };
    let id = names.nodes.intern(&name);
    engine.apply(Event::Node(id, Some(spec)));
}

fn queue(engine: &mut Engine, flavor: FlavorId) {
    let names = engine.names_mut();
    let (namespace, cpu) = (names.namespaces.intern("team"), names.resources.intern("cpu"));
    let (queue, line) = (names.queues.intern("all"), names.local_queues.intern("team/all"));
    let quota = QuotaSpec {
        resource: cpu,
        nominal: Amount::UNLIMITED,
        borrowing_limit: None,
        lending_limit: None,
    };
    let flavors = vec![FlavorQuotaSpec { flavor, resources: vec![quota] }];
    let spec = ClusterQueueInfo {
        cohort: None,
        groups: vec![ResourceGroupSpec { resources: vec![cpu], flavors }],
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
    engine.apply(Event::ClusterQueue(queue, Some(Box::new(spec))));
    engine.apply(Event::LocalQueue(
        line,
        Some(LocalQueueInfo { queue, stopped: false, weight: FairSharingWeight::default() }),
    ));
}

fn submit(
    engine: &mut Engine,
    leader: bool,
    preferring: bool,
    eligibility: QueueEligibility,
) -> WorkloadId {
    let names = engine.names_mut();
    let cpu = names.resources.intern("cpu");
    let pod_set = |name: &str, count: i64, millis: i64| PodSetSpec {
        name: name.into(),
        count,
        reclaimed: 0,
        min_count: None,
        requests: vec![(cpu, Amount(millis))],
        on_node: None,
        selection: NodeSelection::default(),
        preferred: preferring.then(one_in_five).into_iter().collect(),
        topology: Some(TopologyRequest {
            mode: Some(TopologyMode::Preferred(RACK.into())),
            slices: Vec::new(),
            group: leader.then(|| "all".into()),
        }),
        template: 0,
    };
    let workers = pod_set("workers", 9 * 256, 8_000);
    let leader = leader.then(|| pod_set("leader", 1, 72_000));
    let spec = WorkloadInfo {
        namespace: names.namespaces.intern("team"),
        local_queue: Some(names.local_queues.intern("team/all")),
        uid: "0".into(),
        priority: 0,
        queued_at: Time(0),
        pod_sets: std::iter::once(workers).chain(leader).collect(),
        eligibility,
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
    let id = names.workloads.intern("team/train");
    engine.apply(Event::Workload(id, Box::new(spec)));
    id
}

/// Prefers the nodes of one block in five.
fn one_in_five() -> PreferredTerm {
    let blocks = [3, 7].map(|index| format!("block-{index}").into());
    let operator = LabelOperator::In(blocks.into());
    let labels = vec![LabelRequirement { key: BLOCK.into(), operator }];
    PreferredTerm { weight: 10, preference: NodeSelectorTerm { labels, fields: Vec::new() } }
}

/// Mean time, and allocations, of one run.
fn timed(mut setup: impl FnMut(), mut run: impl FnMut()) -> (f64, f64) {
    let (mut time, mut allocations) = (Duration::ZERO, 0);
    for round in 0..=ROUNDS {
        setup();
        let counted = measure(|| {
            let start = now();
            run();
            time += now() - start;
        });
        allocations += counted.count_total;
        if round == 0 {
            // The first round grows the buffers that later rounds reuse.
            (time, allocations) = (Duration::ZERO, 0);
        }
    }
    let rounds = f64::from(ROUNDS);
    let allocations = f64::from(u32::try_from(allocations).unwrap_or(u32::MAX));
    (time.as_secs_f64() * 1e6 / rounds, allocations / rounds)
}

/// Time that this thread has had a core.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn search(count: usize, leader: bool, balanced: bool, preferring: bool) -> (f64, f64) {
    let (mut engine, flavor) = machines(count, balanced);
    engine.cycle(Time(0), &mut AcceptAll);
    let workload = submit(&mut engine, leader, preferring, QueueEligibility::Excluded);
    timed(|| (), || assert!(engine.finds_topology_assignment(workload, flavor)))
}

fn reserve(count: usize, leader: bool, balanced: bool, preferring: bool) -> (f64, f64) {
    let (engine, _) = machines(count, balanced);
    let engine = std::cell::RefCell::new(engine);
    let setup = || {
        let mut engine = engine.borrow_mut();
        if let Some(id) = engine.names().workloads.get("team/train") {
            engine.apply(Event::WorkloadGone(id));
        }
        submit(&mut engine, leader, preferring, QueueEligibility::Eligible);
    };
    timed(setup, || {
        let mut engine = engine.borrow_mut();
        let entries = engine.cycle(Time(0), &mut AcceptAll);
        assert!(matches!(entries[0].outcome, CycleOutcome::Reserved { .. }));
    })
}

/// Prints all variants. Microseconds of the search of the first, and how often it allocates.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
pub(crate) fn report() -> (f64, f64) {
    let variants = [
        ("s6", 2_500, false, true, false),
        ("s6 with a leader", 2_500, true, true, false),
        ("s6 not balanced", 2_500, false, false, false),
        ("s6 preferring", 2_500, false, true, true),
        ("s6 of 50,000", 50_000, false, true, false),
    ];
    let measured = variants.map(|(name, count, leader, balanced, preferring)| {
        let (time, allocations) = search(count, leader, balanced, preferring);
        let (cycle, _) = reserve(count, leader, balanced, preferring);
        println!(
            "{name:16} {time:>8.1} us, {allocations} allocations; with its cycle {cycle:.1} us"
        );
        (time, allocations)
    });
    measured[0]
}
