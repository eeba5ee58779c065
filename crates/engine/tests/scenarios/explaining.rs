//! Verdicts in upstream's words.

use expect_test::expect;

use super::check::check;

#[test]
fn quota_in_use_says_how_much_is_missing() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1
        wl two q=team-a gpu=3 t=2
        words
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            2  park two team-a NoCandidates: couldn't assign flavors to pod set main: insufficient unused quota for gpu in flavor h100, 2 more needed
        "#]],
    );
}

#[test]
fn a_request_beyond_the_maximum_says_both() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=5 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)
        "#]],
    );
}

#[test]
fn earlier_pod_sets_are_counted() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1 + name=workers gpu=2
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a ExceedsMaxQuota: couldn't assign flavors to pod set workers: insufficient quota for gpu in flavor h100, previously considered podsets requests (3) + current podset request (2) > maximum capacity (4)
        "#]],
    );
}

#[test]
fn cpu_is_told_in_milli() {
    check(
        "
        cq team-a cpu/x86=1000
        wl one q=team-a cpu=1500 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor x86, previously considered podsets requests (0) + current podset request (1500m) > maximum capacity (1)
        "#]],
    );
}

#[test]
fn a_taint_is_named() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a gpu/spot=4
        wl one q=team-a gpu=1 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: untolerated taint {spot yes NoSchedule <nil>} in flavor spot
        "#]],
    );
}

#[test]
fn every_flavor_has_its_say() {
    check(
        "
        flavor east label=zone:east
        flavor spot taint=spot:yes
        cq team-a gpu/spot=4 gpu/east=4
        wl one q=team-a gpu=1 t=1 on=zone:west
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: flavor east doesn't match node affinity, untolerated taint {spot yes NoSchedule <nil>} in flavor spot
        "#]],
    );
}

#[test]
fn an_undeclared_resource_is_named() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a tpu=1 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: resource tpu unavailable in ClusterQueue
        "#]],
    );
}

#[test]
fn the_wrong_namespace_is_told() {
    check(
        "
        cq team-a select-nothing gpu/h100=4
        wl one q=team-a gpu=1 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  aside one team-a NamespaceMismatch: workload namespace doesn't match ClusterQueue selector
        "#]],
    );
}

#[test]
fn the_validator_has_the_word() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=1 t=1 invalid
        words
        cycle
        ",
        &expect![[r#"
            1  aside one team-a Invalid: resources validation failed: limits are below requests
        "#]],
    );
}

#[test]
fn who_was_overtaken_is_told_so() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        words
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1)
            1  retry two team-b Skipped: Workload no longer fits after processing another workload
        "#]],
    );
}

#[test]
fn who_counts_on_the_victims_of_another_is_told_so() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml reclaim=any gpu/h100=2
        wl guest q=team-b gpu=4 t=1
        cycle
        wl one q=team-a gpu=2 t=2
        wl two q=team-c gpu=2 t=3
        words
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:4 (borrows, height 1)
            2  preempt for one team-a: guest InCohortReclamation
            2  retry two team-c Deferred: Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete
        "#]],
    );
}

#[test]
fn a_topology_says_how_much_of_it_fits() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 required=rack t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 3 pod(s)
        "#]],
    );
}

#[test]
fn a_topology_says_when_nothing_fits_and_why() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        host h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=3 required=rack t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
        "#]],
    );
}

#[test]
fn a_flavor_without_a_topology_is_told() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a gpu=1 required=rack t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: Flavor "h100" does not support TopologyAwareScheduling
        "#]],
    );
}

#[test]
fn a_level_nobody_has_is_told() {
    check(
        "
        topology racks levels=rack,host
        flavor tas topology=racks
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=block t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: Flavor "tas" does not contain the requested level
        "#]],
    );
}

#[test]
fn the_first_group_that_fails_explains_alone() {
    check(
        "
        cq team-a cpu/x86=1 + gpu/h100=1
        wl one q=team-a cpu=2 gpu=2 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (2) > maximum capacity (1)
        "#]],
    );
}

#[test]
fn a_flavor_that_failed_in_a_group_before_makes_the_obstacle_worse() {
    check(
        "
        flavor a100 taint=dedicated:a100
        cq team-a cpu/x86=1 + gpu/a100=1 gpu/h100=2
        wl one q=team-a cpu=2 gpu=2 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor x86, previously considered podsets requests (0) + current podset request (2m) > maximum capacity (1m)
        "#]],
    );
}

#[test]
fn an_undeclared_resource_after_flavors_names_no_obstacle() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=1 cpu=1 t=1
        words
        cycle
        ",
        &expect![[r#"
            1  park one team-a NoFit: couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue
        "#]],
    );
}
