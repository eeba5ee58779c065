//! Topology assignments of workload slices: retained pods keep their leaves, additional pods get new ones.

use expect_test::expect;

use super::check::check;

#[test]
fn a_new_slice_keeps_the_leaves_of_the_replaced_one() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=3
        node h2 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a pods=2 gpu=1 unconstrained t=1
        cycle
        wl new q=team-a pods=4 gpu=1 unconstrained t=2 replaces=old
        cycle
        wl beside q=team-a gpu=1 unconstrained t=3
        cycle
        finish old
        wl behind q=team-a gpu=1 unconstrained t=4
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at h2:2
            2  reserve new team-a gpu=tas:4 at h1:2,h2:2
            3  reserve beside team-a gpu=tas:1 at h1:1
            4  inadmissible-class behind team-a NoCandidates
        "#]],
    );
}

#[test]
fn without_the_gate_both_slices_need_capacity() {
    check(
        "
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=3
        node h2 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a pods=2 gpu=1 unconstrained t=1
        cycle
        wl new q=team-a pods=4 gpu=1 unconstrained t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at h2:2
            2  inadmissible new team-a NoCandidates
        "#]],
    );
}

#[test]
fn only_additional_pods_need_capacity() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=3
        node h2 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a pods=2 gpu=1 unconstrained t=1
        wl other q=team-a pods=2 gpu=1 unconstrained t=2
        cycle 2
        messages
        wl new q=team-a pods=4 gpu=1 unconstrained t=3 replaces=old
        cycle
        wl new q=team-a pods=6 gpu=1 unconstrained t=3 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at h2:2
            2  reserve other team-a gpu=tas:2 at h1:2
            3  inadmissible new team-a NoCandidates: couldn't assign flavors to pod set main: topology "hosts" allows to fit only 1 out of 2 pod(s). Total nodes: 2; excluded: resource "gpu": 1
            4  inadmissible new team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "hosts" allows to fit only 1 out of 4 pod(s). Total nodes: 2; excluded: resource "gpu": 1
        "#]],
    );
}

#[test]
fn a_lost_leaf_assigns_all_pods_again() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=2
        node h2 gpu=2
        node h3 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a pods=3 gpu=1 unconstrained t=1
        cycle
        delete node h2
        node h4 gpu=2
        node h5 gpu=2
        wl new q=team-a pods=4 gpu=1 unconstrained t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:3 at h1:2,h2:1
            2  reserve new team-a gpu=tas:4 at h1:2,h3:2
        "#]],
    );
}

#[test]
fn pods_that_are_all_assigned_again_may_use_their_own_leaves() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node x0 gpu=1
        node x1 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a gpu=1 unconstrained group=g + pods=2 gpu=1 unconstrained group=g t=1
        cycle
        delete node x0
        node x2 gpu=3
        node x3 gpu=3
        wl new q=team-a gpu=1 unconstrained group=g + pods=4 gpu=1 unconstrained group=g t=2 replaces=old
        cycle
        finish old
        wl beside q=team-a pods=3 gpu=1 unconstrained t=3
        cycle
        wl behind q=team-a gpu=1 unconstrained t=4
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:1 at x0:1 + gpu=tas:2 at x1:2
            2  reserve new team-a gpu=tas:1 at x1:1 + gpu=tas:4 at x1:1,x2:3
            3  reserve beside team-a gpu=tas:3 at x3:3
            4  inadmissible-class behind team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_leader_keeps_its_leaf() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=3
        node h2 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a gpu=1 unconstrained group=g + pods=2 gpu=1 unconstrained group=g t=1
        cycle
        wl new q=team-a gpu=1 unconstrained group=g + pods=4 gpu=1 unconstrained group=g t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:1 at h1:1 + gpu=tas:2 at h1:2
            2  reserve new team-a gpu=tas:1 at h1:1 + gpu=tas:4 at h1:2,h2:2
        "#]],
    );
}

#[test]
fn a_smaller_slice_drops_the_last_pods() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=2 cpu=2
        node h2 gpu=2 cpu=2
        cq team-a gpu/tas=9 cpu/tas=9
        wl old q=team-a pods=4 gpu=1 unconstrained + cpu=1 unconstrained t=1
        cycle
        wl new q=team-a pods=3 gpu=1 unconstrained + pods=3 cpu=1 unconstrained t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:4 at h1:2,h2:2 + cpu=tas:1 at h1:1
            2  reserve new team-a gpu=tas:3 at h1:2,h2:1 + cpu=tas:3 at h1:1,h2:2
        "#]],
    );
}

#[test]
fn required_and_preferred_topologies_cannot_grow() {
    check(
        "
        settings elastic-tas
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=9
        cq team-a gpu/tas=9
        wl old q=team-a pods=2 gpu=1 required=rack t=1
        cycle
        messages
        wl new q=team-a pods=4 gpu=1 required=rack t=2 replaces=old
        cycle
        wl new q=team-a pods=4 gpu=1 preferred=rack t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at r1/h1:2
            2  inadmissible new team-a NoFit: failed to assign flavors to pod set main: required topology is not supported with ElasticJobsViaWorkloadSlices
            3  inadmissible new team-a NoFit: failed to assign flavors to pod set main: preferred topology is not supported with ElasticJobsViaWorkloadSlices
        "#]],
    );
}

#[test]
fn the_first_slice_is_refused_required_and_preferred_topologies() {
    let fixture = "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=9
        cq team-a gpu/tas=9
        wl first q=team-a pods=2 gpu=1 required=rack t=1 elastic
        messages
        cycle
        explain first
        wl first q=team-a pods=2 gpu=1 preferred=rack t=1 elastic
        cycle
        wl first q=team-a pods=2 gpu=1 unconstrained t=1 elastic
        cycle
    ";
    check(
        &format!("settings elastic-tas\n{fixture}"),
        &expect![[r#"
        1  inadmissible-class first team-a NoFit: failed to assign flavors to pod set main: required topology is not supported with ElasticJobsViaWorkloadSlices
        ?  first is inadmissible in team-a
        ?  flavor tas: enough quota is free, and the pods fit into its topology
        ?  required topology is not supported with ElasticJobsViaWorkloadSlices
        2  inadmissible-class first team-a NoFit: failed to assign flavors to pod set main: preferred topology is not supported with ElasticJobsViaWorkloadSlices
        3  reserve first team-a gpu=tas:2 at r1/h1:2
    "#]],
    );
    // Without the gate no slice keeps its domains, so that each topology is assigned.
    check(
        fixture,
        &expect![[r#"
        1  reserve first team-a gpu=tas:2 at r1/h1:2
        ?  first holds quota in team-a
    "#]],
    );
}

#[test]
fn a_refused_topology_is_not_delayed() {
    check(
        "
        settings elastic-tas
        topology racks levels=rack,node
        flavor tas topology=racks
        check nodes topology=after-checks
        cq team-a gpu/tas=9 check=nodes
        wl old q=team-a pods=2 gpu=1 unconstrained t=1 elastic
        cycle
        messages
        wl new q=team-a pods=4 gpu=1 required=rack t=2 replaces=old
        cycle
        explain new
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2, needs nodes
            2  inadmissible new team-a NoFit: failed to assign flavors to pod set main: required topology is not supported with ElasticJobsViaWorkloadSlices
            ?  new is inadmissible in team-a
            ?  flavor tas: enough quota is free, its topology is assigned when its admission checks are ready
            ?  required topology is not supported with ElasticJobsViaWorkloadSlices
        "#]],
    );
}

#[test]
fn a_topology_that_holds_quota_is_assigned_although_heads_are_refused_it() {
    let fixture = "
        settings elastic-tas
        topology racks levels=rack,node
        flavor tas topology=racks
        flavor late topology=racks
        check nodes topology=after-checks
        cq team-a gpu/tas=9 + cpu/late=9 check=nodes:late
        node h1 rack=r1 gpu=9 cpu=9
    ";
    // As if it had been admitted before the gate: the class of an elastic job comes later.
    let pass = |pod_sets: &str| {
        format!(
            "{fixture}
            wl one q=team-a t=1 {pod_sets}
            cycle
            wl one q=team-a t=1 elastic check=nodes:ready {pod_sets}
            second-pass
            wait 1
            second-pass
            "
        )
    };
    check(
        &pass("pods=2 cpu=1 required=rack"),
        &expect![[r#"
            1  reserve one team-a cpu=late:2, needs nodes
            =  topology of one at r1/h1:2, passed nodes
        "#]],
    );
    // Nor does a sibling that has its domains keep others from theirs.
    check(
        &pass("pods=2 gpu=1 required=rack + pods=3 cpu=1 unconstrained"),
        &expect![[r#"
            1  reserve one team-a gpu=tas:2 at r1/h1:2 + cpu=late:3, needs nodes
            =  topology of one at r1/h1:2,r1/h1:3, passed nodes
        "#]],
    );
}

#[test]
fn additional_pods_fill_whole_topology_slices() {
    check(
        "
        settings elastic-tas
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=3
        node h2 rack=r1 gpu=3
        node h3 rack=r2 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a pods=2 gpu=1 slice=node:2 t=1
        cycle
        wl new q=team-a pods=6 gpu=1 slice=node:2 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at r2/h3:2
            2  reserve new team-a gpu=tas:6 at r1/h1:2,r1/h2:2,r2/h3:2
        "#]],
    );
}

#[test]
fn a_slice_that_loses_its_quota_returns_the_leaves_to_the_replaced_one() {
    check(
        "
        settings elastic-tas
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=3
        node h2 gpu=2
        cq team-a gpu/tas=9
        wl old q=team-a pods=2 gpu=1 unconstrained t=1
        cycle
        wl new q=team-a pods=4 gpu=1 unconstrained t=2 replaces=old
        cycle
        release new hold=out
        wl large q=team-a pods=4 gpu=1 unconstrained t=3
        wl small q=team-a pods=3 gpu=1 unconstrained t=4
        cycle 2
        finish old
        wl late q=team-a pods=2 gpu=1 unconstrained t=5
        cycle 2
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:2 at h2:2
            2  reserve new team-a gpu=tas:4 at h1:2,h2:2
            3  inadmissible-class large team-a NoCandidates
            4  reserve small team-a gpu=tas:3 at h1:3
            5  inadmissible-class large team-a NoCandidates
            6  reserve late team-a gpu=tas:2 at h2:2
        "#]],
    );
}

#[test]
fn the_domains_of_a_larger_slice_requeue_other_queues_over_their_nodes() {
    check(
        "
        settings elastic-tas requeue-over-nodes
        topology hosts levels=node
        flavor tas topology=hosts
        node h1 gpu=4
        cq team-a gpu/tas=9
        cq team-b gpu/tas=9
        wl old q=team-a pods=4 gpu=1 unconstrained t=1
        cycle
        wl waits q=team-b gpu=2 unconstrained t=2
        cycle
        wl new q=team-a pods=2 gpu=1 unconstrained t=3 replaces=old
        cycle
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=tas:4 at h1:4
            2  inadmissible-class waits team-b NoCandidates
            3  reserve new team-a gpu=tas:2 at h1:2
            4  reserve waits team-b gpu=tas:2 at h1:1
        "#]],
    );
}
