//! Pod set groups: a leader and its workers.

use expect_test::expect;

use super::check::check;

#[test]
fn a_leader_uses_capacity_that_workers_cannot() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=5
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=4 gpu=2 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h2:1 + gpu=tas:8 at r1/h1:2,r1/h2:2
        "#]],
    );
}

#[test]
fn a_leader_may_request_resources_that_workers_do_not() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4 cpu=2
        cq team-a cpu/tas=9 gpu/tas=9
        wl one q=team-a cpu=2 required=rack group=g t=1 + pods=6 gpu=1 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a cpu=tas:2 at r1/h2:1 + gpu=tas:6 at r1/h1:2,r1/h2:4
        "#]],
    );
}

#[test]
fn the_larger_pod_set_of_a_group_is_the_workers() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 required=rack group=g t=1 + gpu=2 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:1,r1/h2:2 + gpu=tas:2 at r1/h1:1
        "#]],
    );
}

#[test]
fn the_later_pod_set_of_equal_size_is_the_leader() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=1
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=2 required=rack group=g t=1 + gpu=1 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:1 + gpu=tas:1 at r1/h1:1
        "#]],
    );
}

#[test]
fn a_preferred_group_moves_up_levels_together() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 preferred=node group=g t=1 + pods=3 gpu=1 preferred=node group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r2/h2:1 + gpu=tas:3 at r2/h2:1,r2/h3:2
        "#]],
    );
}

#[test]
fn slices_of_workers_stay_whole_beside_their_leader() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=5
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=8 gpu=1 required=rack slice=node:2 group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:8 at r1/h1:4,r1/h2:4
        "#]],
    );
}

#[test]
fn workers_without_capacity_for_their_leader_do_not_fit() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=3 gpu=1 required=rack group=g
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set more-1: topology "racks" allows to fit only 3 out of 3 pod(s)
        "#]],
    );
}

#[test]
fn the_first_pod_set_of_a_group_names_the_flavor_reason() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks taint=spot:yes
        node h1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=room group=g tolerate=spot:yes
        wl two q=team-a gpu=1 required=room group=g t=2 tolerate=spot:yes + pods=2 gpu=1 required=rack group=g
        messages
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: untolerated taint {spot yes NoSchedule <nil>} in flavor tas; couldn't assign flavors to pod set more-1: untolerated taint {spot yes NoSchedule <nil>} in flavor tas
            2  inadmissible-class two team-a NoMatchingFlavor: couldn't assign flavors to pod set main: Flavor "tas" does not contain the requested level; couldn't assign flavors to pod set more-1: Flavor "tas" does not contain the requested level
        "#]],
    );
}

#[test]
fn a_leader_may_be_assigned_to_a_rack_without_slices() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h0 rack=r0 gpu=7
        node h1 rack=r1 gpu=4
        node h2 rack=r2 gpu=8
        node h3 rack=r3 gpu=8
        cq team-a gpu/tas=20
        wl one q=team-a gpu=1 slice=node:2 group=g + pods=4 gpu=4 slice=node:2 group=g t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r0/h0:1 + gpu=tas:16 at r2/h2:2,r3/h3:2
        "#]],
    );
}

#[test]
fn nodes_of_a_group_are_filtered_for_its_workers_alone() {
    let nodes = "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 zone=a gpu=1
        node h2 rack=r1 zone=b gpu=4
        cq team-a gpu/tas=20
    ";
    check(
        &format!(
            "{nodes}
            wl one q=team-a gpu=1 required=rack on=zone:a group=g t=1 + pods=3 gpu=1 required=rack on=zone:b group=g"
        ),
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h2:1 + gpu=tas:3 at r1/h2:3
        "#]],
    );
}
