//! Requeue backoff: which Workloads are in backoff, and for how long.

use expect_test::expect;

use super::check::check;

#[test]
fn the_end_of_a_backoff_makes_a_workload_pending() {
    check(
        "
        cq team-a gpu/h100=1
        wl one q=team-a gpu=1 t=1 hold=5
        cycle
        show team-a
        wait 4
        cycle
        wait 1
        cycle
        ",
        &expect![[r#"
            -  team-a uses nothing, inadmissible one
            3  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn freed_quota_does_not_end_a_backoff() {
    check(
        "
        cq team-a gpu/h100=1
        wl one q=team-a gpu=1 t=1
        cycle
        wl two q=team-a gpu=1 t=2 hold=5
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
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
        release one t=1 hold=3
        wl two q=team-a gpu=1 t=2
        cycle
        finish two
        wait 3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
            2  reserve two team-a gpu=h100:1
            3  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_latest_backoff_replaces_earlier_ones() {
    check(
        "
        cq team-a gpu/h100=2
        wl later q=team-a gpu=1 t=1 hold=3
        wl later q=team-a gpu=1 t=1 hold=6
        wl sooner q=team-a gpu=1 t=2 hold=6
        wl sooner q=team-a gpu=1 t=2
        cycle
        wait 3
        cycle
        wait 3
        cycle
        ",
        &expect![[r#"
            1  reserve sooner team-a gpu=h100:1
            3  reserve later team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_end_of_a_backoff_keeps_an_inadmissible_class_inadmissible() {
    check(
        "
        cq team-a gpu/h100=1
        wl one q=team-a gpu=2 t=1
        wl two q=team-a gpu=2 t=2 hold=3
        cycle
        wait 3
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}
