//! Pod sets of admitted Workloads of which all pods are reclaimable: they use no domain.

use expect_test::expect;

use super::check::check;

#[test]
fn a_finished_pod_set_releases_its_domains() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1 + pods=2 gpu=1 required=node
        cycle
        wl two q=team-a pods=2 gpu=1 required=node t=2
        cycle
        reclaim one 1
        cycle
        reclaim one 1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2 + gpu=tas:2 at r1/h2:2
            2  inadmissible-class two team-a NoCandidates
            3  inadmissible-class two team-a NoCandidates
            4  reserve two team-a gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn domains_of_a_finished_pod_set_are_not_released_again() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1 + pods=2 gpu=1 required=node
        cycle
        reclaim one 2
        wl two q=team-a pods=2 gpu=1 required=node t=2
        cycle
        finish one
        wl three q=team-a pods=2 gpu=1 required=node t=3
        wl four q=team-a pods=2 gpu=1 required=node t=4
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2 + gpu=tas:2 at r1/h2:2
            2  reserve two team-a gpu=tas:2 at r1/h1:2
            3  reserve three team-a gpu=tas:2 at r1/h2:2
            4  inadmissible-class four team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_finished_pod_set_needs_no_replacement_of_its_node() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1 + pods=2 gpu=1 required=node
        cycle
        reclaim one 2
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        node h2 rack=r1 gpu=2 down
        unhealthy one h1 h2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2 + gpu=tas:2 at r1/h2:2
            3  replace-node one team-a gpu=tas:2 at r1/h1:2 + gpu=tas:2 at r1/h3:2
        "#]],
    );
}
