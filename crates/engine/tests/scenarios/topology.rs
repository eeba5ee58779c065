//! Where pods stand.

use expect_test::expect;

use super::check::check;

#[test]
fn required_pods_stand_in_one_domain() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=2
        host h3 rack=r2 gpu=2
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=2
        host h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn preferred_pods_spread_when_they_must() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=2
        host h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:2,r1/h2:2,r2/h3:1
        "#]],
    );
}

#[test]
fn preferred_pods_climb_level_by_level() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r2 gpu=2
        host h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 preferred=host t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r2/h2:2,r2/h3:1
        "#]],
    );
}

#[test]
fn the_smallest_domain_that_holds_everybody_is_taken() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=2
        host h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r2/h3:2
        "#]],
    );
}

#[test]
fn unconstrained_pods_fill_the_fullest_machines() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 anywhere t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:3,r1/h2:2
        "#]],
    );
}

#[test]
fn without_mixed_profiles_they_take_the_emptiest_first() {
    check(
        "
        settings no-mixed
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 anywhere t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:4,r1/h2:1
        "#]],
    );
}

#[test]
fn a_queue_of_topologies_places_everybody() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1
        "#]],
    );
}

#[test]
fn elsewhere_who_asks_for_no_place_gets_another_flavor() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        cq team-a gpu/tas=9 gpu/plain=9
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=plain:1
        "#]],
    );
}

#[test]
fn who_asks_for_a_place_gets_a_flavor_that_has_places() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        cq team-a gpu/plain=9 gpu/tas=9
        wl one q=team-a gpu=1 t=1 anywhere
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=3
        host h2 rack=r2 gpu=3
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=3
        host h2 rack=r1 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack slice=host:2 t=1
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=3
        host h2 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 slice=rack:4 t=1
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn a_slice_must_not_be_wider_than_the_whole() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=9
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=host slice=rack:2 t=1
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
        "#]],
    );
}
