//! Who has to go for whom.

use engine::{Anywhere, FairStrategy, Settings};
use expect_test::expect;

use super::fixture::{check, check_with};

#[test]
fn the_lowest_priority_goes_and_quota_is_free_only_after_release() {
    check(
        "
        cq team-a gpu/h100=4 within=lower
        wl old q=team-a gpu=2 prio=1 t=1
        cycle
        wl low q=team-a gpu=2 prio=0 t=2
        cycle
        wl high q=team-a gpu=2 prio=5 t=3
        cycle
        cycle
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
fn equal_priority_is_taken_only_from_the_younger() {
    check(
        "
        cq team-a gpu/h100=2 within=newer
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
fn the_owner_reclaims_what_others_borrow() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4 reclaim=any
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
fn victims_that_were_not_needed_stay() {
    check(
        "
        cq team-a gpu/h100=5 within=lower
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
fn fair_sharing_takes_from_the_larger_share() {
    let fair = Some(vec![FairStrategy::LessThanOrEqualToFinalShare]);
    check_with(
        Settings { fair_sharing: fair, ..Settings::default() },
        &mut Anywhere,
        "
        cq team-a cohort=ml gpu/h100=0 reclaim=any
        cq team-b cohort=ml gpu/h100=0
        cohort ml gpu/h100=4
        wl one q=team-b gpu=2 t=1
        cycle
        wl two q=team-b gpu=2 t=2
        cycle
        wl mine q=team-a gpu=2 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-b gpu=h100:2 (borrows, height 1)
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  preempt for mine team-a: two InCohortFairSharing
        "#]],
    );
}
