//! Workloads that stay with the cluster that holds their checkpoint (docs/reference/dispatch.md §3).

use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, CheckpointCluster, ClusterPreference, ClusterRefusal,
    Dispatcher, ExclusionCause, Fleet, IncrementalSteps, NodeClassCapacity, Nominated,
    PlacementConfig, PlacementPolicy, PlacementRefusal, PlacementRequest, PlacementStrategy,
    QueueOrder, QueuedWorkload, RebalancePolicy, RequestedPodSet, StayReason, WorkloadRequest,
    placement_message,
};
use engine::ids::{ClusterId, ResourceId, WorkloadId};
use engine::{Amount, Names, Time};

const CPU: ResourceId = ResourceId(0);
const NOW: Time = Time(100);
const ONE: WorkloadId = WorkloadId(1);

fn report(cpu: i64) -> CapacityReport {
    let free = vec![(CPU, Amount(cpu))];
    let class = NodeClassCapacity { count: 1, free, ..NodeClassCapacity::default() };
    CapacityReport {
        as_of: 1,
        kinds: vec![dispatch::JobGvk::default()],
        classes: vec![class],
        ..CapacityReport::default()
    }
}

/// One pod of four cpus. Its job has a checkpoint on this cluster.
fn work(checkpoint: Option<(&str, bool)>) -> Arc<AssignedWorkload> {
    let requests = vec![(CPU, Amount(4))];
    let pods =
        RequestedPodSet { name: "main".into(), count: 1, requests, ..RequestedPodSet::default() };
    let checkpoint =
        checkpoint.map(|(name, required)| CheckpointCluster { name: name.into(), required });
    let request =
        WorkloadRequest { pod_sets: vec![pods], checkpoint, ..WorkloadRequest::default() };
    Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
}

fn prefers(name: &str) -> Arc<AssignedWorkload> {
    work(Some((name, false)))
}

fn requires(name: &str) -> Arc<AssignedWorkload> {
    work(Some((name, true)))
}

/// The clusters `east` and `west`. `west` ranks lower: it costs more.
struct Clusters {
    fleet: Fleet,
    east: ClusterId,
    west: ClusterId,
    policy: PlacementPolicy,
}

impl Clusters {
    fn new() -> Self {
        let mut fleet = Fleet::new();
        let [east, west] = ["east", "west"].map(|name| fleet.intern_cluster(name));
        for id in [east, west] {
            fleet.set_connected(id, true);
            fleet.set_report_listed(id, true);
            fleet.set_report(id, Some(report(8)));
        }
        let dear = ClusterPreference { cost: 9_000, ..ClusterPreference::of(west) };
        let policy = PlacementPolicy { clusters: vec![dear], ..PlacementPolicy::default() };
        let mut clusters = Self { fleet, east, west, policy };
        clusters.configure(vec![east, west]);
        clusters
    }

    fn configure(&mut self, clusters: Vec<ClusterId>) {
        let policy = self.policy.clone();
        self.fleet.set_config("all", Some(PlacementConfig { clusters, policy }));
    }

    fn choose(&mut self, work: &Arc<AssignedWorkload>) -> Result<ClusterId, PlacementRefusal> {
        self.fleet.choose_cluster(&asked(work), NOW)
    }

    fn refusals(&mut self, work: &Arc<AssignedWorkload>) -> Vec<(ClusterId, ClusterRefusal)> {
        self.choose(work).expect_err("refused").reasons
    }

    /// The clusters that race for a Workload which is nominated for none.
    fn race(&self, work: &AssignedWorkload, dispatcher: Dispatcher) -> Vec<ClusterId> {
        let nominated = Nominated { clusters: &[], at: NOW };
        self.fleet.race(("all", &work.request), dispatcher, nominated, NOW).clusters
    }
}

fn asked(work: &Arc<AssignedWorkload>) -> PlacementRequest<'_> {
    let order = QueueOrder { priority: 0, queued_at: Time(0) };
    PlacementRequest { workload: ONE, config: "all", work, order, only: None, alternative: false }
}

#[test]
fn a_preference_ranks_the_cluster_with_the_checkpoint_before_a_cheaper_one_and_waits_for_none() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    assert_eq!(clusters.choose(&work(None)), Ok(east), "the cheaper one");
    assert_eq!(clusters.choose(&prefers("west")), Ok(west));
    assert_eq!(clusters.choose(&prefers("gone")), Ok(east));
    for strategy in
        [PlacementStrategy::Spread, PlacementStrategy::BinPack, PlacementStrategy::Ordered]
    {
        clusters.policy.strategy = strategy;
        clusters.configure(vec![east, west]);
        assert_eq!(clusters.choose(&prefers("west")), Ok(west), "{strategy:?}");
    }
    clusters.fleet.set_report(west, Some(report(3)));
    assert_eq!(clusters.choose(&prefers("west")), Ok(east), "it has no room");
}

#[test]
fn a_requirement_waits_for_the_cluster_with_the_checkpoint_and_wakes_when_it_has_room() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    assert_eq!(clusters.choose(&requires("west")), Ok(west));
    clusters.fleet.set_connected(west, false);
    let refused = clusters.choose(&requires("west")).expect_err("west is lost");
    let elsewhere = ClusterRefusal::CheckpointElsewhere("west".into());
    assert_eq!(refused.reasons, [(west, ClusterRefusal::NotConnected), (east, elsewhere)]);
    assert_eq!(
        placement_message(&refused, &clusters.fleet, &Names::default()),
        "no cluster has room: west: not connected; east: the checkpoint that its job requires is on west"
    );
    clusters.fleet.woken_keys(NOW);
    clusters.fleet.set_report(east, Some(report(80)));
    assert_eq!(clusters.fleet.woken_keys(NOW), [], "room elsewhere");
    clusters.fleet.set_connected(west, true);
    clusters.fleet.set_report(west, Some(report(4)));
    assert_eq!(clusters.fleet.woken_keys(NOW), [refused.key]);
    assert_eq!(clusters.choose(&requires("west")), Ok(west));
}

#[test]
fn a_requirement_names_a_cluster_that_is_not_registered() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    clusters.configure(vec![east]);
    let elsewhere = (east, ClusterRefusal::CheckpointElsewhere("west".into()));
    let absent = (west, ClusterRefusal::NotConfigured);
    assert_eq!(clusters.refusals(&requires("west")), [absent.clone(), elsewhere.clone()]);
    let refused = clusters.fleet.refuse_after(&asked(&requires("west")), &[], NOW);
    assert_eq!(refused.reasons, [absent, elsewhere], "also for a preemptor");
    clusters.configure(vec![east, west]);
    assert_eq!(clusters.fleet.woken_keys(NOW), [refused.key], "it is back");
}

#[test]
fn a_cluster_that_evicted_a_workload_is_left_out_although_the_checkpoint_is_there() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    // When the worker evicts, the hub has not recorded the cluster yet.
    let cause = ExclusionCause::Requests(Arc::clone(&work(None).request));
    clusters.fleet.exclude_cluster(west, cause, NOW, "no".into());
    assert_eq!(clusters.choose(&prefers("west")), Ok(east));
    let [(_, ClusterRefusal::Excluded { until, .. }), _] = clusters.refusals(&requires("west"))[..]
    else {
        panic!("it waits for the end");
    };
    assert_eq!(clusters.fleet.next_wake_at(), Some(until));
    // The next eviction continues the exclusion of that shape: twice as long.
    let cause = ExclusionCause::Requests(Arc::clone(&requires("west").request));
    clusters.fleet.exclude_cluster(west, cause, until, "no".into());
    let again = clusters.fleet.choose_cluster(&asked(&work(Some(("west", true)))), until);
    let refused = again.expect_err("left out again");
    let (_, ClusterRefusal::Excluded { until: later, .. }) = &refused.reasons[0] else {
        panic!("{refused:?}");
    };
    assert_eq!(later.0 - until.0, 2 * (until.0 - NOW.0));
}

#[test]
fn a_requirement_holds_in_every_race_and_a_preference_begins_the_first_round() {
    let clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    let rounds = Dispatcher::Incremental(IncrementalSteps { size: 1, by_name: false });
    let by_name = Dispatcher::Incremental(IncrementalSteps { size: 1, by_name: true });
    for (dispatcher, free, preferring) in [
        (Dispatcher::AllAtOnce, vec![east, west], vec![east, west]),
        (rounds, vec![east], vec![west]),
        (by_name, vec![east], vec![west]),
    ] {
        assert_eq!(clusters.race(&work(None), dispatcher), free, "{dispatcher:?}");
        assert_eq!(clusters.race(&prefers("west"), dispatcher), preferring, "{dispatcher:?}");
        assert_eq!(clusters.race(&requires("west"), dispatcher), [west], "{dispatcher:?}");
    }
    for (request, may) in [(None, [true; 2]), (Some(requires("west")), [false, true])] {
        let request = request.as_ref().map(|work| &*work.request);
        let found = [east, west].map(|id| clusters.fleet.may_be_nominated("all", request, id));
        assert_eq!(found, may, "by another program");
    }
}

#[test]
fn a_workload_races_without_reports_only_while_the_required_cluster_may_be_nominated() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    let races = |clusters: &Clusters, work: &AssignedWorkload| {
        clusters.fleet.races_without_current_reports("all", work, NOW)
    };
    assert!(!races(&clusters, &requires("west")), "the clusters report");
    for id in [east, west] {
        clusters.fleet.set_report(id, None);
    }
    for work in [work(None), prefers("west"), requires("west")] {
        assert!(races(&clusters, &work));
    }
    assert_eq!(clusters.race(&requires("west"), Dispatcher::Capacity), [west]);
    let refused = clusters.choose(&requires("west")).expect_err("there is no report");
    clusters.fleet.woken_keys(NOW);
    clusters.fleet.set_connected(west, false);
    assert!(races(&clusters, &prefers("west")) && !races(&clusters, &requires("west")));
    assert_eq!(clusters.fleet.woken_keys(NOW), []);
    clusters.fleet.set_connected(west, true);
    clusters.fleet.set_report_listed(west, true);
    assert_eq!(clusters.fleet.woken_keys(NOW), [refused.key]);
}

#[test]
fn queued_work_does_not_move_away_from_its_checkpoint() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    let rebalance = RebalancePolicy { min_gain: 0, cooldown: 0, max_moves: 1 };
    clusters.policy.rebalance = Some(rebalance);
    clusters.fleet.set_report(west, None);
    let south = clusters.fleet.intern_cluster("south");
    clusters.fleet.set_connected(south, true);
    clusters.fleet.set_report_listed(south, true);
    clusters.configure(vec![east, west, south]);
    let mut found = |work: &Arc<AssignedWorkload>, queue: ClusterId| {
        let nominated = Nominated { clusters: &[queue], at: Time(0) };
        let queued = QueuedWorkload { request: asked(work), nominated };
        clusters.fleet.find_move(&queued, &|_| false, NOW)
    };
    assert_eq!(found(&work(None), west), Ok(east));
    for work in [prefers("west"), requires("west")] {
        assert_eq!(found(&work, west), Err(StayReason::NotMoved));
    }
    assert_eq!(found(&prefers("west"), south), Ok(east), "it waits elsewhere anyway");
    assert_eq!(found(&requires("east"), south), Ok(east), "to its checkpoint");
    let request = requires("west");
    assert!(!clusters.fleet.may_join("all", &request.request, east, NOW));
}

#[test]
fn preemption_for_a_workload_happens_on_the_cluster_with_its_checkpoint() {
    let mut clusters = Clusters::new();
    let (east, west) = (clusters.east, clusters.west);
    let (on_east, on_west) = (WorkloadId(7), WorkloadId(8));
    for (id, cluster) in [(on_east, east), (on_west, west)] {
        clusters.fleet.set_report(cluster, Some(report(4)));
        clusters.fleet.place(id, cluster, work(None), NOW);
    }
    let mut preemptible =
        |work: &Arc<AssignedWorkload>| clusters.fleet.preemptible(&asked(work), NOW);
    assert_eq!(preemptible(&work(None)), [[on_east], [on_west]]);
    assert_eq!(preemptible(&prefers("west")), [[on_west], [on_east]]);
    assert_eq!(preemptible(&requires("west")), [[on_west]]);
    let fits = |fleet: &mut Fleet, gone| fleet.fits_after(&asked(&requires("west")), &[gone], NOW);
    assert!(fits(&mut clusters.fleet, on_west) && !fits(&mut clusters.fleet, on_east));
}
