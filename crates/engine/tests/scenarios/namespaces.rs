//! Which namespaces may use a queue.

use expect_test::expect;

use super::check::check;

#[test]
fn an_empty_selector_takes_everybody() {
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
fn no_selector_takes_nobody() {
    check(
        "
        cq team-a select-nothing gpu/h100=2
        wl one q=team-a gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  aside one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn a_selector_takes_those_whose_labels_match() {
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
            1  aside one team-a NamespaceMismatch
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
            1  aside one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn a_namespace_nobody_knows_matches_nothing() {
    check(
        "
        cq team-a gpu/h100=2
        wl one q=team-a ns=lab gpu=1 t=1
        cycle
        ",
        &expect![[r#"
            1  aside one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn a_namespace_that_matches_now_wakes() {
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
            1  aside one team-a NamespaceMismatch
            2  reserve one team-a gpu=h100:1
        "#]],
    );
}

#[test]
fn freed_quota_does_not_wake_the_wrong_namespace() {
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
            1  aside one team-a NamespaceMismatch
        "#]],
    );
}

#[test]
fn the_wrong_namespace_says_nothing_about_the_shape() {
    check(
        "
        namespace lab team=a
        cq team-a select=team:a gpu/h100=2
        wl one q=team-a gpu=1 t=1
        wl two q=team-a ns=lab gpu=1 t=2
        cycle 2
        ",
        &expect![[r#"
            1  aside one team-a NamespaceMismatch
            2  reserve two team-a gpu=h100:1
        "#]],
    );
}

/// `foreign` is parked with its equal `mine`, but a wake-up looks at the namespace of each.
#[test]
fn a_wake_up_passes_over_parked_ones_of_another_namespace() {
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
            2  park mine team-a NoCandidates
            3  park small team-a NoCandidates
            4  reserve mine team-a gpu=h100:3
            5  reserve small team-a gpu=h100:1
            -  team-a uses gpu/h100=4, holds mine small, parked foreign
            6  park foreign team-a NoCandidates
        "#]],
    );
}

#[test]
fn a_shape_of_another_namespace_is_parked_no_more_after_a_wake_up() {
    check(
        "
        settings look-again
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
            1  park mine team-a ExceedsMaxQuota
            2  park next team-a ExceedsMaxQuota
            -  team-a uses nothing, parked foreign next
        "#]],
    );
}
