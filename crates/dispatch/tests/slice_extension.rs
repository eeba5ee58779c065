//! A slice that extends one on a worker is placed beside it with what it has beyond that one.

use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, Fleet, JobGvk, NodeClassCapacity, PlacementConfig,
    PlacementRequest, QueueOrder, RequestedPodSet, SliceExtension, WorkloadRequest,
};
use engine::{
    Amount, Time,
    ids::{ClusterId, ResourceId, WorkloadId},
};

const CPU: ResourceId = ResourceId(0);
const OLD: WorkloadId = WorkloadId(1);
const NEW: WorkloadId = WorkloadId(2);
const OTHER: WorkloadId = WorkloadId(3);

fn report(free: i64, as_of: u64) -> CapacityReport {
    let free = vec![(CPU, Amount(free))];
    let class = NodeClassCapacity { count: 1, free, ..NodeClassCapacity::default() };
    let kinds = vec![JobGvk::default()];
    CapacityReport { kinds, classes: vec![class], as_of, ..CapacityReport::default() }
}

/// A Workload of so many pods of one cpu.
fn work(pods: i64) -> Arc<AssignedWorkload> {
    let requests = vec![(CPU, Amount(1))];
    let set = RequestedPodSet { count: pods, requests, ..RequestedPodSet::default() };
    let request = WorkloadRequest { pod_sets: vec![set], ..WorkloadRequest::default() };
    Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
}

/// Two clusters; on the first one the old slice of two pods runs, and so many cpus are free.
fn fleet(free: i64) -> (Fleet, ClusterId) {
    let mut fleet = Fleet::new();
    let (east, west) = (fleet.intern_cluster("east"), fleet.intern_cluster("west"));
    let config = PlacementConfig { clusters: vec![east, west], ..PlacementConfig::default() };
    fleet.set_config("all", Some(config));
    for (cluster, free) in [(east, free), (west, 100)] {
        fleet.set_connected(cluster, true);
        fleet.set_report_listed(cluster, true);
        fleet.set_report(cluster, Some(report(free, 10)));
    }
    fleet.place(OLD, east, work(2), Time(0));
    fleet.clone_created(OLD, 5);
    (fleet, east)
}

fn choose(
    fleet: &mut Fleet,
    (workload, work): (WorkloadId, &Arc<AssignedWorkload>),
    only: Option<ClusterId>,
) -> Result<String, Vec<String>> {
    let order = QueueOrder::default();
    let request =
        PlacementRequest { workload, config: "all", work, order, only, alternative: false };
    let names = engine::Names::default();
    let chosen = fleet.choose_cluster(&request, Time(1));
    chosen.map(|id| fleet.name(id).to_owned()).map_err(|refused| {
        let reasons = refused.reasons.iter();
        reasons
            .map(|(id, why)| match why {
                dispatch::ClusterRefusal::NotConfigured => why.message(&names).to_string(),
                _ => fleet.name(*id).to_owned(),
            })
            .collect()
    })
}

/// Places the new slice of five pods in place of the old one.
fn extend(fleet: &mut Fleet, east: ClusterId) {
    let whole = work(5);
    let further = Arc::new(whole.beyond(|_| 2));
    assert_eq!(choose(fleet, (NEW, &further), Some(east)), Ok("east".to_owned()));
    fleet.place(NEW, east, further, Time(1));
    fleet.extend(NEW, &SliceExtension { old: OLD, cluster: "east".into(), whole });
}

fn pods(fleet: &Fleet, of: WorkloadId) -> i64 {
    let work = fleet.placed_work(of).expect("placed");
    let requested = work.request.pod_sets.iter().map(|one| one.count).sum();
    match work.assigned.as_slice() {
        [] => requested,
        given => given.iter().map(|one| one.count).sum(),
    }
}

#[test]
fn only_the_further_pods_need_room_and_only_on_that_cluster() {
    let further = Arc::new(work(5).beyond(|_| 2));
    let (mut enough, east) = fleet(3);
    assert_eq!(choose(&mut enough, (NEW, &further), Some(east)), Ok("east".to_owned()));
    let (mut little, east) = fleet(2);
    let refused = choose(&mut little, (NEW, &further), Some(east));
    assert_eq!(refused, Err(vec!["east".to_owned()]), "west has room, and is not asked");
    assert!(little.woken_keys(Time(2)).is_empty());
    little.set_report(little.find("west").expect("known"), Some(report(200, 20)));
    assert!(little.woken_keys(Time(2)).is_empty(), "another cluster wakes nothing");
    little.set_report(east, Some(report(3, 20)));
    assert_eq!(little.woken_keys(Time(2)).len(), 1);
}

#[test]
fn a_cluster_that_was_taken_out_of_the_configuration_is_named() {
    let (mut fleet, east) = fleet(3);
    let west = fleet.find("west").expect("known");
    let config = PlacementConfig { clusters: vec![west], ..PlacementConfig::default() };
    fleet.set_config("all", Some(config));
    let further = Arc::new(work(5).beyond(|_| 2));
    let refused = choose(&mut fleet, (NEW, &further), Some(east));
    assert_eq!(refused, Err(vec!["is not in the MultiKueueConfig".to_owned()]));
}

#[test]
fn the_pods_of_the_old_slice_count_with_the_new_one_after_it() {
    let (mut fleet, east) = fleet(4);
    extend(&mut fleet, east);
    assert_eq!((pods(&fleet, OLD), pods(&fleet, NEW)), (2, 3));
    assert!(choose(&mut fleet, (OTHER, &work(2)), Some(east)).is_err(), "one cpu is left");
    assert!(choose(&mut fleet, (OTHER, &work(1)), Some(east)).is_ok());
    fleet.clone_created(NEW, 15);
    fleet.set_report(east, Some(report(1, 20)));
    // Its clone ended after the report, which still has its pods: they are not free.
    fleet.workload_ended(OLD, 30);
    assert_eq!((fleet.placed_on(OLD), pods(&fleet, NEW)), (None, 5));
    assert!(choose(&mut fleet, (OTHER, &work(2)), Some(east)).is_err());
    assert!(choose(&mut fleet, (OTHER, &work(1)), Some(east)).is_ok());
}

#[test]
fn a_withdrawn_extension_leaves_the_old_slice_as_it_was() {
    let (mut fleet, east) = fleet(3);
    extend(&mut fleet, east);
    fleet.unplace(NEW);
    assert_eq!(pods(&fleet, OLD), 2);
    fleet.workload_ended(OLD, 30);
    assert_eq!((fleet.placed_on(OLD), fleet.placed_on(NEW)), (None, None));
    assert!(choose(&mut fleet, (OTHER, &work(2)), Some(east)).is_ok(), "its pods are free");
}
