//! Scenarios as tables of requests, and the property that wake-ups are precise and complete.

use engine::ids::ResourceId;
use engine::node_selection::{LabelOperator, LabelRequirement};
use engine::{Amount, Names, RequeueKey};
use proptest::prelude::*;

use super::*;
use crate::{
    CapacityShortage, ClusterPreference, ClusterRefusal, Dispatcher, Fencing,
    GangReservationPolicy, IncrementalSteps, JobGvk, NodeClassCapacity, Nominated, PlacementPolicy,
    PlacementRefusal, PlacementRequest, PlacementStrategy as Choice, QueueOrder, ROUND,
    RequestedPodSet, ShortageCause, WorkloadRequest, placement_message,
};

const CPU: ResourceId = ResourceId(0);
const NOW: Time = Time(100);

fn kind() -> JobGvk {
    JobGvk { group: "batch".into(), version: "v1".into(), kind: "Job".into() }
}

fn report(as_of: u64, nodes: i64, cpu: i64) -> CapacityReport {
    let free = vec![(CPU, Amount(cpu))];
    let class = NodeClassCapacity { count: nodes, free, ..NodeClassCapacity::default() };
    CapacityReport { as_of, kinds: vec![kind()], classes: vec![class], ..CapacityReport::default() }
}

fn request(count: i64, cpu: i64) -> WorkloadRequest {
    let requests = vec![(CPU, Amount(cpu))];
    let pods =
        RequestedPodSet { name: "main".into(), count, requests, ..RequestedPodSet::default() };
    WorkloadRequest {
        kind: kind(),
        namespace: "ns".into(),
        pod_sets: vec![pods],
        ..WorkloadRequest::default()
    }
}

fn work(count: i64, cpu: i64) -> Arc<AssignedWorkload> {
    Arc::new(AssignedWorkload::new(Arc::new(request(count, cpu)), Vec::new()))
}

/// A fleet with one configuration `all` of clusters with these nodes and free cpus.
fn fleet(clusters: &[(&str, i64, i64)], policy: PlacementPolicy) -> Fleet {
    let mut fleet = Fleet::new();
    let mut ids = Vec::new();
    for &(name, nodes, cpu) in clusters {
        let id = fleet.intern_cluster(name);
        fleet.set_connected(id, true);
        fleet.set_report(id, Some(report(10, nodes, cpu)));
        ids.push(id);
    }
    fleet.set_config("all", Some(PlacementConfig { clusters: ids, policy }));
    fleet
}

/// Names of the clusters that race by steps of this size, and when there may be more.
fn race(
    fleet: &Fleet,
    steps: IncrementalSteps,
    nominated: &[&str],
    now: i64,
) -> (Vec<String>, Option<i64>) {
    let id_of = |name: &&str| {
        let all = fleet.config("all").clusters.clone();
        all.into_iter().find(|id| fleet.name(*id) == *name)
    };
    let clusters: Vec<ClusterId> = nominated.iter().filter_map(id_of).collect();
    let nominated = Nominated { clusters: &clusters, at: Time(0) };
    let dispatcher = Dispatcher::Incremental(steps);
    let race = fleet.race(("all", &request(1, 1)), dispatcher, nominated, Time(now));
    let names = race.clusters.iter().map(|id| fleet.name(*id).to_owned()).collect();
    (names, race.until.map(|until| until.0))
}

#[test]
fn what_is_set_again_as_it_is_changes_nothing() {
    let mut fleet = fleet(&[("a", 2, 10)], PlacementPolicy::default());
    let id = fleet.intern_cluster("a");
    let labels = vec![("region".into(), "eu".into())];
    assert!(fleet.set_labels(id, labels.clone()));
    let config = PlacementConfig::clone(&fleet.config("all"));
    let before = fleet.n_changes();
    assert!(!fleet.set_labels(id, labels));
    fleet.set_config("all", Some(config.clone()));
    fleet.set_config("absent", None);
    assert_eq!(fleet.n_changes(), before);
    assert!(fleet.set_labels(id, Vec::new()));
    fleet.set_config("all", Some(PlacementConfig { clusters: Vec::new(), ..config }));
    assert_eq!(fleet.n_changes(), before + 2);
}

#[test]
fn workloads_of_a_set_go_to_one_cluster() {
    let mut fleet = fleet(&[("a", 2, 10), ("b", 2, 10)], PlacementPolicy::default());
    let of_set = |set: &str| {
        let request = WorkloadRequest { together: Some(set.into()), ..request(1, 5) };
        Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
    };
    let (set, other) = (of_set("ns/d"), of_set("ns/e"));
    let first = choose(&mut fleet, 0, &set, NOW).expect("room");
    fleet.place(WorkloadId(0), first, Arc::clone(&set), NOW);
    // The emptier cluster is for others.
    assert_ne!(choose(&mut fleet, 9, &other, NOW).expect("room"), first);
    for workload in 1..4 {
        assert_eq!(choose(&mut fleet, workload, &set, NOW).expect("room"), first);
        fleet.place(WorkloadId(workload), first, Arc::clone(&set), NOW);
    }
    let refusal = choose(&mut fleet, 4, &set, NOW).expect_err("the cluster is full");
    let elsewhere = refusal.reasons.iter().filter(|(id, _)| *id != first);
    let reasons: Vec<_> = elsewhere.map(|(_, why)| why).collect();
    assert_eq!(reasons, [&ClusterRefusal::SetElsewhere]);
    fleet.woken_keys(NOW);
    // A set that is placed nowhere may go anywhere, and what waits for it is woken.
    fleet.set_connected(first, false);
    fleet.woken_keys(NOW);
    (0..4).for_each(|workload| fleet.unplace(WorkloadId(workload)));
    assert_eq!(fleet.woken_keys(NOW), [refusal.key]);
    assert_ne!(choose(&mut fleet, 4, &set, NOW).expect("room"), first);
}

#[test]
fn a_workload_that_shrinks_leaves_room_at_once_and_no_more_at_its_end() {
    let mut fleet = fleet(&[("a", 1, 10)], PlacementPolicy::default());
    let only = fleet.intern_cluster("a");
    fleet.place(WorkloadId(1), only, work(4, 2), NOW);
    let refusal = choose(&mut fleet, 2, &work(2, 2), NOW).expect_err("two are free");
    fleet.woken_keys(NOW);
    fleet.shrink(WorkloadId(1), work(3, 2));
    assert_eq!(fleet.woken_keys(NOW), [refusal.key]);
    assert_eq!(choose(&mut fleet, 2, &work(2, 2), NOW).ok(), Some(only));
    fleet.shrink(WorkloadId(1), work(4, 2));
    assert_eq!(fleet.placed_work(WorkloadId(1)), Some(&work(3, 2)), "nothing grows");
    // The report includes it and two of its pods have room beside it. Its own room is that of three pods.
    fleet.clone_created(WorkloadId(1), 11);
    fleet.set_report(only, Some(report(30, 1, 4)));
    fleet.workload_ended(WorkloadId(1), 31);
    assert_eq!(choose(&mut fleet, 3, &work(3, 2), NOW).ok(), Some(only));
    assert!(choose(&mut fleet, 4, &work(4, 2), NOW).is_err());
}

#[test]
fn rounds_add_clusters_in_the_order_of_the_configuration() {
    let mut fleet =
        fleet(&[("d", 1, 1), ("b", 1, 1), ("c", 1, 1), ("a", 1, 1)], PlacementPolicy::default());
    let steps = IncrementalSteps { size: 2, by_name: false };
    let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    // The round of nominated clusters ends after five minutes.
    let all = names(&["d", "b", "c", "a"]);
    assert_eq!(race(&fleet, steps, &[], 0), (names(&["d", "b"]), None));
    assert_eq!(race(&fleet, steps, &["d", "b"], ROUND - 1), (names(&["d", "b"]), Some(ROUND)));
    assert_eq!(race(&fleet, steps, &["d", "b"], ROUND), (all.clone(), None));
    assert_eq!(race(&fleet, steps, &["a", "b", "c", "d"], 1), (all, None));
    let by_name = IncrementalSteps { by_name: true, ..steps };
    assert_eq!(race(&fleet, by_name, &[], 0), (names(&["a", "b"]), None));
    // A cluster that is not reached takes no place in a round.
    let lost = fleet.intern_cluster("d");
    fleet.set_connected(lost, false);
    assert_eq!(race(&fleet, steps, &[], 0), (names(&["b", "c"]), None));
}

fn choose(
    fleet: &mut Fleet,
    workload: u32,
    work: &Arc<AssignedWorkload>,
    now: Time,
) -> Result<ClusterId, PlacementRefusal> {
    fleet.choose_cluster(
        &PlacementRequest {
            workload: WorkloadId(workload),
            config: "all",
            work,
            order: QueueOrder::default(),
            only: None,
            alternative: false,
        },
        now,
    )
}

fn chosen(fleet: &mut Fleet, workload: u32, work: &Arc<AssignedWorkload>) -> String {
    match choose(fleet, workload, work, NOW) {
        Ok(id) => fleet.name(id).to_owned(),
        Err(_) => "none".to_owned(),
    }
}

fn put(fleet: &mut Fleet, workload: u32, work: &Arc<AssignedWorkload>) -> String {
    let name = chosen(fleet, workload, work);
    if let Some(id) = fleet.find(&name) {
        fleet.place(WorkloadId(workload), id, Arc::clone(work), NOW);
    }
    name
}

fn key(answer: Result<ClusterId, PlacementRefusal>) -> RequeueKey {
    answer.expect_err("no room").key
}

#[test]
fn a_placement_counts_before_the_report_includes_it() {
    let mut fleet = fleet(&[("east", 1, 4)], PlacementPolicy::default());
    assert_eq!(put(&mut fleet, 1, &work(1, 3)), "east");
    assert_eq!(chosen(&mut fleet, 2, &work(1, 3)), "none");
    assert_eq!(chosen(&mut fleet, 2, &work(1, 1)), "east");
}

#[test]
fn a_report_that_includes_the_clone_replaces_the_placement() {
    let mut fleet = fleet(&[("east", 1, 8)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    put(&mut fleet, 1, &work(1, 4));
    // The clone's version is unknown: the report may not include it.
    fleet.set_report(east, Some(report(20, 1, 4)));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "none");
    fleet.clone_created(WorkloadId(1), 21);
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "none");
    fleet.set_report(east, Some(report(21, 1, 4)));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "east");
}

#[test]
fn a_clone_counts_once_whatever_changes_of_it() {
    let mut fleet = fleet(&[("east", 1, 8)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    put(&mut fleet, 1, &work(1, 4));
    fleet.clone_created(WorkloadId(1), 20);
    fleet.set_report(east, Some(report(20, 1, 4)));
    // Its agent admits it: the report has counted its pods already.
    fleet.clone_created(WorkloadId(1), 25);
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "east");
}

#[test]
fn as_of_never_falls_within_a_connection() {
    let mut fleet = fleet(&[("east", 1, 8)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    put(&mut fleet, 1, &work(1, 4));
    fleet.clone_created(WorkloadId(1), 20);
    fleet.set_report(east, Some(report(20, 1, 4)));
    fleet.set_report(east, Some(report(15, 1, 4)));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "east", "it counts in the report only");
    fleet.set_report(east, None);
    fleet.set_report(east, Some(report(15, 1, 4)));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "none", "another connection");
}

#[test]
fn a_report_over_another_connection_includes_a_clone_once_its_version_is_known_again() {
    let mut fleet = fleet(&[("east", 1, 8)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    put(&mut fleet, 1, &work(1, 4));
    fleet.clone_created(WorkloadId(1), 900);
    fleet.set_report(east, Some(report(950, 1, 4)));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "east");
    fleet.forget_report(east);
    fleet.set_report(east, Some(report(990, 1, 4)));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "none", "it may lack the clone");
    fleet.forget_report(east);
    fleet.set_report(east, Some(report(510, 1, 4)));
    fleet.clone_created(WorkloadId(1), 500);
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "east", "versions went back");
}

#[test]
fn clusters_race_only_if_nothing_is_known_of_any_that_is_connected() {
    let mut fleet = fleet(&[("east", 1, 8), ("west", 1, 8)], PlacementPolicy::default());
    let (east, west) = (fleet.intern_cluster("east"), fleet.intern_cluster("west"));
    assert!(!fleet.has_no_current_report("all"), "both report");
    fleet.set_stale(east, true);
    fleet.set_report_listed(east, true);
    assert!(!fleet.has_no_current_report("all"), "west reports");
    fleet.set_report(west, None);
    assert!(!fleet.has_no_current_report("all"), "it is not known whether west reports");
    fleet.set_report_listed(west, true);
    assert!(fleet.has_no_current_report("all"));
    fleet.set_connected(east, false);
    fleet.set_connected(west, false);
    assert!(!fleet.has_no_current_report("all"), "none is connected");
}

#[test]
fn the_cheapest_cluster_with_room_comes_first() {
    use crate::PlacementStrategy as Strategy;

    for (strategy, chosen_one) in
        [(Strategy::Spread, "west"), (Strategy::BinPack, "west"), (Strategy::Ordered, "east")]
    {
        let mut fleet = fleet(&[("east", 1, 8), ("west", 1, 8)], PlacementPolicy::default());
        let (east, west) = (fleet.intern_cluster("east"), fleet.intern_cluster("west"));
        let dear = ClusterPreference { cost: 2_500, weight: 9, ..ClusterPreference::of(east) };
        let policy =
            PlacementPolicy { strategy, clusters: vec![dear], ..PlacementPolicy::default() };
        let clusters = vec![east, west];
        fleet.set_config("all", Some(PlacementConfig { clusters, policy }));
        assert_eq!(put(&mut fleet, 1, &work(1, 6)), chosen_one, "{strategy:?}");
        // The cheap one is full.
        assert_eq!(
            put(&mut fleet, 2, &work(1, 6)),
            if chosen_one == "west" { "east" } else { "west" }
        );
    }
}

#[test]
fn a_preferred_cluster_with_room_comes_before_a_cheaper_one() {
    let mut fleet = fleet(&[("east", 1, 8), ("west", 1, 8)], PlacementPolicy::default());
    let (east, west) = (fleet.intern_cluster("east"), fleet.intern_cluster("west"));
    fleet.set_labels(west, vec![("region".into(), "eu".into())]);
    let dear = ClusterPreference { cost: 2_500, ..ClusterPreference::of(west) };
    let policy = PlacementPolicy { clusters: vec![dear], ..PlacementPolicy::default() };
    fleet.set_config("all", Some(PlacementConfig { clusters: vec![east, west], policy }));
    let of_eu = |value: &str| {
        let operator = LabelOperator::In(vec![value.into()]);
        let preferred = vec![LabelRequirement { key: "region".into(), operator }];
        let request = WorkloadRequest { preferred, ..request(1, 6) };
        Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
    };
    assert_eq!(chosen(&mut fleet, 1, &work(1, 6)), "east", "without a preference");
    assert_eq!(chosen(&mut fleet, 1, &of_eu("us")), "east", "no cluster is of that region");
    assert_eq!(put(&mut fleet, 1, &of_eu("eu")), "west");
    assert_eq!(put(&mut fleet, 2, &of_eu("eu")), "east", "it does not wait for the other one");
}

#[test]
fn an_unplaced_workload_releases_its_capacity() {
    let mut fleet = fleet(&[("east", 1, 4)], PlacementPolicy::default());
    put(&mut fleet, 1, &work(1, 4));
    fleet.unplace(WorkloadId(1));
    assert_eq!(chosen(&mut fleet, 2, &work(1, 4)), "east");
}

#[test]
fn equal_work_reuses_the_capacity_of_an_ended_workload_before_the_report() {
    let mut fleet = fleet(&[("east", 2, 4)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    for one in [1, 2] {
        put(&mut fleet, one, &work(1, 3));
        fleet.clone_created(WorkloadId(one), 11);
    }
    fleet.set_report(east, Some(report(20, 2, 1)));
    let key = key(choose(&mut fleet, 3, &work(1, 3), NOW));
    fleet.workload_ended(WorkloadId(1), 21);
    assert_eq!(fleet.woken_keys(NOW), [key]);
    // The node of the ended Workload is unknown, so four free units on one node are not proved.
    assert_eq!(chosen(&mut fleet, 4, &work(1, 4)), "none");
    assert_eq!(put(&mut fleet, 3, &work(1, 3)), "east");
    assert_eq!(chosen(&mut fleet, 5, &work(1, 3)), "none", "an ended Workload is reused once");
    // The report includes the end, and not yet the new placement.
    fleet.set_report(east, Some(report(21, 1, 4)));
    assert_eq!(chosen(&mut fleet, 5, &work(1, 3)), "none");
    fleet.workload_ended(WorkloadId(2), 19);
    assert_eq!(chosen(&mut fleet, 5, &work(1, 3)), "none", "the report includes that end");
}

#[test]
fn an_ended_workload_that_no_report_counted_releases_nothing() {
    let mut fleet = fleet(&[("east", 1, 3)], PlacementPolicy::default());
    put(&mut fleet, 1, &work(1, 3));
    fleet.clone_created(WorkloadId(1), 11);
    fleet.workload_ended(WorkloadId(1), 12);
    assert_eq!(put(&mut fleet, 2, &work(1, 3)), "east");
    assert_eq!(chosen(&mut fleet, 3, &work(1, 3)), "none");
}

#[test]
fn each_strategy_ranks_candidates_by_free_share() {
    let clusters = [("small", 1, 8), ("large", 4, 8), ("twin", 4, 8)];
    let table = [
        (Choice::Spread, vec![], "large"),
        (Choice::Spread, vec![("twin", 2)], "twin"),
        // Half of the small one stays free, seven eighths of the large one.
        (Choice::Spread, vec![("small", 9)], "small"),
        (Choice::Spread, vec![("large", 0), ("twin", 0)], "small"),
        (Choice::BinPack, vec![], "small"),
        (Choice::BinPack, vec![("twin", 5)], "twin"),
        (Choice::BinPack, vec![("small", 0)], "large"),
        (Choice::Ordered, vec![("twin", 9)], "small"),
    ];
    for (strategy, weights, expected) in table {
        let mut fleet = fleet(&clusters, PlacementPolicy::default());
        let ids = clusters.map(|(name, ..)| fleet.intern_cluster(name));
        let weights = weights.iter().map(|&(name, weight)| {
            let cluster = fleet.find(name).expect("known");
            ClusterPreference { weight, ..ClusterPreference::of(cluster) }
        });
        let policy =
            PlacementPolicy { strategy, clusters: weights.collect(), ..PlacementPolicy::default() };
        fleet.set_config("all", Some(PlacementConfig { clusters: ids.to_vec(), policy }));
        assert_eq!(chosen(&mut fleet, 1, &work(1, 4)), expected, "{strategy:?}");
    }
}

#[test]
fn spread_keeps_the_free_share_equal_on_all_clusters() {
    let mut fleet = fleet(&[("small", 1, 8), ("large", 3, 8)], PlacementPolicy::default());
    let names: Vec<String> = (0..8).map(|one| put(&mut fleet, one, &work(1, 4))).collect();
    assert_eq!(names.iter().filter(|name| *name == "small").count(), 2);
    assert_eq!(names[..4].iter().filter(|name| *name == "small").count(), 1);
}

/// A report of one node of this size with so much free.
fn busy_report(as_of: u64, free: i64, size: i64) -> CapacityReport {
    let mut report = report(as_of, 1, free);
    report.classes[0].size = vec![(CPU, Amount(size))];
    report
}

#[test]
fn the_free_share_is_that_of_the_size() {
    let mut fleet = fleet(&[("busy", 1, 8), ("idle", 1, 8)], PlacementPolicy::default());
    let busy = fleet.intern_cluster("busy");
    fleet.set_report(busy, Some(busy_report(11, 8, 64)));
    assert_eq!(chosen(&mut fleet, 1, &work(1, 1)), "idle", "an eighth is free of the other one");
}

#[test]
fn the_score_does_not_depend_on_how_often_a_cluster_reports() {
    let mut fleet = fleet(&[("often", 1, 64), ("seldom", 1, 64)], PlacementPolicy::default());
    let often = fleet.intern_cluster("often");
    let names = (0..8).map(|one| {
        let name = put(&mut fleet, one, &work(1, 4));
        let version = 11 + u64::from(one);
        fleet.clone_created(WorkloadId(one), version);
        let placed = fleet.placed_workloads(often).count();
        let free = 64 - 4 * i64::try_from(placed).expect("a number");
        fleet.set_report(often, Some(busy_report(version, free, 64)));
        name
    });
    let names: Vec<String> = names.collect();
    assert_eq!(names, ["often", "seldom"].repeat(4));
}

#[test]
fn hazard_12_every_refusal_has_a_reason() {
    let only = |request: &dyn Fn(&mut WorkloadRequest)| {
        let mut one = self::request(1, 1);
        request(&mut one);
        Arc::new(AssignedWorkload::new(Arc::new(one), Vec::new()))
    };
    let plain = only(&|_| {});
    let draining = |cluster| ClusterPreference { draining: true, ..ClusterPreference::of(cluster) };
    let near = LabelRequirement { key: "region".into(), operator: LabelOperator::Exists };
    let pod = JobGvk { kind: "Pod".into(), ..JobGvk::default() };
    type ClusterChange<'a> = &'a dyn Fn(&mut Fleet, ClusterId);
    let policy = |policy: &dyn Fn(ClusterId) -> PlacementPolicy, fleet: &mut Fleet, id| {
        fleet.set_config("all", Some(PlacementConfig { clusters: vec![id], policy: policy(id) }));
    };
    let misfit = CapacityShortage { pod_set: "main".into(), cause: ShortageCause::NoSuitableNode };
    let table: [(ClusterChange<'_>, &Arc<AssignedWorkload>, ClusterRefusal); 9] = [
        (&|fleet, id| fleet.set_connected(id, false), &plain, ClusterRefusal::NotConnected),
        (&|fleet, id| fleet.set_report(id, None), &plain, ClusterRefusal::NoReport),
        (
            &|fleet, id| {
                let of = |id| PlacementPolicy {
                    clusters: vec![draining(id)],
                    ..PlacementPolicy::default()
                };
                policy(&of, fleet, id);
            },
            &plain,
            ClusterRefusal::Draining,
        ),
        (
            &|_, _| {},
            &only(&|one| one.kind = pod.clone()),
            ClusterRefusal::KindNotSupported(pod.clone()),
        ),
        (
            &|fleet, id| {
                let of =
                    |_| PlacementPolicy { kinds: Some(Vec::new()), ..PlacementPolicy::default() };
                policy(&of, fleet, id);
            },
            &plain,
            ClusterRefusal::KindNotAllowed(kind()),
        ),
        (
            &|fleet, id| {
                let of = |_| PlacementPolicy {
                    namespaces: Some(vec!["x".into()]),
                    ..PlacementPolicy::default()
                };
                policy(&of, fleet, id);
            },
            &plain,
            ClusterRefusal::NamespaceNotAllowed("ns".into()),
        ),
        (
            &|_, _| {},
            &only(&|one| one.affinity = vec![near.clone()]),
            ClusterRefusal::AffinityMismatch,
        ),
        (
            &|fleet, id| {
                let cause = ExclusionCause::Namespace("ns".into());
                fleet.exclude_cluster(id, cause, NOW, "no quota".into());
            },
            &plain,
            ClusterRefusal::Excluded { until: Time(NOW.0 + MINUTE), why: "no quota".into() },
        ),
        (
            &|fleet, id| fleet.set_report(id, Some(report(1, 0, 0))),
            &plain,
            ClusterRefusal::NeverFits(misfit),
        ),
    ];
    for (change, work, expected) in table {
        let mut fleet = fleet(&[("east", 1, 4)], PlacementPolicy::default());
        let id = fleet.intern_cluster("east");
        let before = choose(&mut fleet, 1, &plain, NOW);
        assert_eq!(before, Ok(id));
        change(&mut fleet, id);
        let refused = choose(&mut fleet, 1, work, NOW).expect_err("refused");
        assert_eq!(refused.reasons, [(id, expected)]);
    }
}

#[test]
fn a_placement_message_names_clusters_up_to_its_maximum_length() {
    let mut names = Names::default();
    assert_eq!(names.resources.intern("cpu"), CPU);
    let mut fleet =
        fleet(&[("worker-1", 1, 2000), ("worker-2", 1, 2000)], PlacementPolicy::default());
    let lost = fleet.intern_cluster("worker-2");
    fleet.set_connected(lost, false);
    let refused = choose(&mut fleet, 1, &work(1, 4000), NOW).expect_err("no room");
    assert_eq!(
        placement_message(&refused, &fleet, &names),
        "no cluster has room: worker-1: never fits: pod set main: one pod needs 4 cpu, the most free on a node is 2; \
         worker-2: not connected"
    );
    let many: Vec<_> = (0..200)
        .map(|one| (fleet.intern_cluster(&format!("c-{one}")), ClusterRefusal::NoReport))
        .collect();
    let long = placement_message(&PlacementRefusal { reasons: many, ..refused }, &fleet, &names);
    assert!(long.len() < 950 && long.ends_with(" more"), "{long}");
}

#[test]
fn equal_requests_share_a_key_that_is_returned_once_per_change() {
    let mut fleet = fleet(&[("east", 1, 2)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    let first = key(choose(&mut fleet, 1, &work(1, 4), NOW));
    assert_eq!(key(choose(&mut fleet, 2, &work(1, 4), NOW)), first);
    let other = key(choose(&mut fleet, 3, &work(1, 8), NOW));
    assert_eq!(fleet.woken_keys(NOW), []);
    fleet.set_report(east, Some(report(11, 1, 4)));
    assert_eq!(fleet.woken_keys(NOW), [first]);
    assert_eq!(fleet.woken_keys(NOW), []);
    fleet.set_report(east, Some(report(12, 1, 8)));
    assert_eq!(fleet.woken_keys(NOW), [first, other]);
}

#[test]
fn a_key_without_waiting_workloads_is_dropped() {
    let mut fleet = fleet(&[("east", 1, 2)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    for workload in 0..100 {
        key(choose(&mut fleet, workload, &work(1, 4 + i64::from(workload)), NOW));
        fleet.workload_removed(WorkloadId(workload));
    }
    assert_eq!(fleet.pending.iter().count(), 0);
    key(choose(&mut fleet, 1, &work(1, 4), NOW));
    key(choose(&mut fleet, 1, &work(1, 5), NOW));
    assert_eq!(fleet.pending.iter().count(), 1, "it waits for what it asked last");
    fleet.set_report(east, Some(report(11, 1, 8)));
    assert_eq!(choose(&mut fleet, 1, &work(1, 5), NOW), Ok(east));
    assert_eq!(fleet.pending.iter().count(), 0);
}

/// Whether a gang that was refused first at 100 keeps a small Workload out, if an event changes the gang at 103.
fn is_kept_out(by: &Arc<AssignedWorkload>, meanwhile: impl FnOnce(&mut Fleet, WorkloadId)) -> bool {
    let keeping = Some(GangReservationPolicy { after: 5, max_share: 100 });
    let mut fleet = fleet(
        &[("east", 2, 8)],
        PlacementPolicy { gang_reservation: keeping, ..PlacementPolicy::default() },
    );
    assert_eq!(put(&mut fleet, 1, &work(1, 4)), "east");
    key(choose(&mut fleet, 2, &work(2, 8), Time(100)));
    meanwhile(&mut fleet, WorkloadId(2));
    key(choose(&mut fleet, 2, by, Time(104)));
    choose(&mut fleet, 3, &work(1, 4), Time(105)).is_err()
}

#[test]
fn a_gang_that_lacks_something_else_in_between_keeps_its_waiting_time() {
    let gang = work(2, 8);
    assert!(is_kept_out(&gang, |_, _| {}));
    assert!(is_kept_out(&gang, Fleet::pause_waiting), "it still asks for the same");
    assert!(!is_kept_out(&work(2, 7), Fleet::pause_waiting), "it asks for something else now");
    assert!(!is_kept_out(&work(2, 7), |_, _| {}), "just so");
    assert!(!is_kept_out(&gang, Fleet::unplace), "it had room meanwhile");
    assert!(!is_kept_out(&gang, Fleet::workload_removed), "the number is another's now");
}

#[test]
fn a_workload_may_ask_for_leases_whatever_its_policy_is_and_decline_them() {
    let asking = |exactly_once| {
        let request = WorkloadRequest { exactly_once, ..request(1, 1) };
        Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
    };
    let timed = LeasePolicy { fencing: Fencing::Timed, duration: 30, lost_after: None };
    for exactly_once in [None, Some(timed)] {
        let policy = PlacementPolicy { exactly_once, lost_after: Some(7), ..Default::default() };
        let mut fleet = fleet(&[("east", 1, 4)], policy);
        let east = fleet.intern_cluster("east");
        for (asks, needs) in
            [(None, exactly_once.is_some()), (Some(true), true), (Some(false), false)]
        {
            fleet.set_leases_open(east, false);
            let refused = choose(&mut fleet, 1, &asking(asks), NOW).err();
            let reason = refused.map(|one| one.reasons);
            assert_eq!(reason, needs.then(|| vec![(east, ClusterRefusal::NoLeases)]), "{asks:?}");
            fleet.set_leases_open(east, true);
            assert_eq!(choose(&mut fleet, 1, &asking(asks), NOW), Ok(east));
        }
        assert_eq!(fleet.lease_policy(east), exactly_once);
        fleet.set_wants_leases(true);
        let wanted = LeasePolicy { lost_after: Some(7), ..LeasePolicy::DEFAULT };
        assert_eq!(fleet.lease_policy(east), Some(exactly_once.unwrap_or(wanted)));
        // The mark of a Workload makes no other shape of it.
        let cause = ExclusionCause::Requests(Arc::clone(&asking(Some(true)).request));
        fleet.exclude_cluster(east, cause, NOW, "refused".into());
        assert!(choose(&mut fleet, 1, &asking(None), NOW).is_err());
    }
}

#[test]
fn the_end_of_an_exclusion_wakes_the_key() {
    let mut fleet = fleet(&[("east", 1, 4)], PlacementPolicy::default());
    let east = fleet.intern_cluster("east");
    let cause = ExclusionCause::Requests(Arc::clone(&work(1, 1).request));
    fleet.exclude_cluster(east, cause, NOW, "refused".into());
    let key = key(choose(&mut fleet, 1, &work(1, 1), NOW));
    let end = NOW.0 + MINUTE;
    assert_eq!(fleet.next_wake_at(), Some(Time(end)));
    assert_eq!(fleet.woken_keys(Time(end - 1)), []);
    assert_eq!(fleet.woken_keys(Time(end)), [key]);
    assert_eq!(fleet.next_wake_at(), None);
    assert_eq!(choose(&mut fleet, 1, &work(1, 1), Time(end)), Ok(east));
}

const MINUTE: i64 = 60_000_000_000;

#[test]
fn a_refused_shape_is_left_out_for_every_workload_that_has_it() {
    let mut fleet = fleet(&[("east", 1, 4), ("west", 1, 4)], PlacementPolicy::default());
    let (east, west) = (fleet.intern_cluster("east"), fleet.intern_cluster("west"));
    assert_eq!(choose(&mut fleet, 1, &work(1, 1), NOW), Ok(east));
    let cause = ExclusionCause::Requests(Arc::clone(&work(1, 1).request));
    fleet.exclude_cluster(east, cause, NOW, "refused".into());
    assert_eq!(choose(&mut fleet, 2, &work(1, 1), NOW), Ok(west));
    assert_eq!(choose(&mut fleet, 3, &work(1, 2), NOW), Ok(east));
}

/// A change of a fleet with two clusters.
#[derive(Debug, Clone)]
enum FleetChange {
    PlacementRequest { workload: u32, count: i64, cpu: i64 },
    CapacityReport { cluster: u32, as_of: u64, nodes: i64, cpu: i64 },
    Connected { cluster: u32, connected: bool },
    Created { workload: u32, version: u64 },
    Forget { workload: u32 },
    Ended { workload: u32, version: u64 },
    PlacementRefusal { workload: u32, count: i64, cpu: i64 },
    PlacementConfig { clusters: usize },
    PendingClass,
}

fn step() -> impl Strategy<Value = FleetChange> {
    let workload = || 0..6_u32;
    prop_oneof![
        6 => (workload(), 1..4_i64, 1..4_i64)
            .prop_map(|(workload, count, cpu)| FleetChange::PlacementRequest { workload, count, cpu }),
        3 => (0..2_u32, 0..9_u64, 0..4_i64, 0..5_i64).prop_map(|(cluster, as_of, nodes, cpu)| {
            FleetChange::CapacityReport { cluster, as_of, nodes, cpu }
        }),
        1 => (0..2_u32, any::<bool>())
            .prop_map(|(cluster, connected)| FleetChange::Connected { cluster, connected }),
        2 => (workload(), 0..9_u64)
            .prop_map(|(workload, version)| FleetChange::Created { workload, version }),
        2 => workload().prop_map(|workload| FleetChange::Forget { workload }),
        2 => (workload(), 0..9_u64).prop_map(|(workload, version)| FleetChange::Ended { workload, version }),
        1 => (workload(), 1..4_i64, 1..4_i64)
            .prop_map(|(workload, count, cpu)| FleetChange::PlacementRefusal { workload, count, cpu }),
        1 => (0..3_usize).prop_map(|clusters| FleetChange::PlacementConfig { clusters }),
        2 => Just(FleetChange::PendingClass),
    ]
}

/// A fleet and its waiting Workloads with their requests.
struct FleetFixture {
    fleet: Fleet,
    waiting: BTreeMap<u32, (Arc<AssignedWorkload>, RequeueKey)>,
    now: i64,
    log: Vec<String>,
}

impl FleetFixture {
    fn new() -> Self {
        let fleet = fleet(&[("east", 2, 3), ("west", 1, 4)], PlacementPolicy::default());
        Self { fleet, waiting: BTreeMap::new(), now: 0, log: Vec::new() }
    }

    fn play(&mut self, step: &FleetChange) {
        let fleet = &mut self.fleet;
        match *step {
            FleetChange::PlacementRequest { workload, count, cpu } => {
                if fleet.placed_on(WorkloadId(workload)).is_some() {
                    return;
                }
                let work = work(count, cpu);
                match choose(fleet, workload, &work, Time(self.now)) {
                    Ok(cluster) => {
                        fleet.place(WorkloadId(workload), cluster, work, Time(self.now));
                        self.waiting.remove(&workload);
                        self.log.push(format!("{workload} {cluster:?}"));
                    }
                    Err(refused) => {
                        self.log.push(format!("{workload} {refused:?}"));
                        self.waiting.insert(workload, (work, refused.key));
                    }
                }
            }
            FleetChange::CapacityReport { cluster, as_of, nodes, cpu } => {
                fleet.set_report(ClusterId(cluster), Some(report(as_of, nodes, cpu)));
            }
            FleetChange::Connected { cluster, connected } => {
                fleet.set_connected(ClusterId(cluster), connected);
            }
            FleetChange::Created { workload, version } => {
                fleet.clone_created(WorkloadId(workload), version);
            }
            FleetChange::Forget { workload } => {
                fleet.unplace(WorkloadId(workload));
                self.waiting.remove(&workload);
            }
            FleetChange::Ended { workload, version } => {
                fleet.workload_ended(WorkloadId(workload), version);
                self.waiting.remove(&workload);
            }
            FleetChange::PlacementRefusal { workload, count, cpu } => {
                if let Some(cluster) = fleet.placed_on(WorkloadId(workload)) {
                    fleet.unplace(WorkloadId(workload));
                    let cause = ExclusionCause::Requests(Arc::new(request(count, cpu)));
                    fleet.exclude_cluster(cluster, cause, Time(self.now), "no".into());
                }
            }
            FleetChange::PlacementConfig { clusters } => {
                let clusters = (0..clusters).map(ClusterId::from).collect();
                fleet.set_config(
                    "all",
                    Some(PlacementConfig { clusters, policy: PlacementPolicy::default() }),
                );
            }
            FleetChange::PendingClass => self.now += MINUTE / 3,
        }
    }

    /// A waiting Workload whose key was not returned is still refused; one whose key was returned gets a cluster.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let woken = self.fleet.woken_keys(Time(self.now));
        self.log.push(format!("{woken:?}"));
        for (workload, (work, key)) in self.waiting.clone() {
            let answer = choose(&mut self.fleet, workload, &work, Time(self.now));
            prop_assert_eq!(answer.is_ok(), woken.contains(&key), "{} {:?}", workload, answer);
            if let Err(refused) = answer {
                self.waiting.insert(workload, (work, refused.key));
            } else {
                self.waiting.remove(&workload);
            }
        }
        prop_assert!(self.fleet.pending.iter().count() <= self.waiting.len());
        Ok(())
    }
}

proptest! {
    #[test]
    fn wake_ups_are_precise_and_complete(steps in prop::collection::vec((step(), any::<bool>()), 1..60)) {
        let mut fixture = FleetFixture::new();
        for (step, look) in &steps {
            fixture.play(step);
            if *look {
                fixture.check()?;
            }
        }
        fixture.check()?;
    }

    #[test]
    fn equal_calls_give_equal_results(steps in prop::collection::vec(step(), 1..60)) {
        let play = || {
            let mut fixture = FleetFixture::new();
            for step in &steps {
                fixture.play(step);
                let woken = fixture.fleet.woken_keys(Time(fixture.now));
                fixture.log.push(format!("{woken:?}"));
            }
            fixture.log
        };
        prop_assert_eq!(play(), play());
    }

    #[test]
    fn cached_nodes_equal_newly_packed_nodes(steps in prop::collection::vec(step(), 1..60)) {
        let (mut kept, mut rebuilt) = (FleetFixture::new(), FleetFixture::new());
        for step in &steps {
            kept.play(step);
            rebuilt.play(step);
            for cluster in &mut rebuilt.fleet.clusters {
                let report = cluster.report().cloned();
                cluster.set_report(report);
            }
        }
        prop_assert_eq!(kept.log, rebuilt.log);
    }
}
