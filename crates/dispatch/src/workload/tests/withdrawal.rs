//! Copies without quota, evicted or left over: they stop first, and are removed everywhere.

use super::*;

#[test]
fn a_job_that_others_share_is_left_to_them() {
    check(&[
        (1, "gone", &["a live clone=1 job=1 job-shared"], &["delete-clone a"]),
        (1, "gone", &["a live clone=1 job=1"], &["delete-job a"]),
        (
            1,
            "epoch=1 quota evicted ready recorded=a",
            &["a live clone=1 job=1 job-shared"],
            &["delete-clone a"],
        ),
        (
            1,
            "epoch=1 quota evicted ready recorded=a",
            &["a live job=1 job-shared"],
            &["raise-epoch 2"],
        ),
        // The set goes with every epoch, so it holds up none.
        (1, "quota", &["a live job=1 job-shared"], &["nominate"]),
        (1, "epoch=1", &["a live job=1 job-shared"], &[]),
        (1, "epoch=1", &["a lost=0 job=1 job-shared"], &[]),
    ]);
}

#[test]
fn a_set_that_others_share_holds_up_no_other_cluster_without_a_clone() {
    let quota = "quota nominated=b";
    let creates = &["create-clone b", "create-job b", "wait-until 50"];
    let admitted = "b live clone=1 admitted=1 job=1";
    for others in ["a live job=1 job-shared", "a lost=0 job=1 job-shared"] {
        check(&[
            (1, quota, &[others, "b live"], creates),
            (1, quota, &[others, admitted], &["ready b"]),
            (1, "quota ready nominated=b recorded=b", &[others, admitted], &["sync b"]),
        ]);
    }
    // With the clone it starts pods.
    let with_clone = "a lost=0 clone=1 job=1 job-shared";
    check(&[
        (1, quota, &[with_clone, "b live"], &["wait-until 50"]),
        (1, quota, &[with_clone, admitted], &[]),
        // The clone may have been created.
        (1, "quota race=a,b nominated=a,b", &["a lost=0 job=1 job-shared", admitted], &[]),
        (
            100,
            "quota race=a,b nominated=a,b",
            &["a lost=0 job=1 job-shared", admitted],
            &["ready b"],
        ),
    ]);
}

#[test]
fn a_copy_that_is_not_reached_when_quota_ends_is_of_an_earlier_epoch_afterwards() {
    check(&[
        (1, "epoch=3", &["a lost=0 clone=3 job=3"], &["raise-epoch 4"]),
        (1, "epoch=4", &["a lost=0 clone=3 job=3"], &[]),
        (1, "epoch=3", &["a live clone=3 job=3"], &["delete-job a"]),
    ]);
}

#[test]
fn copies_that_the_hub_no_longer_needs_are_removed_job_first() {
    check(&[
        (1, "gone", &["a live clone=1 job=1"], &["delete-job a"]),
        (1, "finished quota", &["a live clone=1 job=1 job-deleting"], &[]),
        (
            1,
            "recorded=a",
            &["a live clone=1", "b live clone=1 job=1"],
            &["delete-clone a", "delete-job b"],
        ),
        (1, "gone", &["a live clone=1 clone-deleting"], &[]),
        (1, "gone", &["a live clone=1 unsettled"], &[]),
        (1, "gone", &["a unlisted=0 clone=1", "b lost=-500 clone=1"], &[]),
        (1, "gone", &[], &[]),
        // The pods of the job are gone when the copies are; only dispatch reports it.
        (1, "gone active recorded=a", &["a live clone=1 job=1"], &["delete-job a"]),
        (1, "gone active recorded=a", &["a live"], &["idle"]),
        (1, "gone active recorded=a", &["a live unsettled"], &[]),
        (1, "gone active recorded=a", &["a lost=0"], &["wait-until 100"]),
        (100, "gone active recorded=a", &["a lost=0"], &["idle"]),
        (1, "finished active", &["a live"], &[]),
    ]);
}

#[test]
fn an_evicted_workload_is_withdrawn_step_by_step() {
    let hub = "quota evicted ready recorded=a active";
    check(&[
        (1, hub, &["a live clone=1 job=1", "b live clone=1"], &["delete-job a", "delete-clone b"]),
        (1, hub, &["a live clone=1 job=1 job-deleting"], &[]),
        (1, hub, &["a live clone=1"], &["delete-clone a"]),
        (1, hub, &["a live clone=1 clone-deleting"], &["raise-epoch 2"]),
        (1, hub, &["a live"], &["raise-epoch 2"]),
        (1, "quota evicted recorded=a active raised epoch=2", &["a live"], &["idle"]),
        (1, "quota evicted recorded=a raised epoch=2", &["a live"], &["withdrawn"]),
        (1, "quota evicted recorded=a active jobless raised epoch=2", &["a live"], &["withdrawn"]),
        (1, "quota evicted raised epoch=2", &[], &["withdrawn"]),
    ]);
}

#[test]
fn a_clone_that_a_finalizer_keeps_holds_up_no_other_cluster() {
    let leaves = "a live clone=1 clone-deleting";
    let with_job = format!("{leaves} job=1 job-deleting");
    let shared = format!("{leaves} job=1 job-shared");
    let evicted = "quota evicted recorded=a";
    let missing = "retry Admitting remote no longer exists, Previously: \"Ready\"";
    check(&[
        (1, evicted, &[leaves], &["raise-epoch 2"]),
        (1, "quota evicted raised recorded=a epoch=2", &[leaves], &["withdrawn"]),
        (1, evicted, &[&with_job], &[]),
        (1, evicted, &[&format!("{leaves} unsettled")], &[]),
        // The pods of a set end with the clone.
        (1, evicted, &[&shared], &[]),
        (1, "quota epoch=2", &[leaves], &["nominate"]),
        // The next clone must not have its epoch.
        (1, "epoch=1", &[leaves], &["raise-epoch 2"]),
        (1, "epoch=2", &[leaves], &[]),
        (1, "quota", &[leaves], &["raise-epoch 2"]),
        (
            1,
            "quota epoch=2 nominated=b",
            &[leaves, "b live"],
            &["create-clone b", "create-job b", "wait-until 50"],
        ),
        (
            1,
            "quota epoch=2 nominated=b",
            &[leaves, "b live clone=2 job=2 admitted=1"],
            &["ready b"],
        ),
        // Deleted on the worker while its job runs: the Workload is withdrawn, and the job ends.
        (1, "quota ready recorded=a", &[&format!("{leaves} job=1")], &[missing]),
        (1, evicted, &[&format!("{leaves} job=1")], &["delete-job a"]),
        // The loser of a race.
        (1, "quota nominated=a,b", &[leaves, "b live clone=1 admitted=1"], &["ready b"]),
        (1, "gone", &[leaves], &[]),
    ]);
}

#[test]
fn nothing_is_withdrawn_while_a_copy_may_run() {
    let hub = "quota evicted ready recorded=a";
    check(&[
        (1, hub, &["a unlisted=0"], &["wait-until 100"]),
        (1, hub, &["a live unsettled"], &[]),
        (1, hub, &[], &[]),
        (99, hub, &["a lost=0 clone=1 job=1"], &["wait-until 100"]),
        (99, hub, &["a lost=0"], &["wait-until 100"]),
        (100, hub, &["a lost=0 clone=1 job=1"], &["raise-epoch 2"]),
        (99, "quota evicted nominated=a unsent", &["a lost=0"], &["raise-epoch 2"]),
        (99, hub, &["a live", "b lost=10 clone=1"], &["wait-until 110"]),
        (99, hub, &["a live job=1", "b lost=10 clone=1"], &["delete-job a", "wait-until 110"]),
    ]);
}

#[test]
fn a_copy_of_an_earlier_epoch_on_a_lost_cluster_counts_as_stopped() {
    check(&[
        (
            1,
            "quota evicted recorded=a epoch=3",
            &["a live", "b lost=0 clone=2 job=2"],
            &["raise-epoch 4"],
        ),
        (
            1,
            "quota evicted recorded=a epoch=3",
            &["a live", "b live clone=2 job=2"],
            &["delete-job b"],
        ),
    ]);
}
