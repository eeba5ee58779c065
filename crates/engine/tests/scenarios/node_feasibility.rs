//! Topologies with another lowest level than the node: each node of a domain is checked. Gate TASNodeFeasibilityForAllLevels.

use expect_test::expect;

use super::check::check;

#[test]
fn a_pod_needs_one_node_with_room_for_it() {
    check(
        "
        settings node-feasibility
        topology racks levels=block,rack
        flavor tas topology=racks
        node h1 block=b rack=r1 gpu=4
        node h2 block=b rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a gpu=6 required=rack t=1
        wl two q=team-a pods=2 gpu=4 required=rack t=2
        cycle 2
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve two team-a gpu=tas:8 at b/r1:2
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, all in one rack; fitting when empty: none
            ?    largest domain: b/r1
            ?    6 gpu requested, 8 in total, 4 at most on one node, 6 missing
            ?    would help: nodes with capacity for 1 more pod there
        "#]],
    );
}

#[test]
fn without_the_gate_a_domain_is_counted_as_one_place() {
    check(
        "
        topology racks levels=block,rack
        flavor tas topology=racks
        node h1 block=b rack=r1 gpu=4
        node h2 block=b rack=r1 gpu=4 taint=broken
        cq team-a gpu/tas=99
        wl one q=team-a gpu=6 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at b/r1:1
        "#]],
    );
}

#[test]
fn pods_that_do_not_fill_a_node_together_leave_the_rest() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 used/gpu=1
        node h2 rack=r1 gpu=4 used/gpu=1
        cq team-a gpu/tas=99
        wl one q=team-a pods=3 gpu=2 required=rack t=1
        wl two q=team-a pods=2 gpu=2 required=rack t=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve two team-a gpu=tas:4 at r1:2
        "#]],
    );
}

#[test]
fn a_tainted_node_has_no_room_for_pods_that_do_not_tolerate_it() {
    check(
        "
        settings node-feasibility
        topology racks levels=block,rack
        flavor tas topology=racks
        node h1 block=b rack=r1 gpu=4
        node h2 block=b rack=r1 gpu=4 taint=broken
        cq team-a gpu/tas=99
        wl one q=team-a pods=5 gpu=1 required=rack t=1
        wl two q=team-a pods=4 gpu=1 required=rack t=2
        cycle 2
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve two team-a gpu=tas:4 at b/r1:4
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 5 pods requested, all in one rack; fitting when empty: at most 4
            ?    largest domain: b/r1
            ?    5 gpu requested, 4 in total, 1 missing
            ?    excluded: 1 of 2 nodes, untolerated taint broken:NoSchedule
            ?    would help: nodes with capacity for 1 more pod there
        "#]],
    );
}

#[test]
fn a_node_selector_takes_one_of_two_nodes() {
    check(
        "
        settings node-feasibility
        topology racks levels=block,rack
        flavor tas topology=racks
        node h1 block=b rack=r1 gpu=4 disk=ssd
        node h2 block=b rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a pods=5 gpu=1 required=rack on=disk:ssd t=1
        wl two q=team-a pods=5 gpu=1 required=rack in=disk:ssd t=2
        wl three q=team-a pods=4 gpu=1 required=rack on=disk:ssd t=3
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  inadmissible-class two team-a TopologyPlacementFailed
            3  reserve three team-a gpu=tas:4 at b/r1:4
        "#]],
    );
}

#[test]
fn nodes_are_counted_by_name_not_by_hostname_label() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 kubernetes.io/hostname=same gpu=4
        node h2 rack=r1 kubernetes.io/hostname=same gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a gpu=6 required=rack t=1
        wl two q=team-a pods=2 gpu=4 required=rack t=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve two team-a gpu=tas:8 at r1:2
        "#]],
    );
}

#[test]
fn usage_bounds_a_domain_as_a_whole() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a pods=3 gpu=2 required=rack t=1
        cycle
        wl two q=team-a gpu=3 required=rack t=2
        wl three q=team-a gpu=2 required=rack t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1:3
            2  inadmissible-class two team-a NoCandidates
            3  reserve three team-a gpu=tas:2 at r1:1
        "#]],
    );
}

#[test]
fn a_leader_and_its_workers_may_be_on_different_nodes() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=5
        node h3 rack=r2 gpu=3
        node h4 rack=r2 gpu=6
        cq team-a gpu/tas=99
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=4 gpu=2 required=rack group=g
        wl two q=team-a gpu=4 required=rack group=g t=2 + pods=3 gpu=2 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1:1 + gpu=tas:8 at r1:4
            2  inadmissible-class two team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn preferred_nodes_raise_the_score_of_their_domain() {
    check(
        "
        settings node-feasibility preferred-affinity
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r2 gpu=4 disk=ssd
        cq team-a gpu/tas=99
        wl one q=team-a gpu=1 required=rack prefers=1:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r2:1
        "#]],
    );
}

#[test]
fn a_node_that_loses_its_taint_makes_room() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 taint=broken
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=99
        wl one q=team-a gpu=4 required=rack t=1
        cycle
        node h1 rack=r1 gpu=4
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve one team-a gpu=tas:4 at r1:1
        "#]],
    );
}

#[test]
fn pods_of_earlier_pod_sets_take_nodes() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=8
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a gpu=6 required=rack t=1 + gpu=6 required=rack
        wl two q=team-a gpu=3 required=rack t=2 + gpu=6 required=rack
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve two team-a gpu=tas:3 at r1:1 + gpu=tas:6 at r1:1
        "#]],
    );
}

#[test]
fn room_of_a_node_follows_other_pods() {
    check(
        "
        settings node-feasibility
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4 used/gpu=1
        cq team-a gpu/tas=99
        node h1 rack=r1 gpu=4 used/gpu=2 leaving/gpu=2
        wl one q=team-a gpu=4 required=rack t=1
        cycle
        node h1 rack=r1 gpu=4
        cycle
        ",
        &expect![[r#"
            1  requeue one team-a Deferred
            2  reserve one team-a gpu=tas:4 at r1:1
        "#]],
    );
}
