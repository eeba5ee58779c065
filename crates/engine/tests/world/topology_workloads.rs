//! Nodes, and Workloads with topology requests.

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{WORKLOADS, WorldStep};

/// Two queues that share four nodes in two racks.
pub(crate) const NODES: [&str; 8] = [
    "topology racks levels=rack,node",
    "flavor tas topology=racks",
    "node h0 rack=r0 gpu=2",
    "node h1 rack=r0 gpu=3 disk=ssd",
    "node h2 rack=r1 gpu=2 disk=ssd",
    "node h3 rack=r1 gpu=3 used/gpu=1",
    "cq t0 cohort=c0 within=lower reclaim=any gpu/tas=6",
    "cq t1 cohort=c0 gpu/tas=4",
];

/// A Workload with a topology request.
pub(crate) fn topology_workload() -> impl Strategy<Value = WorldStep> {
    let wish = select(vec![
        "",
        " unconstrained",
        " required=rack",
        " preferred=node",
        " required=node",
        " slice=rack:2",
        " required=rack slice=node:2",
    ]);
    let sizes = (1..5_i64, 1..3_i64, prop::bool::weighted(0.3));
    let words = (0..2, sizes, 0..3_i64, wish, preference()).prop_map(
        |(queue, (pods, gpu, leader_and_workers), priority, wish, preference)| {
            // Slices are whole.
            let pods = if wish.contains("slice") { 2 * pods } else { pods };
            let leader = match wish.split_once(" slice") {
                _ if !leader_and_workers || wish.is_empty() => String::new(),
                Some((together, _)) => format!(" group=g + gpu=1{together} group=g"),
                None => format!(" group=g + gpu=1{wish} group=g"),
            };
            format!("q=t{queue} pods={pods} gpu={gpu} prio={priority}{wish}{preference}{leader}")
        },
    );
    (0..WORKLOADS, words).prop_map(|(index, words)| WorldStep::Submit(index, words))
}

/// Preferred node affinities of a Workload.
pub(crate) fn preference() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        " prefers=5:rack:r1",
        " prefers=1:metadata.name:h0",
        " prefers=3:disk:ssd",
        " prefers=2:rack:r0,disk:ssd prefers=3:rack:r1 prefers=1:metadata.name:h2",
    ])
}

/// Changes of nodes and topologies.
pub(crate) fn node_changes() -> impl Strategy<Value = WorldStep> {
    let machine = (0..4, 0..2, 0..5_i64, select(vec!["", "", " disk=ssd", " down"]))
        .prop_map(|(host, rack, gpu, rest)| format!("node h{host} rack=r{rack} gpu={gpu}{rest}"));
    let others = select(vec![
        "delete node h1",
        "delete topology racks",
        "topology racks levels=rack,node",
        "topology racks levels=rack",
        "flavor tas topology=racks",
        "flavor tas topology=racks taint=spot:yes",
    ]);
    prop_oneof![3 => machine, 1 => others.prop_map(str::to_owned)].prop_map(WorldStep::Say)
}

/// Failed nodes of a Workload; the nodes may be ready, and the Workload may not use them.
pub(crate) fn node_failures() -> impl Strategy<Value = WorldStep> {
    (0..WORKLOADS, prop::collection::btree_set(0..4, 0..3)).prop_map(|(workload, hosts)| {
        let hosts: String = hosts.iter().map(|host| format!(" h{host}")).collect();
        WorldStep::Say(format!("unhealthy w{workload}{hosts}"))
    })
}
