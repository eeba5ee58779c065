//! Inactive queues that are not stopped.

use expect_test::expect;

use super::check::check;

#[test]
fn a_queue_with_inactive_checks_is_inactive() {
    check(
        "
        cq team-a not-ready gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        cq team-a gpu/h100=2
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_queue_without_one_of_its_flavors_is_inactive() {
    check(
        "
        cq team-a gpu/h100=2 gpu/spot=2
        wl one q=team-a gpu=1 t=1
        delete flavor spot
        cycle
        flavor spot
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_queue_whose_flavor_lacks_its_topology_is_inactive() {
    check(
        "
        flavor tas topology=racks
        cq team-a gpu/tas=2
        node h1 rack=r1 gpu=2
        wl one q=team-a gpu=1 t=1 unconstrained
        cycle
        topology racks levels=rack
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=tas:1 at r1:1
        "#]],
    );
}

#[test]
fn a_missing_queue_collects_pending_workloads() {
    check(
        "
        lq dev cq=team-a
        wl one q=dev gpu=1 t=1
        cycle
        cq team-a gpu/h100=2
        cycle
        ",
        &expect![[r#"
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_deleted_queue_keeps_its_pending_workloads() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a gpu=1 t=1
        delete cq team-a
        cycle
        show team-a
        cq team-a gpu/h100=2
        cycle
        ",
        &expect![[r#"
            -  team-a uses nothing, pending one
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_cycle_of_cohorts_makes_its_queues_inactive() {
    check(
        "
        cohort east parent=west
        cohort west parent=east
        cq team-a cohort=east gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        ",
        &expect![[""]],
    );
}

#[test]
fn a_queue_notices_the_end_of_a_cycle_when_it_changes_itself() {
    check(
        "
        cohort east parent=west
        cohort west parent=east
        cq team-a cohort=east gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        cohort west
        cycle
        cq team-a cohort=east gpu/h100=3
        cycle
        ",
        &expect![[r#"
            3  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_cohort_cycle_does_not_affect_other_trees() {
    check(
        "
        cohort east parent=west
        cohort west parent=east
        cq team-a cohort=ml gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
        "#]],
    );
}
