//! Flavor assignment: the flavor that a Workload gets.

use expect_test::expect;

use super::check::check;

#[test]
fn the_first_flavor_that_fits_is_assigned() {
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
fn an_untolerated_taint_excludes_a_flavor() {
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
fn a_toleration_of_the_pods_admits_them() {
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
fn a_prefer_no_schedule_taint_is_ignored() {
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
fn a_no_execute_taint_excludes_a_flavor() {
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
fn no_matching_flavor_is_the_most_severe_reason() {
    check(
        "
        flavor east label=zone:east
        flavor spot taint=spot:yes
        cq team-a gpu/east=4 gpu/spot=4
        wl one q=team-a gpu=1 t=1 on=zone:west
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor
        "#]],
    );
}

#[test]
fn the_flavor_closest_to_fitting_names_the_pending_reason() {
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
            2  inadmissible-class one team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn the_resource_group_farthest_from_fitting_names_the_pending_reason() {
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
            2  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}
