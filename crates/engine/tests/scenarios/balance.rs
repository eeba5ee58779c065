//! Balanced placement: as few domains as possible, as evenly as possible.

use expect_test::expect;

use super::check::check;

#[test]
fn balanced_pods_share_evenly() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        host h3 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=host t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:3,r1/h2:3
        "#]],
    );
}

#[test]
fn without_the_gate_the_first_machine_is_filled() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        host h3 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=host t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r1/h2:2
        "#]],
    );
}

#[test]
fn what_does_not_divide_goes_to_the_first() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=host t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:3,r1/h2:2
        "#]],
    );
}

#[test]
fn the_rack_where_the_smallest_share_is_largest_wins() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=5
        host h2 rack=r1 gpu=1
        host h3 rack=r2 gpu=3
        host h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=host t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r2/h3:3,r2/h4:3
        "#]],
    );
}

#[test]
fn a_machine_too_small_for_its_share_is_left_out() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=1
        host h3 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=host t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:3,r1/h3:3
        "#]],
    );
}

#[test]
fn where_no_siblings_hold_everybody_the_ordinary_choice_is_made() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=2
        host h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=host t=1
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
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r1/h2:2
        "#]],
    );
}

#[test]
fn slices_of_the_very_level_asked_for_are_not_balanced_unless_it_is_the_lowest() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=6
        host h2 rack=r2 gpu=6
        host h3 rack=r3 gpu=6
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 preferred=rack slice=rack:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at r1/h1:6,r2/h2:2
        "#]],
    );
}

#[test]
fn slices_below_it_stand_in_as_few_racks_as_hold_them() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=3
        host h2 rack=r1 gpu=3
        host h3 rack=r2 gpu=2
        host h4 rack=r2 gpu=2
        host h5 rack=r3 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 preferred=rack slice=host:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at r1/h1:2,r1/h2:2,r2/h3:2,r2/h4:2
        "#]],
    );
}

#[test]
fn a_leader_is_part_of_the_balance() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 preferred=host group=g t=1 + pods=6 gpu=1 preferred=host group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:6 at r1/h1:3,r1/h2:3
        "#]],
    );
}

#[test]
fn a_share_shrinks_until_the_leader_has_room() {
    check(
        "
        settings balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=2 preferred=host group=g t=1 + pods=6 gpu=1 preferred=host group=g
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
        settings balanced
        topology halls levels=hall,rack,host
        flavor tas topology=halls
        host h1 hall=a rack=r1 gpu=3
        host h2 hall=a rack=r1 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 preferred=hall slice=rack:4 slice=host:2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at a/r1/h1:2,a/r1/h2:2
        "#]],
    );
}

#[test]
fn where_balance_would_break_inner_slices_the_ordinary_choice_is_made() {
    check(
        "
        settings balanced
        topology halls levels=hall,rack,host
        flavor tas topology=halls
        host h1 hall=a rack=r1 gpu=8
        host h2 hall=a rack=r1 gpu=2
        host h3 hall=a rack=r1 gpu=8
        host h4 hall=a rack=r2 gpu=6
        cq team-a gpu/tas=18
        wl one q=team-a pods=18 gpu=1 preferred=hall slice=rack:6 slice=host:6 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:18 at a/r1/h1:6,a/r1/h3:6,a/r2/h4:6
        "#]],
    );
}
