//! Model check of leases and fencing, over the machines that manager and agent run.
//!
//! `workload::decide` and `GrantIssuer` are the manager's half, `GrantHolder` the agent's. Writes arrive in any order, late, or
//! never; watches are late; leaders are replaced, and what they have sent arrives afterwards; agents restart; the connection is
//! cut; clocks differ by one percent from real time, in opposite directions. The states that are reachable within the bounds
//! are visited in breadth, and samples of them are played to the end of the job without a further fault.
//!
//! Not modelled: a create that is applied twice (it is sent once, over one connection; every other write names the version or the
//! uid that it was decided on, so that its second application is refused), and under Timed an agent that does not reach its own API
//! server, which Timed assumes (docs/reference/dispatch.md §8).
//! `LEASE_MODEL_STATES` sets the number of states per exploration, and `make bench` a larger one.

mod agent;
mod explorer;
mod leader;
mod steps;
mod world;

use dispatch::Fencing;
use explorer::{Exploration, explore};
use steps::WorldStep;
use world::{FaultBudget, Message, Setting, Weakened, World, worker_b};

/// States of one exploration, and of one that has to find a violation.
const STATES: usize = 10_000;
const STATES_TO_VIOLATION: usize = 150_000;

/// One state in so many is played to its end without a further fault.
const SAMPLE: usize = 500;

const NO_FAULTS: FaultBudget = FaultBudget {
    ticks: 0,
    cuts: 0,
    takeovers: 0,
    agent_restarts: 0,
    evictions: 0,
    losses: 0,
    shortenings: 0,
};

/// Where an exploration begins.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// Worker `a` is nominated, and the create is on its way.
    Created,
    /// The copy on worker `a` runs.
    Running,
    /// The copy on worker `a` runs. The policy gets the shorter duration, the worker is cut off, and another leader begins.
    Shortened,
    /// Worker `a` was fenced before the create arrived, and the Workload runs on worker `b`.
    Moved,
    /// After that another leader begins and reaches worker `a`. The Workload that it has watched is nominated there.
    Succeeded,
}

impl Begin {
    fn play(self, world: World) -> World {
        let creates =
            |world: &World| world.flight.iter().any(|one| matches!(one, Message::Create { .. }));
        match self {
            Self::Created => world.played_until(creates),
            Self::Running => world.played_until(World::runs_on_a),
            Self::Shortened => {
                let faults = [WorldStep::Shorten, WorldStep::Cut, WorldStep::Takeover];
                world.played_until(World::runs_on_a).played(faults.into_iter())
            }
            Self::Moved | Self::Succeeded => {
                let ticks = std::iter::repeat_n(WorldStep::Tick, 4);
                let moves = [WorldStep::LeaderDecides, WorldStep::Nominate(worker_b())];
                let steps = [WorldStep::Cut].into_iter().chain(ticks).chain(moves);
                world.played_until(creates).played(steps)
            }
        }
    }
}

fn run(
    (fencing, weakened): (Fencing, Weakened),
    begin: Begin,
    budget: FaultBudget,
    states: usize,
) -> Exploration<WorldStep> {
    let setting = Setting { fencing, weakened, slow_hub: false, leader_rate: 101, agent_rate: 99 };
    let mut world = begin.play(World::new(setting, budget));
    world.setting.slow_hub = budget.takeovers > 0;
    if matches!(begin, Begin::Succeeded) {
        let sees = [WorldStep::LeaderSeesRecord, WorldStep::LeaderSeesWorker];
        world = world.played([WorldStep::Takeover, WorldStep::Heal].into_iter().chain(sees));
    }
    let found = explore(world, states, SAMPLE);
    let Exploration { states, complete, .. } = &found;
    eprintln!(
        "{fencing:?}, {weakened:?} missing, from {begin:?}, {budget:?}: {states} states, all: {complete}"
    );
    found
}

fn check(fencing: Fencing, begin: Begin, budget: FaultBudget) {
    check_states(fencing, begin, budget, STATES);
}

fn check_states(fencing: Fencing, begin: Begin, budget: FaultBudget, states: usize) {
    let wanted = std::env::var("LEASE_MODEL_STATES").ok().and_then(|wanted| wanted.parse().ok());
    let machines = (fencing, Weakened::Nothing);
    let found = run(machines, begin, budget, wanted.unwrap_or(states));
    assert!(found.counterexample.is_none(), "{:#?}", found.counterexample);
}

/// Visits every state within the bounds.
fn check_all(begin: Begin, budget: FaultBudget) {
    let found = run((Fencing::Timed, Weakened::Nothing), begin, budget, STATES_TO_VIOLATION);
    assert!(found.counterexample.is_none(), "{:#?}", found.counterexample);
    assert!(found.complete, "more than {STATES_TO_VIOLATION} states from {begin:?}");
}

/// The violation that the machines cannot prevent without a part of the messages.
fn violation(weakened: Weakened, begin: Begin, budget: FaultBudget) -> String {
    let found = run((Fencing::Timed, weakened), begin, budget, STATES_TO_VIOLATION);
    let (violation, path) = found.counterexample.expect("a counterexample");
    eprintln!("{violation} after {path:?}");
    violation
}

#[test]
fn a_copy_that_runs_on_a_lost_worker_has_stopped_before_another_starts() {
    let budget = FaultBudget { ticks: 5, cuts: 1, ..NO_FAULTS };
    check(Fencing::Timed, Begin::Running, budget);
    check(Fencing::Timed, Begin::Running, FaultBudget { agent_restarts: 2, ..budget });
}

#[test]
fn a_create_that_arrives_after_the_fence_starts_nothing() {
    let budget = FaultBudget { ticks: 7, cuts: 1, agent_restarts: 1, ..NO_FAULTS };
    check(Fencing::Timed, Begin::Created, budget);
    check(Fencing::Timed, Begin::Moved, budget);
}

#[test]
fn a_new_leader_starts_nothing_beside_what_the_former_one_has_sent() {
    let faults = FaultBudget { cuts: 1, takeovers: 2, evictions: 1, losses: 1, ..NO_FAULTS };
    check(Fencing::Timed, Begin::Created, FaultBudget { ticks: 6, ..faults });
    check(Fencing::Timed, Begin::Running, FaultBudget { ticks: 6, ..faults });
    let moved = FaultBudget { ticks: 4, cuts: 1, takeovers: 1, ..NO_FAULTS };
    check(Fencing::Timed, Begin::Moved, moved);
    check_states(Fencing::Timed, Begin::Succeeded, moved, 2 * STATES + STATES / 2);
}

#[test]
fn a_new_leader_counts_the_grants_of_a_policy_that_became_shorter() {
    let budget = FaultBudget { ticks: 8, cuts: 1, takeovers: 1, shortenings: 1, ..NO_FAULTS };
    check(Fencing::Timed, Begin::Running, budget);
    check(Fencing::Timed, Begin::Shortened, FaultBudget { agent_restarts: 1, ..budget });
}

#[test]
fn confirmed_fencing_waits_for_the_worker() {
    let budget = FaultBudget {
        ticks: 2,
        cuts: 2,
        takeovers: 1,
        evictions: 1,
        agent_restarts: 1,
        losses: 1,
        shortenings: 0,
    };
    check(Fencing::Confirmed, Begin::Created, budget);
    check(Fencing::Confirmed, Begin::Running, budget);
}

/// The other explorations end at a number of states, nearest first; these end because nothing else can happen.
#[test]
fn few_faults_are_explored_to_the_end() {
    check_all(Begin::Created, FaultBudget { ticks: 2, cuts: 1, ..NO_FAULTS });
    let running = |faults| check_all(Begin::Running, faults);
    running(FaultBudget { ticks: 2, cuts: 1, agent_restarts: 1, ..NO_FAULTS });
    running(FaultBudget { ticks: 1, takeovers: 1, ..NO_FAULTS });
    running(FaultBudget { ticks: 1, evictions: 1, losses: 1, ..NO_FAULTS });
    // The beginning takes a cut, a takeover and the change of the policy out of the budget.
    let shortened = FaultBudget { cuts: 1, takeovers: 2, shortenings: 1, ticks: 1, ..NO_FAULTS };
    check_all(Begin::Shortened, shortened);
    check_all(Begin::Moved, FaultBudget { ticks: 4, cuts: 1, ..NO_FAULTS });
}

#[test]
fn without_the_echo_a_delayed_hub_lease_lets_a_lost_copy_run_on() {
    let budget = FaultBudget { ticks: 6, cuts: 1, ..NO_FAULTS };
    assert!(violation(Weakened::Echo, Begin::Running, budget).starts_with("two copies run"));
}

#[test]
fn without_the_session_a_create_from_before_the_fence_starts() {
    let budget = FaultBudget { ticks: 5, cuts: 1, ..NO_FAULTS };
    assert!(violation(Weakened::Session, Begin::Moved, budget).starts_with("two copies run"));
}

#[test]
fn without_the_term_a_create_of_a_former_leader_starts() {
    let budget = FaultBudget { takeovers: 1, evictions: 1, ..NO_FAULTS };
    assert!(violation(Weakened::Term, Begin::Created, budget).starts_with("two copies run"));
}
