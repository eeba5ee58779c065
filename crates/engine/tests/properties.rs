//! What holds whatever happens, checked on random worlds. See `world/mod.rs`.

mod play;
mod world;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::lines::{Manners, objects, settings, step, upheaval};
use crate::world::{Step, World};

fn anything() -> impl Strategy<Value = Step> {
    prop_oneof![5 => step(true), 1 => upheaval()]
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
        let before = world.player.engine.books();
        for flavor in ["spot", "h100", "x86"] {
            world.say(&format!("room {flavor}=0"));
        }
        world.play(&Step::Cycle);
        prop_assert_eq!(before, world.player.engine.books());
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

    #[test]
    fn wake_ups_never_miss(
        settings in settings(), objects in objects(Manners::Free), steps in vec(anything(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
        }
        world.wake_ups_never_miss()?;
    }
}
