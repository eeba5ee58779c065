//! Who is next in a queue.

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
fn among_equals_the_older_goes_first() {
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
fn the_uid_decides_between_twins() {
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
fn a_twin_that_is_gone_does_not_come_between_the_others() {
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
fn a_more_urgent_newcomer_overtakes_a_waiting_head() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl large q=team-a gpu=5 t=1
        cycle
        wl urgent q=team-a gpu=1 prio=1 t=2
        cycle
        ",
        &expect![[r#"
            1  retry large team-a ExceedsMaxQuota
            2  reserve urgent team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_time_of_an_eviction_can_cost_the_place_in_line() {
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
fn who_keeps_its_age_keeps_its_place_in_line() {
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
fn a_new_priority_moves_a_waiting_workload() {
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
fn local_queues_of_one_queue_share_its_line() {
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
fn a_head_that_waits_for_its_victims_stays_first() {
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
fn it_stays_first_whatever_is_told_of_it() {
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
fn who_leaves_its_queue_is_first_no_more() {
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
            4  park high team-a NoCandidates
        "#]],
    );
}

#[test]
fn in_a_strict_queue_a_waiting_preemptor_can_be_overtaken() {
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
fn a_finished_workload_leaves_the_line() {
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
