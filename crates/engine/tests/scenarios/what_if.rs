//! What-ifs: hypothetical decisions that leave no trace.

use engine::{CycleOutcome, Event, Time, WhatIf};

use crate::play::Player;

/// A full queue of 4, and a pending Workload that requests 3.
fn full() -> Player {
    let mut player = Player::new();
    for line in [
        "cq team-a gpu/h100=4",
        "wl large q=team-a gpu=4 t=1",
        "wl waits q=team-a gpu=3 t=2",
        "cycle 2",
    ] {
        player.line(line);
    }
    player
}

/// Everything an engine reports.
fn everything(player: &Player) -> String {
    let engine = &player.engine;
    let queue = engine.names().queues.get("team-a").expect("known");
    let lines = (
        engine.reserving_workloads(queue),
        engine.active_workloads(queue),
        engine.inadmissible_workloads(queue),
    );
    format!("{}{lines:?}", engine.debug_dump())
}

/// The decision about a Workload in a hypothetical cycle, and whether the state is unchanged afterwards.
fn suppose(
    player: &mut Player,
    name: &str,
    change: impl FnOnce(&mut WhatIf<'_>),
) -> Option<CycleOutcome> {
    let id = player.engine.names().workloads.get(name).expect("known");
    let before = everything(player);
    let mut what_if = player.engine.what_if();
    change(&mut what_if);
    let entries = what_if.cycle(Time(9), &mut engine::AcceptAll);
    let outcome = entries.iter().find(|one| one.workload == id).map(|one| one.outcome);
    drop(what_if);
    assert_eq!(everything(player), before);
    assert!(player.cycle().is_empty(), "no Workload was requeued");
    outcome
}

#[test]
fn a_what_if_without_other_workloads_fits() {
    let mut player = full();
    let outcome = suppose(&mut player, "waits", |what_if| {
        let large = what_if.names().workloads.get("large").expect("known");
        what_if.apply(Event::WorkloadGone(large));
    });
    assert_eq!(outcome, Some(CycleOutcome::Reserved { cluster: None }));
}

#[test]
fn a_what_if_with_more_quota_fits() {
    for (more, fits) in [(6, false), (7, true)] {
        let mut player = full();
        let Some(Event::ClusterQueue(id, Some(spec))) =
            player.known.get(&("cq", "team-a".to_owned())).cloned()
        else {
            panic!("a queue");
        };
        let outcome = suppose(&mut player, "waits", |what_if| {
            let mut spec = spec;
            spec.groups[0].flavors[0].resources[0].nominal.0 = more;
            what_if.apply(Event::ClusterQueue(id, Some(spec)));
        });
        assert_eq!(outcome == Some(CycleOutcome::Reserved { cluster: None }), fits);
    }
}

#[test]
fn a_what_if_may_submit_a_workload() {
    let mut player = full();
    let Some(Event::Workload(_, spec)) = player.known.get(&("wl", "waits".to_owned())).cloned()
    else {
        panic!("a Workload");
    };
    let new = player.engine.names_mut().workloads.intern("new");
    let outcome = suppose(&mut player, "new", |what_if| {
        let mut spec = spec;
        spec.pod_sets[0].requests[0].1.0 = 9;
        what_if.apply(Event::Workload(new, spec));
    });
    assert_eq!(outcome, Some(CycleOutcome::NoFit));
    assert_eq!(player.engine.admission(new), None);
}

#[test]
fn every_what_if_starts_from_the_same_state() {
    let mut player = full();
    for _ in 0..3 {
        let outcome = suppose(&mut player, "waits", |what_if| {
            let large = what_if.names().workloads.get("large").expect("known");
            what_if.apply(Event::ReservationWithdrawn(large));
        });
        assert_eq!(outcome, None, "the other is first in line again");
    }
}
