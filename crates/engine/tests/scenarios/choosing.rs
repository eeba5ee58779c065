//! Which flavor a Workload gets.

use expect_test::expect;

use super::check::check;

#[test]
fn the_first_flavor_with_room_is_taken() {
    check(
        "
        cq team-a gpu/spot=4 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn the_next_flavor_is_tried_when_the_first_is_too_small() {
    check(
        "
        cq team-a gpu/spot=1 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        wl two q=team-a gpu=2 t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1
            2  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn the_next_flavor_is_tried_when_the_first_is_in_use() {
    check(
        "
        cq team-a gpu/spot=2 gpu/h100=4
        wl one q=team-a gpu=2 t=1
        wl two q=team-a gpu=2 t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:2
            2  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_taint_keeps_pods_away() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a gpu/spot=4 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_toleration_of_the_pods_lets_them_in() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a gpu/spot=4 gpu/h100=4
        wl one q=team-a gpu=1 t=1 tolerate=spot:yes
        wl two q=team-a gpu=1 t=2 tolerate=spot:no
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1
            2  reserve two team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_toleration_of_the_flavor_is_given_to_its_pods() {
    check(
        "
        flavor spot taint=spot:yes tolerate=spot
        cq team-a gpu/spot=4 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn a_preference_not_to_schedule_is_no_obstacle() {
    check(
        "
        flavor spot taint=spot:yes:PreferNoSchedule
        cq team-a gpu/spot=4 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn a_taint_that_evicts_keeps_pods_away() {
    check(
        "
        flavor spot taint=spot:yes:NoExecute
        cq team-a gpu/spot=4 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_node_selector_picks_the_flavor() {
    check(
        "
        flavor east label=zone:east
        flavor west label=zone:west
        cq team-a gpu/east=4 gpu/west=4
        wl one q=team-a gpu=1 t=1 on=zone:west
        ",
        &expect![[r#"
            1  reserve one team-a gpu=west:1
        "#]],
    );
}

#[test]
fn a_key_that_the_flavor_does_not_label_is_left_to_the_nodes() {
    check(
        "
        flavor east label=zone:east
        flavor west label=zone:west
        cq team-a gpu/east=4 gpu/west=4
        wl one q=team-a gpu=1 t=1 on=disk:ssd
        ",
        &expect![[r#"
            1  reserve one team-a gpu=east:1
        "#]],
    );
}

#[test]
fn an_affinity_picks_the_flavor() {
    check(
        "
        flavor east label=zone:east
        flavor west label=zone:west
        cq team-a gpu/east=4 gpu/west=4
        wl one q=team-a gpu=1 t=1 in=zone:west|north
        ",
        &expect![[r#"
            1  reserve one team-a gpu=west:1
        "#]],
    );
}

#[test]
fn one_term_of_an_affinity_is_enough() {
    check(
        "
        flavor east label=zone:east
        flavor west label=zone:west
        cq team-a gpu/east=4 gpu/west=4
        wl one q=team-a gpu=1 t=1 in=zone:north in=zone:west
        ",
        &expect![[r#"
            1  reserve one team-a gpu=west:1
        "#]],
    );
}

#[test]
fn a_term_without_known_keys_matches_everything() {
    check(
        "
        flavor east label=zone:east
        cq team-a gpu/east=4
        wl one q=team-a gpu=1 t=1 in=zone:north in=disk:ssd
        ",
        &expect![[r#"
            1  reserve one team-a gpu=east:1
        "#]],
    );
}

#[test]
fn nobody_suits_is_the_worst_verdict() {
    check(
        "
        flavor east label=zone:east
        flavor spot taint=spot:yes
        cq team-a gpu/east=4 gpu/spot=4
        wl one q=team-a gpu=1 t=1 on=zone:west
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor
        "#]],
    );
}

#[test]
fn the_least_hopeless_flavor_names_the_obstacle() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a cohort=ml gpu/spot=4 gpu/h100=0
        cq team-b cohort=ml gpu/h100=2
        wl holder q=team-b gpu=2 t=1
        cycle
        wl one q=team-a gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-b gpu=h100:2
            2  park one team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn the_most_hopeless_group_names_the_obstacle() {
    check(
        "
        cq team-a cohort=ml cpu/x86=0 + gpu/h100=1
        cq team-b cohort=ml cpu/x86=4
        wl holder q=team-b cpu=4 t=1
        cycle
        wl one q=team-a cpu=1 gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-b cpu=x86:4
            2  park one team-a ExceedsMaxQuota
        "#]],
    );
}
