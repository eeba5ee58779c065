//! Quota is reserved only together with a cluster that has capacity.

use expect_test::expect;

use super::check::check;

#[test]
fn a_head_without_cluster_capacity_reserves_nothing() {
    check(
        "
        capacity h100=3
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=5 t=1
        wl small q=team-a gpu=2 t=2
        cycle 2
        show team-a
        capacity h100=5
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  reserve small team-a gpu=h100:2 on a cluster
            -  team-a uses gpu/h100=2, reserving small, inadmissible gang
            3  reserve gang team-a gpu=h100:5 on a cluster
        "#]],
    );
}

#[test]
fn released_quota_does_not_requeue_for_cluster_capacity() {
    check(
        "
        capacity h100=3
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=5 t=1
        wl small q=team-a gpu=2 t=2
        cycle 2
        finish small
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  reserve small team-a gpu=h100:2 on a cluster
        "#]],
    );
}

#[test]
fn cluster_capacity_requeues_only_its_workloads() {
    check(
        "
        capacity h100=0
        capacity spot=0
        cq team-a gpu/h100=4
        cq team-b gpu/spot=4
        wl one q=team-a gpu=1 t=1
        wl two q=team-b gpu=1 t=2
        cycle
        capacity h100=4
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for one team-a in h100
            1  no capacity for two team-b in spot
            2  reserve one team-a gpu=h100:1 on a cluster
        "#]],
    );
}

#[test]
fn cluster_capacity_does_not_requeue_for_quota() {
    check(
        "
        capacity h100=0
        cq team-a gpu/h100=4
        wl large q=team-a gpu=5 t=1
        cycle
        capacity h100=9
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_head_without_cluster_capacity_reserves_nothing_from_later_heads() {
    check(
        "
        capacity h100=2
        cohort ml gpu/h100=4
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl gang q=team-a gpu=4 t=1
        wl small q=team-b gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            1  reserve small team-b gpu=h100:2 (borrows, height 1) on a cluster
        "#]],
    );
}

#[test]
fn a_head_without_cluster_capacity_does_not_block_a_strict_queue() {
    check(
        "
        capacity h100=2
        cq team-a strict gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        wl small q=team-a gpu=2 t=2
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  reserve small team-a gpu=h100:2 on a cluster
        "#]],
    );
}

#[test]
fn missing_cluster_capacity_does_not_make_the_class_inadmissible() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang-1 q=team-a gpu=4 t=1
        wl gang-2 q=team-a gpu=4 t=2
        cycle 3
        ",
        &expect![[r#"
            1  no capacity for gang-1 team-a in h100
            2  no capacity for gang-2 team-a in h100
        "#]],
    );
}

#[test]
fn too_little_cluster_capacity_is_refused_again() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        capacity h100=3
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn a_head_without_cluster_capacity_keeps_its_timestamp() {
    check(
        "
        capacity h100=0
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        wl later q=team-a gpu=2 t=2
        capacity h100=5
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  reserve gang team-a gpu=h100:4 on a cluster
            3  no capacity for later team-a in h100
        "#]],
    );
}

#[test]
fn without_a_placer_cluster_capacity_is_ignored() {
    check(
        "
        cq team-a gpu/h100=4
        wl gang q=team-a gpu=4 t=1
        wl small q=team-a gpu=1 t=2
        cycle 2
        finish gang
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=h100:4
            2  inadmissible-class small team-a NoCandidates
            3  reserve small team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_changed_request_asks_the_placer_again() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        wl gang q=team-a gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  reserve gang team-a gpu=h100:2 on a cluster
        "#]],
    );
}

#[test]
fn a_changed_queue_asks_the_placer_again() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        cq team-a gpu/h100=8
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn a_changed_flavor_asks_the_placer_again() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        flavor h100 label=zone:a
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn a_queue_that_becomes_active_again_asks_the_placer_again() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9 check=mk
        check mk
        wl gang q=team-a gpu=4 t=1
        cycle
        check mk inactive
        cycle
        check mk
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            3  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn a_check_with_other_parameters_asks_the_placer_again() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9 check=mk
        check mk generation=1
        wl gang q=team-a gpu=4 t=1
        cycle
        check mk generation=2
        cycle 2
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn a_wait_for_cluster_capacity_ends_with_another_outcome() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        cq team-a gpu/h100=3
        cycle
        cq team-a gpu/h100=9
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
            2  inadmissible-class gang team-a ExceedsMaxQuota
            3  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn an_unchanged_request_stays_inadmissible() {
    check(
        "
        capacity h100=2
        cq team-a gpu/h100=9
        wl gang q=team-a gpu=4 t=1
        cycle
        wl gang q=team-a gpu=4 t=1
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in h100
        "#]],
    );
}

#[test]
fn the_placer_is_asked_only_when_the_quota_fits() {
    check(
        "
        capacity h100=0
        cq team-a within=lower gpu/h100=2
        wl large q=team-a gpu=3 t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_workload_without_cluster_capacity_can_finish() {
    check(
        "
        capacity h100=0
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        finish one
        capacity h100=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  no capacity for one team-a in h100
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn cluster_capacity_does_not_requeue_a_workload_with_quota() {
    check(
        "
        capacity h100=0
        cq team-a gpu/spot=1 gpu/h100=3
        wl one q=team-a gpu=2 t=1
        cycle
        cq team-a gpu/spot=2 gpu/h100=3
        cycle
        capacity h100=3
        cycle
        show team-a
        finish one
        capacity h100=4
        cycle
        show team-a
        ",
        &expect![[r#"
            1  no capacity for one team-a in h100
            2  reserve one team-a gpu=spot:2
            -  team-a uses gpu/spot=2, reserving one
            -  team-a uses nothing
        "#]],
    );
}
