//! Why a Workload waits that finds no places, in our own words.

use expect_test::expect;

use super::check::check;

#[test]
fn the_explanation_of_a_fitting_workload_names_its_topology() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl holds q=team-a gpu=1 anywhere t=1
        cycle
        wl one q=team-a gpu=3 anywhere t=2
        why one
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        host h3 rack=r2 gpu=4
        host h4 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl a q=team-a gpu=2 anywhere on=kubernetes.io/hostname:h1 t=1
        wl b q=team-a gpu=2 anywhere on=kubernetes.io/hostname:h2 t=1
        wl c q=team-a gpu=2 anywhere on=kubernetes.io/hostname:h3 t=1
        wl d q=team-a gpu=2 anywhere on=kubernetes.io/hostname:h4 t=1
        cycle 4
        wl one q=team-a gpu=4 anywhere t=3
        wl two q=team-a pods=2 gpu=3 required=host t=3
        cycle 2
        why one
        why two
        ",
        &expect![[r#"
            1  reserve a team-a gpu=tas:2 at r1/h1:1
            2  reserve b team-a gpu=tas:2 at r1/h2:1
            3  reserve c team-a gpu=tas:2 at r2/h3:1
            4  reserve d team-a gpu=tas:2 at r2/h4:1
            5  park one team-a NoCandidates
            6  park two team-a TopologyPlacementFailed
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 pods=9 used/gpu=1 used/pods=1
        host h2 rack=r1 gpu=2 pods=9
        host h3 rack=r2 gpu=2 pods=9
        cq team-a gpu/tas=99
        cq team-b gpu/tas=99
        wl large q=team-b gpu=3 required=rack t=1
        wl small q=team-a gpu=1 required=rack t=2 + gpu=1 required=rack
        cycle 2
        wl one q=team-a pods=4 gpu=1 required=rack t=3
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve large team-b gpu=tas:3 at r1/h1:1
            1  reserve small team-a gpu=tas:1 at r2/h3:1 + gpu=tas:1 at r2/h3:1
            3  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4
        host h3 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl fat q=team-a gpu=6 anywhere t=1
        wl wide q=team-a pods=3 gpu=3 required=rack t=2
        wl wider q=team-a pods=9 gpu=2 preferred=rack t=3
        cycle 3
        why fat
        why wide
        why wider
        ",
        &expect![[r#"
            1  park fat team-a TopologyPlacementFailed
            2  park wide team-a TopologyPlacementFailed
            3  park wider team-a TopologyPlacementFailed
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl holds q=team-a pods=3 gpu=1 preferred=rack t=1
        cycle
        wl prefers q=team-a pods=6 gpu=1 preferred=rack t=2
        wl requires q=team-a pods=5 gpu=1 required=rack t=3
        wl anywhere q=team-a pods=6 gpu=1 anywhere t=4
        cycle 3
        why prefers
        why requires
        why anywhere
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:3 at r1/h1:3
            2  park prefers team-a NoCandidates
            3  park requires team-a TopologyPlacementFailed
            4  park anywhere team-a NoCandidates
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
            ?  anywhere is inadmissible in team-a
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
        topology racks levels=block,rack,host
        flavor tas topology=racks
        host h1 block=b1 rack=r1 gpu=4
        host h2 block=b1 rack=r2 gpu=4
        cq team-a gpu/tas=99
        wl holds q=team-a pods=2 gpu=1 anywhere slice=host:1 t=1
        wl beside q=team-a gpu=1 on=none:x anywhere t=1
        cycle 2
        wl one q=team-a pods=6 gpu=1 required=block slice=rack:3 t=2
        cycle
        why one
        why beside
        ",
        &expect![[r#"
            1  park beside team-a TopologyPlacementFailed
            2  reserve holds team-a gpu=tas:2 at b1/r1/h1:2
            3  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 taint=spot:yes
        host h2 rack=r1 gpu=4 zone=b
        host h3 rack=r2 gpu=2 zone=a
        cq team-a gpu/tas=99
        wl one q=team-a pods=3 gpu=1 anywhere on=zone:a t=1
        wl none q=team-a gpu=1 required=rack on=zone:c t=2
        cycle 2
        why one
        why none
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
            2  park none team-a TopologyPlacementFailed
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
        topology racks levels=block,rack,host
        flavor tas topology=racks
        host h1 block=b1 rack=r1 gpu=3
        host h2 block=b1 rack=r2 gpu=2
        host h3 block=b2 rack=r3 gpu=3
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=1 anywhere on=kubernetes.io/hostname:h2 t=1
        cycle
        wl one q=team-a pods=6 gpu=1 slice=rack:2 t=2
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at b1/r2/h2:1
            2  park one team-a NoCandidates
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
        topology racks levels=block,rack,host
        flavor tas topology=racks
        host h1 block=b1 rack=r1 gpu=4
        host h2 block=b1 rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=1 anywhere t=1
        cycle
        wl one q=team-a pods=8 gpu=1 required=block slice=rack:4 slice=host:2 t=2
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at b1/r1/h1:1
            2  park one team-a NoCandidates
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
        host h1 rack=r1 gpu=4
        cq team-a gpu/tas=99
        wl one q=team-a gpu=1 required=rack group=g + pods=6 gpu=1 required=rack slice=host:2 group=g
        cycle
        why one
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r1 gpu=4 cpu=2
        host h3 rack=r2 gpu=8
        cq team-a cpu/tas=99 gpu/tas=99
        wl holds q=team-a cpu=1 anywhere on=kubernetes.io/hostname:h2 t=1
        cycle
        wl one q=team-a cpu=2 required=rack group=g t=2 + pods=6 gpu=1 required=rack group=g
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a cpu=tas:1 at r1/h2:1
            2  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        host h2 rack=r2 gpu=2
        cq team-a gpu/tas=99
        wl one q=team-a pods=3 gpu=1 required=rack t=1 + pods=3 gpu=1 required=rack
        cycle
        why one
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=9 pods=3 used/pods=1
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=1 anywhere t=1
        cycle
        wl one q=team-a pods=2 gpu=1 anywhere t=2
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:1 at r1/h1:1
            2  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4 cpu=4
        host h2 rack=r1 gpu=4 cpu=4
        cq team-a gpu/tas=99 cpu/tas=99
        wl a q=team-a gpu=3 anywhere on=kubernetes.io/hostname:h1 t=1
        wl b q=team-a cpu=3 anywhere on=kubernetes.io/hostname:h2 t=1
        cycle 2
        wl one q=team-a gpu=2 cpu=2 anywhere t=2
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve a team-a gpu=tas:3 at r1/h1:1
            2  reserve b team-a cpu=tas:3 at r1/h2:1
            3  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=4
        cq team-a gpu/tas=5
        wl holds q=team-a gpu=3 anywhere t=1
        cycle
        wl one q=team-a gpu=3 anywhere t=2
        wl two q=team-a gpu=1 pods=3 t=3
        cycle 2
        why one
        why two
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:3 at r1/h1:1
            2  park one team-a NoCandidates
            3  park two team-a NoCandidates
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
        topology racks levels=block,rack,host
        flavor tas topology=racks
        host h1 block=b1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=rack slice=block:2 t=1
        cycle
        why one
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but its topology cannot satisfy the request: podset slice topology block is above the podset topology rack
        "#]],
    );
}

#[test]
fn a_delayed_topology_assignment_is_no_shortage() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        check nodes places=ready
        host h1 rack=r1 gpu=1
        cq team-a gpu/tas=3 check=nodes
        wl holds q=team-a gpu=2 anywhere t=1
        cycle
        wl one q=team-a gpu=2 anywhere t=2
        wl two q=team-a gpu=1 anywhere t=3
        why one
        why two
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl holds q=team-a gpu=2 anywhere t=1
        cycle
        wl one q=team-a gpu=2 anywhere t=2
        cycle
        why one
        host h2 rack=r1 gpu=2
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:2 at r1/h1:1
            2  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=9
        cq team-a gpu/tas=99
        wl a q=team-a gpu=1 anywhere t=1
        wl b q=team-a gpu=1 anywhere t=1
        wl c q=team-a gpu=1 anywhere t=1
        wl d q=team-a gpu=1 anywhere t=1
        wl e q=team-a gpu=1 anywhere t=1
        wl f q=team-a gpu=1 anywhere t=1
        wl g q=team-a gpu=1 anywhere t=1
        wl h q=team-a gpu=1 anywhere t=1
        wl i q=team-a gpu=1 anywhere t=1
        cycle 9
        wl one q=team-a gpu=1 anywhere t=2
        cycle
        why one
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
            10  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=small gpu=2
        host h2 rack=large gpu=8
        cq team-a gpu/tas=99
        wl holds q=team-a gpu=7 anywhere t=1
        cycle
        wl one q=team-a pods=4 gpu=1 required=rack t=2
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:7 at large/h2:1
            2  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor old label=kind:old topology=racks
        flavor new label=kind:new topology=racks
        host h1 rack=r1 kind=old gpu=2
        host h2 rack=r1 kind=new gpu=4
        cq team-a gpu/old=9 gpu/new=9
        wl one q=team-a gpu=3 anywhere t=1 + gpu=2 anywhere
        cycle
        why one
        ",
        &expect![[r#"
            1  retry one team-a TopologyPlacementFailed
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
        topology racks levels=rack,host
        topology hosts levels=host
        flavor cpus topology=racks
        flavor gpus topology=hosts
        host h1 rack=r1 cpu=4 gpu=4
        cq team-a cpu/cpus=9 + gpu/gpus=9
        wl cpu q=team-a cpu=1 anywhere t=1 + pods=2 cpu=1 anywhere
        wl gpu q=team-a gpu=2 anywhere t=2
        cycle 2
        wl one q=team-a cpu=2 anywhere t=3
        wl two q=team-a gpu=3 anywhere t=3
        cycle 2
        why one
        why two
        ",
        &expect![[r#"
            1  reserve cpu team-a cpu=cpus:1 at r1/h1:1 + cpu=cpus:2 at r1/h1:2
            2  reserve gpu team-a gpu=gpus:2 at h1:1
            3  park one team-a NoCandidates
            4  park two team-a NoCandidates
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
        host h1 block=b1 rack=r1 gpu=4 used/gpu=1
        host h2 block=b1 rack=r1 gpu=2
        host h3 block=b1 rack=r2 gpu=3
        cq team-a gpu/tas=99
        wl holds q=team-a pods=4 gpu=1 required=rack t=1
        cycle
        wl one q=team-a pods=4 gpu=1 required=rack t=2
        cycle
        why one
        ",
        &expect![[r#"
            1  reserve holds team-a gpu=tas:4 at b1/r1:4
            2  park one team-a NoCandidates
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
        topology racks levels=rack,host
        flavor tas topology=racks
        cq team-a gpu/tas=99
        wl one q=team-a gpu=1 required=rack t=1
        cycle
        why one
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed
            ?  one is inadmissible in team-a
            ?  flavor tas: enough quota is free, but 1 pod requested, all in one rack; fitting when empty: none
            ?    the topology has no nodes
            ?    would help: nodes with capacity for 1 more pod
        "#]],
    );
}
