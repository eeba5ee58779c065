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

#[test]
fn a_group_with_one_flavor_takes_no_attempt_from_another_group() {
    check(
        "
        capacity g1=0
        capacity g2=0
        capacity g3=0
        capacity g4=0
        capacity g5=0
        capacity g6=0
        capacity g7=0
        cq team-a cpu/any=99 + gpu/g1=9 gpu/g2=9 gpu/g3=9 gpu/g4=9 gpu/g5=9 gpu/g6=9 gpu/g7=9 gpu/g8=9
        wl gang q=team-a cpu=1 gpu=5 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a cpu=any:1 gpu=g8:5
        "#]],
    );
}

#[test]
fn capacity_in_the_last_of_many_flavors_requeues() {
    check(
        "
        capacity g1=0
        capacity g2=0
        capacity g3=0
        capacity g4=0
        capacity g5=0
        cq team-a cpu/any=99 + gpu/g1=9 gpu/g2=9 gpu/g3=9 gpu/g4=9 gpu/g5=9
        wl gang q=team-a cpu=1 gpu=5 t=1
        cycle
        capacity g5=9
        cycle
        ",
        &expect![[r#"
            1  no capacity for gang team-a in g1, g2, g3, g4, g5
            2  reserve gang team-a cpu=any:1 gpu=g5:5 on a cluster
        "#]],
    );
}

#[test]
fn the_flavors_of_two_groups_are_tried_in_all_combinations() {
    check(
        "
        capacity a1=0
        capacity a2=0
        capacity a3=0
        capacity a4=0
        capacity b1=0
        capacity b2=0
        capacity b3=0
        capacity b4=0
        cq team-a cpu/a1=9 cpu/a2=9 cpu/a3=9 cpu/a4=9 cpu/a5=9 + gpu/b1=9 gpu/b2=9 gpu/b3=9 gpu/b4=9 gpu/b5=9
        wl gang q=team-a cpu=1 gpu=5 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve gang team-a cpu=a5:1 gpu=b5:5
        "#]],
    );
}

#[test]
fn of_too_many_combinations_the_flavors_of_the_same_place_are_tried_first() {
    let mut lines = String::new();
    let mut groups = Vec::new();
    for (resource, group) in [("cpu", "a"), ("gpu", "b"), ("mem", "c")] {
        let names = || (1..=8).map(|n| format!("{group}{n}"));
        names().take(7).for_each(|name| lines.push_str(&format!("capacity {name}=0\n")));
        groups
            .push(names().map(|name| format!("{resource}/{name}=9")).collect::<Vec<_>>().join(" "));
    }
    lines.push_str(&format!("cq team-a {}\n", groups.join(" + ")));
    lines.push_str("wl gang q=team-a cpu=1 gpu=5 mem=1 t=1\ncycle\n");
    check(
        &lines,
        &expect![[r#"
            1  reserve gang team-a cpu=a8:1 gpu=b8:5 mem=c8:1
        "#]],
    );
}
