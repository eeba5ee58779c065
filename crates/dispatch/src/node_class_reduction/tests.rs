use std::sync::Arc;

use engine::node_selection::TaintEffect;
use proptest::prelude::*;

use super::*;
use crate::{
    AssignedWorkload, CapacityReport, RequestedPodSet, WorkloadRequest, node_packing::PackedNodes,
};

const CPU: ResourceId = ResourceId(0);
const GPU: ResourceId = ResourceId(1);
const MEMORY: ResourceId = ResourceId(2);
const PODS: ResourceId = ResourceId(3);

/// As an agent weighs them.
fn weight(resource: ResourceId) -> u32 {
    match resource {
        GPU => 14,
        CPU => 12,
        MEMORY => 2,
        _ => 1,
    }
}

fn node(zone: &str, tainted: bool, free: &[(ResourceId, i64)]) -> NodeClassCapacity {
    let (key, value, effect) = ("dedicated".into(), "".into(), TaintEffect::NoSchedule);
    let taint = NodeTaint { key, value, effect };
    NodeClassCapacity {
        count: 1,
        labels: vec![("zone".into(), zone.into())],
        taints: if tainted { vec![taint] } else { vec![] },
        free: free.iter().map(|&(resource, amount)| (resource, Amount(amount))).collect(),
        size: vec![],
    }
}

fn any_node() -> impl Strategy<Value = NodeClassCapacity> {
    let zone = prop_oneof![Just("a"), Just("b")];
    let gpus = proptest::option::of(0..9_i64);
    (zone, any::<bool>(), 0..64_i64, gpus, 0..256_i64, 0..12_i64).prop_map(
        |(zone, tainted, cpu, gpus, memory, pods)| {
            let mut free = vec![(CPU, cpu), (MEMORY, memory), (PODS, pods)];
            free.extend(gpus.map(|gpus| (GPU, gpus)));
            free.sort_unstable();
            node(zone, tainted, &free)
        },
    )
}

fn free_of(class: &NodeClassCapacity, resource: ResourceId) -> i64 {
    class.free.iter().find(|(one, _)| *one == resource).map_or(0, |(_, amount)| amount.0)
}

fn visible(classes: &[NodeClassCapacity], resource: ResourceId) -> i64 {
    classes.iter().map(|class| class.count * free_of(class, resource)).sum()
}

/// Whether a real node offers all that a reported one does.
fn covers(real: &NodeClassCapacity, reported: &NodeClassCapacity) -> bool {
    (&real.labels, &real.taints) == (&reported.labels, &reported.taints)
        && reported.free.iter().all(|(resource, amount)| free_of(real, *resource) >= amount.0)
}

/// Gives a reported node a real one of its own, by augmenting paths.
fn assign(
    reported: &[NodeClassCapacity],
    real: &[NodeClassCapacity],
    (at, owners, tried): (usize, &mut Vec<Option<usize>>, &mut Vec<bool>),
) -> bool {
    for (index, node) in real.iter().enumerate() {
        if tried[index] || !covers(node, &reported[at]) {
            continue;
        }
        tried[index] = true;
        let free = match owners[index] {
            None => true,
            Some(owner) => assign(reported, real, (owner, owners, tried)),
        };
        if free {
            owners[index] = Some(at);
            return true;
        }
    }
    false
}

/// Every reported node with a real node of its own that offers as much.
fn is_covered(reported: &[NodeClassCapacity], real: &[NodeClassCapacity]) -> bool {
    let single = |class: &NodeClassCapacity| {
        let count = usize::try_from(class.count).expect("a count");
        vec![NodeClassCapacity { count: 1, ..class.clone() }; count]
    };
    let reported: Vec<NodeClassCapacity> = reported.iter().flat_map(single).collect();
    let mut owners = vec![None; real.len()];
    (0..reported.len()).all(|at| {
        let mut tried = vec![false; real.len()];
        assign(&reported, real, (at, &mut owners, &mut tried))
    })
}

fn gang(pods: i64, cpu: i64, gpus: i64) -> AssignedWorkload {
    let mut requests = vec![(CPU, Amount(cpu)), (GPU, Amount(gpus)), (PODS, Amount(1))];
    requests.retain(|(_, amount)| amount.0 > 0);
    let pods = RequestedPodSet { count: pods, requests, ..RequestedPodSet::default() };
    let request = WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() };
    AssignedWorkload::new(Arc::new(request), vec![])
}

fn fits(classes: &[NodeClassCapacity], work: &AssignedWorkload) -> bool {
    // Gangs of one size: their packing is exact.
    let report = CapacityReport { classes: classes.to_vec(), ..CapacityReport::default() };
    PackedNodes::new(Arc::new(report)).check_fit(work).is_ok()
}

proptest! {
    #[test]
    fn what_fits_by_the_report_fits_on_the_real_nodes(
        nodes in prop::collection::vec(any_node(), 1..40),
        most in 1..12_usize,
        (pods, cpu, gpus) in (1..20_i64, 0..32_i64, 0..5_i64),
    ) {
        let reduced = reduce_classes(join_equal_classes(nodes.clone()), most, weight);
        prop_assert!(reduced.len() <= most);
        prop_assert!(is_covered(&reduced, &nodes), "{reduced:?}");
        let work = gang(pods, cpu, gpus);
        let tolerant = |all: &[NodeClassCapacity]| -> Vec<NodeClassCapacity> {
            all.iter().map(|one| NodeClassCapacity { taints: vec![], ..one.clone() }).collect()
        };
        if fits(&tolerant(&reduced), &work) {
            prop_assert!(fits(&tolerant(&nodes), &work));
        }
    }

    #[test]
    fn classes_within_the_limit_are_left_as_they_are(
        nodes in prop::collection::vec(any_node(), 1..40),
    ) {
        let joined = join_equal_classes(nodes.clone());
        let counts: i64 = joined.iter().map(|class| class.count).sum();
        prop_assert_eq!(counts, i64::try_from(nodes.len()).expect("a count"));
        prop_assert_eq!(reduce_classes(joined.clone(), 40, weight), joined);
    }
}

/// Numbers without a pattern, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// Nodes that differ in everything: with half of them having accelerators, in so many zones, and with memory that follows the
/// cpus or does not.
fn unlike_nodes(n: i64, zones: i64, memory_follows: bool) -> Vec<NodeClassCapacity> {
    let mut numbers = Numbers(7);
    let nodes = (0..n).map(|index| {
        let cpu = numbers.below(96_000);
        let memory = if memory_follows {
            (cpu << 22) + numbers.below((cpu << 22) + 1)
        } else {
            numbers.below(768 << 30)
        };
        let mut free = vec![(CPU, cpu), (MEMORY, memory), (PODS, 10 + numbers.below(100))];
        if index % 2 == 0 {
            free.push((GPU, numbers.below(9)));
            free.sort_unstable();
        }
        node(&format!("zone-{}", numbers.below(zones)), false, &free)
    });
    nodes.collect()
}

#[test]
fn most_of_five_thousand_unlike_nodes_is_visible_in_64_classes() {
    for (zones, memory_follows, memory) in [(1, true, 80), (1, false, 25), (2, true, 80)] {
        let nodes = join_equal_classes(unlike_nodes(5_000, zones, memory_follows));
        assert!(nodes.len() > 4_990, "they are unlike");
        let reduced = reduce_classes(nodes.clone(), 64, weight);
        assert_eq!(reduced.len(), 64);
        let percent = |resource| visible(&reduced, resource) * 100 / visible(&nodes, resource);
        let shown = [GPU, CPU, MEMORY].map(percent);
        assert!(shown[0] >= 95, "of the GPUs, the CPUs, the memory: {shown:?}");
        assert!(shown[1] >= 80, "of the GPUs, the CPUs, the memory: {shown:?}");
        assert!(shown[2] >= memory, "of the GPUs, the CPUs, the memory: {shown:?}");
    }
}

#[test]
fn kinds_of_nodes_beyond_the_limit_are_left_out_from_the_poorest() {
    let poor = (0..5).map(|n| node(&format!("poor-{n}"), false, &[(CPU, n)]));
    let rich = node("rich", false, &[(CPU, 50)]);
    let reduced = reduce_classes(poor.chain([rich.clone()]).collect(), 2, weight);
    assert_eq!(reduced.len(), 2);
    assert_eq!(reduced.first(), Some(&rich));
}
