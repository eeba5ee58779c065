//! Pods that are to leave their nodes: heads wait for them, and preempt nothing instead.

use expect_test::expect;

use super::check::check;

#[test]
fn a_head_waits_for_pods_that_leave_and_preempts_nothing() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=2 leaving/gpu=2
        node h2 rack=r1 gpu=2
        cq team-a within=lower gpu/tas=9
        wl low q=team-a gpu=2 required=node t=1
        cycle
        messages
        wl high q=team-a gpu=2 required=node prio=5 t=2
        cycle
        node h1 rack=r1 gpu=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=tas:2 at r1/h2:1
            2  requeue high team-a Deferred: Workload will fit after the pods of evicted workloads have terminated
            3  reserve high team-a gpu=tas:2 at r1/h1:1
        "#]],
    );
}

#[test]
fn a_head_preempts_what_does_not_leave_by_itself() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=2 leaving/gpu=1
        node h2 rack=r1 gpu=2
        cq team-a within=lower gpu/tas=9
        wl low q=team-a gpu=2 required=node t=1
        cycle
        wl high q=team-a gpu=2 required=node prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=tas:2 at r1/h2:1
            2  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn a_head_waits_for_an_evicted_workload_and_for_pods_that_leave() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=2 leaving/gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        cq team-a within=lower gpu/tas=4
        wl leaves q=team-a gpu=2 required=node t=1
        wl stays q=team-a gpu=2 required=node t=1
        cycle 2
        evict leaves
        wl high q=team-a pods=2 gpu=1 required=node prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve leaves team-a gpu=tas:2 at r1/h2:1
            2  reserve stays team-a gpu=tas:2 at r1/h3:1
            3  requeue high team-a Deferred
        "#]],
    );
}

#[test]
fn fewer_pods_start_before_others_have_left() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3 used/gpu=2 leaving/gpu=2
        cq team-a within=lower gpu/tas=9
        wl part q=team-a pods=3 min=1 gpu=1 required=node t=1
        cycle
        ",
        &expect![[r#"
            1  reserve part team-a gpu=tas:1 at r1/h1:1
        "#]],
    );
}

#[test]
fn racks_as_leaves_wait_for_pods_that_leave_their_nodes() {
    check(
        "
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=1 leaving/gpu=1
        node h2 rack=r2 gpu=1
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2
        cycle
        ",
        &expect![[r#"
            1  requeue one team-a Deferred
            2  reserve one team-a gpu=tas:2 at r1:2
        "#]],
    );
}

#[test]
fn a_more_urgent_head_precedes_one_that_waits_for_pods() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=2 leaving/gpu=2
        node h2 rack=r1 gpu=1
        cq team-a gpu/tas=9
        wl one q=team-a gpu=2 required=node t=1
        cycle
        wl two q=team-a gpu=1 required=node prio=1 t=2
        cycle
        ",
        &expect![[r#"
            1  requeue one team-a Deferred
            2  reserve two team-a gpu=tas:1 at r1/h2:1
        "#]],
    );
}

#[test]
fn a_head_preempts_when_pods_that_should_leave_stay() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=2 leaving/gpu=2
        node h2 rack=r1 gpu=2
        cq team-a within=lower gpu/tas=9
        wl low q=team-a gpu=2 required=node t=1
        cycle
        wl high q=team-a gpu=2 required=node prio=5 t=2
        cycle
        node h1 rack=r1 gpu=2 used/gpu=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=tas:2 at r1/h2:1
            2  requeue high team-a Deferred
            3  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn a_head_whose_topology_is_delayed_waits_for_no_pods() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        node h1 rack=r1 gpu=2 used/gpu=2 leaving/gpu=2
        cq team-a within=lower gpu/tas=4 check=nodes
        wl leaves q=team-a gpu=2 required=node t=1
        wl stays q=team-a gpu=2 required=node t=1
        cycle 2
        evict leaves
        wl high q=team-a gpu=2 required=node prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve leaves team-a gpu=tas:2, needs nodes
            2  reserve stays team-a gpu=tas:2, needs nodes
            3  preempt for high team-a: leaves InClusterQueue
        "#]],
    );
}
