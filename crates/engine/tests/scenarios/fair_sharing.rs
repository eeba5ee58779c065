//! Fair sharing: preemption targets by dominant resource share.

use expect_test::expect;

use super::check::check;

#[test]
fn the_larger_share_is_preempted() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-b gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        cycle 2
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

#[test]
fn the_final_share_strategy_keeps_targets_above_the_preemptor() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl large q=team-b gpu=4 t=1
        cycle
        wl mine q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve large team-b gpu=h100:4 (borrows, height 1)
            2  inadmissible-class mine team-a NoCandidates
        "#]],
    );
}

#[test]
fn the_initial_share_strategy_preempts_the_larger_share() {
    check(
        "
        settings fair=initial
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl large q=team-b gpu=4 t=1
        cycle
        wl mine q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve large team-b gpu=h100:4 (borrows, height 1)
            2  preempt for mine team-a: large InCohortFairSharing
        "#]],
    );
}

#[test]
fn the_second_strategy_helps_when_the_first_does_not() {
    check(
        "
        settings fair=final,initial
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl large q=team-b gpu=4 t=1
        cycle
        wl mine q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve large team-b gpu=h100:4 (borrows, height 1)
            2  preempt for mine team-a: large InCohortFairSharing
        "#]],
    );
}

#[test]
fn equal_shares_preempt_nothing() {
    check(
        "
        settings fair=initial
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl mine q=team-a gpu=2 t=1
        wl other q=team-b gpu=2 t=2
        cycle
        wl more q=team-a gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve mine team-a gpu=h100:2 (borrows, height 1)
            1  reserve other team-b gpu=h100:2 (borrows, height 1)
            2  inadmissible-class more team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_larger_weight_entitles_to_more() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml weight=3 gpu/h100=0
        wl one q=team-b gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        cycle 2
        wl mine q=team-a gpu=2 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-b gpu=h100:2 (borrows, height 1)
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  inadmissible-class mine team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_fractional_weight_entitles_to_less() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml weight=0.25 gpu/h100=0
        wl mine q=team-a gpu=2 t=1
        wl one q=team-b gpu=1 t=2
        wl two q=team-b gpu=1 t=3
        cycle 2
        wl more q=team-a gpu=1 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve mine team-a gpu=h100:2 (borrows, height 1)
            1  reserve one team-b gpu=h100:1 (borrows, height 1)
            2  reserve two team-b gpu=h100:1 (borrows, height 1)
            3  preempt for more team-a: two InCohortFairSharing
        "#]],
    );
}

#[test]
fn a_queue_of_weight_zero_is_preempted_by_all_others() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml weight=0 gpu/h100=0
        wl mine q=team-a gpu=2 t=1
        wl one q=team-b gpu=1 t=2
        wl two q=team-b gpu=1 t=3
        cycle 2
        wl more q=team-a gpu=1 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve mine team-a gpu=h100:2 (borrows, height 1)
            1  reserve one team-b gpu=h100:1 (borrows, height 1)
            2  reserve two team-b gpu=h100:1 (borrows, height 1)
            3  preempt for more team-a: two InCohortFairSharing
        "#]],
    );
}

#[test]
fn a_queue_of_weight_zero_preempts_nothing() {
    check(
        "
        settings fair=final,initial
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any weight=0 gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-b gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        cycle 2
        wl mine q=team-a gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-b gpu=h100:2 (borrows, height 1)
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  inadmissible-class mine team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_queue_within_nominal_quota_reclaims_whatever_the_shares() {
    check(
        "
        settings fair=final
        cq team-a cohort=ml reclaim=any weight=0 gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl guest q=team-b gpu=2 prio=9 t=1
        cycle
        wl owner q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:2 (borrows, height 1)
            2  preempt for owner team-a: guest InCohortReclamation
        "#]],
    );
}

#[test]
fn without_preempt_within_nominal_shares_decide() {
    check(
        "
        settings fair=final no-within-nominal
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        wl guest q=team-b gpu=2 prio=9 t=1
        cycle
        wl owner q=team-a gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:2 (borrows, height 1)
            2  preempt for owner team-a: guest InCohortFairSharing
        "#]],
    );
}

#[test]
fn within_a_queue_priorities_decide() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml within=lower reclaim=any gpu/h100=0
        wl low q=team-a gpu=4 t=1
        cycle
        wl high q=team-a gpu=2 prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=h100:4 (borrows, height 1)
            2  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn the_largest_share_is_preempted_first_whatever_its_priority() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml gpu/h100=0
        wl b-1 q=team-b gpu=1 t=1
        wl c-1 q=team-c gpu=2 prio=9 t=2
        wl c-2 q=team-c gpu=1 prio=9 t=3
        cycle 2
        wl mine q=team-a gpu=1 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve b-1 team-b gpu=h100:1 (borrows, height 1)
            1  reserve c-1 team-c gpu=h100:2 (borrows, height 1)
            2  reserve c-2 team-c gpu=h100:1 (borrows, height 1)
            3  preempt for mine team-a: c-2 InCohortFairSharing
        "#]],
    );
}

#[test]
fn a_policy_of_lower_priorities_holds_under_fair_sharing_too() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4
        cq team-a cohort=ml reclaim=lower gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-b gpu=2 prio=5 t=1
        wl two q=team-b gpu=2 prio=5 t=2
        cycle 2
        wl mine q=team-a gpu=2 prio=5 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-b gpu=h100:2 (borrows, height 1)
            2  reserve two team-b gpu=h100:2 (borrows, height 1)
            3  inadmissible-class mine team-a NoCandidates
        "#]],
    );
}

#[test]
fn shares_are_compared_among_siblings() {
    check(
        "
        settings fair=final
        cohort all gpu/h100=8
        cohort left parent=all
        cohort right parent=all
        cq team-a cohort=left reclaim=any gpu/h100=0
        cq team-b cohort=left gpu/h100=0
        cq team-c cohort=right gpu/h100=0
        wl b-1 q=team-b gpu=2 t=1
        wl b-2 q=team-b gpu=2 t=2
        wl c-1 q=team-c gpu=2 t=3
        wl c-2 q=team-c gpu=2 t=4
        cycle 2
        wl mine q=team-a gpu=2 t=5
        cycle
        ",
        &expect![[r#"
            1  reserve b-1 team-b gpu=h100:2 (borrows, height 2)
            1  reserve c-1 team-c gpu=h100:2 (borrows, height 2)
            2  reserve b-2 team-b gpu=h100:2 (borrows, height 2)
            2  reserve c-2 team-c gpu=h100:2 (borrows, height 2)
            3  preempt for mine team-a: b-2 InCohortFairSharing
        "#]],
    );
}

#[test]
fn branches_are_compared_below_their_common_cohort() {
    check(
        "
        settings fair=final
        cohort all gpu/h100=8
        cohort left parent=all
        cohort right parent=all
        cq team-a cohort=left reclaim=any gpu/h100=0
        cq team-c cohort=right gpu/h100=0
        cq team-d cohort=right gpu/h100=0
        wl c-1 q=team-c gpu=4 t=1
        wl d-1 q=team-d gpu=4 t=2
        cycle 2
        wl mine q=team-a gpu=4 t=5
        cycle
        ",
        &expect![[r#"
            1  reserve c-1 team-c gpu=h100:4 (borrows, height 2)
            1  reserve d-1 team-d gpu=h100:4 (borrows, height 2)
            3  preempt for mine team-a: c-1 InCohortFairSharing
        "#]],
    );
}

/// `team-b` uses more of everything than `team-c`, but most of it of a flavor that it does not have any more.
#[test]
fn usage_of_a_removed_flavor_is_not_part_of_the_share() {
    check(
        "
        settings fair=final,initial
        cohort ml gpu/h100=4 gpu/a100=4
        cq team-a cohort=ml reclaim=any gpu/h100=0
        cq team-b cohort=ml gpu/h100=0 gpu/a100=0
        cq team-c cohort=ml gpu/h100=0
        flavor h100 taint=new:yes
        wl old q=team-b gpu=4 t=1
        cycle
        wl b-1 q=team-b gpu=1 t=2 tolerate=new:yes
        wl c-1 q=team-c gpu=1 t=3 tolerate=new:yes
        wl c-2 q=team-c gpu=2 t=4 tolerate=new:yes
        cycle 2
        cq team-b cohort=ml gpu/h100=0
        wl mine q=team-a gpu=1 t=5 tolerate=new:yes
        cycle
        ",
        &expect![[r#"
            1  reserve old team-b gpu=a100:4 (borrows, height 1)
            2  reserve c-1 team-c gpu=h100:1 (borrows, height 1)
            2  reserve b-1 team-b gpu=h100:1 (borrows, height 1)
            3  reserve c-2 team-c gpu=h100:2 (borrows, height 1)
            4  preempt for mine team-a: c-2 InCohortFairSharing
        "#]],
    );
}

/// The same in the order of the heads.
#[test]
fn usage_of_a_removed_flavor_does_not_lower_the_order() {
    check(
        "
        settings fair=final
        cohort ml gpu/h100=4 gpu/a100=4
        cq team-b cohort=ml gpu/h100=0 gpu/a100=0
        cq team-c cohort=ml gpu/h100=0
        flavor h100 taint=new:yes
        wl old q=team-b gpu=4 t=1
        wl c-1 q=team-c gpu=1 t=2 tolerate=new:yes
        cycle
        cq team-b cohort=ml gpu/h100=0
        wl c-2 q=team-c gpu=3 t=3 tolerate=new:yes
        wl b-1 q=team-b gpu=3 t=4 tolerate=new:yes
        cycle
        ",
        &expect![[r#"
            1  reserve c-1 team-c gpu=h100:1 (borrows, height 1)
            1  reserve old team-b gpu=a100:4 (borrows, height 1)
            2  reserve b-1 team-b gpu=h100:3 (borrows, height 1)
            2  requeue c-2 team-c Skipped
        "#]],
    );
}

#[test]
fn targets_free_the_quota_of_pods_too() {
    check(
        "
        settings fair=final count-pods
        cohort all
        cq team-a cohort=all reclaim=any gpu/h100=25 pods/h100=7
        cq team-b cohort=all gpu/h100=25 pods/h100=0
        wl four q=team-b pods=4 gpu=1 t=1
        cycle
        wl three q=team-b pods=3 gpu=1 t=2
        cycle
        wl owner q=team-a pods=7 gpu=1 t=3
        cycle
        ",
        &expect![[r#"
            1  reserve four team-b gpu=h100:4 pods=h100:4 (borrows, height 1)
            2  reserve three team-b gpu=h100:3 pods=h100:3 (borrows, height 1)
            3  preempt for owner team-a: four InCohortReclamation, three InCohortReclamation
        "#]],
    );
}
