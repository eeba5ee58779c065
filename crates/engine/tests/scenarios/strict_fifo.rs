//! Strict queues: the head blocks those behind it.

use expect_test::expect;

use super::check::check;

#[test]
fn a_strict_head_blocks_its_queue() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl large q=team-a gpu=5 t=1
        wl small q=team-a gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  requeue large team-a ExceedsMaxQuota
            2  requeue large team-a ExceedsMaxQuota
        "#]],
    );
}

#[test]
fn a_strict_queue_continues_when_its_head_fits() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl first q=team-a gpu=3 t=1
        cycle
        wl large q=team-a gpu=2 t=2
        wl small q=team-a gpu=1 t=3
        cycle
        finish first
        cycle 2
        ",
        &expect![[r#"
            1  reserve first team-a gpu=h100:3
            2  requeue large team-a NoCandidates
            3  reserve large team-a gpu=h100:2
            4  reserve small team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_strict_head_with_a_namespace_mismatch_does_not_block() {
    check(
        "
        namespace lab team=b
        cq team-a strict select=team:b gpu/h100=4
        wl stranger q=team-a gpu=1 t=1
        wl friend q=team-a ns=lab gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible stranger team-a NamespaceMismatch
            2  reserve friend team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn an_invalid_head_of_a_strict_queue_blocks() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl broken q=team-a gpu=1 t=1 invalid
        wl sound q=team-a gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  requeue broken team-a Invalid
            2  requeue broken team-a Invalid
        "#]],
    );
}

#[test]
fn a_workload_in_backoff_does_not_block_a_strict_queue() {
    check(
        "
        cq team-a strict gpu/h100=4
        wl held q=team-a gpu=5 t=1 hold=requeue
        wl next q=team-a gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  reserve next team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn a_strict_queue_blocks_only_itself() {
    check(
        "
        cq team-a cohort=ml strict gpu/h100=4
        cq team-b cohort=ml gpu/h100=4
        wl large q=team-a gpu=9 t=1
        wl small q=team-b gpu=1 t=2
        cycle
        ",
        &expect![[r#"
            1  requeue large team-a ExceedsMaxQuota
            1  reserve small team-b gpu=h100:1
        "#]],
    );
}

#[test]
fn a_strict_head_without_flavor_blocks() {
    check(
        "
        flavor spot taint=spot:yes
        cq team-a strict gpu/spot=4
        wl picky q=team-a gpu=1 t=1
        wl hardy q=team-a gpu=1 t=2 tolerate=spot
        cycle
        ",
        &expect![[r#"
            1  requeue picky team-a NoMatchingFlavor
        "#]],
    );
}
