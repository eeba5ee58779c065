//! Other flavors for Workloads that no cluster takes with the flavors that quota alone would give them.

use expect_test::expect;

use super::check::check;

#[test]
fn a_head_without_capacity_in_a_flavor_gets_the_next_one_that_fits() {
    check(
        "
        capacity h100=3
        cq team-a gpu/h100=9 gpu/cloud=9
        wl gang q=team-a gpu=5 t=1
        wl small q=team-a gpu=2 t=2
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=cloud:5
            2  reserve small team-a gpu=h100:2 on a cluster
            -  team-a uses gpu/cloud=5 gpu/h100=2, reserving gang small
        "#]],
    );
}

#[test]
fn other_flavors_are_tried_in_their_order() {
    check(
        "
        capacity h100=1
        capacity a100=1
        cq team-a gpu/h100=9 gpu/small=1 gpu/a100=9 gpu/cloud=9 gpu/far=9
        wl gang q=team-a gpu=5 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=cloud:5
        "#]],
    );
}

#[test]
fn another_flavor_borrows_from_the_cohort() {
    check(
        "
        capacity h100=3
        cohort ml gpu/cloud=5
        cq team-a cohort=ml gpu/h100=9 gpu/cloud=0
        wl gang q=team-a gpu=5 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=cloud:5 (borrows, height 1)
        "#]],
    );
}

#[test]
fn a_flavor_that_fits_within_quota_precedes_one_that_borrows_if_the_queue_says_so() {
    check(
        "
        capacity h100=3
        cohort ml gpu/cloud=5
        cq team-a cohort=ml borrow-next gpu/h100=9 gpu/cloud=0 gpu/far=9
        wl gang q=team-a gpu=5 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=far:5
        "#]],
    );
}

#[test]
fn capacity_in_any_of_the_refused_flavors_requeues() {
    check(
        "
        capacity h100=1
        capacity cloud=1
        cq team-a gpu/h100=9 gpu/cloud=9
        wl one q=team-a gpu=5 t=1
        wl two q=team-a gpu=4 t=2
        cycle 2
        show team-a
        capacity cloud=5
        cycle
        capacity h100=4
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  no capacity for one team-a in h100, cloud
            2  no capacity for two team-a in h100, cloud
            -  team-a uses nothing, inadmissible one two
            3  reserve one team-a gpu=cloud:5 on a cluster
            4  reserve two team-a gpu=h100:4 on a cluster
            -  team-a uses gpu/cloud=5 gpu/h100=4, reserving one two
        "#]],
    );
}

#[test]
fn quota_released_in_another_flavor_requeues() {
    check(
        "
        capacity h100=1
        cq team-a gpu/h100=9 gpu/cloud=5
        wl first q=team-a gpu=4 t=1
        cycle
        wl gang q=team-a gpu=5 t=2
        cycle
        cycle
        finish first
        cycle
        ",
        &expect![[r#"
            1  reserve first team-a gpu=cloud:4
            2  no capacity for gang team-a in h100
            4  reserve gang team-a gpu=cloud:5
        "#]],
    );
}

#[test]
fn a_refused_flavor_is_replaced_in_its_resource_group_alone() {
    check(
        "
        capacity h100=1
        cq team-a cpu/any=9 + gpu/h100=9 gpu/cloud=9
        wl gang q=team-a cpu=1 gpu=5 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a cpu=any:1 gpu=cloud:5
        "#]],
    );
}

#[test]
fn pod_sets_move_to_another_flavor_together() {
    check(
        "
        capacity h100=4
        cq team-a gpu/h100=9 gpu/cloud=9
        wl gang q=team-a gpu=1 t=1 + gpu=4
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=cloud:1 + gpu=cloud:4
        "#]],
    );
}

#[test]
fn preemption_in_another_flavor_needs_the_policies_of_the_queue() {
    check(
        "
        capacity h100=1
        cq team-a within=lower gpu/h100=9 gpu/cloud=5
        cq team-b gpu/h100=9 gpu/cloud=5
        wl low-a q=team-a gpu=5 prio=-1 t=1
        wl low-b q=team-b gpu=5 prio=-1 t=1
        cycle
        wl high-a q=team-a gpu=5 t=2
        wl high-b q=team-b gpu=5 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve low-a team-a gpu=cloud:5
            1  reserve low-b team-b gpu=cloud:5
            2  preempt for high-a team-a: low-a InClusterQueue
            2  no capacity for high-b team-b in h100
        "#]],
    );
}

#[test]
fn a_slice_stays_in_the_flavor_of_the_old_one() {
    check(
        "
        cq team-a gpu/h100=9 gpu/cloud=9
        wl old q=team-a gpu=2 t=1
        cycle
        capacity h100=1
        wl new q=team-a gpu=5 t=2 replaces=old
        cycle
        ",
        &expect![[r#"
            1  reserve old team-a gpu=h100:2
            2  no capacity for new team-a in h100
        "#]],
    );
}

#[test]
fn fewer_pods_are_admitted_in_another_flavor() {
    check(
        "
        capacity h100=1
        cq team-a gpu/h100=9 gpu/cloud=3
        wl gang q=team-a pods=5 gpu=1 min=2 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a gpu=cloud:3
        "#]],
    );
}
