//! Stopped queues, ClusterQueues and LocalQueues.

use expect_test::expect;

use super::check::check;

#[test]
fn a_stopped_queue_has_no_heads() {
    check(
        "
        cq team-a stopped gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing, pending one
        "#]],
    );
}

#[test]
fn a_resumed_queue_has_heads_again() {
    check(
        "
        cq team-a stopped gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        cq team-a gpu/h100=2
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn usage_of_a_stopped_queue_stays_charged() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        cq team-a cohort=ml stopped gpu/h100=2
        cycle
        show team-a ml
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
            -  team-a uses gpu/h100=1, reserving one
            -  ml uses gpu/h100=1
        "#]],
    );
}

#[test]
fn the_quota_of_a_stopped_queue_is_still_lent() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml stopped gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_stopped_queue_is_not_reclaimed_from() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl borrower q=team-b gpu=2 t=1
        cycle
        cq team-b cohort=ml stopped gpu/h100=0
        wl owner q=team-a gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve borrower team-b gpu=h100:2 (borrows, height 1)
            2  inadmissible-class owner team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_stopped_local_queue_removes_its_pending_workloads() {
    check(
        "
        cq team-a gpu/h100=2
        lq dev cq=team-a
        wl one q=dev gpu=1 t=1
        lq dev cq=team-a stopped
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn a_stopped_local_queue_does_not_affect_others() {
    check(
        "
        cq team-a gpu/h100=2
        lq dev cq=team-a stopped
        lq prod cq=team-a
        wl one q=dev gpu=1 t=1
        wl two q=prod gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve two team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_resumed_local_queue_requeues_its_workloads() {
    check(
        "
        cq team-a gpu/h100=2
        lq dev cq=team-a stopped
        wl one q=dev gpu=1 t=1
        cycle
        lq dev cq=team-a
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn workloads_of_a_stopped_local_queue_keep_their_quota() {
    check(
        "
        cq team-a gpu/h100=2
        lq dev cq=team-a
        wl one q=dev gpu=1 t=1
        cycle
        lq dev cq=team-a stopped
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
            -  team-a uses gpu/h100=1, reserving one
        "#]],
    );
}

#[test]
fn a_redirected_local_queue_moves_its_pending_workloads() {
    check(
        "
        cq team-a gpu/h100=1
        cq team-b gpu/h100=4
        lq dev cq=team-a
        wl one q=dev gpu=2 t=1
        cycle
        lq dev cq=team-b
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve one team-b gpu=h100:2
        "#]],
    );
}

#[test]
fn a_redirected_local_queue_keeps_quota_reservations() {
    check(
        "
        cq team-a gpu/h100=2
        cq team-b gpu/h100=2
        lq dev cq=team-a
        wl one q=dev gpu=1 t=1
        cycle
        lq dev cq=team-b
        cycle
        show team-a team-b
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
            -  team-a uses gpu/h100=1, reserving one
            -  team-b uses nothing
        "#]],
    );
}

#[test]
fn a_redirected_preemptor_loses_the_first_position() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        cq team-b gpu/h100=2
        lq dev cq=team-a
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=dev gpu=2 prio=5 t=2
        cycle
        wl next q=team-a gpu=1 t=3
        lq dev cq=team-b
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  preempt for high team-a: low InClusterQueue
            3  reserve high team-b gpu=h100:2
            3  inadmissible-class next team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_deleted_local_queue_removes_its_pending_workloads() {
    check(
        "
        cq team-a gpu/h100=2
        lq dev cq=team-a
        wl one q=dev gpu=1 t=1
        delete lq dev
        cycle
        show team-a
        ",
        &expect![[r#"
            -  team-a uses nothing
        "#]],
    );
}

#[test]
fn a_local_queue_may_be_created_after_its_workloads() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=dev gpu=1 t=1
        cycle
        lq dev cq=team-a
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}
