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
            1  aside one team-a WrongNamespace
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
            1  aside one team-a WrongNamespace
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
            1  aside one team-a WrongNamespace
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
            1  aside one team-a WrongNamespace
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
            1  aside one team-a WrongNamespace
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
            1  aside one team-a WrongNamespace
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
            1  aside one team-a WrongNamespace
            2  reserve two team-a gpu=h100:1
        "#]],
    );
}
