//! Events that requeue inadmissible Workloads, and events that do not.

use expect_test::expect;

use super::check::check;

#[test]
fn a_finished_workload_requeues_its_cohort_tree() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        wl one q=team-a gpu=4 t=1
        cycle
        wl two q=team-b gpu=1 t=2
        cycle 2
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4 (borrows, height 1)
            2  inadmissible-class two team-b NoCandidates
            4  reserve two team-b gpu=h100:1
        "#]],
    );
}

#[test]
fn a_finished_workload_does_not_requeue_another_tree() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-z gpu/h100=2
        wl one q=team-a gpu=2 t=1
        wl large q=team-z gpu=3 t=2
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            1  inadmissible-class large team-z ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_finished_workload_requeues_other_cohorts_of_the_tree() {
    check(
        "
        cohort left parent=all
        cohort right parent=all
        cq team-a cohort=left gpu/h100=2
        cq team-b cohort=right gpu/h100=2
        wl one q=team-a gpu=4 t=1
        cycle
        wl two q=team-b gpu=2 t=2
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4 (borrows, height 2)
            2  inadmissible-class two team-b NoCandidates
            3  reserve two team-b gpu=h100:2
        "#]],
    );
}

#[test]
fn quota_is_free_only_when_the_pods_are_gone() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-a gpu=2 t=2
        cycle
        evict one
        cycle
        release one t=9
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  inadmissible-class two team-a NoCandidates
            4  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_failed_write_releases_quota_and_requeues() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=2
        cycle
        wl two q=team-a gpu=2 t=1
        cycle
        withdraw one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2
            2  inadmissible-class two team-a NoCandidates
            3  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_workload_that_is_held_since_its_reservation_does_not_queue_without_it() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=2 t=1
        cycle
        wl one q=team-a gpu=2 t=1 hold=out
        withdraw one
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
fn reclaimable_pods_requeue() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a pods=4 gpu=1 t=1
        cycle
        wl two q=team-a gpu=2 t=2
        cycle
        reclaim one 2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4
            2  inadmissible-class two team-a NoCandidates
            3  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn more_quota_requeues() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=3 t=1
        cycle
        cq team-a gpu/h100=3
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve one team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn an_unchanged_queue_requeues_nothing() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=3 t=1
        cycle
        cq team-a gpu/h100=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible one
        "#]],
    );
}

#[test]
fn a_cohort_with_quota_requeues_its_queues() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        wl one q=team-a gpu=1 t=1
        cycle
        cohort ml gpu/h100=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve one team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_queue_that_joins_a_cohort_requeues_its_members() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        wl one q=team-a gpu=1 t=1
        cycle
        cq team-b cohort=ml gpu/h100=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve one team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_queue_that_leaves_a_cohort_requeues_the_remaining_members() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=1
        wl one q=team-b gpu=1 t=1
        cycle
        wl two q=team-a gpu=1 t=2
        cycle
        cq team-b gpu/h100=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-b gpu=h100:1
            2  inadmissible-class two team-a WaitingForQuota
            3  inadmissible-class two team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_flavor_without_its_former_taint_requeues() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a gpu/spot=2
        wl one q=team-a gpu=1 t=1
        cycle
        flavor spot
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor
            2  reserve one team-a gpu=spot:1
        "#]],
    );
}

#[test]
fn a_changed_priority_class_of_an_admitted_workload_requeues() {
    for cohort in ["", "cohort=ml"] {
        check(
            &format!(
                "
                cq team-a {cohort} within=lower gpu/h100=2
                wl holder q=team-a gpu=2 prio=5 class t=1
                cycle
                wl next q=team-a gpu=2 prio=3 t=2
                cycle
                wl holder q=team-a gpu=2 prio=1 class t=1
                cycle
                "
            ),
            &expect![[r#"
                1  reserve holder team-a gpu=h100:2
                2  inadmissible-class next team-a NoCandidates
                3  preempt for next team-a: holder InClusterQueue
            "#]],
        );
    }
}

#[test]
fn a_changed_priority_without_a_class_requeues_nothing() {
    for cohort in ["", "cohort=ml"] {
        check(
            &format!(
                "
                cq team-a {cohort} within=lower gpu/h100=2
                wl holder q=team-a gpu=2 prio=5 t=1
                cycle
                wl next q=team-a gpu=2 prio=3 t=2
                cycle
                wl holder q=team-a gpu=2 prio=1 t=1
                cycle
                "
            ),
            &expect![[r#"
                1  reserve holder team-a gpu=h100:2
                2  inadmissible-class next team-a NoCandidates
            "#]],
        );
    }
}

#[test]
fn another_generation_of_a_queue_requeues() {
    check(
        "
        settings reevaluate-refused
        cq team-a gpu/h100=2
        wl large q=team-a gpu=3 t=1
        cycle
        cq team-a gpu/h100=2 generation=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            2  inadmissible-class large team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn an_admission_requeues_nothing() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl large q=team-a gpu=3 t=1
        cycle
        wl one q=team-b gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            2  reserve one team-b gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn the_end_of_a_pending_workload_requeues() {
    check(
        "
        settings reevaluate-refused
        cq team-a gpu/h100=2
        wl one q=team-a gpu=3 t=1
        wl two q=team-a gpu=4 t=2
        cycle 2
        finish two
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  inadmissible-class two team-a ExceedsMaxQuota
            3  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn an_update_of_unused_quota_requeues_nothing() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=3 t=1
        cycle
        evict one
        withdraw one
        release one t=9
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible one
        "#]],
    );
}

#[test]
fn a_second_release_frees_nothing() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-a gpu=2 t=2
        evict one
        release one t=9 hold=requeue
        release one t=9 hold=requeue
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
fn a_preemptor_whose_next_attempt_fails_is_not_first_any_more() {
    check(
        "
        settings release-preemptors
        cq team-a within=lower gpu/h100=4
        wl holder q=team-a gpu=2 prio=-1 t=1
        cycle
        wl low q=team-a gpu=4 t=2
        cycle
        wl high q=team-a gpu=3 prio=10 t=3
        show team-a
        cq team-a within=lower gpu/h100=3
        cycle
        show team-a
        cq team-a within=lower gpu/h100=4
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:2
            2  preempt for low team-a: holder InClusterQueue
            -  team-a uses gpu/h100=2, reserving holder, pending low high
            3  inadmissible-class low team-a ExceedsMaxQuota
            -  team-a uses gpu/h100=2, reserving holder, pending high, inadmissible low
            4  preempt for high team-a: holder InClusterQueue
        "#]],
    );
}
