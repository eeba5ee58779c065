//! The order of a pending queue.

use expect_test::expect;

use super::check::check;

#[test]
fn priority_comes_before_age() {
    check(
        "
        cq team-a gpu/h100=9
        wl old q=team-a gpu=1 t=1
        wl urgent q=team-a gpu=1 prio=1 t=2
        ",
        &expect![[r#"
            1  reserve urgent team-a gpu=h100:1
            2  reserve old team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_older_of_equal_priority_is_first() {
    check(
        "
        cq team-a gpu/h100=9
        wl young q=team-a gpu=1 t=2
        wl old q=team-a gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:1
            2  reserve young team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_uid_breaks_ties() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a gpu=1 uid=b
        wl two q=team-a gpu=1 uid=a
        ",
        &expect![[r#"
            1  reserve two team-a gpu=h100:1
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_deleted_workload_does_not_change_the_order() {
    check(
        "
        cq team-a gpu/h100=1
        wl second q=team-a gpu=1 t=1 uid=b
        wl gone q=team-a gpu=1 t=1 uid=c
        wl third q=team-a gpu=1 t=1 uid=d
        finish gone
        wl first q=team-a gpu=1 t=1 uid=a
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn every_queue_has_one_head_per_cycle() {
    check(
        "
        cq team-a gpu/h100=9
        cq team-b gpu/h100=9
        wl a-1 q=team-a gpu=1 t=1
        wl a-2 q=team-a gpu=1 t=2
        wl b-1 q=team-b gpu=1 t=3
        ",
        &expect![[r#"
            1  reserve a-1 team-a gpu=h100:1
            1  reserve b-1 team-b gpu=h100:1
            2  reserve a-2 team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_new_workload_of_higher_priority_becomes_the_head() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl large q=team-a gpu=5 t=1
        cycle
        wl urgent q=team-a gpu=1 prio=1 t=2
        cycle
        ",
        &expect![[r#"
            1  requeue large team-a ExceedsMaxQuota
            2  reserve urgent team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_eviction_timestamp_can_change_the_queue_order() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-a gpu=2 t=5
        evict one
        release one t=9
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_kept_timestamp_keeps_the_queue_order() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-a gpu=2 t=5
        evict one
        release one t=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  reserve one team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_new_priority_moves_a_pending_workload() {
    check(
        "
        cq team-a gpu/h100=9
        wl first q=team-a gpu=1 t=1
        wl second q=team-a gpu=1 t=2
        wl second q=team-a gpu=1 t=2 prio=5
        ",
        &expect![[r#"
            1  reserve second team-a gpu=h100:1
            2  reserve first team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn local_queues_share_the_pending_queue_of_their_cluster_queue() {
    check(
        "
        cq team-a gpu/h100=9
        lq dev cq=team-a
        lq prod cq=team-a
        wl one q=prod gpu=1 t=2
        wl two q=dev gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve two team-a gpu=h100:1
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_preempting_head_stays_first() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        wl urgent q=team-a gpu=1 prio=9 t=3
        release low t=1
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  preempt for high team-a: low InClusterQueue
            3  reserve high team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_preempting_head_stays_first_after_updates() {
    check(
        "
        cq team-a gpu/h100=4 within=lower
        wl low q=team-a gpu=4 t=1
        cycle
        wl high q=team-a gpu=4 prio=2 t=2
        cycle
        wl other q=team-a gpu=4 prio=3 t=3
        wl high q=team-a gpu=4 prio=1 t=2
        cycle
        finish low
        cycle 2
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:4
            2  preempt for high team-a: low InClusterQueue
            3  preempt for high team-a: low InClusterQueue
            4  reserve high team-a gpu=h100:4
            5  preempt for other team-a: high InClusterQueue
        "#]],
    );
}

#[test]
fn a_workload_that_leaves_its_queue_loses_the_first_position() {
    check(
        "
        cq team-a gpu/h100=4 within=lower
        lq line cq=team-a
        wl low q=team-a gpu=4 t=1
        cycle
        wl high q=team-a gpu=4 prio=2 t=2
        cycle
        wl other q=team-a gpu=4 prio=3 t=3
        wl high q=line gpu=4 prio=2 t=2
        finish low
        cycle 2
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:4
            2  preempt for high team-a: low InClusterQueue
            3  reserve other team-a gpu=h100:4
            4  inadmissible-class high team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_recreated_queue_forgets_the_preempting_head() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl guest q=team-b gpu=2 t=1
        cycle
        wl owner q=team-a gpu=2 t=2
        cycle
        delete cq team-a
        cq team-a cohort=ml reclaim=any gpu/h100=2
        wl urgent q=team-a gpu=2 prio=9 t=3
        finish guest
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:2 (borrows, height 1)
            2  preempt for owner team-a: guest InCohortReclamation
            3  reserve urgent team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_preempting_head_of_a_strict_queue_can_be_overtaken() {
    check(
        "
        cq team-a strict within=lower gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        wl urgent q=team-a gpu=1 prio=9 t=3
        release low t=1
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  preempt for high team-a: low InClusterQueue
            3  reserve urgent team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_finished_workload_leaves_the_pending_queue() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a gpu=1 t=1
        wl two q=team-a gpu=1 t=2
        finish one
        ",
        &expect![[r#"
            1  reserve two team-a gpu=h100:1
        "#]],
    );
}
