//! The usage that a Workload is charged for.

use expect_test::expect;

use super::check::check;

#[test]
fn pods_are_counted_where_the_queue_covers_them() {
    check(
        "
        cq team-a gpu/h100=9 pods/h100=2
        wl one q=team-a pods=3 gpu=1 t=1
        wl two q=team-a pods=2 gpu=1 t=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve two team-a gpu=h100:2 pods=h100:2
        "#]],
    );
}

#[test]
fn pods_are_not_counted_elsewhere() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a pods=3 gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn a_resource_without_a_resource_group_does_not_fit() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a gpu=1 tpu=1 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor
        "#]],
    );
}

#[test]
fn a_zero_request_of_an_undeclared_resource_fits() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a gpu=1 tpu=0 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn resources_of_one_group_share_their_flavor() {
    check(
        "
        cq team-a cpu/spot=9 gpu/spot=1 cpu/h100=9 gpu/h100=4
        wl one q=team-a cpu=1 gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a cpu=h100:1 gpu=h100:2
        "#]],
    );
}

#[test]
fn resource_groups_choose_flavors_independently() {
    check(
        "
        cq team-a cpu/arm=0 cpu/x86=8 + gpu/h100=4
        wl one q=team-a cpu=1 gpu=2 t=1
        ",
        &expect![[r#"
            1  reserve one team-a cpu=x86:1 gpu=h100:2
        "#]],
    );
}

#[test]
fn pod_sets_of_one_workload_count_against_each_other() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1 + gpu=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn pod_sets_of_one_workload_may_get_different_flavors() {
    check(
        "
        cq team-a gpu/spot=3 gpu/h100=2
        wl one q=team-a gpu=3 t=1 + gpu=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:3 + gpu=h100:2
        "#]],
    );
}

#[test]
fn a_workload_is_admitted_as_a_whole_or_not_at_all() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1 + gpu=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible one
        "#]],
    );
}

#[test]
fn counts_multiply_requests() {
    check(
        "
        cq team-a gpu/h100=6
        wl one q=team-a pods=3 gpu=2 t=1
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:6
            -  team-a uses gpu/h100=6, reserving one
        "#]],
    );
}

#[test]
fn reclaimable_pods_release_their_quota() {
    check(
        "
        cq team-a gpu/h100=6
        wl one q=team-a pods=3 gpu=2 t=1
        cycle
        reclaim one 1
        show team-a
        reclaim one 2
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:6
            -  team-a uses gpu/h100=4, reserving one
            -  team-a uses nothing, reserving one
        "#]],
    );
}

#[test]
fn reclaimed_quota_is_released_only_once() {
    check(
        "
        cq team-a cohort=ml gpu/h100=6
        wl one q=team-a pods=3 gpu=2 t=1
        cycle
        reclaim one 2
        finish one
        show team-a ml
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:6
            -  team-a uses nothing
            -  ml uses nothing
        "#]],
    );
}
