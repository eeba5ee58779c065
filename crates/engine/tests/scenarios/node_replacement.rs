//! Failed nodes under admitted Workloads.

use expect_test::expect;

use super::check::check;

#[test]
fn only_pods_of_the_failed_node_move() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack prio=1 t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  replace-node one team-a gpu=tas:4 at r1/h2:2,r1/h3:2
        "#]],
    );
}

#[test]
fn moved_pods_stay_in_the_required_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        messages
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
            2  evict one team-a NodesFailed: Workload was evicted as there was no replacement for unhealthy node(s): h1
            -  team-a uses gpu/tas=6, reserving one
        "#]],
    );
}

#[test]
fn moved_pods_may_leave_a_preferred_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 preferred=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
            2  replace-node one team-a gpu=tas:6 at r1/h2:2,r1/h3:2,r2/h4:2
        "#]],
    );
}

#[test]
fn without_remaining_pods_any_domain_is_allowed() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1 prio=1
        wl two q=team-a pods=6 gpu=1 required=rack t=2
        cycle 2
        node h4 rack=r2 gpu=3 down
        node h5 rack=r3 gpu=2
        unhealthy one h4
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r2/h4:2
            2  reserve two team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
            3  replace-node one team-a gpu=tas:2 at r3/h5:2
        "#]],
    );
}

#[test]
fn an_incomplete_slice_is_completed_in_its_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=1
        node h4 rack=r1 gpu=1
        node h5 rack=r2 gpu=4
        node h6 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 slice=rack:4 t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at r1/h1:2,r1/h3:1,r1/h4:1,r2/h5:1,r2/h6:3
            2  replace-node one team-a gpu=tas:8 at r1/h2:2,r1/h3:1,r1/h4:1,r2/h5:1,r2/h6:3
        "#]],
    );
}

#[test]
fn a_slice_that_cannot_be_completed_is_evicted() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=4
        node h4 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=8 gpu=1 slice=rack:4 t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:8 at r1/h1:2,r1/h2:2,r2/h3:2,r2/h4:2
            2  evict one team-a NodesFailed
        "#]],
    );
}

#[test]
fn a_lost_smaller_last_slice_stays_in_the_required_domain() {
    check(
        "
        topology blocks levels=block,rack,node
        flavor tas topology=blocks
        node h1 block=b1 rack=r1 gpu=4
        node h2 block=b1 rack=r2 gpu=4
        node h4 block=b2 rack=r4 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=block slice=rack:4 t=1
        cycle
        node h2 block=b1 rack=r2 gpu=4 down
        unhealthy one h2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at b1/r1/h1:4,b1/r2/h2:2
            2  evict one team-a NodesFailed
        "#]],
    );
}

#[test]
fn a_lost_smaller_last_slice_may_move_within_the_required_domain() {
    check(
        "
        topology blocks levels=block,rack,node
        flavor tas topology=blocks
        node h1 block=b1 rack=r1 gpu=4
        node h2 block=b1 rack=r2 gpu=4
        node h4 block=b2 rack=r4 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=block slice=rack:4 t=1
        cycle
        node h2 block=b1 rack=r2 gpu=4 down
        node h3 block=b1 rack=r3 gpu=5
        unhealthy one h2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at b1/r1/h1:4,b1/r2/h2:2
            2  replace-node one team-a gpu=tas:6 at b1/r1/h1:4,b1/r3/h3:2
        "#]],
    );
}

#[test]
fn a_smaller_last_slice_is_completed_in_its_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r2 gpu=1
        node h3 rack=r2 gpu=1
        node h4 rack=r2 gpu=1
        node h5 rack=r2 gpu=1
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 slice=rack:4 t=1
        cycle
        node h2 rack=r2 gpu=1 down
        node h6 rack=r3 gpu=4
        unhealthy one h2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:4,r2/h2:1,r2/h3:1
            2  replace-node one team-a gpu=tas:6 at r1/h1:4,r2/h3:1,r2/h4:1
        "#]],
    );
}

#[test]
fn a_lost_smaller_inner_slice_stays_with_its_outer_slice() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=2
        node h2 hall=a rack=r2 gpu=2
        node h3 hall=a rack=r3 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 slice=hall:4 slice=rack:2 t=1
        cycle
        node h4 hall=b rack=r4 gpu=4
        node h2 hall=a rack=r2 gpu=2 down
        unhealthy one h2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at a/r1/h1:2,a/r2/h2:1
            2  replace-node one team-a gpu=tas:3 at a/r1/h1:2,a/r3/h3:1
        "#]],
    );
}

#[test]
fn a_lost_slice_may_move_to_another_domain() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=2
        node h3 rack=r3 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 slice=rack:2 t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r2/h2:2
            2  replace-node one team-a gpu=tas:4 at r2/h2:2,r3/h3:2
        "#]],
    );
}

#[test]
fn whole_inner_slices_stay_together() {
    check(
        "
        topology halls levels=hall,rack,node
        flavor tas topology=halls
        node h1 hall=a rack=r1 gpu=2
        node h2 hall=a rack=r2 gpu=2
        node h3 hall=a rack=r3 gpu=1
        node h4 hall=a rack=r4 gpu=1
        node h5 hall=a rack=r5 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 slice=hall:4 slice=rack:2 t=1
        cycle
        node h1 hall=a rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at a/r1/h1:2,a/r2/h2:2
            2  replace-node one team-a gpu=tas:4 at a/r2/h2:2,a/r5/h5:2
        "#]],
    );
}

#[test]
fn a_workload_with_two_failed_nodes_is_evicted() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack prio=1 t=1
        cycle
        node h1 rack=r1 gpu=2 down
        node h2 rack=r1 gpu=2 down
        unhealthy one h1 h2
        messages
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  evict one team-a NodesFailed: Workload eviction triggered due to multiple TAS assigned node failures, including: h1, h2
        "#]],
    );
}

#[test]
fn two_nodes_that_fail_in_turn_are_replaced() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        node h2 rack=r1 gpu=2 down
        unhealthy one h2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  replace-node one team-a gpu=tas:4 at r1/h2:2,r1/h3:2
            3  replace-node one team-a gpu=tas:4 at r1/h3:2,r1/h4:2
        "#]],
    );
}

#[test]
fn without_fail_fast_a_replacement_waits_for_capacity() {
    check(
        "
        settings no-fail-fast
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack prio=1 t=1
        wl two q=team-a pods=2 gpu=1 required=rack t=2
        cycle 2
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        messages
        cycle 2
        finish two
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  reserve two team-a gpu=tas:2 at r1/h2:2
            3  keep one team-a NodeNotReplaced: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 2 pod(s). Total nodes: 1; excluded: resource "gpu": 1
            5  replace-node one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_node_replacement_preempts_nothing() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9 within=lower
        wl one q=team-a pods=2 gpu=1 required=rack prio=5 t=1
        wl two q=team-a pods=2 gpu=1 required=rack t=2
        cycle 2
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        release one t=3
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  reserve two team-a gpu=tas:2 at r1/h2:2
            3  evict one team-a NodesFailed
            4  preempt for one team-a: two InClusterQueue
        "#]],
    );
}

#[test]
fn without_the_gate_nothing_is_replaced() {
    check(
        "
        settings no-replacement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            -  team-a uses gpu/tas=4, reserving one
        "#]],
    );
}

#[test]
fn a_node_replacement_uses_no_quota() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=2
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:2 at r1/h2:2
            -  team-a uses gpu/tas=2, reserving one
        "#]],
    );
}

#[test]
fn node_replacements_precede_heads() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        wl two q=team-a pods=2 gpu=1 required=rack prio=9 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:2 at r1/h2:2
            2  inadmissible-class two team-a NoCandidates
        "#]],
    );
}

#[test]
fn leader_and_workers_are_replaced_separately() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=4 gpu=1 required=rack group=g
        cycle
        node h1 rack=r1 gpu=3 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:4 at r1/h1:2,r1/h2:2
            2  replace-node one team-a gpu=tas:1 at r1/h3:1 + gpu=tas:4 at r1/h2:2,r1/h3:2
        "#]],
    );
}

/// Kueue#6957: no leaf of the leader is left, but its workers still are in the required domain.
#[test]
fn a_leader_stays_in_the_required_domain_of_its_workers() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 cpu=1
        node h2 rack=r1 gpu=2
        node h3 rack=r2 cpu=1
        cq team-a cpu/tas=9 gpu/tas=9
        wl one q=team-a cpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=rack group=g
        cycle
        node h1 rack=r1 cpu=1 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a cpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h2:2
            2  evict one team-a NodesFailed
        "#]],
    );
}

#[test]
fn workers_stay_in_the_required_domain_of_their_leader() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 cpu=1
        node h3 rack=r2 gpu=2
        node h4 rack=r1 gpu=3
        cq team-a cpu/tas=9 gpu/tas=9
        wl one q=team-a cpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=rack group=g
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a cpu=tas:1 at r1/h2:1 + gpu=tas:2 at r1/h1:2
            2  replace-node one team-a cpu=tas:1 at r1/h2:1 + gpu=tas:2 at r1/h4:2
        "#]],
    );
}

/// The domain that the workers keep has no leaf while its node is cordoned or not ready.
#[test]
fn a_leader_is_not_replaced_while_the_node_of_its_workers_is_unusable() {
    let with = |settings: &str| {
        format!(
            "
            settings {settings}
            topology racks levels=rack,node
            flavor tas topology=racks
            node h1 rack=r1 cpu=1
            node h2 rack=r1 gpu=2
            node h3 rack=r2 cpu=1
            cq team-a cpu/tas=9 gpu/tas=9
            wl one q=team-a cpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=rack group=g
            cycle
            node h2 rack=r1 gpu=2 down
            node h1 rack=r1 cpu=1 down
            unhealthy one h1
            messages
            cycle
            "
        )
    };
    check(
        &with(""),
        &expect![[r#"
            1  reserve one team-a cpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h2:2
            2  evict one team-a NodesFailed: Workload was evicted as there was no replacement for unhealthy node(s): h1
        "#]],
    );
    check(
        &with("no-fail-fast"),
        &expect![[r#"
            1  reserve one team-a cpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h2:2
            2  keep one team-a NodeNotReplaced: couldn't assign flavors to pod set main: Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale domain h2
        "#]],
    );
}

#[test]
fn a_group_without_remaining_pods_moves_together() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r2 gpu=1
        node h3 rack=r3 gpu=2
        node h4 rack=r4 gpu=2
        node h5 rack=r4 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=rack group=g
        cycle
        node h1 rack=r1 gpu=3 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:1 at r4/h4:1 + gpu=tas:2 at r4/h4:1,r4/h5:1
        "#]],
    );
}

#[test]
fn a_leader_may_leave_the_preferred_domain_of_its_workers() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 cpu=1
        node h2 rack=r1 gpu=2
        node h3 rack=r2 cpu=1
        cq team-a cpu/tas=9 gpu/tas=9
        wl one q=team-a cpu=1 preferred=rack group=g t=1 + pods=2 gpu=1 preferred=rack group=g
        cycle
        node h1 rack=r1 cpu=1 down
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a cpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h2:2
            2  replace-node one team-a cpu=tas:1 at r2/h3:1 + gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_second_stale_domain_prevents_a_replacement() {
    check(
        "
        settings no-fail-fast
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        node h2 rack=r1 gpu=2 down
        unhealthy one h1
        messages
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
            2  keep one team-a NodeNotReplaced: couldn't assign flavors to pod set main: Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale domain h2
        "#]],
    );
}

#[test]
fn a_tainted_node_is_no_replacement() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 taint=bad:yes:NoExecute
        unhealthy one h1
        cycle
        finish one
        wl two q=team-a pods=2 gpu=1 required=rack tolerate=bad t=2
        wl three q=team-a pods=2 gpu=1 required=rack tolerate=bad t=3
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:2 at r1/h2:2
            3  reserve two team-a gpu=tas:2 at r1/h1:2
            4  reserve three team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn an_unused_failed_node_changes_nothing() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack t=1
        cycle
        node h3 rack=r1 gpu=2 down
        unhealthy one h3
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            -  team-a uses gpu/tas=4, reserving one
        "#]],
    );
}

#[test]
fn a_recovered_node_is_not_replaced() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack prio=1 t=1
        cycle
        unhealthy one h1
        unhealthy one
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            -  team-a uses gpu/tas=4, reserving one
        "#]],
    );
}

/// Two Workloads, of which the first loses a node while the second is being evicted.
#[test]
fn a_failed_node_waits_for_an_eviction_that_frees_a_place() {
    let with_second_on = |node: &str, evicted: &str| {
        format!(
            "
            topology racks levels=rack,node
            flavor tas topology=racks
            node h1 rack=r1 gpu=2
            node h2 rack=r1 gpu=2
            {node}
            cq team-a gpu/tas=9
            wl one q=team-a pods=4 gpu=1 required=rack t=1
            wl two q=team-a pods=2 gpu=1 required=rack t=2
            cycle 2
            node h1 rack=r1 gpu=2 down
            unhealthy one h1
            {evicted}
            messages
            cycle
            "
        )
    };
    let waits = with_second_on("node h3 rack=r1 gpu=2", "evict two");
    check(
        &format!("{waits} release two t=9 hold=out\n cycle"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  reserve two team-a gpu=tas:2 at r1/h3:2
            3  keep one team-a NodeNotReplaced: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 2 pod(s). Total nodes: 2; excluded: resource "gpu": 2
            4  replace-node one team-a gpu=tas:4 at r1/h2:2,r1/h3:2
        "#]],
    );
    let in_another_rack = with_second_on("node h3 rack=r2 gpu=2", "evict two");
    check(
        &in_another_rack,
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  reserve two team-a gpu=tas:2 at r2/h3:2
            3  evict one team-a NodesFailed: Workload was evicted as there was no replacement for unhealthy node(s): h1
        "#]],
    );
    let without_eviction = with_second_on("node h3 rack=r1 gpu=2", "");
    check(
        &without_eviction,
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  reserve two team-a gpu=tas:2 at r1/h3:2
            3  evict one team-a NodesFailed: Workload was evicted as there was no replacement for unhealthy node(s): h1
        "#]],
    );
}

/// The first Workload loses a node while the second is being evicted, and the pods of the second outlast its quota.
#[test]
fn a_failed_node_waits_for_pods_that_leave() {
    let until = |h3: &str| {
        format!(
            "
            topology racks levels=rack,node
            flavor tas topology=racks
            node h1 rack=r1 gpu=2
            node h2 rack=r1 gpu=2
            node h3 rack=r1 gpu=2
            cq team-a gpu/tas=9
            wl one q=team-a pods=4 gpu=1 required=rack t=1
            wl two q=team-a pods=2 gpu=1 required=rack t=2
            cycle 2
            node h1 rack=r1 gpu=2 down
            unhealthy one h1
            evict two
            cycle
            node h3 rack=r1 gpu=2 used/gpu=2 leaving/gpu=2
            release two t=9 hold=out
            cycle
            {h3}
            cycle
            "
        )
    };
    check(
        &until("node h3 rack=r1 gpu=2"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  reserve two team-a gpu=tas:2 at r1/h3:2
            3  keep one team-a NodeNotReplaced
            4  keep one team-a NodeNotReplaced
            5  replace-node one team-a gpu=tas:4 at r1/h2:2,r1/h3:2
        "#]],
    );
    let stays = until("node h3 rack=r1 gpu=2 used/gpu=2");
    check(
        &stays,
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            2  reserve two team-a gpu=tas:2 at r1/h3:2
            3  keep one team-a NodeNotReplaced
            4  keep one team-a NodeNotReplaced
            5  evict one team-a NodesFailed
        "#]],
    );
}

#[test]
fn an_evicted_workload_gets_no_node_replacement() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        node h4 rack=r2 gpu=3
        cq team-a gpu/tas=9
        wl one q=team-a pods=6 gpu=1 required=rack t=1
        cycle
        evict one
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        cycle
        release one t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r1/h3:2
            3  inadmissible-class one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn an_aborted_cycle_leaves_replacements_to_the_next() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        abort-after 2
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            3  replace-node one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_replacement_before_an_abort_is_kept() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        wl two q=team-a gpu=1 t=2
        abort-after 3
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  replace-node one team-a gpu=tas:2 at r1/h2:2
            3  inadmissible-class two team-a NoCandidates
        "#]],
    );
}

/// Only its readiness excludes a node from being selected again, as in upstream.
#[test]
fn a_recovered_node_gets_pods_up_to_its_capacity() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 t=1
        cycle
        unhealthy one h1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:3
            2  replace-node one team-a gpu=tas:3 at r1/h1:1,r1/h2:2
        "#]],
    );
}

#[test]
fn nodes_that_fail_within_the_delay_are_found_together() {
    let two_racks = "
        settings delayed-replacement
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=4 gpu=1 required=rack t=1
        cycle
        node h1 rack=r1 gpu=2 down
        unhealthy one h1
        second-pass
        cycle
    ";
    let alone = "
        wait 1
        second-pass
        cycle
    ";
    check(
        &format!("{two_racks}{alone}"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            3  replace-node one team-a gpu=tas:4 at r1/h2:2,r1/h3:2
        "#]],
    );
    let together = "
        node h2 rack=r1 gpu=2 down
        unhealthy one h1 h2
        second-pass
        cycle
        wait 1
        second-pass
        cycle
    ";
    check(
        &format!("{two_racks}{together}"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
            4  evict one team-a NodesFailed
        "#]],
    );
    let recovered = "
        node h1 rack=r1 gpu=2
        unhealthy one
        wait 1
        second-pass
        cycle
    ";
    check(
        &format!("{two_racks}{recovered}"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:2,r1/h2:2
        "#]],
    );
}

#[test]
fn a_leader_without_a_slice_size_moves_from_a_failed_node() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=1
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 slice=rack:0 group=g name=leader + pods=2 gpu=1 slice=rack:2 group=g t=1
        cycle
        node h1 rack=r1 gpu=1 down
        node h3 rack=r1 gpu=1
        unhealthy one h1
        messages
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:2 at r1/h2:2
            2  replace-node one team-a gpu=tas:1 at r1/h3:1 + gpu=tas:2 at r1/h2:2
        "#]],
    );
}
