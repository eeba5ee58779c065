//! Borrowing: the quota that a queue may use from its cohort.

use expect_test::expect;

use super::check::check;

#[test]
fn a_queue_borrows_only_up_to_its_limit() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4 borrow=2
        cq team-b cohort=ml gpu/h100=8
        wl one q=team-a gpu=6 t=1
        wl two q=team-a gpu=1 t=2
        wl three q=team-a gpu=7 t=3
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:6 (borrows, height 1)
            2  inadmissible-class two team-a NoCandidates
            3  inadmissible-class three team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_limit_of_zero_forbids_borrowing() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4 borrow=0
        cq team-b cohort=ml gpu/h100=8
        wl one q=team-a gpu=5 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_queue_without_a_cohort_borrows_nothing() {
    check(
        "
        cq team-a gpu/h100=4
        cq team-b gpu/h100=8
        wl one q=team-a gpu=5 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_queue_without_quota_of_its_own_can_borrow() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=8
        wl one q=team-a gpu=8 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:8 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_flavor_that_a_queue_does_not_list_cannot_be_borrowed() {
    check(
        "
        cq team-a cohort=ml gpu/spot=1
        cq team-b cohort=ml gpu/h100=8
        wl one q=team-a gpu=2 t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn quota_above_the_lending_limit_stays_with_its_queue() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=8 lend=3
        wl one q=team-a gpu=4 t=1
        wl two q=team-a gpu=3 t=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve two team-a gpu=h100:3 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_queue_that_lends_nothing_keeps_its_nominal_quota() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=8 lend=0
        wl one q=team-a gpu=1 t=1
        wl two q=team-b gpu=8 t=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            1  reserve two team-b gpu=h100:8
        "#]],
    );
}

#[test]
fn a_queue_uses_its_local_quota_first() {
    check(
        "
        cq team-a cohort=ml gpu/h100=8 lend=3
        wl one q=team-a gpu=5 t=1
        cycle
        show ml
        wl two q=team-a gpu=2 t=2
        cycle
        show team-a ml
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:5
            -  ml uses nothing
            2  reserve two team-a gpu=h100:2
            -  team-a uses gpu/h100=7, reserving one two
            -  ml uses gpu/h100=2
        "#]],
    );
}

#[test]
fn borrowed_quota_is_not_available_to_its_queue() {
    check(
        "
        cq team-a cohort=ml gpu/h100=8 lend=3
        cq team-b cohort=ml gpu/h100=0
        wl borrower q=team-b gpu=3 t=1
        cycle
        wl one q=team-a gpu=6 t=2
        cycle
        wl two q=team-a gpu=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve borrower team-b gpu=h100:3 (borrows, height 1)
            2  inadmissible-class one team-a NoCandidates
            3  reserve two team-a gpu=h100:5
        "#]],
    );
}

#[test]
fn limits_are_kept_per_flavor() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2,borrow:0 gpu/spot=2
        cq team-b cohort=ml gpu/h100=8 gpu/spot=8
        wl one q=team-a gpu=3 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:3 (borrows, height 1)
        "#]],
    );
}

#[test]
fn quota_of_a_cohort_is_for_all_its_queues() {
    check(
        "
        cohort ml gpu/h100=4
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-a gpu=3 t=1
        cycle
        wl two q=team-b gpu=2 t=2
        cycle
        wl three q=team-b gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3 (borrows, height 1)
            2  inadmissible-class two team-b WaitingForQuota
            3  reserve three team-b gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn the_borrowing_height_is_the_level_of_the_lending_cohort() {
    check(
        "
        cohort low parent=high
        cq team-a cohort=low gpu/h100=1
        cq team-b cohort=low gpu/h100=1
        cq team-c cohort=high gpu/h100=9
        wl near q=team-a gpu=2 t=1
        wl far q=team-b gpu=5 t=2
        ",
        &expect![[r#"
            1  reserve near team-a gpu=h100:2 (borrows, height 1)
            1  reserve far team-b gpu=h100:5 (borrows, height 2)
        "#]],
    );
}

#[test]
fn a_cohort_lends_only_up_to_its_limit() {
    check(
        "
        cohort low parent=high gpu/h100=4,lend:1
        cq team-a cohort=low gpu/h100=0
        cq team-c cohort=high gpu/h100=0
        wl one q=team-c gpu=2 t=1
        wl two q=team-c gpu=1 t=2
        wl three q=team-a gpu=3 t=3
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class one team-c ExceedsMaxQuota
            1  reserve three team-a gpu=h100:3 (borrows, height 1)
            2  reserve two team-c gpu=h100:1 (borrows, height 2)
        "#]],
    );
}

#[test]
fn a_cohort_borrows_only_up_to_its_limit() {
    check(
        "
        cohort low parent=high gpu/h100=0,borrow:1
        cq team-a cohort=low gpu/h100=1
        cq team-c cohort=high gpu/h100=9
        wl one q=team-a gpu=3 t=1
        wl two q=team-a gpu=2 t=2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  reserve two team-a gpu=h100:2 (borrows, height 2)
        "#]],
    );
}

#[test]
fn the_limit_of_a_cohort_applies_to_the_sum_of_its_queues() {
    check(
        "
        cohort low parent=high gpu/h100=0,borrow:3
        cq team-a cohort=low gpu/h100=0
        cq team-b cohort=low gpu/h100=0
        cq team-c cohort=high gpu/h100=9
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-b gpu=2 t=2
        cycle
        wl three q=team-b gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 2)
            2  inadmissible-class two team-b WaitingForQuota
            3  reserve three team-b gpu=h100:1 (borrows, height 2)
        "#]],
    );
}

#[test]
fn local_quota_of_a_child_is_not_charged_to_its_cohort() {
    check(
        "
        cohort low parent=high gpu/h100=4,lend:1
        cohort high
        cq team-a cohort=low gpu/h100=0
        wl one q=team-a gpu=4 t=1
        cycle
        show team-a low high
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4 (borrows, height 1)
            -  team-a uses gpu/h100=4, reserving one
            -  low uses gpu/h100=4
            -  high uses gpu/h100=1
        "#]],
    );
}

#[test]
fn an_unlimited_quota_lends_to_all_queues() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=unlimited
        wl one q=team-a gpu=1000000 t=1
        wl two q=team-b gpu=1000000 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve two team-b gpu=h100:1000000
            1  reserve one team-a gpu=h100:1000000 (borrows, height 1)
        "#]],
    );
}
