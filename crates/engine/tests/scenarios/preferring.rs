//! Preferred node affinity: which machines are taken first. Gate TASRespectNodeAffinityPreferred.

use expect_test::expect;

use super::check::check;

#[test]
fn the_preferred_machine_is_taken_though_another_fits_better() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 anywhere prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn without_the_gate_preferences_do_not_count() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 anywhere prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn weights_of_all_terms_that_match_add_up() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 disk=ssd
        host h2 rack=r1 gpu=4 zone=a net=fast
        host h3 rack=r1 gpu=4 zone=b
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 anywhere prefers=5:disk:ssd prefers=3:zone:a|b prefers=3:net:fast t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h2:1
        "#]],
    );
}

#[test]
fn a_term_holds_only_if_all_of_it_does() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4 disk=ssd
        host h3 rack=r1 gpu=4 disk=ssd zone=a
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 anywhere prefers=5:disk:ssd,zone:a t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h3:1
        "#]],
    );
}

#[test]
fn a_machine_can_be_preferred_by_name() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 disk=ssd
        host h2 rack=r1 gpu=4
        host h3 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 anywhere prefers=1:metadata.name:h2 t=1
        wl two q=team-a gpu=1 anywhere prefers=1:metadata.name:h3,disk:ssd t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h2:1
            2  reserve two team-a gpu=tas:1 at r1/h3:1
        "#]],
    );
}

#[test]
fn a_term_that_asks_for_nothing_prefers_nothing() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=2
        host h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack prefers=9: t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r2/h3:1
        "#]],
    );
}

#[test]
fn a_rack_is_preferred_by_the_sum_of_its_machines() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 disk=ssd
        host h2 rack=r2 gpu=4 net=fast
        host h3 rack=r2 gpu=4 net=fast
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack prefers=5:disk:ssd prefers=3:net:fast t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r2/h2:1
        "#]],
    );
}

#[test]
fn machines_that_are_full_count_for_their_rack_though_nobody_can_stand_there() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r2 gpu=3
        host h3 rack=r2 gpu=1 used/gpu=1 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r2/h2:2
        "#]],
    );
}

#[test]
fn machines_that_taints_or_selectors_exclude_do_not_count() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 arch=arm
        host h2 rack=r2 gpu=3 arch=arm
        host h3 rack=r2 gpu=3 arch=arm disk=ssd taint=spot:yes
        host h4 rack=r2 gpu=3 arch=x86 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack on=arch:arm prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn only_machines_have_scores() {
    check(
        "
        settings preferences
        topology racks levels=rack
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r2 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1:2
        "#]],
    );
}

#[test]
fn what_the_preferred_machine_cannot_hold_stands_beside_it() {
    check(
        "
        settings preferences no-mixed
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=2 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 anywhere prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:1,r1/h2:2
        "#]],
    );
}

#[test]
fn a_preferred_level_is_left_when_the_preferred_domain_is_too_small() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 disk=ssd
        host h2 rack=r2 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 preferred=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:2,r2/h2:1
        "#]],
    );
}

#[test]
fn a_required_level_takes_the_next_preferred_domain_that_holds_all() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 disk=ssd
        host h2 rack=r2 gpu=5
        host h3 rack=r3 gpu=5 disk=hdd
        host h4 rack=r4 gpu=4 disk=hdd
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 required=rack prefers=5:disk:ssd prefers=2:disk:hdd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r4/h4:3
        "#]],
    );
}

#[test]
fn a_required_level_without_room_tells_what_the_preferred_domain_holds() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 disk=ssd
        host h2 rack=r2 gpu=4
        cq team-a gpu/tas=9
        words
        wl one q=team-a pods=5 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 5 pod(s)
        "#]],
    );
}

#[test]
fn of_equally_preferred_domains_the_smallest_that_fits_is_taken() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=1
        host h2 rack=r2 gpu=4 disk=ssd
        host h3 rack=r3 gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r3/h3:1
        "#]],
    );
}

#[test]
fn of_equally_preferred_machines_the_fullest_is_taken_under_the_mixed_profile() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=1
        host h2 rack=r2 gpu=4 disk=ssd
        host h3 rack=r3 gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 anywhere prefers=5:disk:ssd t=1
        wl two q=team-a pods=6 gpu=1 anywhere prefers=5:disk:ssd t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r3/h3:1
            2  reserve two team-a gpu=tas:6 at r2/h2:4,r3/h3:2
        "#]],
    );
}

#[test]
fn within_a_rack_preferred_machines_come_first() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=1 disk=ssd
        host h3 rack=r1 gpu=2 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:1,r1/h2:1,r1/h3:2
        "#]],
    );
}

#[test]
fn slices_go_to_preferred_racks_first() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=5
        host h2 rack=r2 gpu=3 disk=ssd
        host h3 rack=r3 gpu=4
        cq team-a gpu/tas=12
        wl one q=team-a pods=6 gpu=1 slice=rack:2 prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r2/h2:2,r3/h3:4
        "#]],
    );
}

#[test]
fn a_leader_stands_where_it_can_whatever_is_preferred() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 disk=ssd
        host h2 rack=r2 gpu=4 cpu=1
        cq team-a gpu/tas=9 cpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack group=g prefers=5:disk:ssd + cpu=1 required=rack group=g t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r2/h2:4 + cpu=tas:1 at r2/h2:1
        "#]],
    );
}

#[test]
fn where_a_leader_can_stand_the_workers_decide_what_is_preferred() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=5
        host h2 rack=r2 gpu=6 disk=ssd
        host h3 rack=r3 gpu=6 disk=hdd
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack group=g prefers=5:disk:ssd + gpu=1 required=rack group=g prefers=9:disk:hdd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r2/h2:4 + gpu=tas:1 at r2/h2:1
        "#]],
    );
}

#[test]
fn preferred_machines_are_balanced_with_others() {
    check(
        "
        settings preferences balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=6
        host h2 rack=r1 gpu=2 disk=ssd
        host h3 rack=r1 gpu=2 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=host prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
        "#]],
    );
}

#[test]
fn what_does_not_divide_goes_to_the_preferred_one() {
    check(
        "
        settings preferences balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=3
        host h2 rack=r1 gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=5 gpu=1 preferred=host prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:5 at r1/h1:2,r1/h2:3
        "#]],
    );
}

#[test]
fn a_preferred_machine_that_is_full_ends_the_balance() {
    check(
        "
        settings preferences balanced
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        host h3 rack=r1 gpu=1 used/gpu=1 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=host prefers=5:disk:ssd t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r1/h2:2
        "#]],
    );
}

#[test]
fn pods_of_a_failed_machine_move_to_a_preferred_one() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2 disk=ssd
        host h2 rack=r1 gpu=2
        host h3 rack=r1 gpu=4 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        cycle
        host h1 rack=r1 gpu=2 disk=ssd down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  move one team-a gpu=tas:2 at r1/h3:2
        "#]],
    );
}

#[test]
fn pods_of_a_failed_machine_stay_in_their_rack_though_another_is_preferred() {
    check(
        "
        settings preferences
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        host h2 rack=r1 gpu=3
        host h3 rack=r2 gpu=4 used/gpu=3 disk=ssd
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prefers=5:disk:ssd t=1
        cycle
        host h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  move one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}
