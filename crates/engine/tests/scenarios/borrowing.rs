//! What a queue may take from its cohort.

use expect_test::expect;

use super::fixture::check;

#[test]
fn a_queue_borrows_only_up_to_its_limit() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4 borrow=2
        cq team-b cohort=ml gpu/h100=8
        wl one q=team-a gpu=6 t=1
        wl two q=team-a gpu=1 t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:6 (borrows, height 1)
            2  park two team-a (WithShape): insufficient unused quota for gpu in flavor h100, 1 more needed
        "#]],
    );
}

#[test]
fn what_is_not_lent_stays_with_its_owner() {
    check(
        "
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=8 lend=3
        wl one q=team-a gpu=4 t=1
        wl two q=team-a gpu=3 t=2
        ",
        &expect![[r#"
            1  park one team-a (WithShape): insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (4) > maximum capacity (3)
            2  reserve two team-a gpu=h100:3 (borrows, height 1)
        "#]],
    );
}

#[test]
fn the_height_says_how_far_up_a_loan_reaches() {
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
fn whoever_borrows_less_goes_first() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        wl borrows q=team-a gpu=3 prio=9 t=1
        wl owns q=team-b gpu=2 t=2
        ",
        &expect![[r#"
            1  reserve owns team-b gpu=h100:2
            1  park borrows team-a (InLine): Workload no longer fits after processing another workload
            2  park borrows team-a (WithShape): insufficient unused quota for gpu in flavor h100, 1 more needed
        "#]],
    );
}

#[test]
fn the_next_flavor_is_tried_when_the_first_is_full() {
    check(
        "
        cq team-a gpu/spot=1 gpu/h100=4
        wl one q=team-a gpu=1 t=1
        wl two q=team-a gpu=2 t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1
            2  reserve two team-a gpu=h100:2
        "#]],
    );
}

#[test]
fn a_workload_shrinks_as_little_as_possible() {
    check(
        "
        cq team-a gpu/h100=5
        wl one q=team-a pods=8 min=2 gpu=1 t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:5
        "#]],
    );
}
