//! Workloads of several jobs.

use super::*;

#[test]
fn hazard_13_a_group_of_jobs_is_created_followed_and_removed_together() {
    let nominated = "quota nominated=a";
    let recorded = "quota ready recorded=a";
    check(&[
        (1, nominated, &["a live clone=1 job=1 short"], &["create-job a", "wait-until 50"]),
        (
            1,
            nominated,
            &["a live clone=1 admitted=1 job=1 short"],
            &["create-job a", "wait-until 50"],
        ),
        (1, nominated, &["a live clone=1 admitted=1 job=1 job=1"], &["ready a"]),
        // A member that joins while others run is created there, too.
        (1, recorded, &["a live clone=1 job=1 synced short"], &["create-job a"]),
        (
            1,
            "quota ready recorded=a started",
            &["a live clone=1 job=1 synced short"],
            &["create-job a"],
        ),
        // Its name may be held: the status of the others is copied before its create is tried again.
        (1, recorded, &["a live clone=1 job=1 short held"], &["sync a"]),
        (1, recorded, &["a live clone=1 job=1 synced short held"], &["create-job a"]),
        (1, recorded, &["a live clone=1 job=1 synced job=1"], &["sync a"]),
        (1, recorded, &["a live clone=1 job=1 synced job=1 synced"], &[]),
        (1, recorded, &["a live clone=1 job=1 job=1 job-deleting"], &[]),
        // The Workload finishes with its last member, which is still waited for.
        (
            1,
            recorded,
            &["a live clone=1 job=1 job-finished synced job=1 synced clone-finished=Succeeded"],
            &[],
        ),
        (1, "gone", &["a live clone=1 job=1 job-deleting job=1"], &["delete-job a"]),
        (1, "gone", &["a live clone=1 job=1 job-deleting job=1 job-deleting"], &[]),
        (
            1,
            "quota nominated=a epoch=2",
            &["a live clone=2 job=2 job=1"],
            &["delete-job a", "wait-until 50"],
        ),
    ]);
}

#[test]
fn a_member_that_is_deleted_on_the_hub_ends_where_it_runs_and_the_others_go_on() {
    let recorded = "quota ready recorded=a started";
    check(&[
        (1, recorded, &["a live clone=1 job=1 job-abandoned job=1 synced"], &["delete-members a"]),
        // While it ends, the status of all is copied, and its successor is created.
        (1, recorded, &["a live clone=1 job=1 job-abandoned job-deleting job=1"], &["sync a"]),
        (
            1,
            recorded,
            &["a live clone=1 job=1 job-abandoned job-deleting synced job=1 synced short"],
            &["create-job a"],
        ),
        // What has ended runs nothing, and its logs stay until the Workload ends.
        (
            1,
            recorded,
            &["a live clone=1 job=1 job-abandoned job-finished synced job=1 synced"],
            &[],
        ),
        // A hub that was restored from a backup does not know its own members.
        (1, recorded, &["a live clone=1 job=1 job-abandoned synced job-unknown job=1 synced"], &[]),
        (1, recorded, &["a lost=0 clone=1 job=1 job-abandoned synced"], &["wait-until 100"]),
    ]);
}
