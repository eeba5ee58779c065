//! Capacity reservations for blocked gangs: scenarios, and gangs among small jobs on simulated clusters.

#[path = "gang_reservation/simulated_cluster.rs"]
mod simulated_cluster;

use dispatch::{ClusterRefusal, GangReservationPolicy, PlacementPolicy};
use engine::{Names, Time};
use proptest::prelude::*;

use simulated_cluster::{ClusterSimulation, QueuedJob, job};

fn reservation_policy(max_share: u8) -> PlacementPolicy {
    PlacementPolicy {
        gang_reservation: Some(GangReservationPolicy { after: 5, max_share }),
        ..PlacementPolicy::default()
    }
}

/// Small jobs of four on one cluster of two nodes of eight, one after the other, and a gang that needs both nodes.
fn small_jobs_and_a_gang(runs: Option<i64>) -> Vec<QueuedJob> {
    let small = |at: i64| QueuedJob { runs, ..job(at, 20, 1, 4) };
    let mut jobs: Vec<QueuedJob> = (0..60).map(|at| small(at * 5)).collect();
    jobs.push(job(22, 10, 2, 8));
    jobs
}

#[test]
fn without_a_reservation_small_jobs_starve_a_gang() {
    let mut clusters = ClusterSimulation::new(&[2], PlacementPolicy::default());
    clusters.run(&small_jobs_and_a_gang(None), 300);
    assert_eq!(clusters.started(60), None);
}

#[test]
fn the_oldest_gang_starts_when_earlier_work_has_ended() {
    for runs in [None, Some(20)] {
        let mut clusters = ClusterSimulation::new(&[2], reservation_policy(100));
        clusters.run(&small_jobs_and_a_gang(runs), 300);
        let started = clusters.started(60).expect("the gang runs");
        assert!(started <= 22 + 5 + 20, "{started} {runs:?}");
    }
}

#[test]
fn work_that_ends_before_the_reservation_is_admitted() {
    let mut clusters = ClusterSimulation::new(&[1], reservation_policy(100));
    let known = |at, lasts, gpus| QueuedJob { runs: Some(lasts), ..job(at, lasts, 1, gpus) };
    // The first job ends at 30. The gang of eight waits for it; a job of four fits beside the first until then.
    let jobs = [known(0, 30, 4), known(1, 9, 8), known(10, 15, 4), known(27, 15, 4)];
    clusters.run(&jobs, 100);
    let starts: Vec<_> = (0..4).map(|one| clusters.started(one)).collect();
    assert_eq!(starts, [Some(0), Some(30), Some(10), Some(39)]);
}

/// Jobs of two owners that ran before: three of 30 and three of 16 ticks.
fn history() -> Vec<QueuedJob> {
    let of = |owner, lasts| QueuedJob { owner: Some(owner), ..job(0, lasts, 1, 1) };
    [of("long", 30), of("short", 16)].into_iter().flat_map(|one| vec![one; 3]).collect()
}

#[test]
fn learned_run_times_count_as_declared_ones() {
    let mut clusters = ClusterSimulation::new(&[1], reservation_policy(100));
    clusters.run(&history(), 99);
    let of = |owner, at, lasts, gpus| QueuedJob { owner: Some(owner), ..job(at, lasts, 1, gpus) };
    // The first job ends at 130. The gang of eight waits for it; a short job fits beside the first until then, a long one and
    // one of unknown run time do not.
    let jobs = [
        of("long", 100, 30, 4),
        of("gang", 101, 9, 8),
        of("short", 110, 16, 2),
        of("long", 111, 30, 2),
        job(112, 5, 1, 2),
    ];
    clusters.run(&jobs, 200);
    let starts: Vec<_> = (6..11).map(|one| clusters.started(one)).collect();
    assert_eq!(starts, [Some(100), Some(130), Some(110), Some(139), Some(139)]);
}

#[test]
fn a_run_time_that_is_exceeded_is_not_known_any_more() {
    let mut clusters = ClusterSimulation::new(&[1], reservation_policy(100));
    clusters.run(&history(), 99);
    let of = |owner, at, lasts, gpus| QueuedJob { owner: Some(owner), ..job(at, lasts, 1, gpus) };
    clusters.run(&[of("long", 100, 70, 4), of("gang", 101, 9, 8)], 129);
    assert_eq!(clusters.fleet.reservations()[0].at, Some(Time(130)));
    assert_eq!(clusters.fleet.next_wake_at(), Some(Time(130)));
    clusters.run(&[of("short", 140, 16, 2)], 300);
    // While nothing is known of the first job, the short one might delay the gang.
    let starts: Vec<_> = (6..9).map(|one| clusters.started(one)).collect();
    assert_eq!(starts, [Some(100), Some(170), Some(179)]);
}

#[test]
fn a_refusal_names_the_run_time() {
    let mut clusters = ClusterSimulation::new(&[1], reservation_policy(100));
    clusters.run(&history(), 99);
    let of = |owner, at, gpus| QueuedJob { owner: Some(owner), ..job(at, 30, 1, gpus) };
    let declared = QueuedJob { runs: Some(50), ..job(110, 40, 1, 2) };
    clusters.run(
        &[of("long", 100, 4), of("gang", 101, 8), of("long", 110, 2), declared, job(110, 9, 1, 2)],
        120,
    );
    let names = Names::default();
    let reason = |job| clusters.refused[&job].reasons[0].1.message(&names).to_string();
    let kept = "keeps its room for one that has waited longer";
    assert_eq!(reason(8), format!("{kept}; this one runs for 1s (learned)"));
    assert_eq!(reason(9), format!("{kept}; this one runs for 1s (declared)"));
    assert_eq!(reason(10), format!("{kept}; the run time of this one is not known"));
}

#[test]
fn work_that_fits_beside_the_reservation_is_admitted() {
    let mut clusters = ClusterSimulation::new(&[2], reservation_policy(100));
    // The gang needs one of two nodes, and each has five of eight units in use. Three units fit beside it, three more
    // do not.
    let jobs =
        [job(0, 50, 1, 5), job(0, 50, 1, 5), job(1, 9, 1, 8), job(10, 200, 1, 3), job(11, 9, 1, 3)];
    clusters.run(&jobs, 100);
    assert_eq!((clusters.started(3), clusters.started(2)), (Some(10), Some(50)));
    assert_eq!(clusters.started(4), Some(50));
}

#[test]
fn nothing_is_reserved_before_the_waiting_time_nor_above_the_share() {
    for (policy, kept) in
        [(reservation_policy(100), 1), (reservation_policy(40), 0), (PlacementPolicy::default(), 0)]
    {
        let mut clusters = ClusterSimulation::new(&[2], policy.clone());
        clusters.run(&[job(0, 50, 1, 4), job(1, 9, 2, 8)], 4);
        assert_eq!(clusters.fleet.reservations().len(), 0, "it has not waited long enough");
        clusters.run(&[job(7, 50, 1, 4)], 9);
        assert_eq!(clusters.fleet.reservations().len(), kept, "{policy:?}");
        assert_eq!(clusters.started(2).is_some(), kept == 0, "{policy:?}");
    }
}

#[test]
fn nothing_is_reserved_on_a_cluster_that_never_fits_the_gang() {
    let mut clusters = ClusterSimulation::new(&[2, 4], reservation_policy(100));
    let jobs =
        [job(0, 50, 1, 4), job(0, 50, 4, 4), job(1, 9, 3, 8), job(2, 9, 9, 8), job(20, 9, 1, 4)];
    clusters.run(&jobs, 21);
    let [kept] = clusters.fleet.reservations() else {
        panic!("{:?}", clusters.fleet.reservations());
    };
    assert_eq!(
        clusters.fleet.name(kept.cluster),
        "c1",
        "three nodes are there only in the larger cluster"
    );
    assert_eq!(clusters.started(4), Some(20), "the other cluster is open");
}

#[test]
fn work_with_an_earlier_queue_position_is_not_bound() {
    let mut clusters = ClusterSimulation::new(&[2], reservation_policy(100));
    let urgent = QueuedJob { priority: 9, ..job(20, 9, 1, 4) };
    let jobs = [job(0, 50, 1, 4), job(1, 9, 2, 8), urgent, job(21, 9, 1, 4)];
    clusters.run(&jobs, 25);
    assert_eq!((clusters.started(2), clusters.started(3)), (Some(20), None));
    let refused = clusters.refused.get(&3).expect("refused");
    assert!(matches!(refused.reasons[0].1, ClusterRefusal::ReservedForGang { .. }), "{refused:?}");
}

#[test]
fn a_gang_that_lacks_something_else_gets_no_reservation() {
    let mut clusters = ClusterSimulation::new(&[2], reservation_policy(100));
    let jobs = [job(0, 50, 1, 4), job(1, 9, 2, 8), job(20, 9, 1, 4)];
    clusters.run(&jobs, 25);
    assert_eq!(clusters.started(2), None);
    clusters.fleet.pause_waiting(clusters.id(1));
    let woken = clusters.fleet.woken_keys(Time(25));
    assert_eq!(woken, [clusters.refused[&2].key], "room that is no longer kept wakes");
    assert!(clusters.fleet.reservations().iter().all(|one| one.workload != clusters.id(1)));
}

#[test]
fn a_reservation_moves_to_an_earlier_gang_once_that_has_waited_long_enough() {
    let mut clusters = ClusterSimulation::new(&[2, 4], reservation_policy(100));
    let known = QueuedJob { runs: Some(50), ..job(0, 50, 2, 8) };
    let urgent = QueuedJob { priority: 9, ..job(20, 9, 2, 8) };
    let jobs = [job(0, 50, 4, 5), known, job(1, 9, 4, 8), job(10, 9, 1, 3), urgent];
    clusters.run(&jobs, 24);
    assert_eq!(clusters.started(3), None, "it would be in the way of the older one");
    assert_eq!(clusters.fleet.next_wake_at(), Some(Time(25)));
    clusters.run(&[], 25);
    assert_eq!(
        clusters.started(3),
        Some(25),
        "the urgent one stands elsewhere, where the end is known"
    );
}

#[test]
fn without_refusals_nothing_is_reserved() {
    let mut clusters = ClusterSimulation::new(&[3], reservation_policy(100));
    clusters.run(&[job(0, 50, 1, 4), job(20, 50, 2, 8)], 60);
    assert_eq!((clusters.started(0), clusters.started(1)), (Some(0), Some(20)));
    assert_eq!((clusters.fleet.reservations(), clusters.fleet.next_wake_at()), (&[][..], None));
}

fn jobs() -> impl Strategy<Value = Vec<QueuedJob>> {
    let one = (0..60_i64, 1..30_i64, 1..5_i64, 1..9_i64, any::<bool>(), 0..40_u8);
    let one = one.prop_map(|(at, lasts, pods, gpus, known, late)| {
        // A run time that is known bounds how long it lasts.
        let runs = known.then_some(lasts + i64::from(late / 4));
        QueuedJob { runs, ..job(at, lasts, pods, gpus) }
    });
    prop::collection::vec(one, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_job_that_fits_an_empty_cluster_runs(jobs in jobs()) {
        let mut clusters = ClusterSimulation::new(&[2, 3], reservation_policy(100));
        clusters.run(&jobs, 3000);
        for (index, one) in jobs.iter().enumerate() {
            let fits = one.pods <= 3 * (8 / one.gpus);
            prop_assert_eq!(clusters.started(index).is_some(), fits, "{} {:?}", index, one);
        }
    }

    /// A gang with a reservation starts when all earlier work has ended, whatever arrives later.
    #[test]
    fn later_work_never_delays_a_reservation(jobs in jobs(), gang in 1..4_i64) {
        let late = 100;
        let mut jobs = jobs;
        jobs.push(job(61, 5, gang, 8));
        let last = jobs.len() - 1;
        jobs.extend((0..150).map(|at| job(62 + at, 25, 1, 3)));
        let mut clusters = ClusterSimulation::new(&[3], reservation_policy(100));
        clusters.run(&jobs, 2000);
        // One gang after the other takes at most as long as if all older ones ran alone.
        let before: i64 = jobs[..last].iter().map(|one| one.lasts).sum();
        let started = clusters.started(last);
        prop_assert!(started.is_some_and(|at| at <= 61 + 5 + before + late), "{:?} {}", started, before);
    }
}
