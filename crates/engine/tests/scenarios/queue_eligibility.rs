//! Workloads that are not eligible for queueing: in backoff, inactive or finished.

use expect_test::expect;

use super::check::check;

#[test]
fn a_workload_in_backoff_is_inadmissible_and_never_a_head() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 hold=requeue
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing, inadmissible one
        "#]],
    );
}

#[test]
fn released_quota_does_not_requeue_a_workload_in_backoff() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-a gpu=1 t=2 hold=requeue
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn the_end_of_the_backoff_makes_it_pending() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 hold=requeue
        cycle
        wl one q=team-a gpu=1
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn an_ineligible_workload_is_not_counted() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 hold=out
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn a_pending_workload_can_become_ineligible() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1
        wl one q=team-a gpu=1 hold=out
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn an_evicted_workload_in_backoff_does_not_block_others() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-a gpu=2 t=2
        evict one
        release one t=1 hold=requeue
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  reserve two team-a gpu=h100:2
            -  team-a uses gpu/h100=2, reserving two, inadmissible one
        "#]],
    );
}

#[test]
fn an_evicted_workload_is_requeued_when_its_backoff_ends() {
    check(
        "
        cq team-a gpu/h100=1
        wl one q=team-a gpu=1 t=1
        cycle
        evict one
        release one t=1 hold=requeue
        wl two q=team-a gpu=1 t=2
        cycle
        finish two
        cycle
        wl one q=team-a gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
            2  reserve two team-a gpu=h100:1
            4  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn an_evicted_inactive_workload_is_not_requeued() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        evict one
        release one t=1 hold=out
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn a_workload_in_backoff_does_not_make_its_class_inadmissible() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 t=1 hold=requeue
        wl two q=team-a gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve two team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_workload_of_an_inadmissible_class_stays_inadmissible_after_backoff() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=3 t=1
        cycle
        wl two q=team-a gpu=3 t=2 hold=requeue
        wl two q=team-a gpu=3 t=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible one two
        "#]],
    );
}
