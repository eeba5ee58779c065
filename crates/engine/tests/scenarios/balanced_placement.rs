//! Balanced placement: as few domains as possible, as evenly as possible.

use expect_test::expect;

use super::check::check;

#[test]
fn balanced_pods_are_spread_evenly() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        node h3 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:3,r1/h2:3
        "#]],
    );
}

#[test]
fn without_the_gate_the_first_node_is_filled() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        node h3 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r1/h2:2
        "#]],
    );
}

#[test]
fn the_remainder_goes_to_the_first_domain() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:3,r1/h2:2
        "#]],
    );
}

#[test]
fn the_rack_with_the_highest_threshold_wins() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=5
        node h2 rack=r1 gpu=1
        node h3 rack=r2 gpu=3
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r2/h3:3,r2/h4:3
        "#]],
    );
}

#[test]
fn a_node_below_the_threshold_is_pruned() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=1
        node h3 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:3,r1/h3:3
        "#]],
    );
}

#[test]
fn without_siblings_that_fit_all_pods_best_fit_applies() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:2,r1/h2:2,r2/h3:1
        "#]],
    );
}

#[test]
fn required_pods_are_not_balanced() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r1/h2:2
        "#]],
    );
}

#[test]
fn slices_at_the_requested_level_are_balanced_only_at_the_lowest_level() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=6
        node h2 rack=r2 gpu=6
        node h3 rack=r3 gpu=6
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 preferred=rack slice=rack:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at r1/h1:6,r2/h2:2
        "#]],
    );
}

#[test]
fn slices_below_the_requested_level_use_the_fewest_racks() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r1 gpu=3
        node h3 rack=r2 gpu=2
        node h4 rack=r2 gpu=2
        node h5 rack=r3 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 preferred=rack slice=node:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at r1/h1:2,r1/h2:2,r2/h3:2,r2/h4:2
        "#]],
    );
}

#[test]
fn a_leader_is_balanced_with_its_workers() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 preferred=node group=g t=1 + pods=6 gpu=1 preferred=node group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:6 at r1/h1:3,r1/h2:3
        "#]],
    );
}

#[test]
fn the_threshold_shrinks_until_the_leader_fits() {
    check(
        "
        settings balanced-placement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=2 preferred=node group=g t=1 + pods=6 gpu=1 preferred=node group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:1 + gpu=tas:6 at r1/h1:2,r1/h2:4
        "#]],
    );
}

#[test]
fn balanced_shares_keep_inner_slices_whole() {
    check(
        "
        settings balanced-placement
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=3
        node h2 hall=a rack=r1 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 preferred=hall slice=rack:4 slice=node:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at a/r1/h1:2,a/r1/h2:2
        "#]],
    );
}

#[test]
fn balance_that_would_break_inner_slices_falls_back_to_best_fit() {
    check(
        "
        settings balanced-placement
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=8
        node h2 hall=a rack=r1 gpu=2
        node h3 hall=a rack=r1 gpu=8
        node h4 hall=a rack=r2 gpu=6
        cq team-a gpu/tas=18
        wl one q=team-a pods=18 gpu=1 preferred=hall slice=rack:6 slice=node:6 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:18 at a/r1/h1:6,a/r1/h3:6,a/r2/h4:6
        "#]],
    );
}
