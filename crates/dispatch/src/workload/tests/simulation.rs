//! One Workload, a hub and its workers on a virtual clock, with injected faults.
//!
//! Calls wait until they are delivered, in any order, and their answers may be lost. Watch events arrive late but in
//! order per cluster, also later than the answers to calls. Connections end and return, with or without a list; the hub's process
//! restarts at any time, and what the next process sees of the hub may be older than what the former one wrote. A connection that
//! ends applies or drops its calls, but does not delay them. On a half-open connection the calls are given up without an answer
//! and may be applied as long as no later read was answered. The bookkeeping of creates is [`UnsettledCreates`], as in the
//! manager. Agents admit, refuse, evict, run and stop at any time.
//!
//! A Workload that requires its checkpoint is recorded on one cluster only: the write that raises the epoch names the next one.
//! Two clusters never run pods at the same time, except for one that was lost for `worker_lost_timeout`. After the
//! faults stop, the Workload finishes once, and no copy is left.

mod agent;
mod fault;
mod hub;
mod machine;
mod worker;

use engine::{Time, ids::ClusterId};
use proptest::prelude::*;

use self::{agent::*, fault::*, hub::*, machine::*, worker::*};
use crate::{CopyHistory, CreateAnswer, ReadAnswer, UnsettledCreates, workload::*};

const SETTINGS: DispatchTimeouts = DispatchTimeouts {
    worker_lost_timeout: 100,
    admission_timeout: 60,
    start_timeout: 60,
    preemption_timeout: 30,
};

proptest! {
    #[test]
    fn one_cluster_runs_the_workload_and_it_finishes_once(
        workers in 2..4_usize,
        dispatcher in prop::sample::select(&DISPATCHERS[..]),
        requires_checkpoint in any::<bool>(),
        faults in prop::collection::vec(fault(), 1..300),
    ) {
        let mut simulation = DispatchSimulation::new(workers, dispatcher, SETTINGS);
        simulation.requires_checkpoint = requires_checkpoint;
        for fault in &faults {
            simulation.play(fault);
            simulation.check()?;
        }
        for _ in 0..200 {
            (0..workers).for_each(|at| simulation.heal(at));
            simulation.workers.iter_mut().for_each(|worker| worker.stuck = false);
            simulation.calm(&KIND);
            simulation.check()?;
        }
        prop_assert!(simulation.is_over(), "{:#?}", simulation);
        prop_assert_eq!(simulation.finishes, 1);
    }
}

const DISPATCHERS: [SimulatedDispatcher; 3] =
    [SimulatedDispatcher::Single, SimulatedDispatcher::Race, SimulatedDispatcher::Queue];

/// Runs rounds without faults until `done`.
fn until(
    simulation: &mut DispatchSimulation,
    does: &[SimulatedAgent],
    done: impl Fn(&DispatchSimulation) -> bool,
) {
    for _ in 0..200 {
        if done(simulation) {
            return;
        }
        simulation.calm(does);
    }
    panic!("it never came to that: {simulation:#?}");
}

/// The property is meaningful only if the simulation can show two running copies.
#[test]
fn work_of_a_lost_cluster_starts_elsewhere_only_after_worker_lost_timeout() {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Single, SETTINGS);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[0].runs());
    until(&mut simulation, &SLOW, |simulation| {
        simulation.truth.hub.check == DispatchCheckState::Ready
    });
    let cut = simulation.now;
    simulation.cut(0, 0);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[1].runs());
    assert!(simulation.workers[0].runs(), "no stop can reach it");
    assert!(simulation.now >= cut + SETTINGS.worker_lost_timeout);
    simulation.heal(0);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[0].is_empty());
    assert!(simulation.workers[1].runs(), "the recorded copy stays");
}

#[test]
fn work_of_a_cluster_whose_lists_never_end_starts_elsewhere_and_the_old_copy_is_removed_later() {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Single, SETTINGS);
    until(&mut simulation, &SLOW, |simulation| {
        simulation.workers[0].runs() && simulation.truth.hub.check == DispatchCheckState::Ready
    });
    let cut = simulation.now;
    simulation.cut(0, 0);
    simulation.workers[0].stuck = true;
    simulation.heal(0);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[1].runs());
    assert!(simulation.now >= cut + SETTINGS.worker_lost_timeout);
    simulation.workers[0].stuck = false;
    until(&mut simulation, &SLOW, |simulation| simulation.workers[0].is_empty());
    assert!(simulation.workers[1].runs(), "the recorded copy stays");
}

#[test]
fn a_dispatch_without_faults_raises_no_epoch() {
    for dispatcher in DISPATCHERS {
        let mut simulation = DispatchSimulation::new(2, dispatcher, SETTINGS);
        until(&mut simulation, &KIND, DispatchSimulation::is_over);
        assert_eq!((simulation.truth.hub.epoch, simulation.finishes), (1, 1));
    }
}

/// Both clusters admit in the same second, the first by name a moment later: while the deletion of its clone is on the way.
#[test]
fn clusters_that_admit_at_the_same_time_do_not_lose_both_clones() {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Race, SETTINGS);
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| {
        simulation.workers.iter().all(|worker| worker.seen.clone.is_some())
    });
    for worker in [1, 0] {
        simulation.agent(worker, SimulatedAgent::Admit);
        simulation.show(worker);
        simulation.decide(false);
    }
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| simulation.workers[1].runs());
    assert!(simulation.workers[0].is_empty());
    assert_eq!(simulation.truth.hub.epoch, 1);
}

/// What agents do that admit nothing by themselves.
const WITHOUT_ADMISSION: [SimulatedAgent; 3] =
    [SimulatedAgent::Start, SimulatedAgent::Stop, SimulatedAgent::Remove];

/// A Workload that waits for the queue of the first cluster and moves to the second one.
fn waiting_on_both() -> DispatchSimulation {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Queue, SETTINGS);
    let waits = |worker: &SimulatedWorker| worker.seen.clone.is_some();
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| waits(&simulation.workers[0]));
    simulation.play(&InjectedFault::Move { worker: 1 });
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| waits(&simulation.workers[1]));
    simulation
}

#[test]
fn a_move_takes_the_workload_to_another_cluster_within_its_epoch() {
    let mut simulation = waiting_on_both();
    assert!(simulation.workers[0].seen.clone.is_some(), "it keeps its place in the queue");
    simulation.agent(1, SimulatedAgent::Admit);
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| simulation.workers[1].runs());
    assert!(simulation.workers[0].is_empty());
    assert_eq!(simulation.truth.hub.epoch, 1);
}

#[test]
fn a_queue_that_decides_during_a_move_keeps_the_workload() {
    let mut simulation = waiting_on_both();
    simulation.agent(0, SimulatedAgent::Admit);
    simulation.now += 1;
    simulation.agent(1, SimulatedAgent::Admit);
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| simulation.workers[0].runs());
    assert!(simulation.workers[1].is_empty());
}
