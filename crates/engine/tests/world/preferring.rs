//! Halls of machines, and one Workload that would rather stand on some of them.

use std::collections::{BTreeMap, BTreeSet};

use engine::PodSetAssignment;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use crate::world::places::preference;
use crate::world::{Step, World};

/// Up to eight machines in four racks and two blocks, and one queue with quota for everybody.
pub(crate) fn hall() -> impl Strategy<Value = Vec<String>> {
    let machine = (0..4_usize, 0..5_i64, 0..3_i64, select(vec!["", "", " disk=ssd"]));
    vec(machine, 1..9).prop_map(|machines| {
        let mut lines = vec![
            "topology racks levels=block,rack,node".to_owned(),
            "flavor tas topology=racks".to_owned(),
            "cq t0 gpu/tas=99 cpu/tas=99".to_owned(),
        ];
        lines.extend(machines.iter().enumerate().map(|(index, (rack, gpu, cpu, disk))| {
            let block = rack / 2;
            format!("node h{index} block=b{block} rack=r{rack} gpu={gpu} cpu={cpu}{disk}")
        }));
        lines
    })
}

/// What one Workload asks for, with a leader or without.
pub(crate) fn wish() -> impl Strategy<Value = String> {
    let together = select(vec![
        "unconstrained",
        "required=rack",
        "required=block",
        "preferred=node",
        "preferred=rack",
        "preferred=block",
    ]);
    let slices =
        select(vec!["", "", " slice=node:2", " slice=rack:2", " slice=rack:4 slice=node:2"]);
    let leader = select(vec!["", "", " + cpu=1", " + gpu=1", " + gpu=2 cpu=1"]);
    (1..4_i64, 1..3_i64, together, slices, preference(), leader).prop_map(
        |(pods, gpu, together, slices, preference, leader)| {
            let together = if together == "required=rack" || together == "preferred=node" {
                // Slices stand no higher than the whole.
                together.to_owned()
            } else {
                format!("{together}{slices}")
            };
            let pods = if slices.contains(":4") { 4 * pods } else { 2 * pods };
            let (group, leader) = match leader {
                "" => ("", String::new()),
                leader => {
                    let together = together.split(' ').next().unwrap_or_default();
                    (" group=g", format!("{leader} {together} group=g"))
                }
            };
            format!("q=t0 pods={pods} gpu={gpu} {together}{preference}{group}{leader}")
        },
    )
}

/// The same without preferences.
fn indifferent(wish: &str) -> String {
    let words = wish.split(' ').filter(|word| !word.starts_with("prefers="));
    words.collect::<Vec<_>>().join(" ")
}

/// Preferences decide where pods stand and never whether they do; nor do they let more stand somewhere than can, or
/// apart what must stand together.
pub(crate) fn check(settings: &str, hall: &[String], wish: &str) -> Result<(), TestCaseError> {
    let (_, plain) = placed(settings, hall, &indifferent(wish));
    let (world, pod_sets) = placed(settings, hall, wish);
    if plain.len() != pod_sets.len() {
        return Err(world.refute("without preferences it is otherwise"));
    }
    let mut taken: BTreeMap<(String, &str), i64> = BTreeMap::new();
    for (pod_set, words) in pod_sets.iter().zip(wish.split('+')) {
        let pods: i64 = pod_set.domains.iter().map(|one| one.count).sum();
        if pods != number(words, "pods").unwrap_or(1) || !stands_together(pod_set, words) {
            return Err(world.refute("places are not what was asked for"));
        }
        for place in &pod_set.domains {
            let machine = place.values.last().expect("a machine");
            for resource in ["gpu", "cpu"] {
                let amount = number(words, resource).unwrap_or(0) * place.count;
                *taken.entry((machine.to_string(), resource)).or_default() += amount;
            }
        }
    }
    let offered = |machine: &str, resource| {
        let line = hall.iter().find(|line| line.starts_with(&format!("node {machine} ")));
        line.and_then(|line| number(line, resource)).unwrap_or(0)
    };
    match taken.iter().find(|((machine, resource), amount)| **amount > offered(machine, resource)) {
        Some(((machine, _), _)) => Err(world.refute(&format!("{machine} holds too many"))),
        None => Ok(()),
    }
}

/// The pod sets that got places.
fn placed(settings: &str, hall: &[String], wish: &str) -> (World, Vec<PodSetAssignment>) {
    let mut world = World::new(settings, hall);
    world.play(&Step::Submit(0, wish.to_owned()));
    let entries = world.play(&Step::Cycle);
    let pod_sets = entries.into_iter().flat_map(|one| one.assignment.pod_sets);
    (world, pod_sets.filter(|one| !one.domains.is_empty()).collect())
}

fn number(words: &str, key: &str) -> Option<i64> {
    let pairs = words.split(' ').filter_map(|word| word.split_once('='));
    pairs.filter(|(one, _)| *one == key).find_map(|(_, value)| value.parse().ok())
}

fn stands_together(pod_set: &PodSetAssignment, words: &str) -> bool {
    let levels = ["required=block", "required=rack"];
    let Some(level) = levels.iter().position(|one| words.contains(one)) else {
        return true;
    };
    let tops = pod_set.domains.iter().map(|one| &one.values[level]);
    tops.collect::<BTreeSet<_>>().len() == 1
}
