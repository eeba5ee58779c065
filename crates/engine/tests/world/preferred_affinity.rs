//! Nodes, and one Workload with preferred node affinity.

use std::collections::{BTreeMap, BTreeSet};

use engine::PodSetFlavorAssignment;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use crate::world::topology_workloads::preference;
use crate::world::{World, WorldStep};

/// Up to eight nodes in four racks and two blocks, and one queue with enough quota.
pub(crate) fn nodes_and_queue() -> impl Strategy<Value = Vec<String>> {
    let machine = (0..4_usize, 0..5_i64, 0..3_i64, select(vec!["", "", " disk=ssd"]));
    vec(machine, 1..9).prop_map(|node_changes| {
        let mut lines = vec![
            "topology racks levels=block,rack,node".to_owned(),
            "flavor tas topology=racks".to_owned(),
            "cq t0 gpu/tas=99 cpu/tas=99".to_owned(),
        ];
        lines.extend(node_changes.iter().enumerate().map(|(index, (rack, gpu, cpu, disk))| {
            let block = rack / 2;
            format!("node h{index} block=b{block} rack=r{rack} gpu={gpu} cpu={cpu}{disk}")
        }));
        lines
    })
}

/// The request of one Workload, with or without a leader.
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
                // The slice level is not above the level of the pod set.
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

/// The same request without preferences.
fn without_preferences(wish: &str) -> String {
    let words = wish.split(' ').filter(|word| !word.starts_with("prefers="));
    words.collect::<Vec<_>>().join(" ")
}

/// Preferences change the domains and not whether pods fit; they keep capacities and constraints.
pub(crate) fn check(
    settings: &str,
    nodes_and_queue: &[String],
    wish: &str,
) -> Result<(), TestCaseError> {
    let (_, plain) = topology_workload(settings, nodes_and_queue, &without_preferences(wish));
    let (world, pod_sets) = topology_workload(settings, nodes_and_queue, wish);
    if plain.len() != pod_sets.len() {
        return Err(world.failure("without preferences it is otherwise"));
    }
    let mut taken: BTreeMap<(String, &str), i64> = BTreeMap::new();
    for (pod_set, words) in pod_sets.iter().zip(wish.split('+')) {
        let pods: i64 = pod_set.domains.iter().map(|one| one.count).sum();
        if pods != number(words, "pods").unwrap_or(1) || !stands_together(pod_set, words) {
            return Err(world.failure("places are not what was asked for"));
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
        let line =
            nodes_and_queue.iter().find(|line| line.starts_with(&format!("node {machine} ")));
        line.and_then(|line| number(line, resource)).unwrap_or(0)
    };
    match taken.iter().find(|((machine, resource), amount)| **amount > offered(machine, resource)) {
        Some(((machine, _), _)) => Err(world.failure(&format!("{machine} holds too many"))),
        None => Ok(()),
    }
}

/// The pod sets with a topology assignment.
fn topology_workload(
    settings: &str,
    nodes_and_queue: &[String],
    wish: &str,
) -> (World, Vec<PodSetFlavorAssignment>) {
    let mut world = World::new(settings, nodes_and_queue);
    world.play(&WorldStep::Submit(0, wish.to_owned()));
    let entries = world.play(&WorldStep::Cycle);
    let pod_sets = entries.into_iter().flat_map(|one| one.assignment.pod_sets);
    (world, pod_sets.filter(|one| !one.domains.is_empty()).collect())
}

fn number(words: &str, key: &str) -> Option<i64> {
    let pairs = words.split(' ').filter_map(|word| word.split_once('='));
    pairs.filter(|(one, _)| *one == key).find_map(|(_, value)| value.parse().ok())
}

fn stands_together(pod_set: &PodSetFlavorAssignment, words: &str) -> bool {
    let levels = ["required=block", "required=rack"];
    let Some(level) = levels.iter().position(|one| words.contains(one)) else {
        return true;
    };
    let tops = pod_set.domains.iter().map(|one| &one.values[level]);
    tops.collect::<BTreeSet<_>>().len() == 1
}
