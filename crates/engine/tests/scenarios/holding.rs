//! Backoff: who is held is known, counted, and left alone.

use expect_test::expect;

use super::check::check;

#[test]
fn a_held_workload_is_parked_and_never_a_head() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 hold=requeue
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing, parked one
        "#]],
    );
}

#[test]
fn freed_quota_does_not_wake_the_held() {
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
fn the_end_of_the_hold_puts_it_in_line() {
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
fn who_is_held_out_is_not_even_counted() {
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
fn a_workload_in_line_can_be_held_out() {
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
fn an_evicted_workload_in_backoff_lets_others_pass() {
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
            -  team-a uses gpu/h100=2, holds two, parked one
        "#]],
    );
}

#[test]
fn an_evicted_workload_that_was_deactivated_does_not_come_back() {
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
fn a_held_workload_says_nothing_about_its_shape() {
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
fn a_held_workload_of_a_parked_shape_is_parked_with_it_afterwards() {
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
            1  park one team-a ExceedsMaxQuota
            -  team-a uses nothing, parked one two
        "#]],
    );
}
