//! Partial admission.

use expect_test::expect;

use super::check::check;

#[test]
fn a_workload_shrinks_as_little_as_possible() {
    check(
        "
        cq team-a gpu/h100=5
        wl one q=team-a pods=8 min=2 gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn the_whole_is_better_than_a_part() {
    check(
        "
        cq team-a gpu/h100=8
        wl one q=team-a pods=8 min=2 gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:8
        "#]],
    );
}

#[test]
fn partial_admission_stops_at_the_minimum_count() {
    check(
        "
        cq team-a gpu/h100=1
        wl one q=team-a pods=8 min=2 gpu=1 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn without_a_minimum_count_nothing_shrinks() {
    check(
        "
        cq team-a gpu/h100=5
        wl one q=team-a pods=8 gpu=1 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn without_the_gate_nothing_shrinks() {
    check(
        "
        settings no-partial
        cq team-a gpu/h100=5
        wl one q=team-a pods=8 min=2 gpu=1 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn preempting_for_the_whole_is_better_than_shrinking() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a pods=4 min=2 gpu=1 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn a_part_may_preempt_too() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl low q=team-a gpu=2 t=1
        cycle
        wl top q=team-a gpu=2 prio=9 t=2
        cycle
        wl high q=team-a pods=4 min=1 gpu=1 prio=5 t=3
        cycle
        finish low
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  reserve top team-a gpu=h100:2
            3  preempt for high team-a: low InClusterQueue
            4  reserve high team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn only_the_pod_set_with_a_minimum_count_shrinks() {
    check(
        "
        cq team-a gpu/h100=5
        wl one q=team-a gpu=1 t=1 + pods=8 min=2 gpu=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1 + gpu=h100:4
        "#]],
    );
}

#[test]
fn a_part_may_fit_another_flavor() {
    check(
        "
        cq team-a gpu/spot=1 gpu/h100=3
        wl one q=team-a pods=4 min=2 gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn a_borrowing_limit_is_a_reason_to_shrink() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2 borrow=1
        cq team-b cohort=ml gpu/h100=9
        wl one q=team-a pods=4 min=1 gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3 (borrows, height 1)
        "#]],
    );
}

/// One of two leaders has finished. Counts shrink in proportion to all pods: two leaders count, though one uses no
/// quota.
#[test]
fn partial_admission_counts_reclaimable_pods() {
    check(
        "
        cq team-a gpu/h100=10
        wl one q=team-a pods=2 gpu=1 t=1 + pods=8 min=2 gpu=1
        cycle
        reclaim one 1
        evict one
        release one t=1
        cq team-a gpu/h100=6
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 + gpu=h100:8
            2  reserve one team-a gpu=h100:2 + gpu=h100:4
            -  team-a uses gpu/h100=5, reserving one
        "#]],
    );
}

/// Two of eight pods remain where the minimum is four. Only two need quota.
#[test]
fn reclaimable_pods_may_reduce_the_count_below_the_minimum() {
    check(
        "
        cq team-a gpu/h100=8
        wl one q=team-a pods=8 min=4 gpu=1 t=1
        cycle
        reclaim one 6
        evict one
        wl guest q=team-a gpu=2 prio=9 t=2
        cq team-a gpu/h100=3
        release one t=1
        cycle 2
        finish guest
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:8
            2  reserve guest team-a gpu=h100:2
            3  inadmissible-class one team-a NoCandidates
            4  reserve one team-a gpu=h100:2
        "#]],
    );
}
