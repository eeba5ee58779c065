//! What holds whatever happens, checked on random worlds. See `world/mod.rs`.

#[path = "world/crowd.rs"]
mod crowd;
mod play;
#[path = "world/preferring.rs"]
mod preferring;
#[path = "world/told.rs"]
mod told;
#[path = "world/tournament.rs"]
mod tournament;
#[path = "world/twins.rs"]
mod twins;
#[path = "world/waking.rs"]
mod waking;
#[path = "world/whims.rs"]
mod whims;
mod world;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::crowd::{bustle, crowded};
use crate::told::led;
use crate::whims::whims;
use crate::world::kin::kin;
use crate::world::lines::{Manners, objects, settings, step, upheaval};
use crate::world::model::Model;
use crate::world::places::{MACHINES, failures, machines, placed};
use crate::world::{Step, World, decisions};

fn anything() -> impl Strategy<Value = Step> {
    prop_oneof![5 => step(true), 1 => upheaval()]
}

/// Two queues of one cohort, in which slices and variants have room for some of what they ask.
fn house() -> impl Strategy<Value = Vec<String>> {
    let quotas = (1..4_i64, 1..4_i64, 1..4_i64, 1..4_i64);
    let policies = select(vec!["", " within=lower", " reclaim=any", " within=newer reclaim=lower"]);
    let last = select(vec!["", "", " last=spot"]);
    (quotas, policies, last).prop_map(|((a, b, c, d), policies, last)| {
        vec![
            format!("cq q0 cohort=c0{policies}{last} gpu/spot={a} gpu/h100={b}"),
            format!("cq q1 cohort=c0{policies} gpu/spot={c} gpu/h100={d}"),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn usage_is_the_sum_of_what_is_held_at_every_node(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
            if matches!(step, Step::Cycle) {
                world.usage_is_the_sum_of_what_is_held()?;
            }
        }
    }

    #[test]
    fn no_admission_exceeds_a_limit_once_the_victims_are_gone(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            let entries = world.play(step);
            world.a_cycle_keeps_its_word(&entries)?;
            world.no_admission_exceeds_a_limit(&entries)?;
        }
    }

    #[test]
    fn nobody_is_lost_or_in_two_places(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
            world.nobody_is_lost_or_in_two_places()?;
            world.everybody_can_be_told_why()?;
        }
    }

    #[test]
    fn a_what_if_leaves_the_books_as_they_were(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
            if matches!(step, Step::Cycle) {
                world.nothing_of_a_what_if_stays_in_the_books()?;
            }
        }
    }

    #[test]
    fn a_cycle_that_gives_nothing_changes_nothing(
        settings in settings(), objects in objects(Manners::Free), steps in vec(step(true), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
        }
        world.play(&Step::Cycle);
        let before = world.player.engine.debug_dump();
        for flavor in ["spot", "h100", "x86"] {
            world.say(&format!("capacity {flavor}=0"));
        }
        world.play(&Step::Cycle);
        prop_assert_eq!(before, world.player.engine.debug_dump());
    }

    #[test]
    fn the_same_events_give_the_same_decisions(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let (mut one, mut other) =
            (World::new(&settings, &objects), World::new(&settings, &objects));
        for step in &steps {
            one.play(step);
            other.play(step);
        }
        prop_assert_eq!(one.player.trace, other.player.trace);
    }

    /// One flavor per resource: with several, a head goes on where its last scan of flavors stopped and, as in
    /// upstream, may overlook what became free behind it until the next wake-up. No placer either: who waits for room
    /// is woken by room alone.
    #[test]
    fn wake_ups_never_miss(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let objects: Vec<String> = objects.iter().map(|line| without_spot(line)).collect();
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            match step {
                Step::Say(line) if line.starts_with("capacity") => continue,
                step if world.tells_a_holder_again(step) => continue,
                Step::Say(line) => world.play(&Step::Say(without_spot(line))),
                other => world.play(other),
            };
        }
        world.wake_ups_never_miss()?;
    }

    /// One queue: of two, a head that loses its place to another's reservation is parked like one that finds none, as
    /// in upstream, and may miss that the reservation ends with the cycle.
    #[test]
    fn wake_ups_never_miss_a_place(
        settings in settings(),
        steps in vec(prop_oneof![4 => placed(), 6 => step(false), 1 => machines()], 1..60),
    ) {
        let mut world = World::new(&settings, &MACHINES.map(str::to_owned));
        for step in steps {
            let elsewhere = matches!(&step, Step::Submit(_, words) if !words.starts_with("q=t0"));
            if !elsewhere && !world.tells_a_holder_again(&step) {
                world.play(&step);
            }
        }
        world.wake_ups_never_miss()?;
    }

    /// Whoever is not evaluated because its refusal is known would have been refused: at every step both worlds have
    /// decided the same, and the same Workloads wait in the same order.
    #[test]
    fn to_look_again_at_those_who_must_be_refused_changes_nothing(
        settings in settings(),
        (objects, steps) in prop_oneof![
            1 => (objects(Manners::Free), vec(anything(), 1..80)),
            3 => (crowded(), vec(bustle(), 1..200)),
        ],
    ) {
        let mut world = World::new(&settings, &objects);
        let mut thorough = World::new(&format!("{settings} reevaluate-refused"), &objects);
        for step in &steps {
            let decided = decisions(&world.play(step));
            prop_assert_eq!(decided, decisions(&thorough.play(step)));
            world.waits_like(&thorough)?;
        }
    }

    #[test]
    fn a_cycle_in_parts_decides_like_one_in_one_piece(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..80),
        part in 1..4_usize,
    ) {
        let mut world = World::new(&settings, &objects);
        let mut parts = World::new(&settings, &objects);
        parts.player.part = part;
        for step in &steps {
            world.play(step);
            parts.play(step);
        }
        prop_assert_eq!(world.player.trace, parts.player.trace);
    }

    #[test]
    fn a_cycle_that_is_cut_short_loses_nobody(
        settings in settings(), objects in crowded(),
        steps in vec((bustle(), prop::option::weighted(0.3, 0..20_usize)), 1..80),
    ) {
        let mut world = World::new(&settings, &objects);
        world.player.part = 1;
        for (step, cut) in &steps {
            world.play(step);
            if let Some(parts) = cut {
                world.say(&format!("abort-after {parts}"));
            }
            world.nobody_is_lost_or_in_two_places()?;
            if matches!(step, Step::Cycle) || cut.is_some() {
                world.nothing_of_a_what_if_stays_in_the_books()?;
                world.usage_is_the_sum_of_what_is_held()?;
            }
        }
        world.player.part = usize::MAX;
        world.wake_ups_never_miss()?;
    }

    #[test]
    fn replacing_a_machine_moves_only_whom_it_must(
        settings in settings(),
        steps in vec(
            prop_oneof![4 => placed(), 4 => step(false), 1 => machines(), 4 => failures()],
            1..60,
        ),
    ) {
        let mut world = World::new(&settings, &MACHINES.map(str::to_owned));
        for step in steps {
            let before = world.held();
            let entries = world.play(&step);
            world.replacements_keep_their_word(&before, &entries)?;
        }
    }

    #[test]
    fn preferences_decide_where_pods_stand_and_not_whether(
        settings in select(vec!["", " no-mixed-profile", " balanced-placement"]),
        hall in preferring::hall(), wish in preferring::wish(),
    ) {
        preferring::check(&format!("settings preferred-affinity{settings}"), &hall, &wish)?;
    }

    #[test]
    fn what_is_told_of_places_is_so(
        settings in settings(),
        steps in vec(
            prop_oneof![4 => placed(), 2 => led(), 4 => step(false), 1 => machines()],
            1..40,
        ),
    ) {
        let mut world = World::new(&settings, &MACHINES.map(str::to_owned));
        for step in steps {
            world.play(&step);
            world.what_is_told_of_places_is_so()?;
        }
    }

    #[test]
    fn slices_and_variants_keep_every_promise(
        settings in settings(), house in house(),
        steps in vec((kin(), whims()), 1..80),
    ) {
        let settings = format!("{settings} concurrent-admission");
        let mut world = World::new(&settings, &house);
        let mut supposing = World::new(&settings, &house);
        for (step, whims) in &steps {
            let entries = world.play(step);
            world.nobody_is_lost_or_in_two_places()?;
            world.everybody_can_be_told_why()?;
            world.a_cycle_keeps_its_word(&entries)?;
            world.no_admission_exceeds_a_limit(&entries)?;
            if matches!(step, Step::Cycle) {
                world.usage_is_the_sum_of_what_is_held()?;
                world.nothing_of_a_what_if_stays_in_the_books()?;
            }
            supposing.imagine(whims)?;
            prop_assert_eq!(decisions(&entries), decisions(&supposing.play(step)));
        }
    }

    #[test]
    fn trees_know_nothing_of_each_other(
        settings in settings(),
        one in (objects(Manners::Free), vec(step(true), 1..40)),
        other in (objects(Manners::Free), vec(step(true), 1..40)),
        picks in vec(prop::bool::ANY, 1..20),
    ) {
        let one = twins::segments(&settings, &one.0, &one.1);
        let other = twins::renamed(&twins::segments(&settings, &other.0, &other.1));
        let alone = twins::trace(&settings, &one, &[], &[true]);
        let first = twins::trace(&settings, &one, &other, &[true]);
        let mixed = twins::trace(&settings, &one, &other, &picks);
        prop_assert_eq!(&first, &mixed);
        let of_one = |line: &&str| (0..10).any(|index| line.contains(&format!(" w{index} q")));
        let cycles = one.len();
        let within = |line: &&str| line.split(' ').next().is_some_and(|cycle| {
            cycle.parse::<usize>().is_ok_and(|cycle| cycle <= cycles)
        });
        let mine: Vec<&str> = mixed.lines().filter(of_one).filter(within).collect();
        prop_assert_eq!(alone.lines().collect::<Vec<_>>(), mine);
    }

    #[test]
    fn the_tournament_is_a_full_recomputation(
        objects in prop_oneof![objects(Manners::AtHome), objects(Manners::OneTaker)],
        steps in vec(step(false), 1..60),
    ) {
        let mut world = World::new("settings fair=final", &objects);
        for step in &steps {
            let before = Model::of(&world.player);
            let entries = world.play(step);
            let heads = tournament::heads(&before, &world.player, &entries);
            for (root, wanted) in tournament::order(before.clone(), heads.clone()) {
                let here = heads.iter().filter(|head| tournament::tree_of(&before, head) == root);
                let order: Vec<String> = here.map(|head| head.workload.clone()).collect();
                if order != wanted {
                    return Err(world.refute(&format!("{order:?} and not {wanted:?}")));
                }
            }
        }
    }
}

/// Who got something, or somebody to go for it.
fn without_spot(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.starts_with("gpu/spot="));
    words.collect::<Vec<_>>().join(" ")
}
