//! Preemption within a cohort: reclaim and borrowWithinCohort.

use expect_test::expect;

use super::check::check;

#[test]
fn a_queue_reclaims_borrowed_quota() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl borrower q=team-b gpu=4 prio=9 t=1
        cycle
        wl owner q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve borrower team-b gpu=h100:4 (borrows, height 1)
            2  preempt for owner team-a: borrower InCohortReclamation
        "#]],
    );
}

#[test]
fn without_a_reclaim_policy_the_queue_waits() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl borrower q=team-b gpu=4 t=1
        cycle
        wl owner q=team-a gpu=2 prio=9 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve borrower team-b gpu=h100:4 (borrows, height 1)
            2  inadmissible-class owner team-a NoCandidates
        "#]],
    );
}

#[test]
fn reclaim_may_be_limited_to_lower_priority() {
    check(
        "
        cq team-a cohort=ml reclaim=lower gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl borrower q=team-b gpu=4 prio=5 t=1
        cycle
        wl calm q=team-a gpu=2 prio=5 t=2
        cycle
        wl urgent q=team-a gpu=2 prio=6 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve borrower team-b gpu=h100:4 (borrows, height 1)
            2  inadmissible-class calm team-a NoCandidates
            3  preempt for urgent team-a: borrower InCohortReclamation
        "#]],
    );
}

#[test]
fn newer_equals_can_be_reclaimed() {
    check(
        "
        cq team-a cohort=ml reclaim=newer gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl borrower q=team-b gpu=4 t=5
        cycle
        wl young q=team-a gpu=2 t=6
        cycle
        wl old q=team-a gpu=1 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve borrower team-b gpu=h100:4 (borrows, height 1)
            2  inadmissible-class young team-a NoCandidates
            3  preempt for old team-a: borrower InCohortReclamation
        "#]],
    );
}

#[test]
fn a_queue_within_nominal_quota_is_not_reclaimed_from() {
    check(
        "
        cq team-a cohort=ml reclaim=any borrow-within-cohort gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        wl own q=team-b gpu=2 t=1
        cycle
        wl greedy q=team-a gpu=3 prio=9 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve own team-b gpu=h100:2
            2  inadmissible-class greedy team-a NoCandidates
        "#]],
    );
}

#[test]
fn reclaim_stops_when_a_queue_is_within_nominal_quota() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=2
        wl first q=team-b gpu=2 t=1
        cycle
        wl second q=team-b gpu=2 t=2
        cycle
        wl owner q=team-a gpu=4 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve first team-b gpu=h100:2
            2  reserve second team-b gpu=h100:2 (borrows, height 1)
            3  preempt for owner team-a: second InCohortReclamation
        "#]],
    );
}

#[test]
fn other_queues_are_preempted_before_the_own_queue() {
    check(
        "
        cq team-a cohort=ml within=lower reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        cycle
        wl guest q=team-b gpu=2 prio=9 t=2
        cycle
        wl owner q=team-a gpu=2 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  reserve guest team-b gpu=h100:2 (borrows, height 1)
            3  preempt for owner team-a: guest InCohortReclamation
        "#]],
    );
}

#[test]
fn targets_may_come_from_other_queues_and_the_own_queue() {
    check(
        "
        cq team-a cohort=ml within=lower reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        cycle
        wl guest q=team-b gpu=2 prio=9 t=2
        cycle
        wl owner q=team-a gpu=4 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            2  reserve guest team-b gpu=h100:2 (borrows, height 1)
            3  preempt for owner team-a: guest InCohortReclamation, low InClusterQueue
        "#]],
    );
}

#[test]
fn reclaim_preempts_the_lowest_priority() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml gpu/h100=0
        wl high q=team-b gpu=2 prio=5 t=1
        cycle
        wl low q=team-c gpu=2 prio=1 t=2
        cycle
        wl owner q=team-a gpu=2 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve high team-b gpu=h100:2 (borrows, height 1)
            2  reserve low team-c gpu=h100:2 (borrows, height 1)
            3  preempt for owner team-a: low InCohortReclamation
        "#]],
    );
}

#[test]
fn a_preemptor_that_would_borrow_does_not_reclaim() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl mine q=team-a gpu=2 t=1
        wl first q=team-b gpu=4 t=2
        cycle
        wl owner q=team-a gpu=3 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve mine team-a gpu=h100:2
            1  reserve first team-b gpu=h100:4 (borrows, height 1)
            2  inadmissible-class owner team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_target_in_the_own_queue_avoids_borrowing() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml within=lower reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        wl first q=team-b gpu=2 t=2
        cycle
        wl second q=team-b gpu=2 t=3
        cycle
        wl owner q=team-a gpu=3 prio=5 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2
            1  reserve first team-b gpu=h100:2 (borrows, height 1)
            2  reserve second team-b gpu=h100:2 (borrows, height 1)
            3  preempt for owner team-a: low InClusterQueue, second InCohortReclamation
        "#]],
    );
}

#[test]
fn borrow_within_cohort_is_never_by_default() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-b gpu=6 t=1
        cycle
        wl high q=team-a gpu=4 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-b gpu=h100:6 (borrows, height 1)
            2  inadmissible-class high team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn borrow_within_cohort_preempts_lower_priority() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any borrow-within-cohort gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-b gpu=6 t=1
        cycle
        wl high q=team-a gpu=4 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-b gpu=h100:6 (borrows, height 1)
            2  preempt for high team-a: low InCohortReclaimWhileBorrowing
        "#]],
    );
}

#[test]
fn borrow_within_cohort_spares_equal_priority() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any borrow-within-cohort gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-b gpu=6 prio=5 t=1
        cycle
        wl high q=team-a gpu=4 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-b gpu=h100:6 (borrows, height 1)
            2  inadmissible-class high team-a NoCandidates
        "#]],
    );
}

#[test]
fn borrow_within_cohort_spares_priorities_above_the_threshold() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any borrow-within-cohort=3 gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-b gpu=6 prio=4 t=1
        cycle
        wl high q=team-a gpu=4 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-b gpu=h100:6 (borrows, height 1)
            2  inadmissible-class high team-a NoCandidates
        "#]],
    );
}

#[test]
fn borrow_within_cohort_preempts_priorities_at_the_threshold() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any borrow-within-cohort=3 gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-b gpu=6 prio=3 t=1
        cycle
        wl high q=team-a gpu=4 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-b gpu=h100:6 (borrows, height 1)
            2  preempt for high team-a: low InCohortReclaimWhileBorrowing
        "#]],
    );
}

#[test]
fn the_threshold_does_not_limit_reclaim() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any borrow-within-cohort=3 gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-b gpu=6 prio=4 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-b gpu=h100:6 (borrows, height 1)
            2  preempt for high team-a: low InCohortReclamation
        "#]],
    );
}

#[test]
fn a_cohort_reclaims_its_quota_for_its_queues() {
    check(
        "
        cohort low parent=high
        cq team-a cohort=low reclaim=any gpu/h100=0
        cq team-b cohort=low gpu/h100=4
        cq team-c cohort=high gpu/h100=0
        wl guest q=team-c gpu=4 prio=9 t=1
        cycle
        wl mine q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-c gpu=h100:4 (borrows, height 2)
            2  preempt for mine team-a: guest InCohortReclamation
        "#]],
    );
}

#[test]
fn a_queue_within_its_cohorts_quota_is_not_borrowing() {
    check(
        "
        cohort low parent=high
        cq team-a cohort=low reclaim=any gpu/h100=0
        cq team-b cohort=low gpu/h100=4
        cq team-c cohort=high gpu/h100=0
        wl owner q=team-b gpu=4 t=1
        cycle
        wl mine q=team-a gpu=2 prio=9 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve owner team-b gpu=h100:4
            2  inadmissible-class mine team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn reclaim_stops_when_a_cohort_is_within_its_quota() {
    check(
        "
        cohort left parent=all gpu/h100=2
        cohort right parent=all gpu/h100=4
        cq team-a cohort=left gpu/h100=0
        cq team-b cohort=right reclaim=any gpu/h100=0
        wl first q=team-a gpu=2 t=1
        cycle
        wl second q=team-a gpu=2 t=2
        cycle
        wl mine q=team-b gpu=4 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:2 (borrows, height 1)
            2  reserve second team-a gpu=h100:2 (borrows, height 2)
            3  preempt for mine team-b: second InCohortReclamation
        "#]],
    );
}

#[test]
fn two_heads_may_select_the_same_target() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml reclaim=any gpu/h100=2
        wl guest q=team-b gpu=4 t=1
        cycle
        wl one q=team-a gpu=2 t=2
        wl two q=team-c gpu=2 t=3
        cycle
        finish guest
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:4 (borrows, height 1)
            2  preempt for one team-a: guest InCohortReclamation
            2  requeue two team-c Deferred
            3  reserve one team-a gpu=h100:2
            3  reserve two team-c gpu=h100:2
        "#]],
    );
}

#[test]
fn a_head_whose_target_is_taken_selects_another() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml reclaim=any gpu/h100=2
        wl first q=team-b gpu=2 t=1
        cycle
        wl second q=team-b gpu=2 t=2
        cycle
        wl one q=team-a gpu=2 t=3
        wl two q=team-c gpu=2 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve first team-b gpu=h100:2 (borrows, height 1)
            2  reserve second team-b gpu=h100:2 (borrows, height 1)
            3  preempt for one team-a: second InCohortReclamation
            3  preempt for two team-c: first InCohortReclamation
        "#]],
    );
}

#[test]
fn a_released_target_queues_behind_its_preemptor() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl guest q=team-b gpu=2 prio=9 t=1
        cycle
        wl owner q=team-a gpu=2 t=2
        cycle
        release guest t=1
        cycle 2
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:2 (borrows, height 1)
            2  preempt for owner team-a: guest InCohortReclamation
            3  reserve owner team-a gpu=h100:2
            3  requeue guest team-b Skipped
            4  inadmissible-class guest team-b WaitingForQuota
        "#]],
    );
}

/// Its queue borrows cpu, but the Workload requests none.
#[test]
fn resources_that_are_not_requested_may_be_borrowed() {
    check(
        "
        cohort all cpu/x=4
        cq team-a cohort=all reclaim=any gpu/h100=2 + cpu/x=0
        cq team-b cohort=all gpu/h100=0 + cpu/x=0
        wl guest q=team-b gpu=2 t=1
        wl borrower q=team-a cpu=1 t=2
        cycle
        wl owner q=team-a gpu=2 cpu=0 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:2 (borrows, height 1)
            1  reserve borrower team-a cpu=x:1 (borrows, height 1)
            2  preempt for owner team-a: guest InCohortReclamation
        "#]],
    );
}
