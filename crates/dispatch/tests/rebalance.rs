//! Moves of queued work to clusters with known room: hysteresis, bounds, order and reservations (docs/reference/dispatch.md §3).

use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, ExclusionCause, Fleet, GangReservationPolicy, JobGvk,
    NodeClassCapacity, Nominated, PlacementConfig, PlacementPolicy, PlacementRequest, QueueOrder,
    QueuedWorkload, RebalancePolicy, RequestedPodSet, StayReason, UNREPORTED_WINDOW,
    WorkloadRequest,
};
use engine::ids::{ClusterId, ResourceId, WorkloadId};
use engine::{Amount, Time};
use proptest::prelude::*;

const CPU: ResourceId = ResourceId(0);

/// The Workload that waits for the queues of a cluster.
const QUEUED: WorkloadId = WorkloadId(1);

const POLICY: RebalancePolicy = RebalancePolicy { min_gain: 0, cooldown: 10, max_moves: 1 };

fn report(nodes: i64, cpu: i64) -> CapacityReport {
    let kind = JobGvk { group: "batch".into(), version: "v1".into(), kind: "Job".into() };
    let free = vec![(CPU, Amount(cpu))];
    let class = NodeClassCapacity { count: nodes, free, ..NodeClassCapacity::default() };
    CapacityReport {
        as_of: 1,
        kinds: vec![kind],
        classes: vec![class],
        ..CapacityReport::default()
    }
}

fn work(count: i64, cpu: i64) -> Arc<AssignedWorkload> {
    let requests = vec![(CPU, Amount(cpu))];
    let pods =
        RequestedPodSet { name: "main".into(), count, requests, ..RequestedPodSet::default() };
    let kind = JobGvk { group: "batch".into(), version: "v1".into(), kind: "Job".into() };
    let namespace = "ns".into();
    let request =
        WorkloadRequest { kind, namespace, pod_sets: vec![pods], ..WorkloadRequest::default() };
    Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
}

/// The clusters `east` and `north`, which report room, and `west` and `south` with queues of their own.
struct Clusters {
    fleet: Fleet,
    east: ClusterId,
    north: ClusterId,
    west: ClusterId,
    south: ClusterId,
}

impl Clusters {
    /// `east` with one node of so many free cpus; `north` is full.
    fn new(rebalance: Option<RebalancePolicy>, cpu: i64) -> Self {
        let reservation = GangReservationPolicy { after: 0, max_share: 100 };
        let policy = PlacementPolicy {
            rebalance,
            gang_reservation: Some(reservation),
            ..PlacementPolicy::default()
        };
        let mut fleet = Fleet::new();
        let [east, north, west, south] =
            ["east", "north", "west", "south"].map(|name| fleet.intern_cluster(name));
        for id in [east, north, west, south] {
            fleet.set_connected(id, true);
            fleet.set_report_listed(id, true);
        }
        fleet.set_report(east, Some(report(1, cpu)));
        fleet.set_report(north, Some(report(1, 0)));
        let clusters = vec![east, north, west, south];
        fleet.set_config("all", Some(PlacementConfig { clusters, policy }));
        fleet.begin_race(QUEUED, vec![west]);
        Self { fleet, east, north, west, south }
    }

    /// Where the queued Workload of four cpus, which was nominated for `west` at 100, moves to.
    fn found(&mut self, now: i64) -> Result<ClusterId, StayReason> {
        let nominated = [self.west];
        self.found_for((QUEUED, 5, &work(1, 4)), (&nominated, 100), now)
    }

    fn found_for(
        &mut self,
        (workload, queued_at, work): (WorkloadId, i64, &Arc<AssignedWorkload>),
        (clusters, at): (&[ClusterId], i64),
        now: i64,
    ) -> Result<ClusterId, StayReason> {
        let request = asked(workload, queued_at, work);
        let queued = QueuedWorkload { request, nominated: Nominated { clusters, at: Time(at) } };
        self.fleet.find_move(&queued, &|_| false, Time(now))
    }

    /// A pending Workload asks for room that no cluster has for it, and waits.
    fn waits(&mut self, workload: u32, queued_at: i64, work: &Arc<AssignedWorkload>) {
        let request = asked(WorkloadId(workload), queued_at, work);
        self.fleet.choose_cluster(&request, Time(0)).expect_err("it waits");
    }
}

/// A request for a cluster.
fn asked(
    workload: WorkloadId,
    queued_at: i64,
    work: &Arc<AssignedWorkload>,
) -> PlacementRequest<'_> {
    let order = QueueOrder { priority: 0, queued_at: Time(queued_at) };
    PlacementRequest { workload, config: "all", work, order, only: None, alternative: false }
}

#[test]
fn queued_work_moves_once_a_cluster_has_room() {
    let mut clusters = Clusters::new(Some(POLICY), 3);
    assert_eq!(clusters.found(200), Err(StayReason::NoRoom(None)));
    clusters.fleet.set_report(clusters.east, Some(report(1, 4)));
    assert_eq!(clusters.found(200), Ok(clusters.east));
    let mut off = Clusters::new(None, 4);
    assert_eq!(off.found(200), Err(StayReason::NotMoved));
    assert!(clusters.fleet.rebalances() && !off.fleet.rebalances());
}

#[test]
fn queued_work_stays_until_its_cooldown_is_over() {
    let mut clusters = Clusters::new(Some(POLICY), 4);
    assert_eq!(clusters.found(109), Err(StayReason::CoolingDown(Time(110))));
    assert_eq!(clusters.found(110), Ok(clusters.east));
}

#[test]
fn queued_work_moves_as_often_as_its_policy_allows() {
    let mut clusters = Clusters::new(Some(POLICY), 4);
    let queued = (QUEUED, 5, &work(1, 4));
    let nominated = [clusters.north, clusters.west];
    assert_eq!(clusters.found_for(queued, (&nominated, 100), 200), Err(StayReason::MovesUsedUp));
    let queues = [clusters.south, clusters.west];
    assert_eq!(clusters.found_for(queued, (&queues, 100), 200), Ok(clusters.east));
    // What is not reached may be what it was moved to.
    clusters.fleet.set_connected(clusters.south, false);
    assert_eq!(clusters.found_for(queued, (&queues, 100), 200), Err(StayReason::MovesUsedUp));

    let mut twice = Clusters::new(Some(RebalancePolicy { max_moves: 2, ..POLICY }), 4);
    assert_eq!(twice.found_for(queued, (&nominated, 100), 200), Ok(twice.east));
    let all: Vec<ClusterId> =
        (0..20).map(|at| twice.fleet.intern_cluster(&format!("c{at}"))).collect();
    let full = twice.found_for(queued, (&all, 100), 200);
    assert_eq!(full, Err(StayReason::NotMoved), "no Workload has more nominations");
    assert_eq!(twice.found_for(queued, (&[], 100), 200), Err(StayReason::NotMoved));
}

#[test]
fn queued_work_leaves_the_share_of_min_gain_to_others() {
    // Of 8 cpus 4 are left.
    for (min_gain, moves) in [(50, true), (51, false)] {
        let mut clusters = Clusters::new(Some(RebalancePolicy { min_gain, ..POLICY }), 8);
        assert_eq!(clusters.found(200).is_ok(), moves, "{min_gain}");
    }
}

#[test]
fn queued_work_moves_to_the_cluster_where_most_stays_free() {
    let mut clusters = Clusters::new(Some(POLICY), 8);
    clusters.fleet.set_report(clusters.north, Some(report(1, 16)));
    assert_eq!(clusters.found(200), Ok(clusters.north));
}

#[test]
fn what_waits_for_room_comes_first_whatever_its_place_in_the_order() {
    for queued_at in [1, 9] {
        let mut clusters = Clusters::new(Some(POLICY), 3);
        // A gang that no cluster has room for is in nothing's way.
        clusters.waits(8, 0, &work(9, 9));
        clusters.waits(2, queued_at, &work(1, 5));
        clusters.fleet.set_report(clusters.east, Some(report(1, 9)));
        assert_eq!(clusters.found(200), Err(StayReason::NoRoom(None)), "{queued_at}");
        clusters.fleet.place(WorkloadId(2), clusters.east, work(1, 5), Time(0));
        assert_eq!(clusters.found(200), Ok(clusters.east), "it fits beside the other one");
    }
}

#[test]
fn a_reservation_binds_what_is_later_in_queue_order() {
    for (gang_queued_at, moves) in [(1, false), (9, true)] {
        let mut clusters = Clusters::new(Some(POLICY), 8);
        clusters.fleet.place(WorkloadId(7), clusters.east, work(1, 4), Time(0));
        clusters.waits(2, gang_queued_at, &work(1, 8));
        assert_eq!(clusters.found(200).is_ok(), moves, "{gang_queued_at}");
    }
}

#[test]
fn the_room_that_an_eviction_makes_is_for_what_preempts() {
    let mut clusters = Clusters::new(Some(POLICY), 8);
    clusters.fleet.place(WorkloadId(7), clusters.east, work(1, 4), Time(0));
    let (nominated, work) = ([clusters.west], work(1, 4));
    let nominated = Nominated { clusters: &nominated, at: Time(100) };
    let queued = QueuedWorkload { request: asked(QUEUED, 5, &work), nominated };
    let leaves = |workload| workload == WorkloadId(7);
    let found = clusters.fleet.find_move(&queued, &leaves, Time(200));
    assert_eq!(found, Err(StayReason::NoRoom(None)));
    let found = clusters.fleet.find_move(&queued, &|_| false, Time(200));
    assert_eq!(found, Ok(clusters.east));
}

#[test]
fn a_cluster_that_is_left_out_is_tried_when_that_ends() {
    let mut clusters = Clusters::new(Some(POLICY), 8);
    let cause = ExclusionCause::Requests(Arc::clone(&work(1, 4).request));
    clusters.fleet.exclude_cluster(clusters.east, cause, Time(200), "refused".into());
    let Err(StayReason::NoRoom(Some(until))) = clusters.found(200) else {
        panic!("it is left out");
    };
    assert_eq!(clusters.found(until.0), Ok(clusters.east));
}

#[test]
fn a_move_takes_room_and_keeps_the_place_in_the_queues() {
    let mut clusters = Clusters::new(Some(POLICY), 8);
    let Clusters { east, west, .. } = clusters;
    for other in 1..UNREPORTED_WINDOW {
        let other = WorkloadId(u32::try_from(100 + other).expect("a small number"));
        clusters.fleet.begin_race(other, vec![west]);
    }
    clusters.fleet.begin_move(QUEUED, east, work(1, 4), Time(200));
    assert_eq!(clusters.fleet.moves_to(QUEUED), Some(east));
    assert!(clusters.fleet.is_racing(QUEUED), "the queues of the other cluster may still decide");
    let second = (WorkloadId(2), 6, &work(1, 5));
    let found = clusters.found_for(second, (&[west], 100), 200);
    assert_eq!(found, Err(StayReason::NoRoom(None)), "its room is taken");
    // The move fails: the room is free, and the place in the queue is kept.
    clusters.fleet.end_move(QUEUED);
    assert_eq!(clusters.fleet.moves_to(QUEUED), None);
    assert!(clusters.fleet.is_racing(QUEUED));
    assert_eq!(clusters.found_for(second, (&[west], 100), 200), Ok(east));
    // The queues have decided.
    clusters.fleet.begin_move(QUEUED, east, work(1, 4), Time(200));
    clusters.fleet.place(QUEUED, west, work(1, 4), Time(200));
    assert_eq!(clusters.fleet.moves_to(QUEUED), None);
    assert_eq!(clusters.found_for(second, (&[west], 100), 200), Ok(east));
}

/// One event of a fleet with queued work.
#[derive(Debug, Clone)]
enum FleetEvent {
    Report { east: bool, cpu: i64 },
    Arrives { workload: u32, cpu: i64 },
    Queued { workload: u32, cpu: i64 },
    Ends { workload: u32 },
    Rebalance,
    Pass { time: i64 },
}

fn event() -> impl Strategy<Value = FleetEvent> {
    let workload = || 0..8_u32;
    prop_oneof![
        3 => (any::<bool>(), 0..16_i64).prop_map(|(east, cpu)| FleetEvent::Report { east, cpu }),
        3 => (workload(), 1..8_i64).prop_map(|(workload, cpu)| FleetEvent::Arrives { workload, cpu }),
        3 => (workload(), 1..8_i64).prop_map(|(workload, cpu)| FleetEvent::Queued { workload, cpu }),
        2 => workload().prop_map(|workload| FleetEvent::Ends { workload }),
        6 => Just(FleetEvent::Rebalance),
        2 => (1..15_i64).prop_map(|time| FleetEvent::Pass { time }),
    ]
}

/// A queued Workload, as its owner remembers it.
#[derive(Debug, Clone)]
struct Queued {
    id: WorkloadId,
    work: Arc<AssignedWorkload>,
    nominated: Vec<ClusterId>,
    at: i64,
}

proptest! {
    /// However reports come and go: no Workload moves more often or sooner than its policy allows, or is moved where it is
    /// nominated; and no move takes what a waiting Workload would get.
    #[test]
    fn moves_are_bounded_and_take_nothing_from_what_waits(
        max_moves in 1..3_usize,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let policy = RebalancePolicy { max_moves, ..POLICY };
        let mut clusters = Clusters::new(Some(policy), 0);
        clusters.fleet.workload_removed(QUEUED);
        let Clusters { east, north, west, .. } = clusters;
        let mut queued: Vec<Queued> = Vec::new();
        let mut waiting: Vec<(WorkloadId, i64, Arc<AssignedWorkload>)> = Vec::new();
        let mut now = 0;
        for event in events {
            match event {
                FleetEvent::Report { east: one, cpu } => {
                    let id = if one { east } else { north };
                    clusters.fleet.set_report(id, Some(report(1, cpu)));
                }
                FleetEvent::Arrives { workload, cpu } => {
                    let (id, work) = (WorkloadId(10 + workload), work(1, cpu));
                    waiting.retain(|(one, ..)| *one != id);
                    clusters.fleet.unplace(id);
                    if clusters.fleet.choose_cluster(&asked(id, now, &work), Time(now)).is_err() {
                        waiting.push((id, now, work));
                    }
                }
                FleetEvent::Queued { workload, cpu } => {
                    let id = WorkloadId(20 + workload);
                    queued.retain(|one| one.id != id);
                    clusters.fleet.workload_removed(id);
                    clusters.fleet.begin_race(id, vec![west]);
                    queued.push(Queued { id, work: work(1, cpu), nominated: vec![west], at: now });
                }
                FleetEvent::Ends { workload } => {
                    let id = WorkloadId(20 + workload);
                    queued.retain(|one| one.id != id);
                    clusters.fleet.workload_removed(id);
                }
                FleetEvent::Rebalance => {
                    for one in &mut queued {
                        let of = (one.id, 0, &one.work);
                        let Ok(to) = clusters.found_for(of, (&one.nominated, one.at), now) else {
                            continue;
                        };
                        prop_assert!(now >= one.at + POLICY.cooldown, "too soon: {one:?}");
                        prop_assert!(!one.nominated.contains(&to), "it is there already: {one:?}");
                        prop_assert!(to == east || to == north, "no room is known there: {one:?}");
                        for (id, since, work) in &waiting {
                            let there = PlacementRequest { only: Some(to), ..asked(*id, *since, work) };
                            let gets = clusters.fleet.fits_after(&there, &[], Time(now));
                            prop_assert!(!gets, "{id:?} waits for this room");
                        }
                        clusters.fleet.begin_move(one.id, to, Arc::clone(&one.work), Time(now));
                        one.nominated.push(to);
                        one.at = now;
                        prop_assert!(one.nominated.len() <= 1 + max_moves, "too often: {one:?}");
                    }
                }
                FleetEvent::Pass { time } => now += time,
            }
        }
    }
}
