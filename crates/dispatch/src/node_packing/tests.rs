use engine::node_selection::{
    NodeSelection, NodeTaint, PodToleration, TaintEffect, TolerationOperator,
};
use proptest::prelude::*;

use super::*;
use crate::WorkloadRequest;

const CPU: ResourceId = ResourceId(0);
const GPU: ResourceId = ResourceId(1);

fn pair(key: &str, value: &str) -> (Box<str>, Box<str>) {
    (key.into(), value.into())
}

fn class(count: i64, zone: &str, cpu: i64, gpu: i64) -> NodeClassCapacity {
    let mut free = vec![(CPU, Amount(cpu))];
    if gpu != 0 {
        free.push((GPU, Amount(gpu)));
    }
    NodeClassCapacity {
        count,
        labels: vec![pair("zone", zone)],
        taints: Vec::new(),
        free,
        size: Vec::new(),
    }
}

fn nodes(classes: Vec<NodeClassCapacity>) -> PackedNodes {
    let label_keys = vec!["zone".into()];
    PackedNodes::new(Arc::new(CapacityReport { label_keys, classes, ..CapacityReport::default() }))
}

fn pods(count: i64, cpu: i64, gpu: i64) -> RequestedPodSet {
    let requests = vec![(CPU, Amount(cpu)), (GPU, Amount(gpu))];
    RequestedPodSet { name: "main".into(), count, requests, ..RequestedPodSet::default() }
}

fn work(pod_sets: Vec<RequestedPodSet>) -> AssignedWorkload {
    let request = WorkloadRequest { pod_sets, ..WorkloadRequest::default() };
    AssignedWorkload::new(Arc::new(request), Vec::new())
}

fn shortage(nodes: &PackedNodes, pod_sets: Vec<RequestedPodSet>) -> Option<ShortageCause> {
    nodes.check_fit(&work(pod_sets)).err().map(|misfit| misfit.cause)
}

#[test]
fn four_nodes_with_two_free_each_do_not_take_a_pod_of_four() {
    let nodes = nodes(vec![class(4, "a", 2, 0)]);
    let (need, most) = (Amount(4), Amount(2));
    assert_eq!(
        shortage(&nodes, vec![pods(1, 4, 0)]),
        Some(ShortageCause::PodTooLarge { resource: CPU, need, most })
    );
    assert_eq!(shortage(&nodes, vec![pods(4, 2, 0)]), None);
    assert_eq!(
        shortage(&nodes, vec![pods(5, 2, 0)]),
        Some(ShortageCause::TooFewNodes { fit: 4, count: 5 })
    );
}

#[test]
fn large_pods_are_placed_before_small_ones() {
    let nodes = nodes(vec![class(1, "a", 4, 0), class(1, "a", 3, 0)]);
    assert_eq!(shortage(&nodes, vec![pods(3, 1, 0), pods(1, 4, 0)]), None);
}

#[test]
fn pods_go_to_the_node_with_the_least_free_capacity() {
    let mut nodes = nodes(vec![class(1, "a", 8, 8), class(1, "a", 8, 0), class(1, "a", 3, 0)]);
    nodes.place(&work(vec![pods(1, 3, 0)]));
    assert_eq!(shortage(&nodes, vec![pods(2, 8, 0)]), None);
    nodes.place(&work(vec![pods(1, 8, 0)]));
    assert_eq!(shortage(&nodes, vec![pods(1, 8, 8)]), None, "nodes with GPUs are kept for GPUs");
}

#[test]
fn a_resource_that_no_node_lists_is_not_available() {
    let nodes = nodes(vec![class(2, "a", 8, 0)]);
    let missing = ShortageCause::PodTooLarge { resource: GPU, need: Amount(1), most: Amount(0) };
    assert_eq!(shortage(&nodes, vec![pods(1, 1, 1)]), Some(missing));
}

#[test]
fn pods_without_requests_fit_on_a_full_node() {
    let nodes = nodes(vec![class(1, "a", 0, 0)]);
    assert_eq!(shortage(&nodes, vec![pods(1_000_000_000, 0, 0)]), None);
    assert_eq!(shortage(&nodes, vec![pods(0, 5, 5)]), None, "no pods");
}

#[test]
fn an_overcommitted_node_takes_no_more_pods() {
    let nodes = nodes(vec![class(3, "a", -2, 0)]);
    assert!(shortage(&nodes, vec![pods(1, 1, 0)]).is_some());
}

#[test]
fn only_labels_that_the_report_distinguishes_are_compared() {
    let nodes = nodes(vec![class(1, "a", 4, 0)]);
    let selecting = |key, value| RequestedPodSet {
        selection: NodeSelection {
            node_selector: vec![pair(key, value)],
            ..NodeSelection::default()
        },
        ..pods(1, 1, 0)
    };
    assert_eq!(shortage(&nodes, vec![selecting("zone", "a")]), None);
    assert_eq!(shortage(&nodes, vec![selecting("zone", "b")]), Some(ShortageCause::NoSuitableNode));
    assert_eq!(shortage(&nodes, vec![selecting("disk", "ssd")]), None, "the worker decides");
}

#[test]
fn labels_and_tolerations_of_flavors_apply() {
    let taint = NodeTaint { key: "spot".into(), value: "".into(), effect: TaintEffect::NoSchedule };
    let tainted = NodeClassCapacity { taints: vec![taint], ..class(1, "a", 4, 0) };
    let nodes = nodes(vec![tainted]);
    let assigned = |zone: &str, tolerated: bool| {
        let tolerations = PodToleration {
            key: "spot".into(),
            operator: TolerationOperator::Exists,
            effect: None,
        };
        let assigned = AssignedPodSet {
            count: 1,
            labels: vec![pair("zone", zone), pair("unknown", "x")],
            tolerations: if tolerated { vec![tolerations] } else { Vec::new() },
            ..AssignedPodSet::default()
        };
        AssignedWorkload { assigned: vec![assigned], ..work(vec![pods(9, 1, 0)]) }
    };
    assert!(nodes.check_fit(&assigned("a", true)).is_ok());
    assert!(nodes.check_fit(&assigned("a", false)).is_err());
    assert!(nodes.check_fit(&assigned("b", true)).is_err());
}

#[test]
fn the_admitted_count_is_packed() {
    let nodes = nodes(vec![class(1, "a", 4, 0)]);
    let assigned = vec![AssignedPodSet { count: 4, ..AssignedPodSet::default() }];
    assert!(nodes.check_fit(&AssignedWorkload { assigned, ..work(vec![pods(9, 1, 0)]) }).is_ok());
}

/// Exhaustive search: tries every node for every pod.
fn possible(free: &mut Vec<[i64; 2]>, pods: &[[i64; 2]]) -> bool {
    let Some((first, rest)) = pods.split_first() else {
        return true;
    };
    (0..free.len()).any(|node| {
        let fits = (0..2).all(|at| first[at] == 0 || free[node][at] >= first[at]);
        if !fits {
            return false;
        }
        (0..2).for_each(|at| free[node][at] -= first[at]);
        let found = possible(free, rest);
        (0..2).for_each(|at| free[node][at] += first[at]);
        found
    })
}

fn single(classes: &[(i64, i64, i64)]) -> Vec<[i64; 2]> {
    let each = classes.iter();
    each.flat_map(|&(count, cpu, gpu)| (0..count).map(move |_| [cpu, gpu])).collect()
}

fn classes() -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
    prop::collection::vec((1..3_i64, -1..7_i64, 0..4_i64), 1..4)
}

fn of(classes: &[(i64, i64, i64)]) -> PackedNodes {
    nodes(classes.iter().map(|&(count, cpu, gpu)| class(count, "a", cpu, gpu)).collect())
}

proptest! {
    #[test]
    fn work_that_fits_can_be_placed_node_by_node(
        classes in classes(),
        sets in prop::collection::vec((0..4_i64, 0..5_i64, 0..3_i64), 1..4),
    ) {
        let each = sets.iter();
        let one_by_one: Vec<[i64; 2]> =
            each.flat_map(|&(count, cpu, gpu)| (0..count).map(move |_| [cpu, gpu])).collect();
        let asked = work(sets.iter().map(|&(count, cpu, gpu)| pods(count, cpu, gpu)).collect());
        if of(&classes).check_fit(&asked).is_ok() {
            prop_assert!(possible(&mut single(&classes), &one_by_one));
        }
    }

    #[test]
    fn equal_pods_fit_exactly_if_they_can_be_placed(
        classes in classes(), count in 0..7_i64, cpu in 0..5_i64, gpu in 0..3_i64,
    ) {
        let one_by_one = vec![[cpu, gpu]; usize::try_from(count).unwrap()];
        let fits = of(&classes).check_fit(&work(vec![pods(count, cpu, gpu)])).is_ok();
        prop_assert_eq!(fits, possible(&mut single(&classes), &one_by_one));
    }

    #[test]
    fn placing_takes_exactly_the_requests(
        classes in classes(), sets in prop::collection::vec((0..4_i64, 0..5_i64, 0..3_i64), 1..6),
    ) {
        let mut nodes = of(&classes);
        for (count, cpu, gpu) in sets {
            let asked = work(vec![pods(count, cpu, gpu)]);
            let fits = nodes.check_fit(&asked).is_ok();
            let before = (nodes.free(CPU), nodes.free(GPU));
            nodes.place(&asked);
            let after = (nodes.free(CPU), nodes.free(GPU));
            if fits {
                prop_assert_eq!((before.0 - after.0, before.1 - after.1), (count * cpu, count * gpu));
            }
            let left: i64 = nodes.groups.iter().map(|group| group.count).sum();
            prop_assert_eq!(left, classes.iter().map(|class| class.0).sum::<i64>());
        }
    }
}
