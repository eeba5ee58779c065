//! Usage whose sum exceeds int64 and saturates.

use expect_test::expect;

use super::check::check;

#[test]
fn a_saturated_sum_stays_saturated_after_a_subtraction() {
    check(
        "
        cq team-a gpu/h100=unlimited
        wl small q=team-a gpu=5 t=1
        wl whale q=team-a gpu=unlimited t=2
        cycle 2
        finish small
        show team-a
        ",
        &expect![[r#"
            1  reserve small team-a gpu=h100:5
            2  reserve whale team-a gpu=h100:unlimited
            -  team-a uses gpu/h100=unlimited, reserving whale
        "#]],
    );
}

#[test]
fn a_saturated_sum_less_itself_is_zero() {
    check(
        "
        cq team-a gpu/h100=unlimited
        wl small q=team-a gpu=5 t=1
        wl whale q=team-a gpu=unlimited t=2
        cycle 2
        finish whale
        show team-a
        ",
        &expect![[r#"
            1  reserve small team-a gpu=h100:5
            2  reserve whale team-a gpu=h100:unlimited
            -  team-a uses nothing, reserving small
        "#]],
    );
}

#[test]
fn saturated_usage_is_charged_above_local_quota() {
    check(
        "
        cohort all gpu/h100=unlimited
        cq team-a cohort=all gpu/h100=4,lend:1
        wl whale q=team-a gpu=unlimited t=1
        cycle
        show all team-a
        finish whale
        show all team-a
        ",
        &expect![[r#"
            1  reserve whale team-a gpu=h100:unlimited (borrows, height 1)
            -  all uses gpu/h100=unlimited
            -  team-a uses gpu/h100=unlimited, reserving whale
            -  all uses nothing
            -  team-a uses nothing
        "#]],
    );
}

/// The local quota of the cohort is saturated, so all usage stays there; when it is lowered to zero, all usage
/// moves to the parent. Moved usage is not moved back, because the sum does not say how much it was.
#[test]
fn an_update_charges_usage_above_a_saturated_sum_again() {
    check(
        "
        cohort all gpu/h100=9
        cohort lab parent=all gpu/h100=unlimited,lend:1
        cq team-a cohort=lab gpu/h100=0
        wl whale q=team-a gpu=unlimited t=1
        wl small q=team-a gpu=2 t=2
        cycle 2
        show all lab
        wl small q=team-a gpu=2 t=2
        show all lab
        finish small
        show all lab
        ",
        &expect![[r#"
            1  reserve whale team-a gpu=h100:unlimited (borrows, height 1)
            2  reserve small team-a gpu=h100:2 (borrows, height 1)
            -  all uses gpu/h100=2
            -  lab uses gpu/h100=unlimited
            -  all uses gpu/h100=4
            -  lab uses gpu/h100=unlimited
            -  all uses gpu/h100=4
            -  lab uses gpu/h100=unlimited
        "#]],
    );
}

/// A Workload restored after the search for one resource is charged above the saturated sum a second time until the
/// cycle ends, so too little of the other resource is left.
#[test]
fn a_preemption_search_charges_usage_above_a_saturated_sum_again() {
    check(
        "
        cohort all mem/h100=8 gpu/h100=0
        cohort lab parent=all mem/h100=unlimited,lend:1 gpu/h100=0
        cq team-a cohort=lab mem/h100=0 gpu/h100=4 within=lower
        wl whale q=team-a mem=unlimited prio=9 t=1
        wl small q=team-a mem=2 gpu=4 t=2
        cycle 2
        wl next q=team-a mem=5 gpu=4 prio=5 t=3
        cycle
        show all
        ",
        &expect![[r#"
            1  reserve whale team-a mem=h100:unlimited (borrows, height 1)
            2  reserve small team-a gpu=h100:4 mem=h100:2 (borrows, height 1)
            3  inadmissible-class next team-a NoCandidates
            -  all uses gpu/h100=4 mem/h100=2
        "#]],
    );
}

/// Both searches and the check without the target charge it again above the saturated sum.
#[test]
fn a_fair_sharing_search_charges_usage_above_a_saturated_sum_again() {
    check(
        "
        settings fair=final
        cohort all mem/h100=8 gpu/h100=0
        cohort lab parent=all mem/h100=unlimited,lend:1 gpu/h100=0
        cq team-a cohort=lab mem/h100=0 gpu/h100=4 within=lower
        wl whale q=team-a mem=unlimited prio=9 t=1
        wl small q=team-a mem=2 gpu=4 t=2
        cycle 2
        wl next q=team-a mem=4 gpu=4 prio=5 t=3
        cycle
        show all
        ",
        &expect![[r#"
            1  reserve whale team-a mem=h100:unlimited (borrows, height 1)
            2  reserve small team-a gpu=h100:4 mem=h100:2 (borrows, height 1)
            3  inadmissible-class next team-a NoCandidates
            -  all uses gpu/h100=4 mem/h100=2
        "#]],
    );
}

/// `next` is charged for comparison before it is charged for good, so too little is left for `other`; the
/// comparison is forgotten with the cycle.
#[test]
fn the_tournament_charges_heads_above_a_saturated_sum() {
    check(
        "
        settings fair=final
        cohort all mem/h100=9
        cohort lab parent=all mem/h100=unlimited,lend:1
        cq team-a cohort=lab mem/h100=0
        cq team-c cohort=all mem/h100=0
        wl whale q=team-a mem=unlimited t=1
        cycle
        wl next q=team-a mem=2 t=2
        wl other q=team-c mem=6 t=3
        cycle
        show all
        cycle
        show all
        ",
        &expect![[r#"
            1  reserve whale team-a mem=h100:unlimited (borrows, height 1)
            2  reserve next team-a mem=h100:2 (borrows, height 1)
            2  requeue other team-c Skipped
            -  all uses mem/h100=2
            3  reserve other team-c mem=h100:6 (borrows, height 2)
            -  all uses mem/h100=8
        "#]],
    );
}
