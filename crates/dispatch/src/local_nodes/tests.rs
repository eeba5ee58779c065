//! Placements on named nodes, and the property that no scheduler leaves an assigned pod without room.

use engine::node_selection::NodeSelection;
use proptest::prelude::*;

use super::*;
use crate::{AssignedPodSet, RequestedPodSet, WorkloadRequest};

const CPU: ResourceId = ResourceId(0);
const GPU: ResourceId = ResourceId(1);

/// A node with its name as hostname.
fn node(name: &str, cpu: i64, gpu: i64) -> LocalNode {
    let free = vec![(CPU, Amount(cpu)), (GPU, Amount(gpu))];
    let labels = vec![(HOSTNAME_LABEL.into(), name.into())];
    LocalNode { labels, size: free.clone(), free, taints: Vec::new() }
}

fn nodes(all: &[(&str, i64, i64)]) -> LocalNodes {
    let mut nodes = LocalNodes::default();
    all.iter().for_each(|&(name, cpu, gpu)| nodes.set_node(name, Some(node(name, cpu, gpu))));
    nodes
}

fn pods(name: &str, count: i64, cpu: i64, gpu: i64) -> RequestedPodSet {
    let requests = vec![(CPU, Amount(cpu)), (GPU, Amount(gpu))];
    RequestedPodSet { name: name.into(), count, requests, ..RequestedPodSet::default() }
}

fn work(pod_sets: Vec<RequestedPodSet>) -> Arc<AssignedWorkload> {
    let request = Arc::new(WorkloadRequest { pod_sets, ..WorkloadRequest::default() });
    Arc::new(AssignedWorkload::new(request, Vec::new()))
}

/// The work with these pods left to be bound, on its assigned nodes.
fn on_hosts(
    work: &AssignedWorkload,
    hosts: &[Vec<(Box<str>, i64)>],
    left: &[i64],
) -> Arc<AssignedWorkload> {
    let sets = hosts.iter().zip(left).map(|(nodes, &count)| AssignedPodSet {
        count,
        nodes: nodes.clone(),
        ..AssignedPodSet::default()
    });
    Arc::new(AssignedWorkload::new(Arc::clone(&work.request), sets.collect()))
}

/// Assigns and counts, as text: `set=node:pods,…` per pod set, `set=any` without nodes, or why it does not fit.
fn place(nodes: &mut LocalNodes, serial: PlacementSerial, work: &AssignedWorkload) -> String {
    let hosts = match nodes.assign(work) {
        Ok(hosts) => hosts,
        Err(shortage) => return format!("{:?}", shortage.cause),
    };
    let counts: Vec<i64> = work.request.pod_sets.iter().map(|one| one.count).collect();
    nodes.count(serial, on_hosts(work, &hosts, &counts));
    let text = work.request.pod_sets.iter().zip(&hosts).map(|(pods, hosts)| {
        let hosts: Vec<String> =
            hosts.iter().map(|(host, pods)| format!("{host}:{pods}")).collect();
        let hosts = if hosts.is_empty() { "any".to_owned() } else { hosts.join(",") };
        format!("{}={hosts}", pods.name)
    });
    text.collect::<Vec<_>>().join(" ")
}

#[test]
fn pods_that_fit_on_one_node_take_the_tightest() {
    let mut nodes = nodes(&[("n1", 8, 0), ("n2", 4, 0), ("n3", 2, 0)]);
    assert_eq!(place(&mut nodes, 1, &work(vec![pods("a", 2, 2, 0)])), "a=n2:2");
    assert_eq!(place(&mut nodes, 2, &work(vec![pods("b", 1, 3, 0)])), "b=n1:1");
    assert_eq!(place(&mut nodes, 3, &work(vec![pods("c", 1, 5, 0)])), "c=n1:1");
    assert_eq!(place(&mut nodes, 4, &work(vec![pods("d", 1, 1, 0)])), "d=n3:1");
}

#[test]
fn a_pod_set_of_several_nodes_shares_none_of_them_while_pods_wait() {
    let mut nodes = nodes(&[("n1", 3, 0), ("n2", 3, 0), ("n3", 4, 0)]);
    let gang = work(vec![pods("gang", 2, 2, 0)]);
    assert_eq!(place(&mut nodes, 1, &work(vec![pods("one", 1, 3, 0)])), "one=n1:1");
    assert_eq!(place(&mut nodes, 2, &work(vec![pods("gang", 3, 2, 0)])), "gang=n3:2,n2:1");
    // Two pods of the gang may still go to the second node.
    let small = work(vec![pods("small", 1, 1, 0)]);
    assert_eq!(place(&mut nodes, 3, &small), format!("{:?}", too_large(1, 0)));
    // They are bound.
    nodes.remove(2);
    nodes.set_node("n3", Some(node("n3", 0, 0)));
    nodes.set_node("n2", Some(node("n2", 1, 0)));
    assert_eq!(place(&mut nodes, 3, &small), "small=n2:1");
    drop(gang);
}

fn too_large(need: i64, most: i64) -> crate::ShortageCause {
    let (need, most) = (Amount(need), Amount(most));
    crate::ShortageCause::PodTooLarge { resource: CPU, need, most }
}

/// New nodes of so many cpus, with this label.
fn new_nodes(count: i64, cpu: i64, pool: &str) -> NodeClassCapacity {
    let free = vec![(CPU, Amount(cpu))];
    let labels = vec![("pool".into(), pool.into())];
    NodeClassCapacity { count, labels, size: free.clone(), free, taints: Vec::new() }
}

fn n_unused(nodes: &LocalNodes) -> Vec<i64> {
    nodes.unused_new_nodes().iter().map(|class| class.count).collect()
}

#[test]
fn new_nodes_take_what_fits_on_no_present_node() {
    let mut nodes = nodes(&[("n1", 4, 0)]);
    let gang = work(vec![pods("gang", 3, 4, 0)]);
    assert!(nodes.with_new_nodes(&gang).is_none(), "there are none");
    nodes.set_new_nodes(vec![new_nodes(3, 4, "a")]);
    assert!(nodes.with_new_nodes(&gang).is_some());
    assert!(nodes.with_new_nodes(&work(vec![pods("one", 1, 4, 0)])).is_none(), "it fits");
    nodes.count(1, Arc::clone(&gang));
    assert_eq!((n_unused(&nodes), nodes.awaited_new_nodes(1)), (vec![1], Some(2)));
    assert!(nodes.with_new_nodes(&gang).is_none(), "one new node is left");
    // Two of the nodes come: the autoscaler has three to add, and one of them is not ready.
    nodes.set_node("n2", Some(node("n2", 4, 0)));
    nodes.set_node("n3", Some(node("n3", 4, 0)));
    nodes.set_new_nodes(vec![new_nodes(1, 4, "a")]);
    assert_eq!((n_unused(&nodes), nodes.awaited_new_nodes(1)), (vec![1], None));
    // Nodes that cannot come any more are not waited for.
    nodes.set_node("n3", None);
    assert_eq!(nodes.awaited_new_nodes(1), Some(1));
    nodes.set_new_nodes(Vec::new());
    assert!(nodes.awaited_new_nodes(1).is_none());
}

#[test]
fn a_label_of_new_nodes_is_one_that_present_nodes_lack() {
    let mut nodes = nodes(&[("n1", 4, 0)]);
    let mut selected = pods("one", 1, 2, 0);
    selected.selection.node_selector = vec![("pool".into(), "a".into())];
    let selected = work(vec![selected]);
    nodes.count(1, Arc::clone(&selected));
    assert!(nodes.awaited_new_nodes(1).is_none(), "any node may have the label");
    nodes.set_new_nodes(vec![new_nodes(1, 2, "b"), new_nodes(1, 2, "a")]);
    assert_eq!((n_unused(&nodes), nodes.awaited_new_nodes(1)), (vec![1, 0], Some(1)));
}

#[test]
fn pods_that_ask_for_other_resources_may_share_a_node_with_a_gang() {
    let mut nodes = nodes(&[("n1", 8, 2), ("n2", 8, 2)]);
    assert_eq!(place(&mut nodes, 1, &work(vec![pods("cpus", 1, 4, 0)])), "cpus=n1:1");
    // All four would leave four cpus on either node.
    assert_eq!(place(&mut nodes, 2, &work(vec![pods("gang", 4, 1, 1)])), "gang=n1:2,n2:2");
    assert_eq!(place(&mut nodes, 3, &work(vec![pods("more", 1, 4, 0)])), "more=n2:1");
    let full = work(vec![pods("more", 1, 1, 0)]);
    assert_eq!(place(&mut nodes, 4, &full), format!("{:?}", too_large(1, 0)));
}

#[test]
fn pod_sets_of_one_workload_do_not_take_each_others_room() {
    let mut nodes = nodes(&[("n1", 4, 0), ("n2", 4, 0), ("n3", 1, 0)]);
    let both = work(vec![pods("head", 1, 1, 0), pods("workers", 2, 3, 0)]);
    assert_eq!(place(&mut nodes, 1, &both), "head=n3:1 workers=n1:1,n2:1");
}

#[test]
fn the_scheduler_chooses_where_more_than_room_counts() {
    let mut nodes = nodes(&[("n1", 4, 0), ("n2", 4, 0)]);
    let apart = RequestedPodSet { needs_more_than_room: true, ..pods("apart", 2, 2, 0) };
    assert_eq!(place(&mut nodes, 1, &work(vec![apart])), "apart=any");
    // They are counted on one node, and stay so when another one changes.
    nodes.set_node("n2", Some(node("n2", 3, 0)));
    assert_eq!(place(&mut nodes, 2, &work(vec![pods("b", 1, 3, 0)])), "b=n2:1");
    nodes.set_node("n3", Some(node("n3", 4, 0)));
    nodes.set_node("n1", None);
    let full = work(vec![pods("c", 1, 1, 0)]);
    assert_eq!(place(&mut nodes, 3, &full), format!("{:?}", too_large(1, 0)), "they moved");
}

#[test]
fn likely_nodes_are_computed_again_when_nodes_change() {
    let mut nodes = nodes(&[("n1", 1, 0)]);
    let waits = RequestedPodSet { needs_more_than_room: true, ..pods("waits", 1, 2, 0) };
    nodes.count(1, work(vec![waits]));
    nodes.set_node("n2", Some(node("n2", 2, 0)));
    let small = work(vec![pods("small", 1, 2, 0)]);
    assert_eq!(place(&mut nodes, 2, &small), format!("{:?}", too_large(2, 1)));
}

#[test]
fn nodes_that_cannot_be_told_apart_are_assigned_to_none() {
    let mut nodes = LocalNodes::default();
    nodes.set_node("n1", Some(node("twin", 2, 0)));
    nodes.set_node("n2", Some(node("twin", 2, 0)));
    nodes.set_node("n3", Some(LocalNode { labels: Vec::new(), ..node("n3", 2, 0) }));
    assert_eq!(place(&mut nodes, 1, &work(vec![pods("a", 1, 2, 0)])), "a=any");
    assert_eq!(place(&mut nodes, 2, &work(vec![pods("b", 2, 2, 0)])), "b=any");
    nodes.set_node("n2", None);
    assert_eq!(nodes.hosts.len(), 1);
}

#[test]
fn a_label_that_no_node_has_leaves_the_choice_to_the_scheduler() {
    let mut nodes = nodes(&[("n1", 2, 0)]);
    let pool = NodeSelection {
        node_selector: vec![("pool".into(), "new".into())],
        ..NodeSelection::default()
    };
    let pods = RequestedPodSet { selection: pool, ..pods("a", 1, 1, 0) };
    assert_eq!(place(&mut nodes, 1, &work(vec![pods.clone()])), "a=any");
    let other = LocalNode {
        labels: vec![(HOSTNAME_LABEL.into(), "n2".into()), ("pool".into(), "old".into())],
        ..node("n2", 2, 0)
    };
    nodes.set_node("n2", Some(other));
    assert_eq!(place(&mut nodes, 2, &work(vec![pods])), "NoSuitableNode");
}

#[test]
fn what_is_counted_on_a_node_that_is_gone_counts_when_it_returns() {
    let mut nodes = nodes(&[("n1", 2, 0)]);
    assert_eq!(place(&mut nodes, 1, &work(vec![pods("a", 1, 2, 0)])), "a=n1:1");
    nodes.set_node("n1", None);
    let next = work(vec![pods("b", 1, 1, 0)]);
    assert_eq!(place(&mut nodes, 2, &next), "NoSuitableNode");
    nodes.set_node("n1", Some(node("n1", 2, 0)));
    assert_eq!(place(&mut nodes, 2, &next), format!("{:?}", too_large(1, 0)));
    nodes.remove(1);
    assert_eq!(place(&mut nodes, 2, &next), "b=n1:1");
}

/// A step of a worker cluster: a Workload comes, or the scheduler binds a pod.
#[derive(Debug, Clone)]
enum PlacementStep {
    Dispatch(Vec<(i64, i64, i64)>),
    Bind(usize, usize, usize),
    End(usize),
}

fn placement_step() -> impl Strategy<Value = PlacementStep> {
    let set = (1..4_i64, 0..4_i64, 0..3_i64);
    prop_oneof![
        3 => proptest::collection::vec(set, 1..3).prop_map(PlacementStep::Dispatch),
        5 => (0..9_usize, 0..9_usize, 0..9_usize).prop_map(|(a, b, c)| PlacementStep::Bind(a, b, c)),
        1 => (0..9_usize).prop_map(PlacementStep::End),
    ]
}

/// A Workload with the pods of each set that wait, and the nodes of its bound pods.
struct RunningWorkload {
    work: Arc<AssignedWorkload>,
    hosts: Vec<Vec<(Box<str>, i64)>>,
    left: Vec<i64>,
    bound: Vec<(usize, usize)>,
}

struct SchedulerModel {
    nodes: LocalNodes,
    free: Vec<(i64, i64)>,
    running: BTreeMap<PlacementSerial, RunningWorkload>,
    serial: PlacementSerial,
}

impl SchedulerModel {
    fn play(&mut self, step: &PlacementStep) {
        match step {
            PlacementStep::Dispatch(sets) => {
                let sets = sets.iter().enumerate();
                let work = work(
                    sets.map(|(at, one)| pods(&at.to_string(), one.0, one.1, one.2)).collect(),
                );
                let Ok(hosts) = self.nodes.assign(&work) else { return };
                let left: Vec<i64> = work.request.pod_sets.iter().map(|one| one.count).collect();
                self.serial += 1;
                self.nodes.count(self.serial, on_hosts(&work, &hosts, &left));
                let running = RunningWorkload { work, hosts, left, bound: Vec::new() };
                self.running.insert(self.serial, running);
            }
            PlacementStep::Bind(workload, set, node) => {
                let waiting: Vec<PlacementSerial> = self.running.keys().copied().collect();
                if let Some(serial) = waiting.get(workload % waiting.len().max(1)) {
                    self.bind(*serial, *set, *node);
                }
            }
            PlacementStep::End(workload) => {
                let running: Vec<PlacementSerial> = self.running.keys().copied().collect();
                let Some(serial) = running.get(workload % running.len().max(1)) else { return };
                let ended = self.running.remove(serial).expect("it runs");
                self.nodes.remove(*serial);
                for (set, node) in ended.bound {
                    let requests = &ended.work.request.pod_sets[set].requests;
                    self.take(node, requests[0].1.0, requests[1].1.0, -1);
                }
            }
        }
    }

    /// Binds a pod to one of the nodes that take it and that it allows. Returns false if a pod waits and there is none.
    fn bind(&mut self, serial: PlacementSerial, set: usize, choice: usize) -> bool {
        let running = &self.running[&serial];
        let set = set % running.left.len();
        if running.left[set] == 0 {
            return true;
        }
        let requests = &running.work.request.pod_sets[set].requests;
        let (cpu, gpu) = (requests[0].1.0, requests[1].1.0);
        let takes = |at: &usize| {
            let allowed = running.hosts[set].iter().any(|(host, _)| **host == *format!("n{at}"));
            allowed && self.free[*at].0 >= cpu && self.free[*at].1 >= gpu
        };
        let open: Vec<usize> = (0..self.free.len()).filter(takes).collect();
        let Some(&at) = open.get(choice % open.len().max(1)) else { return false };
        self.take(at, cpu, gpu, 1);
        let running = self.running.get_mut(&serial).expect("it runs");
        running.left[set] -= 1;
        running.bound.push((set, at));
        let work = on_hosts(&running.work, &running.hosts, &running.left);
        self.nodes.remove(serial);
        self.nodes.count(serial, work);
        true
    }

    fn take(&mut self, at: usize, cpu: i64, gpu: i64, sign: i64) {
        let free = &mut self.free[at];
        *free = (free.0 - sign * cpu, free.1 - sign * gpu);
        let name = format!("n{at}");
        self.nodes.set_node(&name, Some(node(&name, free.0, free.1)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]
    #[test]
    fn no_scheduler_leaves_an_assigned_pod_without_room(
        sizes in proptest::collection::vec((0..8_i64, 0..4_i64), 1..5),
        steps in proptest::collection::vec(placement_step(), 1..40),
        choices in proptest::collection::vec(0..9_usize, 1..9),
    ) {
        let mut model = SchedulerModel {
            nodes: LocalNodes::default(), free: sizes.clone(), running: BTreeMap::new(), serial: 0,
        };
        for (at, size) in sizes.iter().enumerate() {
            let name = format!("n{at}");
            model.nodes.set_node(&name, Some(node(&name, size.0, size.1)));
        }
        steps.iter().for_each(|step| model.play(step));
        // Whatever waits now is bound, in any order.
        let mut choice = choices.iter().cycle();
        while model.running.values().any(|one| one.left.iter().any(|left| *left > 0)) {
            let serials: Vec<PlacementSerial> = model.running.keys().copied().collect();
            let serial = serials[choice.next().expect("endless") % serials.len()];
            for set in 0..model.running[&serial].left.len() {
                let bound = model.bind(serial, set, *choice.next().expect("endless"));
                prop_assert!(bound, "a pod of {serial} waits and no node takes it");
            }
            // Each is looked at in turn as well, so that the loop ends.
            for serial in serials {
                prop_assert!(model.bind(serial, 0, *choice.next().expect("endless")));
                let last = model.running[&serial].left.len() - 1;
                prop_assert!(model.bind(serial, last, *choice.next().expect("endless")));
            }
        }
        let counted: i128 = model.nodes.counted.values().flat_map(BTreeMap::values).sum();
        prop_assert_eq!(counted, 0, "nothing waits, and nothing is counted");
    }
}

#[test]
fn the_room_of_a_preemption_is_where_the_targets_are_bound() {
    // Two cpus of each node are bound pods of Workload 1 and 2; Workload 3 is counted on the second node.
    let mut nodes = nodes(&[("a", 1, 0), ("b", 2, 0)]);
    let on = |node: &str| vec![NodeUsage { node: node.into(), amounts: vec![(CPU, Amount(2))] }];
    assert!(nodes.set_bound(WorkloadId(1), on("a")) && !nodes.set_bound(WorkloadId(1), on("a")));
    nodes.set_bound(WorkloadId(2), on("b"));
    let third: PlacementSerial = 3;
    assert_eq!(place(&mut nodes, third, &work(vec![pods("main", 1, 2, 0)])), "main=b:1");
    let large = work(vec![pods("main", 1, 4, 0)]);
    let fits = |counted: &[PlacementSerial], bound: &[u32]| {
        let counted = counted.iter().copied().collect();
        let leaves = |workload: WorkloadId| bound.contains(&workload.0);
        nodes.check_fit_without(&large, &counted, leaves).is_ok()
    };
    assert!(!fits(&[], &[1, 2]), "the counted pods stay");
    assert!(!fits(&[third], &[1]), "the bound pods of b stay");
    assert!(fits(&[third], &[2]));
}
