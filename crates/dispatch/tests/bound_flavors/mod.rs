//! Workloads with flavors that are bound to clusters.

use dispatch::{
    AssignedPodSet, AssignedWorkload, DispatchedEntry, Fleet, FleetPlacer, PlacementConfig,
    WorkloadRequest, refusals_message,
};
use engine::{CycleOutcome, Engine, Event, Placer, Time, ids::ResourceId};
use std::sync::Arc;

use super::{one_pod, submit, two_flavors};

/// A Workload of two pod sets with one pod each, in flavors that are bound to these clusters.
fn bound(cpu: ResourceId, clusters: [Option<&[&str]>; 2]) -> DispatchedEntry {
    let plain = one_pod((cpu, 1), 0);
    let pods = plain.work.request.pod_sets[0].clone();
    let request =
        WorkloadRequest { pod_sets: vec![pods.clone(), pods], ..WorkloadRequest::default() };
    let assigned = clusters.map(|names| AssignedPodSet {
        count: 1,
        clusters: names.map(|names| names.iter().map(|&name| name.into()).collect()),
        ..AssignedPodSet::default()
    });
    let work = Arc::new(AssignedWorkload::new(Arc::new(request), assigned.into()));
    DispatchedEntry { work, ..plain }
}

#[test]
fn a_workload_goes_to_a_cluster_that_the_flavors_of_all_its_pod_sets_are_bound_to() {
    let outcome = |clusters: [Option<&[&str]>; 2]| {
        let (mut engine, cpu, mut fleet) = two_flavors();
        submit(&mut engine, "ns/one", cpu, 2);
        let lookup = |_: &engine::CycleEntry| Some(bound(cpu, clusters));
        let mut placer = FleetPlacer::new(&mut fleet, &lookup, Time(1));
        let entries = engine.cycle(Time(1), &mut placer).to_vec();
        let refused = placer.refusals.into_values().next().unwrap_or_default();
        match entries[0].outcome {
            CycleOutcome::Reserved { cluster } => {
                fleet.name(cluster.expect("a cluster")).to_owned()
            }
            _ => refusals_message(&refused[..1], &fleet, engine.names()),
        }
    };
    let (east, west): (&[&str], &[&str]) = (&["east"], &["west"]);
    assert_eq!(outcome([None, None]), "west", "it has more room");
    assert_eq!(outcome([Some(east), None]), "east");
    assert_eq!(outcome([Some(&["west", "east"]), Some(east)]), "east");
    assert_eq!(
        outcome([Some(east), Some(west)]),
        "no cluster has room: east: its flavor is bound to other clusters; west: its flavor is bound to other clusters"
    );
}

#[test]
fn a_bound_workload_waits_for_the_queues_of_its_clusters_alone() {
    let (mut engine, cpu, mut fleet) = two_flavors();
    let clusters: Vec<_> =
        ["east", "kueue-1", "kueue-2"].map(|name| fleet.intern_cluster(name)).into();
    for &cluster in &clusters[1..] {
        fleet.set_connected(cluster, true);
        fleet.set_report_listed(cluster, true);
    }
    fleet.set_config("all", Some(PlacementConfig { clusters, ..PlacementConfig::default() }));
    submit(&mut engine, "ns/one", cpu, 2);
    for (names, races) in [(&["west"][..], false), (&["kueue-2", "west"], true)] {
        let lookup = |_: &engine::CycleEntry| Some(bound(cpu, [Some(names), None]));
        let entries = engine.cycle(Time(1), &mut FleetPlacer::new(&mut fleet, &lookup, Time(1)));
        let outcome = entries[0].outcome;
        assert_eq!(outcome == CycleOutcome::Reserved { cluster: None }, races, "{outcome:?}");
        if let CycleOutcome::NoClusterCapacity(key) = outcome {
            engine.apply(Event::ClusterCapacity(key));
        }
    }
}

/// The entry on the clusters that its flavor is bound to.
fn bound_by_flavor(
    entry: &engine::CycleEntry,
    cpu: ResourceId,
    of: [&[&str]; 2],
) -> DispatchedEntry {
    let flavor = entry.assignment.pod_sets[0].flavor_assignments[0].flavor;
    bound(cpu, [Some(of[flavor.index()]), None])
}

/// The fleet of `two_flavors` without reports; east is not connected.
fn without_reports() -> (Engine, ResourceId, Fleet) {
    let (engine, cpu, mut fleet) = two_flavors();
    for (name, connected) in [("east", false), ("west", true)] {
        let cluster = fleet.intern_cluster(name);
        fleet.set_report(cluster, None);
        fleet.set_report_listed(cluster, true);
        fleet.set_connected(cluster, connected);
    }
    (engine, cpu, fleet)
}

#[test]
fn a_race_without_reports_needs_a_cluster_that_a_flavor_is_bound_to() {
    for on_prem in [&["east"][..], &["misspelt"], &[]] {
        let (mut engine, cpu, mut fleet) = without_reports();
        submit(&mut engine, "ns/one", cpu, 2);
        let lookup =
            |entry: &engine::CycleEntry| Some(bound_by_flavor(entry, cpu, [on_prem, &["west"]]));
        let entries = engine.cycle(Time(1), &mut FleetPlacer::new(&mut fleet, &lookup, Time(1)));
        let chosen = &entries[0].assignment.pod_sets[0].flavor_assignments[0];
        let outcome = (entries[0].outcome, chosen.flavor.index());
        assert_eq!(outcome, (CycleOutcome::Reserved { cluster: None }, 1), "{on_prem:?}");
    }
}

#[test]
fn a_workload_without_a_cluster_for_a_race_without_reports_waits_for_one() {
    let (mut engine, cpu, mut fleet) = without_reports();
    let id = submit(&mut engine, "ns/one", cpu, 2);
    let lookup =
        |entry: &engine::CycleEntry| Some(bound_by_flavor(entry, cpu, [&["east"], &["misspelt"]]));
    let mut placer = FleetPlacer::new(&mut fleet, &lookup, Time(1));
    let entry = engine.cycle(Time(1), &mut placer)[0].clone();
    assert!(matches!(entry.outcome, CycleOutcome::NoClusterCapacity(_)), "{:?}", entry.outcome);
    assert!(!placer.fits_after(&entry, &[]), "no preemption helps");
    let refused = placer.refusals.remove(&id).expect("a refusal");
    assert_eq!(
        refusals_message(&refused, &fleet, engine.names()),
        "no cluster has room in on-prem: east: not connected; west: its flavor is bound to other clusters. \
         no cluster has room in cloud: east: not connected; west: its flavor is bound to other clusters"
    );
    assert_eq!(fleet.woken_keys(Time(2)), []);
    let east = fleet.intern_cluster("east");
    fleet.set_connected(east, true);
    let woken = fleet.woken_keys(Time(3));
    assert!(!woken.is_empty(), "east may have it");
    woken.into_iter().for_each(|key| engine.apply(Event::ClusterCapacity(key)));
    let entries = engine.cycle(Time(3), &mut FleetPlacer::new(&mut fleet, &lookup, Time(3)));
    assert_eq!(entries[0].outcome, CycleOutcome::Reserved { cluster: None });
}
