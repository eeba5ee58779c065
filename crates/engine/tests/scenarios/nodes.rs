//! Nodes: which belong to a topology, which pods they accept, and their free capacity.

use expect_test::expect;

use super::check::check;

#[test]
fn used_capacity_is_not_assigned_twice() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        wl two q=team-a pods=2 gpu=1 required=node t=2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
            2  reserve two team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn non_tas_pods_use_capacity() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 used/gpu=1
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_tainted_node_is_excluded() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 taint=bad:yes
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_tainted_node_accepts_pods_that_tolerate_it() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 taint=bad:yes
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1 tolerate=bad
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn a_node_selector_picks_nodes() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 disk=ssd gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1 on=disk:ssd
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_required_affinity_picks_nodes_by_label_or_name() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 zone=a
        node h2 rack=r1 gpu=2 zone=b
        node h3 rack=r1 gpu=2 zone=c
        cq team-a gpu/tas=9
        wl both q=team-a pods=4 gpu=1 required=rack in=zone:b in=metadata.name:h3 t=1
        wl neither q=team-a gpu=1 required=rack in=zone:b,metadata.name:h1 t=2
        messages
        ",
        &expect![[r#"
            1  reserve both team-a gpu=tas:4 at r1/h2:2,r1/h3:2
            2  inadmissible-class neither team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 3; excluded: affinity: 3
        "#]],
    );
}

#[test]
fn an_empty_required_term_matches_no_node() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        flavor plain
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        cq team-b gpu/plain=9
        wl one q=team-a gpu=1 required=rack in= t=1
        wl two q=team-b gpu=1 in= t=1
        messages
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: affinity: 1
            1  reserve two team-b gpu=plain:1
        "#]],
    );
}

#[test]
fn a_node_that_is_not_ready_is_excluded() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2 down
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_node_without_a_level_label_is_excluded() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 gpu=2
        node h2 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_flavor_covers_the_nodes_with_its_labels() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks label=zone:a
        node h1 rack=r1 zone=b gpu=2
        node h2 rack=r1 zone=a gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn every_pod_uses_one_of_the_nodes_pods() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=9 pods=1
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn a_rack_leaf_aggregates_its_nodes() {
    check(
        "
        topology racks levels=rack
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=3 required=rack t=1
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1:1
        "#]],
    );
}

#[test]
fn a_new_node_requeues_inadmissible_workloads() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=1
        cq team-a gpu/tas=9
        wl one q=team-a pods=2 gpu=1 required=node t=1
        cycle
        node h2 rack=r1 gpu=2
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            2  reserve one team-a gpu=tas:2 at r1/h2:2
        "#]],
    );
}

#[test]
fn a_finished_workload_releases_its_domains() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=2 required=node t=1
        cycle
        wl two q=team-a gpu=2 required=node t=2
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:1
            2  inadmissible-class two team-a NoCandidates
            3  reserve two team-a gpu=tas:2 at r1/h1:1
        "#]],
    );
}

#[test]
fn a_changed_request_of_an_admitted_workload_keeps_usage_exact() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cq team-a gpu/tas=9
        wl one q=team-a gpu=3 required=node t=1
        cycle
        wl one q=team-a gpu=1 required=node t=1
        finish one
        wl two q=team-a gpu=4 required=node t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:3 at r1/h1:1
            2  reserve two team-a gpu=tas:4 at r1/h1:1
        "#]],
    );
}

#[test]
fn a_target_is_preempted_for_topology_although_quota_is_free() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a within=lower gpu/tas=9
        wl low q=team-a gpu=2 required=node t=1
        cycle
        wl high q=team-a gpu=2 required=node prio=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low team-a gpu=tas:2 at r1/h1:1
            2  preempt for high team-a: low InClusterQueue
        "#]],
    );
}

#[test]
fn two_heads_do_not_get_the_same_capacity() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        cq team-b gpu/tas=9
        wl one q=team-a gpu=2 required=node t=1
        wl two q=team-b gpu=2 required=node t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:1
            1  inadmissible-class two team-b NoCandidates
        "#]],
    );
}

#[test]
fn a_head_whose_domain_is_taken_finds_another_in_the_same_cycle() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        cq team-a gpu/tas=9
        cq team-b gpu/tas=9
        wl one q=team-a gpu=2 required=node t=1
        wl two q=team-b gpu=2 required=node t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:1
            1  reserve two team-b gpu=tas:2 at r1/h2:1
        "#]],
    );
}

#[test]
fn flavors_with_the_same_nodes_share_usage() {
    check(
        "
        topology racks levels=rack,node
        flavor day topology=racks
        flavor night topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/day=9
        cq team-b gpu/night=9
        wl one q=team-a gpu=2 t=1
        cycle
        wl two q=team-b gpu=2 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=day:2 at r1/h1:1
            2  inadmissible-class two team-b NoCandidates
        "#]],
    );
}

#[test]
fn a_leader_is_assigned_with_its_workers() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r1 gpu=2
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=3 gpu=1 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:1 at r1/h1:1 + gpu=tas:3 at r1/h1:1,r1/h2:2
        "#]],
    );
}

#[test]
fn a_group_that_fits_no_domain_together_is_not_placed() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        node h2 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=rack group=g
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn a_group_gets_one_flavor() {
    check(
        "
        topology racks levels=rack,node
        flavor day topology=racks
        flavor night topology=racks
        node h1 rack=r1 gpu=9
        cq team-a gpu/day=2 gpu/night=9
        wl one q=team-a gpu=1 required=rack group=g t=1 + pods=2 gpu=1 required=rack group=g
        ",
        &expect![[r#"
            1  reserve one team-a gpu=night:1 at r1/h1:1 + gpu=night:2 at r1/h1:2
        "#]],
    );
}

#[test]
fn a_second_assignment_keeps_the_nominated_flavors() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks label=kind:usual
        flavor spare topology=racks label=kind:spare
        node h1 rack=r1 kind=usual gpu=2
        node h2 rack=r1 kind=spare gpu=2
        cq team-a gpu/tas=9
        cq team-b gpu/tas=9 gpu/spare=9
        wl one q=team-a gpu=2 required=node t=1
        wl two q=team-b gpu=2 required=node t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:1
            1  requeue two team-b NoCandidates
            2  reserve two team-b gpu=spare:2 at r1/h2:1
        "#]],
    );
}

#[test]
fn domains_reserved_by_a_waiting_head_are_used_within_the_cycle() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        cq team-a gpu/tas=9
        cq team-b gpu/tas=9
        wl old q=team-a gpu=2 required=node prio=9 t=0
        cycle
        wl one q=team-a gpu=2 required=node prio=5 t=1
        wl two q=team-b gpu=1 required=node t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at r1/h1:1
            2  inadmissible-class one team-a NoCandidates
            2  inadmissible-class two team-b NoCandidates
        "#]],
    );
}

#[test]
fn a_head_that_lost_its_quota_is_not_assigned_again() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=4
        cohort ml
        cq team-a cohort=ml gpu/tas=2
        cq team-b cohort=ml gpu/tas=2
        wl one q=team-a gpu=3 required=node t=1
        wl two q=team-b gpu=2 required=node t=2
        cycle
        ",
        &expect![[r#"
            1  reserve two team-b gpu=tas:2 at r1/h1:1
            1  requeue one team-a Skipped
        "#]],
    );
}

#[test]
fn pods_stay_charged_to_a_node_that_changes_racks() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=2 unconstrained t=1
        cycle
        node h1 rack=r2 gpu=2
        wl two q=team-a gpu=1 unconstrained t=2
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:1
            2  inadmissible-class two team-a NoCandidates
        "#]],
    );
}

#[test]
fn pods_stay_charged_to_a_node_that_changes_flavors() {
    check(
        "
        topology racks levels=node
        flavor left label=pool:l topology=racks
        flavor right label=pool:r topology=racks
        node h1 pool=l gpu=2
        cq team-a cohort=all gpu/left=2
        cq team-b cohort=all gpu/right=2
        wl one q=team-a gpu=2 unconstrained t=1
        cycle
        node h1 pool=r gpu=2
        wl two q=team-b gpu=1 unconstrained t=2
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=left:2 at h1:1
            2  inadmissible-class two team-b NoCandidates
            3  reserve two team-b gpu=right:1 at h1:1
        "#]],
    );
}

#[test]
fn an_aggregated_leaf_loses_usage_with_its_nodes() {
    check(
        "
        topology hosts levels=node
        topology racks levels=rack
        flavor cpus topology=hosts
        flavor gpus topology=racks
        node h1 rack=r1 cpu=2 gpu=2
        cq team-a cpu/cpus=9 + gpu/gpus=9
        wl one q=team-a cpu=2 unconstrained t=1 + gpu=1 node/gpu=1 node/cpu=1 unconstrained
        ",
        &expect![[r#"
            1  reserve one team-a cpu=cpus:2 at h1:1 + gpu=gpus:1 at r1:1
        "#]],
    );
}

#[test]
fn released_non_tas_usage_requeues_inadmissible_workloads() {
    check(
        "
        topology racks levels=node
        flavor left label=pool:l topology=racks
        flavor right label=pool:r topology=racks
        node h1 pool=l gpu=2
        node h2 pool=r gpu=2
        cq team-a gpu/left=9
        cq team-b gpu/right=9
        wl one q=team-a gpu=3 unconstrained t=1
        wl two q=team-b gpu=3 unconstrained t=2
        cycle
        node h1 pool=l gpu=2
        cycle
        node h1 pool=l gpu=2 used/gpu=1
        cycle
        node h1 pool=l gpu=2
        cycle
        node h1 pool=l gpu=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed
            1  inadmissible-class two team-b TopologyPlacementFailed
            4  inadmissible-class one team-a TopologyPlacementFailed
            5  inadmissible-class one team-a TopologyPlacementFailed
            5  inadmissible-class two team-b TopologyPlacementFailed
        "#]],
    );
}

#[test]
fn released_domains_requeue_other_queues_over_their_nodes() {
    check(
        "
        settings requeue-over-nodes
        topology racks levels=rack,node
        topology hosts levels=node
        flavor day topology=racks
        flavor night topology=hosts
        flavor other label=pool:o topology=racks
        node h1 rack=r1 gpu=4
        node h2 rack=r1 pool=o gpu=1
        cq team-a gpu/day=9
        cq team-b gpu/day=9
        cq team-c gpu/night=9
        cq team-d gpu/other=9
        wl one q=team-a gpu=4 required=node t=1
        cycle
        wl two q=team-b gpu=2 required=node t=2
        wl three q=team-c gpu=2 unconstrained t=3
        wl four q=team-d gpu=2 required=node t=4
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=day:4 at r1/h1:1
            2  inadmissible-class two team-b NoCandidates
            2  inadmissible-class three team-c NoCandidates
            2  inadmissible-class four team-d TopologyPlacementFailed
            3  reserve two team-b gpu=day:2 at r1/h1:1
            3  reserve three team-c gpu=night:2 at h1:1
        "#]],
    );
}

#[test]
fn released_domains_of_aggregated_leaves_requeue_the_queues_of_their_flavor() {
    check(
        "
        settings requeue-over-nodes
        topology racks levels=rack
        flavor day topology=racks
        flavor night topology=racks
        node h1 rack=r1 gpu=4
        cq team-a gpu/day=9
        cq team-b gpu/day=9
        cq team-c gpu/night=9
        wl one q=team-a gpu=4 required=rack t=1
        cycle
        wl two q=team-b gpu=2 required=rack t=2
        wl three q=team-c gpu=5 required=rack t=3
        cycle
        finish one
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=day:4 at r1:1
            2  inadmissible-class two team-b NoCandidates
            2  inadmissible-class three team-c TopologyPlacementFailed
            3  reserve two team-b gpu=day:2 at r1:1
        "#]],
    );
}

#[test]
fn pod_sets_of_a_workload_share_what_is_left_within_a_cycle() {
    check(
        "
        settings pod-sets-together
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=8
        cq team-a gpu/tas=9
        cq team-b gpu/tas=9
        wl one q=team-a gpu=4 required=node t=1
        wl two q=team-b gpu=4 required=node t=2 + gpu=4 required=node
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=tas:4 at r1/h1:1
            1  inadmissible-class two team-b NoCandidates
        "#]],
    );
}

#[test]
fn pod_sets_of_two_flavors_share_a_node_within_a_cycle() {
    check(
        "
        settings pod-sets-together
        topology racks levels=rack,node
        flavor day topology=racks
        flavor night topology=racks
        node h1 rack=r1 gpu=8 cpu=9
        cq team-a gpu/day=9
        cq team-b gpu/day=9 + cpu/night=9
        wl one q=team-a gpu=4 required=node t=1
        wl two q=team-b gpu=4 required=node t=2 + cpu=4 node/gpu=4 required=node
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=day:4 at r1/h1:1
            1  inadmissible-class two team-b NoCandidates
        "#]],
    );
}
