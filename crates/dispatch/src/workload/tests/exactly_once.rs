//! Leases under ExactlyOnce, and what a leader finds of the former one.

use super::*;

#[test]
fn under_exactly_once_a_lost_cluster_counts_when_it_is_fenced_and_never_by_time() {
    check(&[
        (999, "quota ready recorded=a once", &["a lost=1 clone=1 job=1"], &[]),
        (
            2,
            "quota ready recorded=a once",
            &["a lost=1 fenced clone=1 job=1"],
            &["retry Admitting remote lost, Previously: \"Ready\""],
        ),
        (999, "quota evicted recorded=a once", &["a lost=1 clone=1 job=1"], &[]),
        (2, "quota evicted recorded=a once", &["a lost=1 fenced clone=1"], &["raise-epoch 2"]),
        (999, "quota nominated=a once", &["a unlisted=1"], &[]),
        (2, "quota nominated=a once", &["a unlisted=1 fenced"], &["raise-epoch 2"]),
    ]);
}

#[test]
fn a_leader_creates_nothing_from_a_version_that_its_predecessor_may_have_changed() {
    // The former leader has raised the epoch, and the Workload runs on `b`. Neither is observed yet.
    let outdated = &["a live", "b unlisted=0"];
    check(&[
        (1, "quota nominated=a former", outdated, &["wait-until 50", "confirm-version"]),
        (
            1,
            "quota nominated=a,b race=a,b former",
            outdated,
            &["wait-until 100", "confirm-version"],
        ),
        (1, "quota ready recorded=a former", &["a live clone=1 admitted=1"], &["confirm-version"]),
        // What exists is followed and removed as always.
        (1, "quota ready recorded=a former", &["a live clone=1 admitted=1 job=1"], &["sync a"]),
        (1, "quota evicted recorded=a former", &["a live clone=1 job=1"], &["delete-job a"]),
    ]);
}

#[test]
fn under_exactly_once_copies_are_created_where_leases_are_open_from_a_version_of_this_leader() {
    check(&[
        (1, "quota nominated=a once", &["a live"], &["wait-until 50"]),
        (
            1,
            "quota nominated=a once",
            &["a live open"],
            &["create-clone a", "create-job a", "wait-until 50"],
        ),
        (
            1,
            "quota nominated=a once former",
            &["a live open"],
            &["wait-until 50", "confirm-version"],
        ),
    ]);
}

#[test]
fn a_leader_stamps_what_its_predecessor_created_and_takes_back_what_was_fenced() {
    check(&[
        (
            1,
            "quota nominated=a once",
            &["a live open clone=1 former-stamp job=1"],
            &["stamp a", "wait-until 50"],
        ),
        // A worker that keeps the former stamp does not take the Workload.
        (
            1,
            "quota nominated=a once",
            &["a live open api-refused=no clone=1 former-stamp job=1"],
            &["delete-job a"],
        ),
        (
            1,
            "quota nominated=a once former",
            &["a live open clone=1 former-stamp job=1"],
            &["wait-until 50", "confirm-version"],
        ),
        (
            1,
            "quota nominated=a once",
            &["a live open clone=1 ended-stamp job=1"],
            &["delete-job a"],
        ),
        (
            1,
            "quota ready recorded=a once",
            &["a live open clone=1 ended-stamp job=1"],
            &[
                "retry Workload evicted on worker cluster: \"a\", resetting for re-admission. Previously: \"Ready\"",
            ],
        ),
    ]);
}
