//! Reservations of waiting heads against later heads of the same cycle.

use expect_test::expect;

use super::check::check;

#[test]
fn a_waiting_head_reserves_its_quota_within_the_cycle() {
    check(
        "
        cq team-a cohort=ml strict gpu/h100=4
        cq team-b cohort=ml gpu/h100=2
        cq team-c cohort=ml gpu/h100=0
        wl holder q=team-b gpu=4 t=1
        cycle
        wl waits q=team-a gpu=4 t=2
        wl small q=team-c gpu=1 t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve holder team-b gpu=h100:4 (borrows, height 1)
            2  requeue waits team-a NoCandidates
            2  requeue small team-c Skipped
            3  requeue waits team-a NoCandidates
            3  requeue small team-c Skipped
        "#]],
    );
}

#[test]
fn the_reservation_of_a_waiting_head_ends_with_the_cycle() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4
        cq team-b cohort=ml gpu/h100=2
        cq team-c cohort=ml gpu/h100=0
        wl holder q=team-b gpu=4 t=1
        cycle
        wl waits q=team-a gpu=4 t=2
        wl small q=team-c gpu=1 t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve holder team-b gpu=h100:4 (borrows, height 1)
            2  inadmissible-class waits team-a NoCandidates
            2  requeue small team-c Skipped
            3  reserve small team-c gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_head_that_can_always_reclaim_reserves_nothing() {
    check(
        "
        cq team-a cohort=ml strict reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=2
        cq team-c cohort=ml gpu/h100=0
        wl holder q=team-b gpu=4 t=1
        cycle
        cq team-b cohort=ml stopped gpu/h100=2
        wl waits q=team-a gpu=4 t=2
        wl small q=team-c gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-b gpu=h100:4 (borrows, height 1)
            2  requeue waits team-a NoCandidates
            2  reserve small team-c gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_reservation_is_limited_by_the_borrowing_limit() {
    check(
        "
        cq team-a cohort=ml strict gpu/h100=2 borrow=2
        cq team-b cohort=ml gpu/h100=4
        cq team-c cohort=ml gpu/h100=0
        wl mine q=team-a gpu=3 t=1
        cycle
        wl waits q=team-a gpu=2 t=2
        wl small q=team-c gpu=2 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve mine team-a gpu=h100:3 (borrows, height 1)
            2  requeue waits team-a NoCandidates
            2  reserve small team-c gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_borrowing_reservation_does_not_block_nominal_quota() {
    check(
        "
        cq team-a cohort=ml strict gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        cq team-c cohort=ml gpu/h100=2
        wl mine q=team-a gpu=1 t=1
        wl holder q=team-b gpu=4 t=1
        cycle
        wl waits q=team-a gpu=2 t=2
        wl small q=team-c gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve mine team-a gpu=h100:1
            1  reserve holder team-b gpu=h100:4 (borrows, height 1)
            2  reserve small team-c gpu=h100:1
            2  requeue waits team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_head_that_exceeds_the_maximum_reserves_nothing() {
    check(
        "
        cq team-a cohort=ml strict gpu/h100=4
        cq team-c cohort=ml gpu/h100=0
        wl never q=team-a gpu=5 t=1
        wl small q=team-c gpu=4 t=2
        cycle
        ",
        &expect![[r#"
            1  requeue never team-a ExceedsMaxQuota
            1  reserve small team-c gpu=h100:4 (borrows, height 1)
        "#]],
    );
}

#[test]
fn quota_of_targets_is_reserved_for_the_preemptor() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=4
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml gpu/h100=0
        wl holder q=team-b gpu=2 t=1
        cycle
        wl owner q=team-a gpu=4 t=2
        wl small q=team-c gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-b gpu=h100:2 (borrows, height 1)
            2  preempt for owner team-a: holder InCohortReclamation
            2  requeue small team-c Skipped
        "#]],
    );
}
