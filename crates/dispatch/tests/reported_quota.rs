//! Placement on workers with queues that report their quota (docs/reference/dispatch.md §2, §3).

use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, Fleet, JobGvk, NodeClassCapacity, PlacementConfig,
    PlacementPolicy, PlacementRequest, PlacementStrategy, QueueOrder, RequestedPodSet, WorkerMode,
    WorkloadRequest,
};
use engine::{
    Amount, Time,
    ids::{ResourceId, WorkloadId},
};

const CPU: ResourceId = ResourceId(0);

/// Clusters of ten cpus with what their queues can still use; without queues none is reported. Earlier ones come first.
fn fleet(clusters: &[(&str, &[i64])]) -> Fleet {
    let mut fleet = Fleet::new();
    let ids = clusters.iter().map(|&(name, queues)| {
        let id = fleet.intern_cluster(name);
        let free = vec![(CPU, Amount(10))];
        let node = NodeClassCapacity { count: 1, size: free.clone(), free, ..Default::default() };
        fleet.set_connected(id, true);
        fleet.set_report(
            id,
            Some(CapacityReport {
                mode: if queues.is_empty() { WorkerMode::Thin } else { WorkerMode::Quota },
                as_of: 10,
                kinds: vec![JobGvk::default()],
                classes: vec![node],
                queues: queues.iter().map(|left| vec![(CPU, Amount(*left))]).collect(),
                ..CapacityReport::default()
            }),
        );
        id
    });
    let clusters = ids.collect();
    let policy =
        PlacementPolicy { strategy: PlacementStrategy::Ordered, ..PlacementPolicy::default() };
    fleet.set_config("all", Some(PlacementConfig { clusters, policy }));
    fleet
}

/// Places a Workload of so many cpus. Returns its cluster.
fn put(fleet: &mut Fleet, workload: u32, cpu: i64) -> Option<String> {
    let requests = vec![(CPU, Amount(cpu))];
    let pods = RequestedPodSet { count: 1, requests, ..RequestedPodSet::default() };
    let request = WorkloadRequest { pod_sets: vec![pods], ..WorkloadRequest::default() };
    let work = Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()));
    let (workload, order) = (WorkloadId(workload), QueueOrder::default());
    let request = PlacementRequest {
        workload,
        config: "all",
        work: &work,
        order,
        only: None,
        alternative: false,
    };
    let id = fleet.choose_cluster(&request, Time(0)).ok()?;
    fleet.place(workload, id, Arc::clone(&work), Time(0));
    Some(fleet.name(id).to_owned())
}

#[test]
fn a_cluster_whose_queues_have_the_quota_comes_first() {
    let mut fleet = fleet(&[("full", &[1, 2]), ("free", &[1, 4])]);
    assert_eq!(put(&mut fleet, 1, 3).as_deref(), Some("free"));
    // Four in flight there are more than any queue has left; the order decides between queues that are full.
    assert_eq!(put(&mut fleet, 2, 3).as_deref(), Some("full"));
}

#[test]
fn room_without_queues_comes_before_a_queue_that_is_full() {
    let mut fleet = fleet(&[("full", &[2]), ("thin", &[])]);
    assert_eq!(put(&mut fleet, 1, 3).as_deref(), Some("thin"));
    assert_eq!(put(&mut fleet, 2, 2).as_deref(), Some("full"), "it has the quota");
}

#[test]
fn full_queues_alone_refuse_nothing() {
    let mut fleet = fleet(&[("full", &[0])]);
    assert_eq!(put(&mut fleet, 1, 3).as_deref(), Some("full"), "the worker may preempt");
}
