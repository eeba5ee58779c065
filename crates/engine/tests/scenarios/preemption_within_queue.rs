//! Preemption within a ClusterQueue.

use expect_test::expect;

use super::check::check;

#[test]
fn the_lowest_priority_is_preempted_and_frees_quota_on_release() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=2 prio=1 t=1
        cycle
        wl low q=team-a gpu=2 prio=0 t=2
        cycle
        wl high q=team-a gpu=2 prio=5 t=3
        cycle 2
        release low t=2
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2
            2  reserve low team-a gpu=h100:2
            3  preempt for high team-a: low InClusterQueue
            4  preempt for high team-a: low InClusterQueue
            5  reserve high team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn newer_equal_priority_is_preempted() {
    check(
        "
        cq team-a within=newer gpu/h100=2
        wl young q=team-a gpu=2 t=9
        cycle
        wl old q=team-a gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve young team-a gpu=h100:2
            2  preempt for old team-a: young InClusterQueue
        "#]],
    );
}

#[test]
fn older_equal_priority_is_not_preempted() {
    check(
        "
        cq team-a within=newer gpu/h100=2
        wl old q=team-a gpu=2 t=1
        cycle
        wl young q=team-a gpu=2 t=9
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2
            2  inadmissible-class young team-a NoCandidates
        "#]],
    );
}

#[test]
fn the_lower_priority_policy_spares_equal_priority() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        wl young q=team-a gpu=2 t=9
        cycle
        wl old q=team-a gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve young team-a gpu=h100:2
            2  inadmissible-class old team-a NoCandidates
        "#]],
    );
}

#[test]
fn the_never_policy_preempts_nothing() {
    check(
        "
        cq team-a gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=9 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  inadmissible-class high team-a NoCandidates
        "#]],
    );
}

#[test]
fn the_any_policy_preempts_every_priority() {
    check(
        "
        cq team-a within=any gpu/h100=2
        wl high q=team-a gpu=2 prio=9 t=1
        cycle
        wl low q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve high team-a gpu=h100:2
            2  preempt for low team-a: high InClusterQueue
        "#]],
    );
}

#[test]
fn the_latest_admitted_of_equal_priority_is_preempted() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl first q=team-a gpu=2 t=9
        cycle
        wl second q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:2
            2  reserve second team-a gpu=h100:2
            3  preempt for high team-a: second InClusterQueue
        "#]],
    );
}

#[test]
fn only_needed_targets_are_preempted() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl first q=team-a gpu=2 t=1
        cycle
        wl second q=team-a gpu=2 t=2
        cycle
        wl high q=team-a gpu=3 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:2
            2  reserve second team-a gpu=h100:2
            3  preempt for high team-a: first InClusterQueue, second InClusterQueue
        "#]],
    );
}

#[test]
fn surplus_targets_are_restored() {
    check(
        "
        cq team-a within=lower gpu/h100=5
        wl small q=team-a gpu=1 prio=0 t=1
        cycle
        wl large q=team-a gpu=4 prio=1 t=2
        cycle
        wl high q=team-a gpu=4 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve small team-a gpu=h100:1
            2  reserve large team-a gpu=h100:4
            3  preempt for high team-a: large InClusterQueue
        "#]],
    );
}

#[test]
fn insufficient_targets_are_not_preempted() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl low q=team-a gpu=1 t=1
        cycle
        wl top q=team-a gpu=3 prio=9 t=2
        cycle
        wl high q=team-a gpu=2 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:1
            2  reserve top team-a gpu=h100:3
            3  inadmissible-class high team-a NoCandidates
        "#]],
    );
}

#[test]
fn workloads_of_another_flavor_are_not_targets() {
    check(
        "
        cq team-a within=lower gpu/spot=2 gpu/h100=2
        wl low q=team-a gpu=1 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        wl top q=team-a gpu=2 prio=9 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=spot:1
            2  reserve high team-a gpu=h100:2
            3  preempt for top team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn evicted_workloads_are_the_first_targets() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl first q=team-a gpu=2 t=1
        cycle
        wl second q=team-a gpu=2 t=2
        cycle
        evict first
        wl high q=team-a gpu=2 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:2
            2  reserve second team-a gpu=h100:2
            3  preempt for high team-a: first InClusterQueue
        "#]],
    );
}

#[test]
fn a_target_that_finishes_frees_its_quota() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        finish low
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
fn a_preempted_workload_is_requeued() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        release low t=1
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  preempt for high team-a: low InClusterQueue
            3  reserve high team-a gpu=h100:2
            -  team-a uses gpu/h100=2, reserving high, pending low
        "#]],
    );
}

#[test]
fn a_deleted_preemptor_preempts_nothing() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        finish high
        release low t=1
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  preempt for high team-a: low InClusterQueue
            3  reserve low team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_borrowing_preemptor_preempts_nothing_within_its_queue() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml within=lower gpu/h100=2
        wl low q=team-a gpu=4 t=1
        cycle
        wl high q=team-a gpu=3 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:4 (borrows, height 1)
            2  inadmissible-class high team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn targets_free_the_quota_of_pods_too() {
    check(
        "
        settings count-pods
        cq team-a within=lower gpu/h100=50 pods/h100=7
        wl four q=team-a pods=4 gpu=1 prio=1 t=1
        cycle
        wl three q=team-a pods=3 gpu=1 prio=1 t=2
        cycle
        wl high q=team-a pods=7 gpu=1 prio=5 t=3
        cycle
        release four t=4
        release three t=4
        cycle
        ",
        &expect![[r#"
            1  reserve four team-a gpu=h100:4 pods=h100:4
            2  reserve three team-a gpu=h100:3 pods=h100:3
            3  preempt for high team-a: four InClusterQueue, three InClusterQueue
            4  reserve high team-a gpu=h100:7 pods=h100:7
        "#]],
    );
}
