//! Random worlds with everything in them: quotas, preemption, fair sharing, topologies, a placer, and objects that come,
//! change and go. After every step the promises of `world/checks.rs` must hold.
//!
//! Runs for two seconds, or for as many as `SLUICE_FUZZ_SECONDS` says. A failing case is shrunk and printed as lines of
//! the language of scenarios.

mod play;
#[path = "world/whims.rs"]
mod whims;
mod world;

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestRunner};

use crate::whims::{Whim, whims};
use crate::world::kin::kin;
use crate::world::lines::{Manners, objects, settings, step, upheaval};
use crate::world::places::{MACHINES, failures, machines, placed};
use crate::world::{Step, World, decisions};

const USUAL_SECONDS: u64 = 2;

#[test]
fn every_promise_holds_in_random_worlds() {
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
    steps: Vec<Step>,
    /// What is supposed before each step of a second run.
    whims: Vec<Vec<Whim>>,
}

fn case() -> impl Strategy<Value = Case> {
    let manners = select(vec![Manners::Free, Manners::Free, Manners::AtHome, Manners::OneTaker]);
    let objects = manners.prop_flat_map(objects).prop_map(|mut objects| {
        objects.extend(MACHINES.map(str::to_owned));
        objects
    });
    let any = prop_oneof![
        20 => step(true),
        6 => placed(),
        6 => upheaval(),
        4 => machines(),
        3 => failures(),
        1 => rings(),
        2 => usage(),
        4 => kin(),
    ];
    let all = (settings(), objects, vec(any, 1..120), vec(whims(), 1..20));
    all.prop_map(|(settings, objects, steps, whims)| Case { settings, objects, steps, whims })
}

/// LocalQueues share by usage, backoffs begin, and time passes.
fn usage() -> impl Strategy<Value = Step> {
    let lines = prop_oneof![
        Just("admission-fair-sharing half-life=5 interval=1".to_owned()),
        Just("admission-fair-sharing half-life=5 interval=2 gpu=0.5".to_owned()),
        Just("sample".to_owned()),
        Just("wait 1".to_owned()),
        (0..5, 0..9).prop_map(|(own, gpus)| format!("consumed q{own} gpu={gpus}")),
        (0..5, 0..3).prop_map(|(own, weight)| format!("lq q{own} cq=q{own} weight={weight}")),
        (0..10).prop_map(|index| format!("admitted w{index}")),
        (0..10, 1..4).prop_map(|(index, end)| format!("release w{index} t=1 hold={end}")),
        Just("second-pass".to_owned()),
    ];
    lines.prop_map(Step::Say)
}

/// Cohorts under each other, in any order: rings come and go.
fn rings() -> impl Strategy<Value = Step> {
    (0..3, 0..3).prop_map(|(own, parent)| Step::Say(format!("cohort c{own} parent=c{parent}")))
}

fn play(case: &Case) -> Result<(), TestCaseError> {
    let mut world = World::new(&case.settings, &case.objects);
    for step in &case.steps {
        let before = world.held();
        let entries = world.play(step);
        world.replacements_keep_their_word(&before, &entries)?;
        world.nobody_is_lost_or_in_two_places()?;
        world.everybody_can_be_told_why()?;
        if matches!(step, Step::Cycle) {
            world.a_cycle_keeps_its_word(&entries)?;
            world.no_admission_exceeds_a_limit(&entries)?;
            world.usage_is_the_sum_of_what_is_held()?;
            world.nothing_of_a_what_if_stays_in_the_books()?;
        }
    }
    again(&world)?;
    with_whims(case, &world)?;
    in_parts(case, &world)?;
    looking_again(case)?;
    world.comes_to_rest();
    world.nobody_is_lost_or_in_two_places()?;
    world.nothing_of_a_what_if_stays_in_the_books()
}

/// What is only supposed leaves nothing in the books and changes no decision.
fn with_whims(case: &Case, world: &World) -> Result<(), TestCaseError> {
    let mut other = World::new(&case.settings, &case.objects);
    for (step, whims) in case.steps.iter().zip(case.whims.iter().cycle()) {
        other.imagine(whims)?;
        other.play(step);
    }
    if world.player.trace == other.player.trace {
        return Ok(());
    }
    Err(world.refute(&format!("with what-ifs in between it was\n{}", other.player.trace)))
}

/// A cycle in parts decides like one in one piece.
fn in_parts(case: &Case, world: &World) -> Result<(), TestCaseError> {
    let mut other = World::new(&case.settings, &case.objects);
    other.player.part = 1;
    for step in &case.steps {
        other.play(step);
    }
    if world.player.trace == other.player.trace {
        return Ok(());
    }
    Err(world.refute(&format!("in parts it was\n{}", other.player.trace)))
}

/// Whoever is not evaluated because its refusal is known would have been refused.
fn looking_again(case: &Case) -> Result<(), TestCaseError> {
    let mut world = World::new(&case.settings, &case.objects);
    let mut thorough = World::new(&format!("{} reevaluate-refused", case.settings), &case.objects);
    for step in &case.steps {
        if decisions(&world.play(step)) != decisions(&thorough.play(step)) {
            let seen = &thorough.player.trace;
            return Err(world.refute(&format!("looking again at everybody it was\n{seen}")));
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
    Err(world.refute(&format!("the second time it was\n{}", other.player.trace)))
}
