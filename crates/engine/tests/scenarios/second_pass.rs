//! The second pass: topology assignments for Workloads with quota, once the nodes exist.

use expect_test::expect;

use super::check::check;

/// A queue whose nodes are provided by an admission check.
const PROVIDED: &str = "
    topology racks levels=rack,node
    flavor tas topology=racks
    check nodes topology=after-checks
    cq team-a gpu/tas=99 check=nodes
";

fn play(fixture: &str, expect: &expect_test::Expect) {
    check(&format!("{PROVIDED}{fixture}"), expect);
}

#[test]
fn the_second_pass_assigns_the_topology_when_nodes_exist() {
    play(
        "
        wl one q=team-a pods=2 gpu=4 required=rack t=1
        cycle
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        second-pass
        wl one q=team-a pods=2 gpu=4 required=rack t=1 check=nodes:ready
        second-pass
        wait 1
        second-pass
        wait 60
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8, needs nodes
            =  topology of one at r1/h1:1,r1/h2:1, passed nodes
        "#]],
    );
}

#[test]
fn a_pod_set_without_pods_needs_no_second_pass() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        flavor plain
        check nodes topology=after-checks
        cq team-a gpu/tas=99 + cpu/plain=99 check=nodes
        wl one q=team-a pods=2 cpu=1 t=1 check=nodes:ready + pods=0 gpu=4 required=rack
        cycle
        second-pass
        wait 1
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a cpu=plain:2 + gpu=tas:0, passed nodes
        "#]],
    );
}

#[test]
fn a_failed_second_pass_is_retried_with_backoff() {
    play(
        "
        wl one q=team-a gpu=4 t=1
        cycle
        wl one q=team-a gpu=4 t=1 check=nodes:ready
        second-pass
        wait 1
        second-pass
        wait 1
        second-pass
        wait 1
        second-pass
        node h1 rack=r1 gpu=4
        wait 3
        second-pass
        wait 1
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4, needs nodes
            =  no topology for one: no topology domains at level: kubernetes.io/hostname
            =  no topology for one: no topology domains at level: kubernetes.io/hostname
            =  topology of one at r1/h1:1, passed nodes
        "#]],
    );
}

#[test]
fn the_second_pass_charges_its_domains() {
    play(
        "
        node h1 rack=r1 gpu=4
        wl one q=team-a gpu=4 t=1 check=nodes:ready
        wl two q=team-a gpu=4 t=2 check=nodes:ready prio=1
        cycle 2
        second-pass
        wait 1
        second-pass
        finish two
        wait 2
        second-pass
        show team-a
        ",
        &expect![[r#"
            1  reserve two team-a gpu=tas:4, needs nodes
            2  reserve one team-a gpu=tas:4, needs nodes
            =  topology of two at r1/h1:1, passed nodes
            =  no topology for one: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
            =  topology of one at r1/h1:1, passed nodes
            -  team-a uses gpu/tas=4, reserving one
        "#]],
    );
}

#[test]
fn a_withdrawn_reservation_gives_back_quota_and_domains_of_its_second_pass() {
    play(
        "
        node h1 rack=r1 gpu=4
        wl one q=team-a gpu=4 t=1 check=nodes:ready
        cycle
        second-pass
        wait 1
        second-pass
        withdraw one
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4, needs nodes
            =  topology of one at r1/h1:1, passed nodes
            -  team-a uses nothing, pending one
        "#]],
    );
}

#[test]
fn an_evicted_workload_gets_no_second_pass() {
    play(
        "
        node h1 rack=r1 gpu=4
        wl one q=team-a gpu=4 t=1
        cycle
        evict one
        wl one q=team-a gpu=4 t=1 check=nodes:ready
        second-pass
        wait 1
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4, needs nodes
        "#]],
    );
}

#[test]
fn only_flavors_of_the_check_delay_their_topology() {
    check(
        "
        topology racks levels=rack,node
        flavor own topology=racks label=kind:own
        flavor bought topology=racks label=kind:bought
        check nodes topology=after-checks
        cq team-a gpu/own=4 gpu/bought=9 check=nodes:bought
        node h1 rack=r1 kind=own gpu=4
        wl one q=team-a gpu=4 t=1
        wl two q=team-a gpu=4 t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=own:4 at r1/h1:1
            2  reserve two team-a gpu=bought:4, needs nodes
        "#]],
    );
}

#[test]
fn a_worker_cluster_assigns_the_topology_of_dispatched_workloads() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check workers topology=on-worker
        cq team-a gpu/tas=99 check=workers
        wl one q=team-a gpu=4 t=1 check=workers:ready
        cycle
        second-pass
        wait 1
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4, passed workers
        "#]],
    );
}

/// A queue whose higher priorities may preempt, with more quota than nodes.
const CROWDED: &str = "
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
";

#[test]
fn the_second_pass_preempts_users_of_the_domains() {
    check(
        &format!(
            "{CROWDED}
            wl high q=team-a gpu=4 prio=1 t=2 check=nodes:ready
            cycle
            second-pass
            wait 1
            second-pass
            show team-a
            release low
            wait 2
            second-pass
            "
        ),
        &expect![[r#"
            1  reserve low team-a gpu=tas:4, needs nodes
            =  topology of low at r1/h1:1, passed nodes
            2  reserve high team-a gpu=tas:4, needs nodes
            =  preempt for topology of high: low InClusterQueue
            -  team-a uses gpu/tas=8, reserving high low
            =  topology of high at r1/h1:1, passed nodes
        "#]],
    );
}

/// One preempted Workload frees the node, but its pods run longer than its reservation.
#[test]
fn the_second_pass_waits_for_pods_that_leave_and_preempts_nothing_else() {
    let until = |h1: &str| {
        format!(
            "{CROWDED}
            node h2 rack=r1 gpu=4
            wl other q=team-a gpu=4 prio=1 t=2 check=nodes:ready
            cycle
            second-pass
            wait 1
            second-pass
            wl high q=team-a gpu=4 prio=2 t=3 check=nodes:ready
            cycle
            second-pass
            wait 1
            second-pass
            {h1}
            "
        )
    };
    let leaves = "
        node h1 rack=r1 gpu=4 used/gpu=4 leaving/gpu=4
        release low hold=out
        wait 9
        second-pass
        node h1 rack=r1 gpu=4
        wait 9
        second-pass
    ";
    check(
        &until(leaves),
        &expect![[r#"
        1  reserve low team-a gpu=tas:4, needs nodes
        =  topology of low at r1/h1:1, passed nodes
        2  reserve other team-a gpu=tas:4, needs nodes
        =  topology of other at r1/h2:1, passed nodes
        3  reserve high team-a gpu=tas:4, needs nodes
        =  preempt for topology of high: low InClusterQueue
        =  no topology for high: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource "gpu": 2
        =  topology of high at r1/h1:1, passed nodes
    "#]],
    );
    let stays = "
        node h1 rack=r1 gpu=4 used/gpu=4
        release low hold=out
        wait 9
        second-pass
    ";
    check(
        &until(stays),
        &expect![[r#"
        1  reserve low team-a gpu=tas:4, needs nodes
        =  topology of low at r1/h1:1, passed nodes
        2  reserve other team-a gpu=tas:4, needs nodes
        =  topology of other at r1/h2:1, passed nodes
        3  reserve high team-a gpu=tas:4, needs nodes
        =  preempt for topology of high: low InClusterQueue
        =  preempt for topology of high: other InClusterQueue
    "#]],
    );
}

/// Quota and pods of one preempted Workload leave at different times.
#[test]
fn the_second_pass_waits_for_an_evicted_workload_and_for_pods_that_leave() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        cq team-a gpu/tas=99 check=nodes within=lower
        node h1 rack=r1 gpu=4 used/gpu=2 leaving/gpu=2
        node h2 rack=r1 gpu=4
        wl low q=team-a gpu=2 t=1 check=nodes:ready
        wl other q=team-a gpu=4 t=2 check=nodes:ready
        cycle 2
        second-pass
        wait 1
        second-pass
        evict low
        wl high q=team-a gpu=4 prio=2 t=3 check=nodes:ready
        cycle
        second-pass
        wait 1
        second-pass
        ",
        &expect![[r#"
            1  reserve low team-a gpu=tas:2, needs nodes
            2  reserve other team-a gpu=tas:4, needs nodes
            =  topology of low at r1/h1:1, passed nodes
            =  topology of other at r1/h2:1, passed nodes
            3  reserve high team-a gpu=tas:4, needs nodes
            =  no topology for high: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource "gpu": 2
        "#]],
    );
}

#[test]
fn the_second_pass_preempts_nothing_for_missing_nodes() {
    check(
        &format!(
            "{CROWDED}
            wl high q=team-a gpu=5 prio=1 t=2 check=nodes:ready
            cycle
            second-pass
            wait 1
            second-pass
            "
        ),
        &expect![[r#"
            1  reserve low team-a gpu=tas:4, needs nodes
            =  topology of low at r1/h1:1, passed nodes
            2  reserve high team-a gpu=tas:5, needs nodes
            =  no topology for high: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
        "#]],
    );
}

#[test]
fn the_second_pass_spares_equal_priority() {
    check(
        &format!(
            "{CROWDED}
            wl same q=team-a gpu=4 t=2 check=nodes:ready
            cycle
            second-pass
            wait 1
            second-pass
            "
        ),
        &expect![[r#"
            1  reserve low team-a gpu=tas:4, needs nodes
            =  topology of low at r1/h1:1, passed nodes
            2  reserve same team-a gpu=tas:4, needs nodes
            =  no topology for same: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
        "#]],
    );
}

/// The held quota is requested once more: five do not suffice for one and four and four, less the one possible
/// target.
#[test]
fn the_second_pass_preempts_only_within_double_quota() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        cq team-a gpu/tas=5 check=nodes within=lower
        node h1 rack=r1 gpu=4
        wl low q=team-a gpu=1 t=1 check=nodes:ready
        cycle
        wait 1
        second-pass
        wait 1
        second-pass
        wl high q=team-a gpu=4 prio=1 t=2 check=nodes:ready
        cycle
        second-pass
        wait 1
        second-pass
        cq team-a gpu/tas=8 check=nodes within=lower
        wait 2
        second-pass
        ",
        &expect![[r#"
            1  reserve low team-a gpu=tas:1, needs nodes
            =  topology of low at r1/h1:1, passed nodes
            2  reserve high team-a gpu=tas:4, needs nodes
            =  no topology for high: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
            =  preempt for topology of high: low InClusterQueue
        "#]],
    );
}

#[test]
fn two_second_passes_do_not_select_the_same_target() {
    check(
        &format!(
            "{CROWDED}
            wl high q=team-a gpu=4 prio=1 t=2 check=nodes:ready
            wl other q=team-a gpu=4 prio=1 t=3 check=nodes:ready
            cycle 2
            second-pass
            wait 1
            second-pass
            "
        ),
        &expect![[r#"
            1  reserve low team-a gpu=tas:4, needs nodes
            =  topology of low at r1/h1:1, passed nodes
            2  reserve high team-a gpu=tas:4, needs nodes
            3  reserve other team-a gpu=tas:4, needs nodes
            =  preempt for topology of high: low InClusterQueue
            =  no topology for other: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
        "#]],
    );
}

#[test]
fn a_stopped_queue_has_no_second_passes() {
    play(
        "
        node h1 rack=r1 gpu=4
        wl one q=team-a gpu=4 t=1 check=nodes:ready
        cycle
        second-pass
        cq team-a gpu/tas=99 check=nodes stopped
        wait 1
        second-pass
        cq team-a gpu/tas=99 check=nodes
        wait 2
        second-pass
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4, needs nodes
            =  no topology for one
            =  topology of one at r1/h1:1, passed nodes
        "#]],
    );
}
