//! The order of the heads of one cycle, and its effect on later heads.

use expect_test::expect;

use super::check::check;

#[test]
fn the_head_that_does_not_borrow_goes_first() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        wl borrows q=team-a gpu=3 prio=9 t=1
        wl owns q=team-b gpu=2 t=2
        ",
        &expect![[r#"
            1  reserve owns team-b gpu=h100:2
            1  requeue borrows team-a Skipped
            2  inadmissible-class borrows team-a WaitingForQuota
        "#]],
    );
}

#[test]
fn the_lower_borrowing_height_goes_first() {
    check(
        "
        cohort low parent=high
        cq team-a cohort=low gpu/h100=1
        cq team-b cohort=low gpu/h100=1
        cq team-c cohort=high gpu/h100=9
        wl far q=team-b gpu=5 prio=9 t=1
        wl near q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve near team-a gpu=h100:2 (borrows, height 1)
            1  reserve far team-b gpu=h100:5 (borrows, height 2)
        "#]],
    );
}

#[test]
fn of_equal_borrowing_the_higher_priority_goes_first() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl calm q=team-a gpu=2 t=1
        wl urgent q=team-b gpu=2 prio=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve urgent team-b gpu=h100:2 (borrows, height 1)
            1  requeue calm team-a Skipped
        "#]],
    );
}

#[test]
fn of_equal_priorities_the_older_goes_first() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl young q=team-a gpu=2 t=2
        wl old q=team-b gpu=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve old team-b gpu=h100:2 (borrows, height 1)
            1  requeue young team-a Skipped
        "#]],
    );
}

#[test]
fn without_priority_sorting_only_timestamps_count() {
    check(
        "
        settings no-priority-sorting
        cohort ml gpu/h100=2
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl old q=team-a gpu=2 t=1
        wl urgent q=team-b gpu=2 prio=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2 (borrows, height 1)
            1  requeue urgent team-b Skipped
        "#]],
    );
}

#[test]
fn heads_that_compete_are_admitted_one_per_cycle() {
    check(
        "
        cohort ml gpu/h100=3
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
            1  requeue two team-b Skipped
            2  inadmissible-class two team-b WaitingForQuota
        "#]],
    );
}

#[test]
fn heads_that_fit_together_are_admitted_together() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
            1  reserve two team-b gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_smaller_head_fits_after_a_skipped_one() {
    check(
        "
        cohort ml gpu/h100=3
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml gpu/h100=0
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        wl three q=team-c gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
            1  requeue two team-b Skipped
            1  reserve three team-c gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn nominal_quota_stays_available_to_a_later_head() {
    check(
        "
        cohort ml gpu/h100=1
        cq team-a cohort=ml gpu/h100=2 lend=0
        cq team-b cohort=ml gpu/h100=0
        wl urgent q=team-b gpu=1 prio=9 t=1
        wl owner q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve owner team-a gpu=h100:2
            1  reserve urgent team-b gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_skipped_head_does_not_make_its_class_inadmissible() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        cycle
        show team-b
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
            1  requeue two team-b Skipped
            -  team-b uses nothing, pending two
        "#]],
    );
}

#[test]
fn heads_of_different_trees_do_not_compete() {
    check(
        "
        cq team-a gpu/h100=2
        cq team-b gpu/h100=2
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            1  reserve two team-b gpu=h100:2
        "#]],
    );
}

#[test]
fn heads_with_a_rejected_check_come_last() {
    check(
        "
        cq team-a select-nothing gpu/h100=2
        cq team-b gpu/h100=2
        wl one q=team-a gpu=2 prio=9 t=1
        wl two q=team-b gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve two team-b gpu=h100:2
            1  inadmissible one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn quota_freed_by_targets_is_available_to_all_heads() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml within=lower borrow-within-cohort gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=1 t=2
        cycle
        wl other q=team-b gpu=2 prio=9 t=3
        release low t=9
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2 (borrows, height 1)
            2  preempt for high team-a: low InClusterQueue
            3  reserve other team-b gpu=h100:2 (borrows, height 1)
            3  requeue high team-a Skipped
        "#]],
    );
}

#[test]
fn with_prioritized_preemptors_freed_quota_goes_to_the_preemptor() {
    check(
        "
        settings prioritize-preemptors
        cohort ml gpu/h100=2
        cq team-a cohort=ml within=lower borrow-within-cohort gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=1 t=2
        cycle
        wl other q=team-b gpu=2 prio=9 t=3
        release low t=9
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2 (borrows, height 1)
            2  preempt for high team-a: low InClusterQueue
            3  reserve high team-a gpu=h100:2 (borrows, height 1)
            3  requeue other team-b Skipped
        "#]],
    );
}

/// In a queue of its own it still goes first.
#[test]
fn with_prioritized_preemptors_a_changed_request_loses_freed_quota() {
    check(
        "
        settings prioritize-preemptors
        cohort ml gpu/h100=2
        cq team-a cohort=ml within=lower borrow-within-cohort gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a gpu=2 prio=1 t=2
        cycle
        wl urgent q=team-a gpu=2 prio=7 t=3
        wl other q=team-b gpu=2 prio=9 t=4
        wl high q=team-a gpu=2 prio=2 t=2
        release low t=9
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2 (borrows, height 1)
            2  preempt for high team-a: low InClusterQueue
            3  reserve other team-b gpu=h100:2 (borrows, height 1)
            3  requeue high team-a Skipped
        "#]],
    );
}

#[test]
fn with_prioritized_preemptors_reclaimable_pods_keep_freed_quota() {
    check(
        "
        settings prioritize-preemptors
        cohort ml gpu/h100=2
        cq team-a cohort=ml within=lower borrow-within-cohort gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl low q=team-a gpu=2 t=1
        cycle
        wl high q=team-a pods=2 gpu=1 prio=1 t=2
        cycle
        wl other q=team-b gpu=2 prio=9 t=3
        reclaim high 1
        release low t=9
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:2 (borrows, height 1)
            2  preempt for high team-a: low InClusterQueue
            3  reserve high team-a gpu=h100:1 (borrows, height 1)
            3  requeue other team-b Skipped
        "#]],
    );
}
