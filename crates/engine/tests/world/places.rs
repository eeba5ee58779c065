//! Machines and Workloads that want places on them.

use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{Step, WORKLOADS};

/// Two queues that share four machines in two racks.
pub(crate) const MACHINES: [&str; 8] = [
    "topology racks levels=rack,host",
    "flavor tas topology=racks",
    "host h0 rack=r0 gpu=2",
    "host h1 rack=r0 gpu=3",
    "host h2 rack=r1 gpu=2",
    "host h3 rack=r1 gpu=3 used/gpu=1",
    "cq t0 cohort=c0 within=lower reclaim=any gpu/tas=6",
    "cq t1 cohort=c0 gpu/tas=4",
];

/// A Workload that wants places.
pub(crate) fn placed() -> impl Strategy<Value = Step> {
    let wish = select(vec![
        "",
        " anywhere",
        " required=rack",
        " preferred=host",
        " required=host",
        " slice=rack:2",
        " required=rack slice=host:2",
    ]);
    let words = (0..2, 1..5_i64, 1..3_i64, 0..3_i64, wish).prop_map(
        |(queue, pods, gpu, priority, wish)| {
            // Slices are whole.
            let pods = if wish.contains("slice") { 2 * pods } else { pods };
            format!("q=t{queue} pods={pods} gpu={gpu} prio={priority}{wish}")
        },
    );
    (0..WORKLOADS, words).prop_map(|(index, words)| Step::Submit(index, words))
}

/// Machines and topologies that change.
pub(crate) fn machines() -> impl Strategy<Value = Step> {
    let machine =
        (0..4, 0..2, 0..5_i64, prop::bool::weighted(0.2)).prop_map(|(host, rack, gpu, down)| {
            let down = if down { " down" } else { "" };
            format!("host h{host} rack=r{rack} gpu={gpu}{down}")
        });
    let others = select(vec![
        "gone host h1",
        "gone topology racks",
        "topology racks levels=rack,host",
        "topology racks levels=rack",
        "flavor tas topology=racks",
        "flavor tas topology=racks taint=spot:yes",
    ]);
    prop_oneof![3 => machine, 1 => others.prop_map(str::to_owned)].prop_map(Step::Say)
}

/// Machines that fail under a Workload; they need not be down, nor it stand there.
pub(crate) fn failures() -> impl Strategy<Value = Step> {
    (0..WORKLOADS, prop::collection::btree_set(0..4, 0..3)).prop_map(|(workload, hosts)| {
        let hosts: String = hosts.iter().map(|host| format!(" h{host}")).collect();
        Step::Say(format!("unhealthy w{workload}{hosts}"))
    })
}
