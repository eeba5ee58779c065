//! Changes of quotas and cohort trees while Workloads have quota reservations.

use expect_test::expect;

use super::check::check;

#[test]
fn lowered_quota_evicts_nothing() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=4 t=1
        cycle
        cq team-a gpu/h100=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4
            -  team-a uses gpu/h100=4, reserving one
        "#]],
    );
}

#[test]
fn an_overcommitted_cohort_tree_admits_nothing() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4
        cq team-b cohort=ml gpu/h100=2
        wl one q=team-a gpu=4 t=1
        cycle
        cq team-a cohort=ml gpu/h100=1
        wl two q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4
            2  inadmissible-class two team-b NoCandidates
        "#]],
    );
}

#[test]
fn a_lowered_quota_makes_usage_reclaimable() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4
        cq team-b cohort=ml gpu/h100=2 reclaim=any
        wl one q=team-a gpu=4 t=1
        cycle
        cq team-a cohort=ml gpu/h100=1
        wl two q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4
            2  preempt for two team-b: one InCohortReclamation
        "#]],
    );
}

#[test]
fn a_queue_moves_its_usage_to_another_cohort() {
    check(
        "
        cohort old
        cohort new
        cq team-a cohort=old gpu/h100=4
        wl one q=team-a gpu=3 t=1
        cycle
        cq team-a cohort=new gpu/h100=4
        cycle
        show old new
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            -  old uses nothing
            -  new uses gpu/h100=3
        "#]],
    );
}

#[test]
fn a_cohort_moves_its_usage_to_another_parent() {
    check(
        "
        cohort low parent=old
        cohort old
        cohort new
        cq team-a cohort=low gpu/h100=4
        wl one q=team-a gpu=3 t=1
        cycle
        cohort low parent=new
        cycle
        show low old new
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            -  low uses gpu/h100=3
            -  old uses nothing
            -  new uses gpu/h100=3
        "#]],
    );
}

#[test]
fn a_deleted_cohort_keeps_its_queues_together() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        delete cohort ml
        wl one q=team-a gpu=5 t=1
        wl two q=team-a gpu=4 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve two team-a gpu=h100:4 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_flavor_taken_from_a_queue_stays_charged() {
    check(
        "
        cq team-a gpu/h100=4 gpu/spot=4
        wl one q=team-a gpu=3 t=1
        cycle
        cq team-a gpu/spot=4
        wl two q=team-a gpu=3 t=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            2  reserve two team-a gpu=spot:3
            -  team-a uses gpu/h100=3 gpu/spot=3, reserving one two
        "#]],
    );
}

#[test]
fn a_higher_lending_limit_helps_borrowers_at_once() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=4,lend:1
        wl one q=team-a gpu=2 t=1
        cycle
        cq team-b cohort=ml gpu/h100=4,lend:2
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve one team-a gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_later_lending_limit_makes_usage_local() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4
        wl one q=team-a gpu=3 t=1
        cycle
        show ml
        cq team-a cohort=ml gpu/h100=4,lend:1
        cycle
        show ml
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            -  ml uses gpu/h100=3
            -  ml uses nothing
        "#]],
    );
}

#[test]
fn usage_of_a_deleted_queue_stays_until_its_workloads_finish() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1
        cycle
        delete cq team-a
        cycle
        show team-a
        finish one
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            -  team-a uses gpu/h100=3, reserving one
            -  team-a uses nothing
        "#]],
    );
}

/// A new status of a Cohort, or a label, leads to an equal observation.
#[test]
fn a_cohort_that_is_observed_again_requeues_nothing() {
    check(
        "
        cohort all weight=2 gpu/h100=1
        cq team-a cohort=all gpu/h100=1
        wl first q=team-a gpu=2 t=1
        cycle
        wl second q=team-a gpu=1 t=2
        cycle
        cohort all weight=2 gpu/h100=1
        cycle
        show team-a
        cohort all weight=1 gpu/h100=1
        cycle
        delete cohort all
        cycle
        cohort all
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:2 (borrows, height 1)
            2  inadmissible-class second team-a NoCandidates
            -  team-a uses gpu/h100=2, reserving first, inadmissible second
            4  inadmissible-class second team-a NoCandidates
            5  inadmissible-class second team-a NoCandidates
            6  inadmissible-class second team-a NoCandidates
        "#]],
    );
}
