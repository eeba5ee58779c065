//! Invariants, checked on random worlds. See `world/mod.rs`.

#[path = "world/contention.rs"]
mod contention;
#[path = "world/explanations.rs"]
mod explanations;
#[path = "world/independent_trees.rs"]
mod independent_trees;
mod play;
#[path = "world/preferred_affinity.rs"]
mod preferred_affinity;
#[path = "world/requeue.rs"]
mod requeue;
#[path = "world/tournament.rs"]
mod tournament;
#[path = "world/what_ifs.rs"]
mod what_ifs;
mod world;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::contention::{contended_queues, contention_step};
use crate::explanations::leader_and_workers;
use crate::what_ifs::what_ifs;
use crate::world::lines::{PreemptionPolicies, configuration_change, objects, settings, step};
use crate::world::model::Model;
use crate::world::slices_and_variants::slice_or_variant;
use crate::world::topology_workloads::{NODES, node_changes, node_failures, topology_workload};
use crate::world::{World, WorldStep, decisions};

fn any_step() -> impl Strategy<Value = WorldStep> {
    prop_oneof![5 => step(true), 1 => configuration_change()]
}

/// Two queues of one cohort, with quota for some of the slices and variants.
fn slice_queues() -> impl Strategy<Value = Vec<String>> {
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
    fn usage_is_the_sum_of_reservations_at_every_node(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
            if matches!(step, WorldStep::Cycle) {
                world.usage_is_the_sum_of_reservations()?;
            }
        }
    }

    #[test]
    fn no_admission_exceeds_a_limit_once_targets_are_released(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            let entries = world.play(step);
            world.outcomes_match_the_state(&entries)?;
            world.no_admission_exceeds_a_limit(&entries)?;
        }
    }

    #[test]
    fn every_workload_is_in_exactly_one_place(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
            world.every_workload_is_in_exactly_one_place()?;
            world.every_workload_has_an_explanation()?;
        }
    }

    #[test]
    fn the_state_equals_a_rebuilt_one(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
            if matches!(step, WorldStep::Cycle) {
                world.the_state_equals_a_rebuilt_one()?;
            }
        }
    }

    #[test]
    fn a_cycle_without_admissions_changes_nothing(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(step(true), 1..60),
    ) {
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            world.play(step);
        }
        world.play(&WorldStep::Cycle);
        let before = world.player.engine.debug_dump();
        for flavor in ["spot", "h100", "x86"] {
            world.say(&format!("capacity {flavor}=0"));
        }
        world.play(&WorldStep::Cycle);
        prop_assert_eq!(before, world.player.engine.debug_dump());
    }

    #[test]
    fn the_same_events_give_the_same_decisions(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..60),
    ) {
        let (mut one, mut other) =
            (World::new(&settings, &objects), World::new(&settings, &objects));
        for step in &steps {
            one.play(step);
            other.play(step);
        }
        prop_assert_eq!(one.player.trace, other.player.trace);
    }

    /// One flavor per resource: with several, a head continues its flavor scan and, as in upstream, may miss quota
    /// released in earlier flavors until the next requeue. No placer: Workloads without cluster capacity are
    /// requeued only by capacity.
    #[test]
    fn requeueing_never_misses(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..60),
    ) {
        let objects: Vec<String> = objects.iter().map(|line| without_spot(line)).collect();
        let mut world = World::new(&settings, &objects);
        for step in &steps {
            match step {
                WorldStep::Say(line) if line.starts_with("capacity") => continue,
                step if world.updates_an_admitted_workload(step) => continue,
                WorldStep::Say(line) => world.play(&WorldStep::Say(without_spot(line))),
                other => world.play(other),
            };
        }
        world.requeueing_never_misses()?;
    }

    /// One queue: with two, a head that loses its domains to a reservation becomes inadmissible, as in upstream,
    /// and may miss the end of the reservation.
    #[test]
    fn requeueing_never_misses_topology_capacity(
        settings in settings(),
        steps in vec(prop_oneof![4 => topology_workload(), 6 => step(false), 1 => node_changes()], 1..60),
    ) {
        let mut world = World::new(&settings, &NODES.map(str::to_owned));
        for step in steps {
            let elsewhere = matches!(&step, WorldStep::Submit(_, words) if !words.starts_with("q=t0"));
            if !elsewhere && !world.updates_an_admitted_workload(&step) {
                world.play(&step);
            }
        }
        world.requeueing_never_misses()?;
    }

    /// Skipping heads whose refusal is known changes nothing: both worlds decide the same at every step, and have
    /// the same pending Workloads in the same order.
    #[test]
    fn reevaluating_known_refusals_changes_nothing(
        settings in settings(),
        (objects, steps) in prop_oneof![
            1 => (objects(PreemptionPolicies::Free), vec(any_step(), 1..80)),
            3 => (contended_queues(), vec(contention_step(), 1..200)),
        ],
    ) {
        let mut world = World::new(&settings, &objects);
        let mut reevaluating = World::new(&format!("{settings} reevaluate-refused"), &objects);
        for step in &steps {
            let decided = decisions(&world.play(step));
            prop_assert_eq!(decided, decisions(&reevaluating.play(step)));
            world.has_the_same_pending_workloads(&reevaluating)?;
        }
    }

    #[test]
    fn a_cycle_in_parts_decides_like_a_whole_one(
        settings in settings(), objects in objects(PreemptionPolicies::Free), steps in vec(any_step(), 1..80),
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
    fn an_aborted_cycle_loses_no_workload(
        settings in settings(), objects in contended_queues(),
        steps in vec((contention_step(), prop::option::weighted(0.3, 0..20_usize)), 1..80),
    ) {
        let mut world = World::new(&settings, &objects);
        world.player.part = 1;
        for (step, cut) in &steps {
            world.play(step);
            if let Some(parts) = cut {
                world.say(&format!("abort-after {parts}"));
            }
            world.every_workload_is_in_exactly_one_place()?;
            if matches!(step, WorldStep::Cycle) || cut.is_some() {
                world.the_state_equals_a_rebuilt_one()?;
                world.usage_is_the_sum_of_reservations()?;
            }
        }
        world.player.part = usize::MAX;
        world.requeueing_never_misses()?;
    }

    #[test]
    fn a_node_replacement_moves_only_affected_pods(
        settings in settings(),
        steps in vec(
            prop_oneof![
                4 => topology_workload(), 2 => leader_and_workers(), 4 => step(false), 1 => node_changes(), 4 => node_failures(),
            ],
            1..60,
        ),
    ) {
        let mut world = World::new(&settings, &NODES.map(str::to_owned));
        for step in steps {
            let before = world.held();
            let entries = world.play(&step);
            world.node_replacements_keep_other_pods(&before, &entries)?;
        }
    }

    #[test]
    fn preferred_affinity_changes_domains_and_not_admission(
        settings in select(vec!["", " no-mixed-profile", " balanced-placement"]),
        nodes_and_queue in preferred_affinity::nodes_and_queue(), wish in preferred_affinity::wish(),
    ) {
        preferred_affinity::check(&format!("settings preferred-affinity{settings}"), &nodes_and_queue, &wish)?;
    }

    #[test]
    fn topology_explanations_match_searches(
        settings in settings(),
        steps in vec(
            prop_oneof![4 => topology_workload(), 2 => leader_and_workers(), 4 => step(false), 1 => node_changes()],
            1..40,
        ),
    ) {
        let mut world = World::new(&settings, &NODES.map(str::to_owned));
        for step in steps {
            world.play(&step);
            world.topology_explanations_match_searches()?;
        }
    }

    #[test]
    fn slices_and_variants_keep_all_invariants(
        settings in settings(), slice_queues in slice_queues(),
        steps in vec((slice_or_variant(), what_ifs()), 1..80),
    ) {
        let settings = format!("{settings} concurrent-admission");
        let mut world = World::new(&settings, &slice_queues);
        let mut with_what_ifs = World::new(&settings, &slice_queues);
        for (step, what_ifs) in &steps {
            let entries = world.play(step);
            world.every_workload_is_in_exactly_one_place()?;
            world.every_workload_has_an_explanation()?;
            world.outcomes_match_the_state(&entries)?;
            world.no_admission_exceeds_a_limit(&entries)?;
            if matches!(step, WorldStep::Cycle) {
                world.usage_is_the_sum_of_reservations()?;
                world.the_state_equals_a_rebuilt_one()?;
            }
            with_what_ifs.suppose(what_ifs)?;
            prop_assert_eq!(decisions(&entries), decisions(&with_what_ifs.play(step)));
        }
    }

    #[test]
    fn cohort_trees_are_independent(
        settings in settings(),
        one in (objects(PreemptionPolicies::Free), vec(step(true), 1..40)),
        other in (objects(PreemptionPolicies::Free), vec(step(true), 1..40)),
        picks in vec(prop::bool::ANY, 1..20),
    ) {
        let one = independent_trees::segments(&settings, &one.0, &one.1);
        let other = independent_trees::renamed(&independent_trees::segments(&settings, &other.0, &other.1));
        let alone = independent_trees::trace(&settings, &one, &[], &[true]);
        let first = independent_trees::trace(&settings, &one, &other, &[true]);
        let mixed = independent_trees::trace(&settings, &one, &other, &picks);
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
        objects in prop_oneof![objects(PreemptionPolicies::WithinQueue), objects(PreemptionPolicies::OnePreemptor)],
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
                    return Err(world.failure(&format!("{order:?} and not {wanted:?}")));
                }
            }
        }
    }
}

/// The line without quota in the flavor `spot`.
fn without_spot(line: &str) -> String {
    let words = line.split(' ').filter(|word| !word.starts_with("gpu/spot="));
    words.collect::<Vec<_>>().join(" ")
}

/// A refused head of a nested cohort wins there and loses at the root, so that the others of its cohort come later.
#[test]
fn a_refused_head_of_a_nested_cohort_competes_for_the_others() {
    let objects = [
        "cohort c0 gpu/h100=1",
        "cohort c1 parent=c0",
        "cq q0 cohort=c1 reclaim=any gpu/h100=0,borrow:1",
        "cq q1 cohort=c1 gpu/h100=1",
        "cq q2 cohort=c0 gpu/h100=3",
    ]
    .map(str::to_owned);
    let submit = |number, words: &str| WorldStep::Submit(number, words.to_owned());
    let steps = [
        submit(2, "q=q2 pods=1 gpu=1 prio=0"),
        WorldStep::Cycle,
        submit(3, "q=q2 pods=1 gpu=3 prio=0"),
        WorldStep::Cycle,
        submit(0, "q=q2 pods=1 gpu=1 prio=1"),
        submit(2, "q=q0 pods=1 gpu=1 prio=0"),
        submit(1, "q=q0 pods=1 gpu=1 prio=0"),
        submit(4, "q=q0 pods=1 gpu=1 cpu=1 prio=1"),
        submit(5, "q=q0 pods=1 gpu=1 prio=1"),
        WorldStep::Cycle,
        submit(6, "q=q1 pods=1 gpu=1 cpu=1 prio=0"),
        submit(1, "q=q0 pods=1 gpu=1 prio=0"),
        submit(4, "q=q2 pods=1 gpu=1 prio=1"),
        WorldStep::Cycle,
        WorldStep::Release(false),
        WorldStep::Cycle,
    ];
    let mut world = World::new("settings fair=final", &objects);
    let mut reevaluating = World::new("settings fair=final reevaluate-refused", &objects);
    for step in &steps {
        assert_eq!(decisions(&world.play(step)), decisions(&reevaluating.play(step)));
    }
}

/// The change that makes a target of it came without a priority class, which requeues nothing, as in upstream. The
/// class that follows changes no priority.
#[test]
fn a_target_whose_class_came_after_its_priority_is_not_missed() -> Result<(), TestCaseError> {
    let objects = [
        "cohort c0 gpu/h100=1",
        "cq q0 cohort=c0 gpu/h100=2",
        "cq q1 cohort=c0 within=lower reclaim=any borrow-within-cohort=1 gpu/h100=2",
        "cq q2 cohort=c0 gpu/h100=1",
    ]
    .map(str::to_owned);
    let mut world = World::new("settings", &objects);
    for line in [
        "wl w7 q=q1 pods=1 gpu=1 prio=1 t=2",
        "wl w0 q=q1 pods=1 gpu=6 prio=1 t=3",
        "cycle",
        "cycle",
        "wl w7 q=q0 pods=1 gpu=1 prio=0 t=6",
        "wl w7 q=q0 pods=1 gpu=1 prio=0 t=6 class",
    ] {
        world.say(line);
    }
    world.requeueing_never_misses()
}

/// It replaces a variant that a preemptor waits for: both are charged until the variant has left.
#[test]
fn a_slice_that_replaces_a_target_takes_nothing_from_the_preemptor() -> Result<(), TestCaseError> {
    let queues = [
        "cq q0 cohort=c0 reclaim=any gpu/spot=2 gpu/h100=1",
        "cq q1 cohort=c0 reclaim=any gpu/spot=1 gpu/h100=1",
    ]
    .map(str::to_owned);
    let submit = |number, words: &str| WorldStep::Submit(number, words.to_owned());
    let variant = "pods=2 gpu=1 prio=0 tolerate=spot family=f allowed";
    let steps = [
        submit(1, &format!("q=q1 {variant}=h100,spot")),
        WorldStep::Cycle,
        submit(0, &format!("q=q0 {variant}=spot")),
        WorldStep::Cycle,
        submit(2, "q=q1 pods=1 gpu=1 prio=0 tolerate=spot replaces=w1"),
        WorldStep::Cycle,
        WorldStep::Cycle,
        WorldStep::Release(false),
        WorldStep::Cycle,
    ];
    let mut world = World::new("settings concurrent-admission", &queues);
    for step in &steps {
        let entries = world.play(step);
        world.outcomes_match_the_state(&entries)?;
        world.no_admission_exceeds_a_limit(&entries)?;
        world.usage_is_the_sum_of_reservations()?;
        if matches!(step, WorldStep::Cycle) {
            world.the_state_equals_a_rebuilt_one()?;
        }
    }
    Ok(())
}
