//! Random worlds with everything: quotas, preemption, fair sharing, topologies, a placer, and changing objects.
//! After every step the invariants of `world/checks.rs` must hold.
//!
//! Runs for two seconds, or for `SLUICE_FUZZ_SECONDS`. A failing case is shrunk and printed as lines of the
//! scenario language.

mod play;
#[path = "world/what_ifs.rs"]
mod what_ifs;
mod world;

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestRunner};

use crate::what_ifs::{Supposition, what_ifs};
use crate::world::lines::{PreemptionPolicies, configuration_change, objects, settings, step};
use crate::world::slices_and_variants::slice_or_variant;
use crate::world::topology_workloads::{NODES, node_changes, node_failures, topology_workload};
use crate::world::{World, WorldStep, decisions};

const USUAL_SECONDS: u64 = 2;

#[test]
fn all_invariants_hold_in_random_worlds() {
    let asked = std::env::var("SLUICE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(asked.unwrap_or(USUAL_SECONDS));
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::with_cases(8)
    };
    let mut runner = TestRunner::new(config);
    while Instant::now() < end {
        if let Err(failure) = runner.run(&case(), |case| play(&case)) {
            panic!("{failure}");
        }
    }
}

/// A world and what happens in it.
#[derive(Debug)]
struct Case {
    settings: String,
    objects: Vec<String>,
    steps: Vec<WorldStep>,
    /// Hypothetical events before each step of a second run.
    what_ifs: Vec<Vec<Supposition>>,
}

fn case() -> impl Strategy<Value = Case> {
    let policies = select(vec![
        PreemptionPolicies::Free,
        PreemptionPolicies::Free,
        PreemptionPolicies::WithinQueue,
        PreemptionPolicies::OnePreemptor,
    ]);
    let objects = policies.prop_flat_map(objects).prop_map(|mut objects| {
        objects.extend(NODES.map(str::to_owned));
        objects
    });
    let any = prop_oneof![
        20 => step(true),
        6 => topology_workload(),
        6 => configuration_change(),
        4 => node_changes(),
        3 => node_failures(),
        1 => cohort_cycles(),
        2 => usage(),
        4 => slice_or_variant(),
    ];
    let all = (settings(), objects, vec(any, 1..120), vec(what_ifs(), 1..20));
    all.prop_map(|(settings, objects, steps, what_ifs)| Case { settings, objects, steps, what_ifs })
}

/// Admission fair sharing, releases into a requeue backoff, and the passing of time.
fn usage() -> impl Strategy<Value = WorldStep> {
    let lines = prop_oneof![
        Just("admission-fair-sharing half-life=5 interval=1".to_owned()),
        Just("admission-fair-sharing half-life=5 interval=2 gpu=0.5".to_owned()),
        Just("sample".to_owned()),
        Just("wait 1".to_owned()),
        (0..5, 0..9).prop_map(|(own, gpus)| format!("consumed q{own} gpu={gpus}")),
        (0..5, 0..3).prop_map(|(own, weight)| format!("lq q{own} cq=q{own} weight={weight}")),
        (0..10).prop_map(|index| format!("admitted w{index}")),
        (0..10).prop_map(|index| format!("release w{index} t=1 hold=requeue")),
        Just("second-pass".to_owned()),
    ];
    lines.prop_map(WorldStep::Say)
}

/// Random cohort parents: cycles appear and disappear.
fn cohort_cycles() -> impl Strategy<Value = WorldStep> {
    (0..3, 0..3).prop_map(|(own, parent)| WorldStep::Say(format!("cohort c{own} parent=c{parent}")))
}

fn play(case: &Case) -> Result<(), TestCaseError> {
    let mut world = World::new(&case.settings, &case.objects);
    for step in &case.steps {
        let before = world.held();
        let entries = world.play(step);
        world.node_replacements_keep_other_pods(&before, &entries)?;
        world.every_workload_is_in_exactly_one_place()?;
        world.every_workload_has_an_explanation()?;
        if matches!(step, WorldStep::Cycle) {
            world.outcomes_match_the_state(&entries)?;
            world.no_admission_exceeds_a_limit(&entries)?;
            world.usage_is_the_sum_of_reservations()?;
            world.the_state_equals_a_rebuilt_one()?;
        }
    }
    again(&world)?;
    with_what_ifs(case, &world)?;
    in_parts(case, &world)?;
    reevaluating_refusals(case)?;
    world.reaches_a_fixed_point();
    world.every_workload_is_in_exactly_one_place()?;
    world.the_state_equals_a_rebuilt_one()
}

/// What-ifs leave the state and all decisions unchanged.
fn with_what_ifs(case: &Case, world: &World) -> Result<(), TestCaseError> {
    let mut other = World::new(&case.settings, &case.objects);
    for (step, what_ifs) in case.steps.iter().zip(case.what_ifs.iter().cycle()) {
        other.suppose(what_ifs)?;
        other.play(step);
    }
    if world.player.trace == other.player.trace {
        return Ok(());
    }
    Err(world.failure(&format!("with what-ifs in between it was\n{}", other.player.trace)))
}

/// A cycle in parts decides like a whole one.
fn in_parts(case: &Case, world: &World) -> Result<(), TestCaseError> {
    let mut other = World::new(&case.settings, &case.objects);
    other.player.part = 1;
    for step in &case.steps {
        other.play(step);
    }
    if world.player.trace == other.player.trace {
        return Ok(());
    }
    Err(world.failure(&format!("in parts it was\n{}", other.player.trace)))
}

/// Skipping heads whose refusal is known changes nothing.
fn reevaluating_refusals(case: &Case) -> Result<(), TestCaseError> {
    let mut world = World::new(&case.settings, &case.objects);
    let mut reevaluating =
        World::new(&format!("{} reevaluate-refused", case.settings), &case.objects);
    for step in &case.steps {
        if decisions(&world.play(step)) != decisions(&reevaluating.play(step)) {
            let seen = &reevaluating.player.trace;
            return Err(world.failure(&format!("looking again at everybody it was\n{seen}")));
        }
    }
    Ok(())
}

/// The same lines give the same trace.
fn again(world: &World) -> Result<(), TestCaseError> {
    let other = World::new(&world.settings, &world.lines[1..]);
    if world.player.trace == other.player.trace {
        return Ok(());
    }
    Err(world.failure(&format!("the second time it was\n{}", other.player.trace)))
}
