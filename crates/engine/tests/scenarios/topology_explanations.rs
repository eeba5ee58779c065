//! Explanations of pending Workloads: topology.

use expect_test::expect;

use super::check::check;

#[test]
fn the_explanation_of_a_fitting_workload_names_its_topology() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl holds q=team-a gpu=1 unconstrained t=1
        cycle
        wl one q=team-a gpu=3 unconstrained t=2
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at r1/h1:1
            ?  one is first in the pending queue of team-a
            ?  flavor tas: enough quota is free, and the pods fit into its topology
        "#]],
    );
}

#[test]
fn free_capacity_in_small_parts_does_not_fit_a_large_pod() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        node h3 rack=r2 gpu=4
        node h4 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl a q=team-a gpu=2 unconstrained on=kubernetes.io/hostname:h1 t=1
        wl b q=team-a gpu=2 unconstrained on=kubernetes.io/hostname:h2 t=1
        wl c q=team-a gpu=2 unconstrained on=kubernetes.io/hostname:h3 t=1
        wl d q=team-a gpu=2 unconstrained on=kubernetes.io/hostname:h4 t=1
        cycle 4
        wl one q=team-a gpu=4 unconstrained t=3
        wl two q=team-a pods=2 gpu=3 required=node t=3
        cycle 2
        explain one
        explain two
        ",
        &expect![[r#"
            1  reserve a team-a gpu=tas:2 at r1/h1:1
            2  reserve b team-a gpu=tas:2 at r1/h2:1
            3  reserve c team-a gpu=tas:2 at r2/h3:1
            4  reserve d team-a gpu=tas:2 at r2/h4:1
            5  inadmissible-class one team-a NoCandidates
            6  inadmissible-class two team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting now: none
            ?    4 gpu requested, 8 free, 2 at most on one node, 2 missing
            ?    used by: a (team-a) 2, b (team-a) 2, c (team-a) 2, d (team-a) 2
            ?    would help: releasing capacity for 1 more pod
            ?  two is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 2 pods requested, all on one node; fitting when empty: at most 1
            ?    largest domain: r1/h1
            ?    6 gpu requested, 4 in total, 2 missing
            ?    would help: nodes with capacity for 1 more pod there
        "#]],
    );
}

#[test]
fn a_domain_may_be_used_by_other_queues() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 pods=9 used/gpu=1 used/pods=1
        node h2 rack=r1 gpu=2 pods=9
        node h3 rack=r2 gpu=2 pods=9
        cq team-a gpu/tas=99
        cq team-b gpu/tas=99
        wl large q=team-b gpu=3 required=rack t=1
        wl small q=team-a gpu=1 required=rack t=2 + gpu=1 required=rack
        cycle 2
        wl one q=team-a pods=4 gpu=1 required=rack t=3
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve large team-b gpu=tas:3 at r1/h1:1
            1  reserve small team-a gpu=tas:1 at r2/h3:1 + gpu=tas:1 at r2/h3:1
            3  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 4 pods requested, all in one rack; fitting now: at most 2
            ?    nearest domain: r1
            ?    4 gpu requested, 2 free, 2 missing
            ?    used by: large (team-b) 3, pods not managed by TAS 1
            ?    would help: releasing capacity for 2 more pods there
        "#]],
    );
}

#[test]
fn a_request_beyond_all_nodes_exceeds_the_maximum() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4
        node h3 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl fat q=team-a gpu=6 unconstrained t=1
        wl wide q=team-a pods=3 gpu=3 required=rack t=2
        wl wider q=team-a pods=9 gpu=2 preferred=rack t=3
        cycle 3
        explain fat
        explain wide
        explain wider
        ",
        &expect![[r#"
            1  inadmissible-class fat team-a TopologyPlacementFailed
            2  inadmissible-class wide team-a TopologyPlacementFailed
            3  inadmissible-class wider team-a TopologyPlacementFailed
            ?  fat is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting when empty: none
            ?    6 gpu requested, 12 in total, 4 at most on one node, 2 missing
            ?    would help: nodes with capacity for 1 more pod
            ?  wide is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 3 pods requested, all in one rack; fitting when empty: at most 2
            ?    largest domain: r1
            ?    9 gpu requested, 8 in total, 4 at most on one node, 2 missing
            ?    would help: nodes with capacity for 1 more pod there; or preferring the level instead of requiring it, since the pods fit then
            ?  wider is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 9 pods requested, preferably all in one rack; fitting when empty: at most 6
            ?    18 gpu requested, 12 in total, 4 at most on one node, 6 missing
            ?    would help: nodes with capacity for 3 more pods
        "#]],
    );
}

#[test]
fn a_preferred_request_is_explained_by_the_whole_topology() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl holds q=team-a pods=3 gpu=1 preferred=rack t=1
        cycle
        wl prefers q=team-a pods=6 gpu=1 preferred=rack t=2
        wl requires q=team-a pods=5 gpu=1 required=rack t=3
        wl unconstrained q=team-a pods=6 gpu=1 unconstrained t=4
        cycle 3
        explain prefers
        explain requires
        explain unconstrained
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:3 at r1/h1:3
            2  inadmissible-class prefers team-a NoCandidates
            3  inadmissible-class requires team-a TopologyPlacementFailed
            4  inadmissible-class unconstrained team-a NoCandidates
            ?  prefers is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 6 pods requested, preferably all in one rack; fitting now: 5
            ?    6 gpu requested, 5 free, 4 at most on one node, 1 missing
            ?    used by: holds (team-a) 3
            ?    would help: releasing capacity for 1 more pod
            ?  requires is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 5 pods requested, all in one rack; fitting when empty: at most 4
            ?    largest domain: r2
            ?    5 gpu requested, 4 in total, 1 missing
            ?    would help: nodes with capacity for 1 more pod there; or preferring the level instead of requiring it, since the pods fit then
            ?  unconstrained is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 6 pods requested, anywhere; fitting now: 5
            ?    6 gpu requested, 5 free, 4 at most on one node, 1 missing
            ?    used by: holds (team-a) 3
            ?    would help: releasing capacity for 1 more pod
        "#]],
    );
}

#[test]
fn slices_are_counted_whole() {
    check(
        "
        topology racks levels=block,rack,node
        flavor tas topology=racks
        node h1 block=b1 rack=r1 gpu=4
        node h2 block=b1 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl holds q=team-a pods=2 gpu=1 unconstrained slice=node:1 t=1
        wl beside q=team-a gpu=1 on=none:x unconstrained t=1
        cycle 2
        wl one q=team-a pods=6 gpu=1 required=block slice=rack:3 t=2
        cycle
        explain one
        explain beside
        ",
        &expect![[r#"
            1  inadmissible-class beside team-a TopologyPlacementFailed
            2  reserve holds team-a gpu=tas:2 at b1/r1/h1:2
            3  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 2 slices of 3 pods in one rack requested, all in one block; fitting now: at most 1
            ?    nearest domain: b1
            ?    6 gpu requested, 6 free, 4 at most on one node, 1 missing
            ?    used by: holds (team-a) 2
            ?    would help: releasing capacity for 1 more slice there
            ?  beside is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting when empty: none
            ?    excluded: 2 of 2 nodes, by node selector
            ?    would help: nodes with capacity for 1 more pod
        "#]],
    );
}

#[test]
fn the_explanation_lists_excluded_nodes() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 taint=spot:yes
        node h2 rack=r1 gpu=4 zone=b
        node h3 rack=r2 gpu=2 zone=a
        cq team-a gpu/tas=99
        wl one q=team-a pods=3 gpu=1 unconstrained on=zone:a t=1
        wl none q=team-a gpu=1 required=rack on=zone:c t=2
        cycle 2
        explain one
        explain none
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  inadmissible-class none team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 3 pods requested, anywhere; fitting when empty: at most 2
            ?    3 gpu requested, 2 in total, 1 missing
            ?    excluded: 1 of 3 nodes, untolerated taint spot=yes:NoSchedule
            ?    excluded: 1 of 3 nodes, by node selector
            ?    would help: nodes with capacity for 1 more pod
            ?  none is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, all in one rack; fitting when empty: none
            ?    excluded: 1 of 3 nodes, untolerated taint spot=yes:NoSchedule
            ?    excluded: 2 of 3 nodes, by node selector
            ?    would help: nodes with capacity for 1 more pod
        "#]],
    );
}

#[test]
fn a_request_for_slices_alone_may_spread() {
    check(
        "
        topology racks levels=block,rack,node
        flavor tas topology=racks
        node h1 block=b1 rack=r1 gpu=3
        node h2 block=b1 rack=r2 gpu=2
        node h3 block=b2 rack=r3 gpu=3
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=1 unconstrained on=kubernetes.io/hostname:h2 t=1
        cycle
        wl one q=team-a pods=6 gpu=1 slice=rack:2 t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at b1/r2/h2:1
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 3 slices of 2 pods in one rack requested, anywhere; fitting now: 2
            ?    6 gpu requested, 7 free, 3 at most on one node, 1 missing
            ?    used by: holds (team-a) 1
            ?    would help: releasing capacity for 1 more slice
        "#]],
    );
}

#[test]
fn slice_layers_are_counted_by_the_outermost() {
    check(
        "
        topology racks levels=block,rack,node
        flavor tas topology=racks
        node h1 block=b1 rack=r1 gpu=4
        node h2 block=b1 rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=1 unconstrained t=1
        cycle
        wl one q=team-a pods=8 gpu=1 required=block slice=rack:4 slice=node:2 t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at b1/r1/h1:1
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 2 slices of 4 pods in one rack requested, all in one block; fitting now: at most 1
            ?    nearest domain: b1
            ?    8 gpu requested, 7 free, 4 at most on one node, 2 missing
            ?    used by: holds (team-a) 1
            ?    would help: releasing capacity for 1 more slice there
        "#]],
    );
}

#[test]
fn a_flavor_that_does_not_suit_the_workers_does_not_suit_their_leader() {
    check(
        "
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a gpu=1 required=rack group=g + pods=6 gpu=1 required=rack slice=node:2 group=g
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor
            ?  one is inadmissible in team-a
            ?  pod set main, 1 pod
            ?    flavor tas: its topology lacks the level that the pods request
            ?  pod set more-1, 6 pods
            ?    flavor tas: its topology lacks the level that the pods request
        "#]],
    );
}

#[test]
fn a_leader_needs_capacity_beside_its_workers() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 gpu=4 cpu=2
        node h3 rack=r2 gpu=8
        cq team-a cpu/tas=99 gpu/tas=99
        wl holds q=team-a cpu=1 unconstrained on=kubernetes.io/hostname:h2 t=1
        cycle
        wl one q=team-a cpu=2 required=rack group=g t=2 + pods=6 gpu=1 required=rack group=g
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a cpu=tas:1 at r1/h2:1
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  pod set main, 1 pod
            ?    flavor tas: enough quota is free, but 6 pods and their leader requested, all in one rack; fitting now: at most 8, without the leader
            ?      nearest domain: r1
            ?      2m cpu requested, 1m free, 1m missing
            ?      used by: holds (team-a) 1m
            ?      would help: releasing capacity for the leader there
            ?  pod set more-1, 6 pods
            ?    flavor tas: enough quota is free, but 6 pods and their leader requested, all in one rack; fitting now: at most 8, without the leader
            ?      nearest domain: r1
            ?      2m cpu requested, 1m free, 1m missing
            ?      used by: holds (team-a) 1m
            ?      would help: releasing capacity for the leader there
        "#]],
    );
}

#[test]
fn earlier_pod_sets_count_in_their_domains() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r2 gpu=2
        cq team-a gpu/tas=99
        wl one q=team-a pods=3 gpu=1 required=rack t=1 + pods=3 gpu=1 required=rack
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  pod set main, 3 pods
            ?    flavor tas: enough quota is free, and the pods fit into its topology
            ?  pod set more-1, 3 pods
            ?    flavor tas: enough quota is free, but 3 pods requested, all in one rack; fitting when empty: at most 2
            ?      largest domain: r2
            ?      3 gpu requested, 2 in total, 1 missing
            ?      would help: nodes with capacity for 1 more pod there; or preferring the level instead of requiring it, since the pods fit then
        "#]],
    );
}

#[test]
fn the_pods_resource_may_be_the_limit() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=9 pods=3 used/pods=1
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=1 unconstrained t=1
        cycle
        wl one q=team-a pods=2 gpu=1 unconstrained t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at r1/h1:1
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 2 pods requested, anywhere; fitting now: 1
            ?    2 pods requested, 1 free, 1 missing
            ?    used by: holds (team-a) 1, pods not managed by TAS 1
            ?    would help: releasing capacity for 1 more pod
        "#]],
    );
}

#[test]
fn resources_may_be_free_in_different_domains() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4 cpu=4
        node h2 rack=r1 gpu=4 cpu=4
        cq team-a gpu/tas=99 cpu/tas=99
        wl a q=team-a gpu=3 unconstrained on=kubernetes.io/hostname:h1 t=1
        wl b q=team-a cpu=3 unconstrained on=kubernetes.io/hostname:h2 t=1
        cycle 2
        wl one q=team-a gpu=2 cpu=2 unconstrained t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve a team-a gpu=tas:3 at r1/h1:1
            2  reserve b team-a cpu=tas:3 at r1/h2:1
            3  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting now: none
            ?    the requested resources are free in different domains
            ?    used by: a (team-a) 1, b (team-a) 1
            ?    would help: releasing capacity for 1 more pod
        "#]],
    );
}

#[test]
fn quota_and_topology_shortages_are_explained_together() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cq team-a gpu/tas=5
        wl holds q=team-a gpu=3 unconstrained t=1
        cycle
        wl one q=team-a gpu=3 unconstrained t=2
        wl two q=team-a gpu=1 pods=3 t=3
        cycle 2
        explain one
        explain two
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:3 at r1/h1:1
            2  inadmissible-class one team-a NoCandidates
            3  inadmissible-class two team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: 3 gpu requested, 2 free, 1 missing
            ?    used by: team-a 3
            ?    would help: 1 gpu released
            ?  flavor tas: 1 pod requested, anywhere; fitting now: none
            ?    3 gpu requested, 1 free, 2 missing
            ?    used by: holds (team-a) 3
            ?    would help: releasing capacity for 1 more pod
            ?  two is inadmissible in team-a
            ?  flavor tas: 3 gpu requested, 2 free, 1 missing
            ?    used by: team-a 3
            ?    would help: 1 gpu released
            ?  flavor tas: 3 pods requested, anywhere; fitting now: 1
            ?    3 gpu requested, 1 free, 2 missing
            ?    used by: holds (team-a) 3
            ?    would help: releasing capacity for 2 more pods
        "#]],
    );
}

#[test]
fn the_explanation_names_a_contradicting_request() {
    check(
        "
        topology racks levels=block,rack,node
        flavor tas topology=racks
        node h1 block=b1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack slice=block:2 t=1
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but its topology cannot satisfy the request: podset slice topology block is above the podset topology rack
        "#]],
    );
}

#[test]
fn a_delayed_topology_assignment_is_no_shortage() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        node h1 rack=r1 gpu=1
        cq team-a gpu/tas=3 check=nodes
        wl holds q=team-a gpu=2 unconstrained t=1
        cycle
        wl one q=team-a gpu=2 unconstrained t=2
        wl two q=team-a gpu=1 unconstrained t=3
        explain one
        explain two
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:2, needs nodes
            ?  one is first in the pending queue of team-a
            ?  flavor tas: 2 gpu requested, 1 free, 1 missing
            ?    used by: team-a 2
            ?    would help: 1 gpu released
            ?  flavor tas: its topology is assigned when its admission checks are ready
            ?  two is behind 1 in the pending queue of team-a
            ?  flavor tas: enough quota is free, its topology is assigned when its admission checks are ready
        "#]],
    );
}

#[test]
fn nodes_added_since_the_last_cycle_count() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl holds q=team-a gpu=2 unconstrained t=1
        cycle
        wl one q=team-a gpu=2 unconstrained t=2
        cycle
        explain one
        node h2 rack=r1 gpu=2
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:2 at r1/h1:1
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting now: none
            ?    2 gpu requested, 0 free, 2 missing
            ?    used by: holds (team-a) 2
            ?    would help: releasing capacity for 1 more pod
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, and the pods fit into its topology
        "#]],
    );
}

#[test]
fn only_the_largest_users_are_named() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=9
        cq team-a gpu/tas=99
        wl a q=team-a gpu=1 unconstrained t=1
        wl b q=team-a gpu=1 unconstrained t=1
        wl c q=team-a gpu=1 unconstrained t=1
        wl d q=team-a gpu=1 unconstrained t=1
        wl e q=team-a gpu=1 unconstrained t=1
        wl f q=team-a gpu=1 unconstrained t=1
        wl g q=team-a gpu=1 unconstrained t=1
        wl h q=team-a gpu=1 unconstrained t=1
        wl i q=team-a gpu=1 unconstrained t=1
        cycle 9
        wl one q=team-a gpu=1 unconstrained t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve a team-a gpu=tas:1 at r1/h1:1
            2  reserve b team-a gpu=tas:1 at r1/h1:1
            3  reserve c team-a gpu=tas:1 at r1/h1:1
            4  reserve d team-a gpu=tas:1 at r1/h1:1
            5  reserve e team-a gpu=tas:1 at r1/h1:1
            6  reserve f team-a gpu=tas:1 at r1/h1:1
            7  reserve g team-a gpu=tas:1 at r1/h1:1
            8  reserve h team-a gpu=tas:1 at r1/h1:1
            9  reserve i team-a gpu=tas:1 at r1/h1:1
            10  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, anywhere; fitting now: none
            ?    1 gpu requested, 0 free, 1 missing
            ?    used by: a (team-a) 1, b (team-a) 1, c (team-a) 1, d (team-a) 1, e (team-a) 1, f (team-a) 1, g (team-a) 1, h (team-a) 1, and 1 more
            ?    would help: releasing capacity for 1 more pod
        "#]],
    );
}

#[test]
fn the_nearest_domain_could_fit_all_pods() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=small gpu=2
        node h2 rack=large gpu=8
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=7 unconstrained t=1
        cycle
        wl one q=team-a pods=4 gpu=1 required=rack t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:7 at large/h2:1
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 4 pods requested, all in one rack; fitting now: at most 2
            ?    nearest domain: large, fitting there: 1
            ?    4 gpu requested, 1 free, 3 missing
            ?    used by: holds (team-a) 7
            ?    would help: releasing capacity for 3 more pods there
        "#]],
    );
}

#[test]
fn pod_sets_count_in_the_flavor_that_fits_their_topology() {
    check(
        "
        topology racks levels=rack,node
        flavor old label=kind:old topology=racks
        flavor new label=kind:new topology=racks
        node h1 rack=r1 kind=old gpu=2
        node h2 rack=r1 kind=new gpu=4
        cq team-a gpu/old=9 gpu/new=9
        wl one q=team-a gpu=3 unconstrained t=1 + gpu=2 unconstrained
        cycle
        explain one
        ",
        &expect![[r#"
            1  requeue one team-a TopologyPlacementFailed
            ?  one is first in the pending queue of team-a
            ?  pod set main, 1 pod
            ?    flavor old: enough quota is free, but 1 pod requested, anywhere; fitting when empty: none
            ?      3 gpu requested, 2 in total, 1 missing
            ?      would help: nodes with capacity for 1 more pod
            ?    flavor new: enough quota is free, and the pods fit into its topology
            ?  pod set more-1, 1 pod
            ?    flavor old: enough quota is free, and the pods fit into its topology
            ?    flavor new: enough quota is free, but 1 pod requested, anywhere; fitting when empty: none
            ?      other pod sets have 1 pod there
            ?      2 gpu requested, 1 in total, 1 missing
            ?      would help: nodes with capacity for 1 more pod
        "#]],
    );
}

#[test]
fn flavors_may_share_nodes() {
    check(
        "
        topology racks levels=rack,node
        topology hosts levels=node
        flavor cpus topology=racks
        flavor gpus topology=hosts
        node h1 rack=r1 cpu=4 gpu=4
        cq team-a cpu/cpus=9 + gpu/gpus=9
        wl cpu q=team-a cpu=1 unconstrained t=1 + pods=2 cpu=1 unconstrained
        wl gpu q=team-a gpu=2 unconstrained t=2
        cycle 2
        wl one q=team-a cpu=2 unconstrained t=3
        wl two q=team-a gpu=3 unconstrained t=3
        cycle 2
        explain one
        explain two
        ",
        &expect![[r#"
            1  reserve cpu team-a cpu=cpus:1 at r1/h1:1 + cpu=cpus:2 at r1/h1:2
            2  reserve gpu team-a gpu=gpus:2 at h1:1
            3  inadmissible-class one team-a NoCandidates
            4  inadmissible-class two team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor cpus: enough quota is free, but 1 pod requested, anywhere; fitting now: none
            ?    2m cpu requested, 1m free, 1m missing
            ?    used by: cpu (team-a) 3m
            ?    would help: releasing capacity for 1 more pod
            ?  two is inadmissible in team-a
            ?  flavor gpus: enough quota is free, but 1 pod requested, anywhere; fitting now: none
            ?    3 gpu requested, 2 free, 1 missing
            ?    used by: gpu (team-a) 2
            ?    would help: releasing capacity for 1 more pod
        "#]],
    );
}

#[test]
fn a_topology_may_end_above_nodes() {
    check(
        "
        topology racks levels=block,rack
        flavor tas topology=racks
        node h1 block=b1 rack=r1 gpu=4 used/gpu=1
        node h2 block=b1 rack=r1 gpu=2
        node h3 block=b1 rack=r2 gpu=3
        cq team-a gpu/tas=99
        wl holds q=team-a pods=4 gpu=1 required=rack t=1
        cycle
        wl one q=team-a pods=4 gpu=1 required=rack t=2
        cycle
        explain one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:4 at b1/r1:4
            2  inadmissible-class one team-a NoCandidates
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 4 pods requested, all in one rack; fitting now: at most 3
            ?    nearest domain: b1/r1, fitting there: 1
            ?    4 gpu requested, 1 free, 3 missing
            ?    used by: holds (team-a) 4, pods not managed by TAS 1
            ?    would help: releasing capacity for 3 more pods there; or preferring the level instead of requiring it, since the pods fit then
        "#]],
    );
}

#[test]
fn a_topology_without_nodes_has_no_capacity() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        cq team-a gpu/tas=99
        wl one q=team-a gpu=1 required=rack t=1
        cycle
        explain one
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, all in one rack; fitting when empty: none
            ?    the topology has no nodes
            ?    would help: nodes with capacity for 1 more pod
        "#]],
    );
}
