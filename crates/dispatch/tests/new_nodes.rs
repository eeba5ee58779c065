//! Placement on nodes that an autoscaler can still add (docs/reference/dispatch.md §2, §3).

use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, Fleet, JobGvk, NodeClassCapacity, PlacementConfig,
    PlacementRequest, QueueOrder, RequestedPodSet, WorkloadRequest, placement_message,
};
use engine::{
    Amount, Names, Time,
    ids::{ResourceId, WorkloadId},
};
use proptest::prelude::*;

const CPU: ResourceId = ResourceId(0);

/// So many nodes of so many cpus each.
type NodeCount = (i64, i64);

fn nodes((count, cpu): NodeCount) -> NodeClassCapacity {
    let free = vec![(CPU, Amount(cpu))];
    NodeClassCapacity { count, size: free.clone(), free, ..NodeClassCapacity::default() }
}

fn report(present: NodeCount, new: NodeCount, as_of: u64) -> CapacityReport {
    CapacityReport {
        as_of,
        kinds: vec![JobGvk::default()],
        classes: vec![nodes(present)],
        elastic: vec![nodes(new)],
        ..CapacityReport::default()
    }
}

/// A fleet of clusters with these present and new nodes.
fn fleet(clusters: &[(&str, NodeCount, NodeCount)]) -> Fleet {
    let mut fleet = Fleet::new();
    let ids = clusters.iter().map(|&(name, present, new)| {
        let id = fleet.intern_cluster(name);
        fleet.set_connected(id, true);
        fleet.set_report(id, Some(report(present, new, 10)));
        id
    });
    let clusters = ids.collect();
    fleet.set_config("all", Some(PlacementConfig { clusters, ..PlacementConfig::default() }));
    fleet
}

fn work((count, cpu): NodeCount) -> Arc<AssignedWorkload> {
    let requests = vec![(CPU, Amount(cpu))];
    let pods =
        RequestedPodSet { name: "main".into(), count, requests, ..RequestedPodSet::default() };
    let request = WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() };
    Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
}

/// Places a Workload. Returns the cluster, or why there is none.
fn put(fleet: &mut Fleet, workload: u32, pods: NodeCount) -> String {
    let (work, workload) = (work(pods), WorkloadId(workload));
    let (order, only) = (QueueOrder::default(), None);
    let request =
        PlacementRequest { workload, config: "all", work: &work, order, only, alternative: false };
    match fleet.choose_cluster(&request, Time(0)) {
        Ok(id) => {
            fleet.place(workload, id, Arc::clone(&work), Time(0));
            fleet.name(id).to_owned()
        }
        Err(refused) => {
            let mut names = Names::default();
            names.resources.intern("cpu");
            placement_message(&refused, fleet, &names)
        }
    }
}

#[test]
fn free_room_comes_before_new_nodes() {
    let mut fleet = fleet(&[("elastic", (1, 1000), (9, 4000)), ("present", (2, 2000), (0, 0))]);
    assert_eq!(put(&mut fleet, 1, (1, 2000)), "present");
    assert_eq!(put(&mut fleet, 2, (1, 2000)), "present");
    assert_eq!(put(&mut fleet, 3, (1, 2000)), "elastic", "nothing is free any more");
    assert_eq!(put(&mut fleet, 4, (1, 1000)), "elastic", "its present node is still free");
}

#[test]
fn a_gang_may_use_present_and_new_nodes_together() {
    let mut fleet = fleet(&[("a", (2, 4000), (2, 4000))]);
    assert_eq!(put(&mut fleet, 1, (4, 4000)), "a");
    assert_eq!(
        put(&mut fleet, 2, (1, 4000)),
        "no cluster has room: a: pod set main: one pod needs 4 cpu, the most free on a node is 0"
    );
}

#[test]
fn work_in_flight_takes_headroom_once() {
    let mut fleet = fleet(&[("a", (0, 0), (2, 4000))]);
    let id = fleet.find("a").expect("a cluster");
    assert_eq!(put(&mut fleet, 1, (1, 4000)), "a");
    // The clone is in a later report, which has less headroom.
    fleet.clone_created(WorkloadId(1), 20);
    fleet.set_report(id, Some(report((0, 0), (1, 4000), 20)));
    assert_eq!(put(&mut fleet, 2, (1, 4000)), "a");
    assert_ne!(put(&mut fleet, 3, (1, 4000)), "a");
    // The same before the report.
    fleet.set_report(id, Some(report((0, 0), (2, 4000), 30)));
    assert_eq!(put(&mut fleet, 3, (1, 4000)), "a");
    assert_ne!(put(&mut fleet, 4, (1, 4000)), "a");
}

#[test]
fn the_cluster_with_the_most_headroom_left_is_taken() {
    let mut fleet = fleet(&[("small", (0, 0), (2, 4000)), ("large", (0, 0), (8, 4000))]);
    assert_eq!(put(&mut fleet, 1, (2, 4000)), "large");
}

#[test]
fn never_fits_is_said_with_new_nodes_included() {
    let mut fleet = fleet(&[("a", (2, 2000), (3, 4000))]);
    assert_eq!(put(&mut fleet, 1, (3, 4000)), "a");
    assert_eq!(put(&mut fleet, 2, (2, 2000)), "a");
    let busy =
        "no cluster has room: a: pod set main: one pod needs 4 cpu, the most free on a node is 0";
    assert_eq!(put(&mut fleet, 3, (1, 4000)), busy, "other work may end");
    let (large, order, only) = (work((1, 8000)), QueueOrder::default(), None);
    let workload = WorkloadId(9);
    let request =
        PlacementRequest { workload, config: "all", work: &large, order, only, alternative: false };
    let refused = fleet.refuse_after(&request, &[], Time(0));
    let mut names = Names::default();
    names.resources.intern("cpu");
    let message = placement_message(&refused, &fleet, &names);
    assert!(message.starts_with("no cluster has room: a: never fits: "), "{message}");
    fleet.workload_removed(workload);
    let many = "no cluster has room: a: never fits: pod set main: only 3 of 4 pods fit";
    assert_eq!(put(&mut fleet, 4, (4, 4000)), many);
    let large = "no cluster has room: a: never fits: pod set main: one pod needs 8 cpu, the most free on a node is 4";
    assert_eq!(put(&mut fleet, 5, (1, 8000)), large);
    // It is tried again when the autoscaler can add more nodes.
    let id = fleet.find("a").expect("a cluster");
    fleet.set_report(id, Some(report((2, 2000), (4, 4000), 10)));
    assert_eq!(fleet.woken_keys(Time(0)).len(), 1, "the single pod");
    fleet.set_report(id, Some(report((2, 2000), (9, 4000), 10)));
    assert_eq!(fleet.woken_keys(Time(0)).len(), 2, "the four pods as well");
}

proptest! {
    /// Pods that are placed on present and new nodes never exceed either, whatever the order.
    #[test]
    fn headroom_is_never_exceeded(
        present in (0..3_i64, 1..5_i64),
        new in (0..4_i64, 1..5_i64),
        jobs in prop::collection::vec((1..4_i64, 1..5_i64), 1..12),
    ) {
        let mut fleet = fleet(&[("a", present, new)]);
        let mut placed = 0;
        for (number, job) in (0_u32..).zip(&jobs) {
            if put(&mut fleet, number, *job) == "a" {
                placed += job.0 * job.1;
            }
        }
        prop_assert!(placed <= present.0 * present.1 + new.0 * new.1);
    }
}
