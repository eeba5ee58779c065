//! Requests on nodes, and the part of them that counts as quota.

use expect_test::expect;

use super::check::check;

#[test]
fn requests_excluded_from_quota_use_node_capacity() {
    check(
        "
        topology racks levels=node
        flavor tas topology=racks
        node h1 gpu=4 cpu=3
        node h2 gpu=4 cpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 node/gpu=1 node/cpu=2 unconstrained t=1
        wl two q=team-a gpu=1 node/gpu=1 node/cpu=2 unconstrained t=2
        messages
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at h1:1,h2:1
            2  inadmissible-class two team-a NoCandidates: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource "cpu": 2
        "#]],
    );
}

#[test]
fn a_transformed_resource_uses_its_own_name_on_nodes() {
    check(
        "
        topology racks levels=node
        flavor tas topology=racks
        node h1 gpu=4
        cq team-a credits/tas=90
        wl one q=team-a pods=3 credits=10 node/gpu=1 unconstrained t=1
        wl two q=team-a pods=2 credits=10 node/gpu=1 unconstrained t=2
        messages
        ",
        &expect![[r#"
            1  reserve one team-a credits=tas:30 at h1:3
            2  inadmissible-class two team-a NoCandidates: couldn't assign flavors to pod set main: topology "racks" allows to fit only 1 out of 2 pod(s)
        "#]],
    );
}

#[test]
fn a_flavor_without_a_topology_serves_quota_only_resources() {
    check(
        "
        topology racks levels=node
        flavor tas topology=racks
        node h1 gpu=4
        cq team-a gpu/tas=9 + credits/plain=90 + pods/plain=9
        wl one q=team-a pods=2 gpu=1 credits=10 node/gpu=1 unconstrained t=1
        wl two q=team-a gpu=1 credits=10 node/gpu=1 node/credits=10 unconstrained t=2
        messages
        ",
        &expect![[r#"
            1  reserve one team-a credits=plain:20 gpu=tas:2 pods=plain:2 at h1:2
            2  inadmissible-class two team-a NoMatchingFlavor: couldn't assign flavors to pod set main: Flavor "plain" does not support TopologyAwareScheduling
        "#]],
    );
}

#[test]
fn pods_of_two_topology_flavors_do_not_fit() {
    check(
        "
        topology racks levels=node
        flavor left topology=racks
        flavor right topology=racks
        node h1 gpu=4 cpu=4
        cq team-a gpu/right=9 + cpu/left=9
        wl one q=team-a gpu=1 cpu=1 t=1
        wl two q=team-a gpu=1 t=2
        messages
        cycle 2
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoFit: failed to assign flavors to pod set main: more than one TAS flavor assigned: left, right
            2  reserve two team-a gpu=right:1 at h1:1
            ?  one is inadmissible in team-a
            ?  flavor right: enough quota is free, and the pods fit into its topology
            ?  flavor left: enough quota is free, and the pods fit into its topology
            ?  the pods need a topology of one flavor, and get several: left, right
        "#]],
    );
}

#[test]
fn pods_without_a_topology_flavor_do_not_fit() {
    check(
        "
        topology racks levels=node
        flavor tas topology=racks
        node h1 gpu=4 cpu=4
        cq team-a gpu/tas=9
        cq team-b credits/plain=9
        wl one q=team-a node/cpu=1 t=1
        wl two q=team-b credits=1 node/cpu=1 unconstrained t=2
        wl none q=team-a pods=0 node/cpu=1 + gpu=1 t=3
        messages
        cycle 3
        explain one
        explain two
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoFit: failed to assign flavors to pod set main: no TAS flavor assigned
            1  inadmissible-class two team-b NoFit: failed to assign flavors to pod set main: workload requires Topology, but there is no TAS cache information
            2  reserve none team-a + gpu=tas:1 at h1:1
            ?  one is inadmissible in team-a
            ?  the pods need a topology, and their flavors have none
            ?  two is inadmissible in team-b
            ?  flavor plain: enough quota is free
            ?  the pods need a topology, and no flavor of the queue has one
        "#]],
    );
}

#[test]
fn a_leader_without_a_request_follows_its_workers() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 cpu=1
        node h2 rack=r2 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a node/cpu=1 required=rack group=g + pods=2 gpu=1 required=rack group=g t=1
        wl two q=team-a node/cpu=1 required=rack group=g + pods=2 gpu=1 required=rack group=g t=2
        messages
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:0 at r1/h1:1 + gpu=tas:2 at r1/h1:2
            2  inadmissible-class two team-a NoCandidates: couldn't assign flavors to pod set more-1: topology "racks" allows to fit only 2 out of 2 pod(s)
        "#]],
    );
}

#[test]
fn a_taint_without_a_value_is_printed_without_one() {
    check(
        "
        topology racks levels=node
        flavor tas topology=racks
        node h1 gpu=4 taint=maint:
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 unconstrained t=1
        messages
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: taint "maint:NoSchedule": 1
        "#]],
    );
}
