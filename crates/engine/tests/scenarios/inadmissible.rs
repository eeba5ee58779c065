//! Inadmissible Workloads: one alone, or a whole equivalence class.

use expect_test::expect;

use super::check::check;

#[test]
fn one_decision_makes_a_class_inadmissible() {
    check(
        "
        cq team-a gpu/h100=4
        wl large-1 q=team-a gpu=5 t=1
        wl large-2 q=team-a gpu=5 t=2
        wl small q=team-a gpu=1 t=3
        cycle 3
        ",
        &expect![[r#"
            1  inadmissible-class large-1 team-a ExceedsMaxQuota
            2  reserve small team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_new_workload_of_an_inadmissible_class_is_inadmissible() {
    check(
        "
        cq team-a gpu/h100=4
        wl large-1 q=team-a gpu=5 t=1
        cycle
        wl large-2 q=team-a gpu=5 t=2
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class large-1 team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible large-1 large-2
        "#]],
    );
}

/// The older one may preempt what the refused one may not.
#[test]
fn a_new_workload_that_is_older_than_the_refused_ones_is_evaluated() {
    check(
        "
        cq team-a within=newer gpu/h100=1
        wl holder q=team-a gpu=1 t=5
        cycle
        wl young q=team-a gpu=1 t=9
        cycle
        wl old q=team-a gpu=1 t=1
        wl younger q=team-a gpu=1 t=10
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:1
            2  inadmissible-class young team-a NoCandidates
            3  preempt for old team-a: holder InClusterQueue
            -  team-a uses gpu/h100=1, reserving holder, pending old, inadmissible young younger
        "#]],
    );
}

#[test]
fn a_refusal_for_lack_of_quota_counts_for_older_workloads_too() {
    check(
        "
        cq team-a within=newer gpu/h100=1
        wl young q=team-a gpu=2 t=9
        cycle
        wl old q=team-a gpu=2 t=1
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class young team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible old young
        "#]],
    );
}

/// A requeue makes all of them active.
#[test]
fn a_later_refusal_of_an_older_workload_counts_for_all_that_are_not_older() {
    check(
        "
        cq team-a within=newer gpu/h100=1
        wl holder q=team-a gpu=1 t=1
        cycle
        wl third q=team-a gpu=1 t=9
        cycle
        wl second q=team-a gpu=1 t=8
        cycle
        wl first q=team-a gpu=1 t=7
        wl also-second q=team-a gpu=1 t=8
        cycle 3
        show team-a
        finish holder
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:1
            2  inadmissible-class third team-a NoCandidates
            3  inadmissible-class second team-a NoCandidates
            4  inadmissible-class first team-a NoCandidates
            -  team-a uses gpu/h100=1, reserving holder, inadmissible first also-second second third
            7  reserve first team-a gpu=h100:1
            -  team-a uses gpu/h100=1, reserving first, pending also-second second third
        "#]],
    );
}

#[test]
fn another_priority_is_another_class() {
    check(
        "
        cq team-a gpu/h100=4
        wl calm q=team-a gpu=5 t=1
        wl urgent q=team-a gpu=5 t=2 prio=1
        cycle 3
        ",
        &expect![[r#"
            1  inadmissible-class urgent team-a ExceedsMaxQuota
            2  inadmissible-class calm team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn another_pod_template_is_another_class() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=5 t=1 template=1
        wl two q=team-a gpu=5 t=2 template=2
        cycle 3
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            2  inadmissible-class two team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn the_minimum_count_is_part_of_the_class() {
    check(
        "
        cq team-a gpu/h100=4
        wl whole q=team-a pods=9 gpu=1 t=1
        wl part q=team-a pods=9 min=4 gpu=1 t=2
        cycle 3
        ",
        &expect![[r#"
            1  inadmissible-class whole team-a ExceedsMaxQuota
            2  reserve part team-a gpu=h100:4
        "#]],
    );
}

#[test]
fn a_class_is_inadmissible_in_one_queue_only() {
    check(
        "
        cq team-a gpu/h100=4
        cq team-b gpu/h100=4
        wl one q=team-a gpu=5 t=1
        wl two q=team-b gpu=5 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota
            1  inadmissible-class two team-b ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn without_scheduling_hashes_every_workload_is_nominated() {
    check(
        "
        settings no-scheduling-hashes
        cq team-a gpu/h100=4
        wl one q=team-a gpu=5 t=1
        wl two q=team-a gpu=5 t=2
        cycle 3
        ",
        &expect![[r#"
            1  inadmissible one team-a ExceedsMaxQuota
            2  inadmissible two team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_class_without_preemption_targets_is_inadmissible() {
    check(
        "
        cq team-a within=lower gpu/h100=2
        wl holder q=team-a gpu=2 t=1
        cycle
        wl one q=team-a gpu=1 t=2
        wl two q=team-a gpu=1 t=3
        cycle 3
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:2
            2  inadmissible-class one team-a NoCandidates
        "#]],
    );
}

#[test]
fn an_invalid_workload_is_inadmissible_alone() {
    check(
        "
        cq team-a gpu/h100=2
        wl broken q=team-a gpu=1 t=1 invalid
        wl sound q=team-a gpu=1 t=2
        cycle 3
        ",
        &expect![[r#"
            1  inadmissible broken team-a Invalid
            2  reserve sound team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_changed_request_makes_a_workload_pending() {
    check(
        "
        cq team-a gpu/h100=4
        wl large q=team-a gpu=5 t=1
        cycle
        wl large q=team-a gpu=3 t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            2  reserve large team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn a_pending_workload_that_joins_an_inadmissible_class_keeps_its_position() {
    check(
        "
        cq team-a gpu/h100=4
        wl large q=team-a gpu=5 prio=1 t=1
        cycle
        wl other q=team-a gpu=5 t=2
        wl third q=team-a gpu=5 t=3
        wl small q=team-a gpu=1 t=4
        wl other q=team-a gpu=5 prio=1 t=2
        show team-a
        cycle 4
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            -  team-a uses nothing, pending other third small, inadmissible large
            2  inadmissible-class other team-a ExceedsMaxQuota
            3  inadmissible-class third team-a ExceedsMaxQuota
            4  reserve small team-a gpu=h100:1
            -  team-a uses gpu/h100=1, reserving small, inadmissible large other third
        "#]],
    );
}

#[test]
fn one_decision_makes_later_members_of_the_class_inadmissible() {
    check(
        "
        cq team-a gpu/h100=4
        wl large q=team-a gpu=5 prio=1 t=1
        cycle
        wl other q=team-a gpu=5 t=2
        wl third q=team-a gpu=5 t=3
        wl other q=team-a gpu=5 prio=1 t=2
        wl third q=team-a gpu=5 prio=1 t=3
        cycle 2
        wl small q=team-a gpu=1 t=4
        cq team-a gpu/h100=6
        cycle 4
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            2  inadmissible-class other team-a ExceedsMaxQuota
            4  reserve large team-a gpu=h100:5
            5  inadmissible-class other team-a NoCandidates
            6  reserve small team-a gpu=h100:1
            -  team-a uses gpu/h100=6, reserving large small, inadmissible other third
        "#]],
    );
}

#[test]
fn a_resumed_local_queue_makes_its_class_pending_again() {
    check(
        "
        cq team-a gpu/h100=4
        lq line cq=team-a stopped
        wl one q=line gpu=5 t=1
        wl large q=team-a gpu=5 t=2
        cycle
        lq line cq=team-a
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            2  inadmissible-class one team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn an_unchanged_update_changes_nothing() {
    check(
        "
        cq team-a gpu/h100=4
        wl large q=team-a gpu=5 t=1
        cycle
        wl large q=team-a gpu=5 t=1
        cycle
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible large
        "#]],
    );
}

#[test]
fn reclaimable_pods_of_an_inadmissible_workload_requeue_it() {
    check(
        "
        cq team-a gpu/h100=4
        wl large q=team-a pods=5 gpu=1 t=1
        cycle
        reclaim large 2
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class large team-a ExceedsMaxQuota
            2  reserve large team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn an_inadmissible_workload_can_finish() {
    check(
        "
        cq team-a gpu/h100=4
        wl large-1 q=team-a gpu=5 t=1
        wl large-2 q=team-a gpu=5 t=2
        cycle
        finish large-1
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class large-1 team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible large-2
        "#]],
    );
}

#[test]
fn an_inadmissible_class_keeps_its_queue_order() {
    check(
        "
        cq team-a gpu/h100=1
        wl holder q=team-a gpu=1 t=1
        cycle
        wl young q=team-a gpu=1 t=9
        cycle
        wl old q=team-a gpu=1 t=2
        finish holder
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:1
            2  inadmissible-class young team-a NoCandidates
            3  reserve old team-a gpu=h100:1
        "#]],
    );
}
