//! Admission checks: which a Workload needs, and what their states decide.

use expect_test::expect;

use super::check::check;

#[test]
fn a_check_rule_applies_to_the_flavors_it_names() {
    check(
        "
        check any
        check nodes
        cq team-a gpu/spot=1 gpu/h100=1 check=any check=nodes:h100
        wl one q=team-a gpu=1 t=1
        wl two q=team-a gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a gpu=spot:1, needs any
            2  reserve two team-a gpu=h100:1, needs any nodes
        "#]],
    );
}

#[test]
fn a_workload_with_all_checks_ready_is_admitted_at_once() {
    check(
        "
        check one
        check two
        cq team-a gpu/h100=9 check=one check=two
        wl both q=team-a gpu=1 t=1 check=one:ready check=two:ready
        wl half q=team-a gpu=1 t=2 check=one:ready check=two:pending
        wl none q=team-a gpu=1 t=3
        cycle 3
        ",
        &expect![[r#"
            1  reserve both team-a gpu=h100:1, passed one two
            2  reserve half team-a gpu=h100:1, needs one two
            3  reserve none team-a gpu=h100:1, needs one two
        "#]],
    );
}

#[test]
fn a_check_in_retry_keeps_a_head_from_being_nominated() {
    check(
        "
        messages
        check one
        cq team-a gpu/h100=9 check=one
        wl again q=team-a gpu=1 t=1 check=one:retry
        wl never q=team-a gpu=1 t=2 check=one:rejected
        wl fine q=team-a gpu=1 t=3
        cycle 4
        wl again q=team-a gpu=1 t=1 check=one:pending
        cycle
        ",
        &expect![[r#"
            1  inadmissible again team-a FailedCheck: The workload has failed admission checks
            2  inadmissible never team-a FailedCheck: The workload has failed admission checks
            3  reserve fine team-a gpu=h100:1, needs one
            5  reserve again team-a gpu=h100:1, needs one
        "#]],
    );
}

#[test]
fn a_workload_in_retry_stays_the_head_of_a_strict_queue() {
    check(
        "
        check one
        cq team-a strict gpu/h100=9 check=one
        wl again q=team-a gpu=1 t=1 check=one:retry
        wl fine q=team-a gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  requeue again team-a FailedCheck
            2  requeue again team-a FailedCheck
        "#]],
    );
}

#[test]
fn a_failed_check_does_not_make_the_class_inadmissible() {
    check(
        "
        check one
        cq team-a gpu/h100=9 check=one
        wl again q=team-a gpu=1 t=1 check=one:retry
        wl equal q=team-a gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible again team-a FailedCheck
            2  reserve equal team-a gpu=h100:1, needs one
        "#]],
    );
}

#[test]
fn a_queue_is_inactive_while_one_of_its_checks_is() {
    check(
        "
        check one
        cq team-a gpu/h100=9 check=one check=two
        wl first q=team-a gpu=1 t=1
        cycle
        check two inactive
        cycle
        check two
        cycle
        delete check one
        wl second q=team-a gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            3  reserve first team-a gpu=h100:1, needs one two
        "#]],
    );
}

#[test]
fn a_check_that_becomes_active_requeues_inadmissible_workloads() {
    check(
        "
        settings reevaluate-refused
        check one
        cq team-a gpu/h100=1 check=one
        cq team-b gpu/h100=1
        wl large-a q=team-a gpu=2 t=1
        wl large-b q=team-b gpu=2 t=1
        cycle 2
        check one inactive
        cycle
        check one
        cycle
        ",
        &expect![[r#"
            1  inadmissible-class large-a team-a ExceedsMaxQuota
            1  inadmissible-class large-b team-b ExceedsMaxQuota
            4  inadmissible-class large-a team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn the_checks_of_all_assigned_flavors_are_needed() {
    check(
        "
        check cpus
        check gpus
        cq team-a gpu/h100=9 + cpu/x86=9 check=cpus:x86 check=gpus:h100,spot
        wl one q=team-a gpu=1 cpu=1 t=1
        wl two q=team-a cpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  reserve one team-a cpu=x86:1 gpu=h100:1, needs cpus gpus
            2  reserve two team-a cpu=x86:1, needs cpus
        "#]],
    );
}

#[test]
fn a_rejected_check_is_reported_even_for_an_inadmissible_class() {
    check(
        "
        check nodes
        cq team-a gpu/h100=3 check=nodes
        wl small q=team-a gpu=1 t=1
        wl large q=team-a gpu=2 t=2
        wl one q=team-a gpu=3 t=4
        cycle 3
        wl two q=team-a gpu=3 t=3 check=nodes:rejected
        finish small
        cycle
        show team-a
        ",
        &expect![[r#"
            1  reserve small team-a gpu=h100:1, needs nodes
            2  reserve large team-a gpu=h100:2, needs nodes
            3  inadmissible-class one team-a NoCandidates
            4  inadmissible two team-a FailedCheck
            -  team-a uses gpu/h100=2, reserving large, pending one, inadmissible two
        "#]],
    );
}
