//! Topology assignment: the domains that pods get.

use expect_test::expect;

use super::check::check;

#[test]
fn required_pods_go_to_one_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
        "#]],
    );
}

#[test]
fn required_pods_do_not_spread() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn preferred_pods_spread_when_they_must() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:2,r1/h2:2,r2/h3:1
        "#]],
    );
}

#[test]
fn preferred_pods_move_up_level_by_level() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r2/h2:2,r2/h3:1
        "#]],
    );
}

#[test]
fn best_fit_uses_the_smallest_domain_that_fits_all_pods() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r2/h3:2
        "#]],
    );
}

#[test]
fn unconstrained_pods_use_least_free_capacity() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 unconstrained t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:3,r1/h2:2
        "#]],
    );
}

#[test]
fn without_the_mixed_profile_unconstrained_pods_use_best_fit() {
    check(
        "
        settings no-mixed-profile
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 unconstrained t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:4,r1/h2:1
        "#]],
    );
}

#[test]
fn a_queue_with_only_topology_flavors_implies_tas() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1
        "#]],
    );
}

#[test]
fn pods_without_a_topology_request_skip_topology_flavors() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9 gpu/plain=9
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=plain:1
        "#]],
    );
}

#[test]
fn a_topology_request_gets_a_topology_flavor() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/plain=9 gpu/tas=9
        wl one q=team-a gpu=1 t=1 unconstrained
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1
        "#]],
    );
}

#[test]
fn slices_stay_whole() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 slice=rack:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r2/h2:2
        "#]],
    );
}

#[test]
fn slices_stay_whole_within_a_required_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r1 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack slice=node:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
        "#]],
    );
}

#[test]
fn a_slice_larger_than_every_domain_fits_nowhere() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 slice=rack:4 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn a_slice_level_must_not_be_above_the_pod_set_level() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=9
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=node slice=rack:2 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn targets_free_the_quota_of_pods_too() {
    check(
        "
        settings count-pods
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 cpu=50 pods=10
        cq team-a within=lower cpu/tas=50 pods/tas=7
        wl four q=team-a pods=4 cpu=1 prio=1 required=node t=1
        cycle
        wl three q=team-a pods=3 cpu=1 prio=1 required=node t=2
        cycle
        wl high q=team-a pods=7 cpu=1 prio=5 required=node t=3
        cycle
        ",
        &expect![[r#"
            1  reserve four team-a cpu=tas:4 pods=tas:4 at r1/h1:4
            2  reserve three team-a cpu=tas:3 pods=tas:3 at r1/h1:3
            3  preempt for high team-a: four InClusterQueue, three InClusterQueue
        "#]],
    );
}
