//! Messages of conditions in upstream's words.

use expect_test::expect;

use super::check::check;

#[test]
fn the_message_for_quota_in_use_names_the_missing_amount() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1
        wl two q=team-a gpu=3 t=2
        messages
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:3
            2  inadmissible-class two team-a NoCandidates: couldn't assign flavors to pod set main: insufficient unused quota for gpu in flavor h100, 2 more needed
        "#]],
    );
}

#[test]
fn the_message_for_exceeded_quota_names_request_and_maximum() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=5 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)
        "#]],
    );
}

#[test]
fn the_message_counts_earlier_pod_sets() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=3 t=1 + name=workers gpu=2
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota: couldn't assign flavors to pod set workers: insufficient quota for gpu in flavor h100, previously considered podsets requests (3) + current podset request (2) > maximum capacity (4)
        "#]],
    );
}

#[test]
fn cpu_is_printed_in_milli() {
    check(
        "
        cq team-a cpu/x86=1000
        wl one q=team-a cpu=1500 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor x86, previously considered podsets requests (0) + current podset request (1500m) > maximum capacity (1)
        "#]],
    );
}

#[test]
fn the_message_names_the_taint() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a gpu/spot=4
        wl one q=team-a gpu=1 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: untolerated taint {spot yes NoSchedule <nil>} in flavor spot
        "#]],
    );
}

#[test]
fn the_message_has_a_part_per_flavor() {
    check(
        "
        flavor east label=zone:east
        flavor spot taint=spot:yes
        cq team-a gpu/spot=4 gpu/east=4
        wl one q=team-a gpu=1 t=1 on=zone:west
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: flavor east doesn't match node affinity, untolerated taint {spot yes NoSchedule <nil>} in flavor spot
        "#]],
    );
}

#[test]
fn the_message_names_an_undeclared_resource() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a tpu=1 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: resource tpu unavailable in ClusterQueue
        "#]],
    );
}

#[test]
fn the_message_names_a_namespace_mismatch() {
    check(
        "
        cq team-a select-nothing gpu/h100=4
        wl one q=team-a gpu=1 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch: workload namespace doesn't match ClusterQueue selector
        "#]],
    );
}

#[test]
fn the_message_of_the_validator_is_used() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=1 t=1 invalid
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible one team-a Invalid: resources validation failed: limits are below requests
        "#]],
    );
}

#[test]
fn a_skipped_head_has_its_own_message() {
    check(
        "
        cohort ml gpu/h100=2
        cq team-a cohort=ml gpu/h100=0
        cq team-b cohort=ml gpu/h100=0
        wl one q=team-a gpu=2 t=1
        wl two q=team-b gpu=2 t=2
        messages
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:2 (borrows, height 1): main: h100(Fit;borrow=1)
            1  requeue two team-b Skipped: Workload no longer fits after processing another workload
        "#]],
    );
}

#[test]
fn overlapping_preemption_targets_have_their_own_message() {
    check(
        "
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml reclaim=any gpu/h100=2
        wl guest q=team-b gpu=4 t=1
        cycle
        wl one q=team-a gpu=2 t=2
        wl two q=team-c gpu=2 t=3
        messages
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:4 (borrows, height 1)
            2  preempt for one team-a: guest InCohortReclamation
            2  requeue two team-c Deferred: Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete
        "#]],
    );
}

#[test]
fn without_its_gate_overlapping_targets_are_not_computed_again() {
    check(
        "
        settings no-overlap-recompute
        cq team-a cohort=ml reclaim=any gpu/h100=2
        cq team-b cohort=ml gpu/h100=0
        cq team-c cohort=ml reclaim=any gpu/h100=2
        wl guest q=team-b gpu=4 t=1
        cycle
        wl one q=team-a gpu=2 t=2
        wl two q=team-c gpu=2 t=3
        messages
        cycle
        ",
        &expect![[r#"
            1  reserve guest team-b gpu=h100:4 (borrows, height 1)
            2  preempt for one team-a: guest InCohortReclamation
            2  requeue two team-c Skipped: Workload has overlapping preemption targets with another workload
        "#]],
    );
}

#[test]
fn a_topology_message_counts_the_pods_that_fit() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a pods=3 gpu=1 required=rack t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 3 pod(s)
        "#]],
    );
}

#[test]
fn a_topology_message_lists_excluded_nodes() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        node h1 rack=r1 gpu=2
        cq team-a gpu/tas=9
        wl one q=team-a gpu=3 required=rack t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a TopologyPlacementFailed: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "gpu": 1
        "#]],
    );
}

#[test]
fn the_message_names_a_flavor_without_a_topology() {
    check(
        "
        cq team-a gpu/h100=9
        wl one q=team-a gpu=1 required=rack t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: Flavor "h100" does not support TopologyAwareScheduling
        "#]],
    );
}

#[test]
fn the_message_names_an_unknown_topology_level() {
    check(
        "
        topology racks levels=rack,node
        flavor tas topology=racks
        cq team-a gpu/tas=9
        wl one q=team-a gpu=1 required=block t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: Flavor "tas" does not contain the requested level
        "#]],
    );
}

#[test]
fn the_first_failing_resource_group_makes_the_message() {
    check(
        "
        cq team-a cpu/x86=1 + gpu/h100=1
        wl one q=team-a cpu=2 gpu=2 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (2) > maximum capacity (1)
        "#]],
    );
}

#[test]
fn a_flavor_that_failed_in_an_earlier_group_worsens_the_reason() {
    check(
        "
        flavor a100 taint=dedicated:a100
        cq team-a cpu/x86=1 + gpu/a100=1 gpu/h100=2
        wl one q=team-a cpu=2 gpu=2 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoMatchingFlavor: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor x86, previously considered podsets requests (0) + current podset request (2m) > maximum capacity (1m)
        "#]],
    );
}

#[test]
fn an_undeclared_resource_after_flavors_has_no_pending_reason() {
    check(
        "
        cq team-a gpu/h100=4
        wl one q=team-a gpu=1 cpu=1 t=1
        messages
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class one team-a NoFit: couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue
        "#]],
    );
}

/// A group of pod sets that stand around another one.
#[test]
fn reasons_stand_under_the_pod_set_that_they_are_about() {
    check(
        "
        cq team-a cohort=ml gpu/h100=4
        cq team-b cohort=ml gpu/h100=1
        messages
        wl other-large q=team-a t=1 name=leader group=g gpu=1 + name=other gpu=6 + name=worker group=g gpu=1 pods=2
        wl group-large q=team-a t=2 name=leader group=g gpu=4 + name=other gpu=1 + name=worker group=g gpu=1 pods=2
        cycle 2
        wl borrows q=team-a t=3 name=leader group=g gpu=1 + name=other gpu=2 + name=worker group=g gpu=1 pods=2
        cycle
        wl waits q=team-a t=4 name=leader group=g gpu=1 + name=other gpu=1 + name=worker group=g gpu=1 pods=2
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class other-large team-a ExceedsMaxQuota: couldn't assign flavors to pod set other: insufficient quota for gpu in flavor h100, previously considered podsets requests (3) + current podset request (6) > maximum capacity (5)
            2  inadmissible-class group-large team-a ExceedsMaxQuota: couldn't assign flavors to pod set leader: insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (6) > maximum capacity (5); couldn't assign flavors to pod set worker: insufficient quota for gpu in flavor h100, previously considered podsets requests (0) + current podset request (6) > maximum capacity (5)
            3  reserve borrows team-a gpu=h100:1 + gpu=h100:2 + gpu=h100:2 (borrows, height 1): other: h100(Fit;borrow=1)
            4  inadmissible-class waits team-a NoCandidates: couldn't assign flavors to pod set leader: insufficient unused quota for gpu in flavor h100, 3 more needed; couldn't assign flavors to pod set worker: insufficient unused quota for gpu in flavor h100, 3 more needed; couldn't assign flavors to pod set other: insufficient unused quota for gpu in flavor h100, 4 more needed
        "#]],
    );
}
