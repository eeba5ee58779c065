//! Which namespaces may use a queue.

use expect_test::expect;

use super::check::check;

#[test]
fn an_empty_selector_matches_all_namespaces() {
    check(
        "
        namespace lab team=a
        cq team-a gpu/h100=2
        wl one q=team-a ns=lab gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn an_absent_selector_matches_no_namespace() {
    check(
        "
        cq team-a select-nothing gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn a_selector_matches_namespace_labels() {
    check(
        "
        namespace lab team=a
        namespace field team=b
        cq team-a select=team:a gpu/h100=2
        wl one q=team-a ns=field gpu=1 t=1
        wl two q=team-a ns=lab gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch
            2  reserve two team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn all_requirements_must_match() {
    check(
        "
        namespace lab team=a
        cq team-a select=team:a select=stage:prod gpu/h100=2
        wl one q=team-a ns=lab gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn an_unknown_namespace_matches_no_selector() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a ns=lab gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn a_namespace_that_begins_to_match_requeues() {
    check(
        "
        namespace lab team=b
        cq team-a select=team:a gpu/h100=2
        wl one q=team-a ns=lab gpu=1 t=1
        cycle
        namespace lab team=a
        cycle
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn released_quota_does_not_requeue_a_namespace_mismatch() {
    check(
        "
        namespace lab team=b
        cq team-a select=team:a gpu/h100=2
        cq team-b select=team:b gpu/h100=2
        wl one q=team-a gpu=1 t=1
        wl two q=team-b ns=lab gpu=1 t=2
        cycle
        finish two
        cycle
        ",
        &expect![[r#"
            1  reserve two team-b gpu=h100:1
            1  inadmissible one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn a_namespace_mismatch_does_not_make_the_class_inadmissible() {
    check(
        "
        namespace lab team=a
        cq team-a select=team:a gpu/h100=2
        wl one q=team-a gpu=1 t=1
        wl two q=team-a ns=lab gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  inadmissible one team-a NamespaceMismatch
            2  reserve two team-a gpu=h100:1
        "#]],
    );
}

/// `foreign` is inadmissible with its class, as is `mine`, but requeueing checks the namespace of each.
#[test]
fn requeueing_skips_inadmissible_workloads_of_a_mismatched_namespace() {
    check(
        "
        namespace lab team=a
        cq team-a select=team:a gpu/h100=4
        wl holder q=team-a ns=lab gpu=4 t=1
        cycle
        wl mine q=team-a ns=lab gpu=3 t=2
        wl foreign q=team-a gpu=3 t=3
        wl small q=team-a ns=lab gpu=1 t=4
        cycle 2
        finish holder
        cycle 2
        show team-a
        namespace ns team=a
        cycle
        ",
        &expect![[r#"
            1  reserve holder team-a gpu=h100:4
            2  inadmissible-class mine team-a NoCandidates
            3  inadmissible-class small team-a NoCandidates
            4  reserve mine team-a gpu=h100:3
            5  reserve small team-a gpu=h100:1
            -  team-a uses gpu/h100=4, reserving mine small, inadmissible foreign
            6  inadmissible-class foreign team-a NoCandidates
        "#]],
    );
}

#[test]
fn requeueing_makes_a_mismatched_class_pending_again() {
    check(
        "
        settings reevaluate-refused
        namespace lab team=a
        cq team-a select=team:a gpu/h100=4
        wl mine q=team-a ns=lab gpu=5 t=1
        cycle
        wl foreign q=team-a gpu=5 t=2
        finish mine
        wl next q=team-a ns=lab gpu=5 t=3
        cycle 2
        show team-a
        ",
        &expect![[r#"
            1  inadmissible-class mine team-a ExceedsMaxQuota
            2  inadmissible-class next team-a ExceedsMaxQuota
            -  team-a uses nothing, inadmissible foreign next
        "#]],
    );
}
