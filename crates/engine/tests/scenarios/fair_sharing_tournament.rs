//! Fair sharing: the order of the heads of one cycle.

use expect_test::expect;

use super::check::check;

#[test]
fn the_smaller_share_goes_first() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=6
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl holder q=team-a gpu=2 t=1
        cycle
        wl a-1 q=team-a gpu=1 t=2
        wl b-1 q=team-b gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:2 (borrows, height 1)
            2  reserve b-1 team-b gpu=h100:1 (borrows, height 1)
            2  reserve a-1 team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_share_includes_the_request_of_the_head() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=6
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl large q=team-a gpu=3 prio=9 t=1
        wl small q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve small team-b gpu=h100:1 (borrows, height 1)
            1  reserve large team-a gpu=h100:3 (borrows, height 1)
        "#]],
    );
}

#[test]
fn of_equal_shares_the_higher_priority_goes_first() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=6
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl calm q=team-a gpu=1 t=1
        wl urgent q=team-b gpu=1 prio=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve urgent team-b gpu=h100:1 (borrows, height 1)
            1  reserve calm team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn of_equal_shares_and_priorities_the_older_goes_first() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=6
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl young q=team-a gpu=1 t=2
        wl old q=team-b gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve old team-b gpu=h100:1 (borrows, height 1)
            1  reserve young team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_head_within_nominal_quota_goes_first() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4 + cpu/x86=4
        cq team-a cohort=ml gpu/h100=2 + cpu/x86=0
        cq team-b cohort=ml gpu/h100=0 + cpu/x86=0
        wl holder q=team-a cpu=4 t=1
        cycle
        wl owner q=team-a gpu=1 t=3
        wl guest q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a cpu=x86:4 (borrows, height 1)
            2  reserve owner team-a gpu=h100:1
            2  reserve guest team-b gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn without_prioritized_non_borrowing_the_share_decides() {
    check(
        "
        settings fair=final no-prioritize-non-borrowing
        cohort ml gpu/h100=4 + cpu/x86=4
        cq team-a cohort=ml gpu/h100=2 + cpu/x86=0
        cq team-b cohort=ml gpu/h100=0 + cpu/x86=0
        wl holder q=team-a cpu=4 t=1
        cycle
        wl owner q=team-a gpu=1 t=3
        wl guest q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a cpu=x86:4 (borrows, height 1)
            2  reserve guest team-b gpu=h100:1 (borrows, height 1)
            2  reserve owner team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn the_largest_of_a_queues_resources_is_its_share() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=8 + cpu/x86=8
        cq team-a cohort=ml gpu/h100=0 + cpu/x86=0
        cq team-b cohort=ml gpu/h100=0 + cpu/x86=0
        wl a-0 q=team-a gpu=1 cpu=6 t=1
        wl b-0 q=team-b gpu=3 t=1
        cycle
        wl a-1 q=team-a gpu=1 t=2
        wl b-1 q=team-b gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve b-0 team-b gpu=h100:3 (borrows, height 1)
            1  reserve a-0 team-a cpu=x86:6 gpu=h100:1 (borrows, height 1)
            2  reserve b-1 team-b gpu=h100:1 (borrows, height 1)
            2  reserve a-1 team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_weight_divides_the_share() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=8
        cq team-a cohort=ml weight=4 gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl holder q=team-a gpu=2 t=1
        cycle
        wl b-1 q=team-b gpu=1 t=2
        wl a-1 q=team-a gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:2 (borrows, height 1)
            2  reserve a-1 team-a gpu=h100:1 (borrows, height 1)
            2  reserve b-1 team-b gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

/// Three of 22 with weight 1.5 and two of 22 are equal fractions. In floating point, which upstream compares, the second is
/// smaller by a rounding.
#[test]
fn shares_compare_as_floating_point() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=22
        cq team-a cohort=ml weight=1.5 gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl heavy q=team-a gpu=3 prio=9 t=1
        wl light q=team-b gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve light team-b gpu=h100:2 (borrows, height 1)
            1  reserve heavy team-a gpu=h100:3 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_queue_of_weight_zero_goes_last() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=8
        cq team-a cohort=ml weight=0 gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl a-1 q=team-a gpu=1 prio=9 t=1
        wl b-1 q=team-b gpu=4 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve b-1 team-b gpu=h100:4 (borrows, height 1)
            1  reserve a-1 team-a gpu=h100:1 (borrows, height 1)
        "#]],
    );
}

#[test]
fn queues_of_weight_zero_compare_usage() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=8
        cq team-a cohort=ml weight=0 gpu/h100=0
        cq team-b cohort=ml weight=0 gpu/h100=0
        wl a-1 q=team-a gpu=2 t=1
        wl b-1 q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve b-1 team-b gpu=h100:1 (borrows, height 1)
            1  reserve a-1 team-a gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn cohorts_are_compared_before_their_queues() {
    check(
        "
        settings fair=final
        cohort all gpu/h100=8
        cohort left parent=all
        cohort right parent=all
        cq team-a cohort=left gpu/h100=0
        cq team-b cohort=left gpu/h100=0
        cq team-c cohort=right gpu/h100=0
        wl holder q=team-a gpu=4 t=1
        cycle
        wl b-1 q=team-b gpu=1 t=2
        wl c-1 q=team-c gpu=3 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:4 (borrows, height 2)
            2  reserve c-1 team-c gpu=h100:3 (borrows, height 2)
            2  reserve b-1 team-b gpu=h100:1 (borrows, height 2)
        "#]],
    );
}

#[test]
fn shares_are_recomputed_after_every_head() {
    check(
        "
        settings fair=final
        cohort all gpu/h100=8
        cohort left parent=all
        cohort right parent=all
        cq team-a cohort=left gpu/h100=0
        cq team-b cohort=left gpu/h100=0
        cq team-c cohort=right gpu/h100=0
        wl a-1 q=team-a gpu=2 t=1
        wl b-1 q=team-b gpu=2 t=2
        wl c-1 q=team-c gpu=3 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve a-1 team-a gpu=h100:2 (borrows, height 2)
            1  reserve c-1 team-c gpu=h100:3 (borrows, height 2)
            1  reserve b-1 team-b gpu=h100:2 (borrows, height 2)
        "#]],
    );
}

#[test]
fn the_weight_of_a_cohort_applies_to_its_subtree() {
    check(
        "
        settings fair=final
        cohort all gpu/h100=8
        cohort left parent=all weight=4
        cohort right parent=all
        cq team-a cohort=left gpu/h100=0
        cq team-c cohort=right gpu/h100=0
        wl c-1 q=team-c gpu=1 t=1
        wl a-1 q=team-a gpu=3 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve a-1 team-a gpu=h100:3 (borrows, height 2)
            1  reserve c-1 team-c gpu=h100:1 (borrows, height 2)
        "#]],
    );
}
