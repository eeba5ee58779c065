//! Preemption gates: Workloads that would preempt and must not.

use expect_test::expect;

use super::check::check;

#[test]
fn a_closed_preemption_gate_makes_a_workload_inadmissible() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        messages
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible urgent team-a PreemptionGated: Workload requires preemption, but it's gated
            -  team-a uses gpu/h100=4, reserving old, inadmissible urgent
        "#]],
    );
}

#[test]
fn preemption_gates_apply_with_concurrent_admission() {
    check(
        "
        settings concurrent-admission
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible urgent team-a PreemptionGated
        "#]],
    );
}

#[test]
fn without_a_feature_gate_preemption_gates_are_ignored() {
    check(
        "
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  preempt for urgent team-a: old InClusterQueue
        "#]],
    );
}

#[test]
fn free_quota_is_reserved_behind_a_closed_gate() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl calm q=team-a gpu=1 t=1
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        cycle
        ",
        &expect![[r#"
            1  reserve calm team-a gpu=h100:1
            2  reserve urgent team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn opening_a_preemption_gate_requeues_only_its_workload() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl one q=team-a gpu=3 prio=1 t=2 gated
        wl other q=team-a gpu=3 prio=1 t=3 gated
        cycle 2
        wl one q=team-a gpu=3 prio=1 t=2
        show team-a
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible one team-a PreemptionGated
            3  inadmissible other team-a PreemptionGated
            -  team-a uses gpu/h100=4, reserving old, pending one, inadmissible other
            4  preempt for one team-a: old InClusterQueue
        "#]],
    );
}

#[test]
fn an_unchanged_update_requeues_no_workload() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        show team-a
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible urgent team-a PreemptionGated
            -  team-a uses gpu/h100=4, reserving old, inadmissible urgent
        "#]],
    );
}

#[test]
fn a_gated_preemptor_reserves_no_quota_and_no_targets() {
    check(
        "
        settings orchestrated-preemption
        cq team-a cohort=ml reclaim=any gpu/h100=4
        cq team-b cohort=ml reclaim=any gpu/h100=4
        cq team-c cohort=ml gpu/h100=0
        wl guest q=team-c gpu=6 t=1
        cycle
        wl gated q=team-a gpu=4 prio=9 t=2 gated
        wl open q=team-b gpu=4 t=3
        wl small q=team-c gpu=2 t=4
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-c gpu=h100:6 (borrows, height 1)
            2  inadmissible gated team-a PreemptionGated
            2  preempt for open team-b: guest InCohortReclamation
            2  reserve small team-c gpu=h100:2 (borrows, height 1)
        "#]],
    );
}

#[test]
fn without_targets_a_closed_gate_does_not_matter() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl peer q=team-a gpu=4 t=1
        cycle
        wl waits q=team-a gpu=3 t=2 gated
        cycle
        ",
        &expect![[r#"
            1  reserve peer team-a gpu=h100:4
            2  inadmissible-class waits team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_gated_head_blocks_a_strict_queue() {
    check(
        "
        settings orchestrated-preemption
        cq team-a strict within=lower gpu/h100=4
        wl old q=team-a gpu=3 t=1
        cycle
        wl urgent q=team-a gpu=3 prio=1 t=2 gated
        wl small q=team-a gpu=1 t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:3
            2  requeue urgent team-a PreemptionGated
            3  requeue urgent team-a PreemptionGated
        "#]],
    );
}

#[test]
fn a_gated_workload_does_not_make_its_class_inadmissible() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl gated q=team-a gpu=3 prio=1 t=2 gated
        wl open q=team-a gpu=3 prio=1 t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible gated team-a PreemptionGated
            3  preempt for open team-a: old InClusterQueue
        "#]],
    );
}

#[test]
fn released_quota_requeues_gated_workloads() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl gated q=team-a gpu=3 prio=1 t=2 gated
        cycle
        finish old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible gated team-a PreemptionGated
            3  reserve gated team-a gpu=h100:3
        "#]],
    );
}

#[test]
fn the_explanation_names_closed_preemption_gates() {
    check(
        "
        settings orchestrated-preemption
        cq team-a within=lower gpu/h100=4
        wl old q=team-a gpu=4 t=1
        cycle
        wl gated q=team-a gpu=3 prio=1 t=2 gated
        cycle
        explain gated
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:4
            2  inadmissible gated team-a PreemptionGated
            ?  gated is inadmissible in team-a
            ?  its preemption gates are closed: it must not preempt
            ?  flavor h100: 3 gpu requested, 0 free, 3 missing
            ?    used by: team-a 4
            ?    would help: 3 gpu released
        "#]],
    );
}

#[test]
fn a_closed_gate_prevents_preemption_for_topology() {
    let world = |gate: &str| {
        format!(
            "
            settings orchestrated-preemption
            topology racks levels=rack,node
            flavor tas topology=racks
            check nodes topology=after-checks
            cq team-a gpu/tas=99 check=nodes within=lower
            node h1 rack=r1 gpu=4
            wl low q=team-a gpu=4 t=1 check=nodes:ready
            cycle
            wait 1
            second-pass
            wait 1
            second-pass
            wl high q=team-a gpu=4 prio=1 t=2 check=nodes:ready {gate}
            cycle
            second-pass
            wait 1
            second-pass
            "
        )
    };
    check(
        &world("gated"),
        &expect![[r#"
        1  reserve low team-a gpu=tas:4, needs nodes
        =  topology of low at r1/h1:1, passed nodes
        2  reserve high team-a gpu=tas:4, needs nodes
        =  no topology for high: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
    "#]],
    );
    check(
        &world(""),
        &expect![[r#"
        1  reserve low team-a gpu=tas:4, needs nodes
        =  topology of low at r1/h1:1, passed nodes
        2  reserve high team-a gpu=tas:4, needs nodes
        =  preempt for topology of high: low InClusterQueue
    "#]],
    );
}
