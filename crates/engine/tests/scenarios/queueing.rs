//! Who is next, who steps aside, who comes back.

use expect_test::expect;

use super::fixture::check;

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
fn a_strict_queue_waits_behind_its_head() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl large q=team-a gpu=5 t=1
        wl small q=team-a gpu=1 t=2
        cycle
        cycle
        ",
        &expect![[r#"
            1  park large team-a (InLine): insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)
            2  park large team-a (InLine): insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)
        "#]],
    );
}

#[test]
fn one_verdict_parks_all_of_a_shape() {
    check(
        "
        cq team-a gpu/h100=4
        wl large-1 q=team-a gpu=5 t=1
        wl large-2 q=team-a gpu=5 t=2
        wl small q=team-a gpu=1 t=3
        cycle
        cycle
        cycle
        ",
        &expect![[r#"
            1  park large-1 team-a (WithShape): insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)
            2  reserve small team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_finish_wakes_those_who_wait_in_the_tree() {
    check(
        "
        cq team-a cohort=ml gpu/h100=2
        cq team-b cohort=ml gpu/h100=2
        wl one q=team-a gpu=4 t=1
        cycle
        wl two q=team-b gpu=1 t=2
        cycle
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:4 (borrows, height 1)
            2  park two team-b (WithShape): insufficient unused quota for gpu in flavor h100, 1 more needed
            4  reserve two team-b gpu=h100:1
        "#]],
    );
}

#[test]
fn a_stopped_queue_hands_out_no_heads() {
    check(
        "
        cq team-a stopped gpu/h100=2
        wl one q=team-a gpu=1 t=1
        ",
        &expect![[""]],
    );
}
