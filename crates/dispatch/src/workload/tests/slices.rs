//! Slices of an elastic job that grows on a worker.

use super::check;

#[test]
fn a_slice_that_extends_another_is_admitted_without_jobs_of_its_own() {
    check(&[
        (1, "quota nominated=a extends", &["a live short"], &["create-clone a", "wait-until 50"]),
        (1, "quota nominated=a extends", &["a live clone=1 short"], &["wait-until 50"]),
        (1, "quota nominated=a extends", &["a live clone=1 admitted=1 short"], &["ready a"]),
        (1, "quota nominated=a race=a extends", &["a live clone=1 admitted=1"], &["ready a"]),
        // The status of the job is that of the earlier slice.
        (1, "quota ready recorded=a extends started", &["a live clone=1 admitted=1"], &[]),
        (
            1,
            "quota nominated=a",
            &["a live clone=1 admitted=1"],
            &["create-job a", "wait-until 50"],
        ),
    ]);
}

#[test]
fn a_slice_that_no_worker_takes_leaves_the_jobs_of_the_earlier_one() {
    check(&[
        (60, "quota nominated=a extends", &["a live clone=1 short"], &["raise-epoch 2"]),
        (
            60,
            "quota nominated=a epoch=2 raised extends",
            &["a live clone=1 short"],
            &["unplace a: not admitted by the worker in time"],
        ),
        (1, "quota evicted nominated=a extends", &["a live clone=1 short"], &["delete-clone a"]),
        (1, "extends", &["a live clone=1 short"], &["delete-clone a"]),
        (1, "extends", &["a live short"], &[]),
    ]);
}

#[test]
fn a_slice_waits_until_the_jobs_of_one_that_leaves_are_gone() {
    check(&[
        (1, "quota nominated=a earlier-leaves", &["a live clone=1 admitted=1 short"], &[]),
        (1, "quota earlier-leaves", &["a live short"], &[]),
    ]);
}

#[test]
fn the_clone_of_an_earlier_slice_goes_once_the_job_names_the_later_one() {
    check(&[
        (1, "finished quota", &["a live clone=1 job=1 job-handed-over"], &[]),
        (1, "gone epoch=0", &["a live clone=1 job=1 job-handed-over"], &[]),
        (1, "finished quota", &["a live clone=1 short"], &["delete-clone a"]),
        (1, "gone epoch=0 jobless", &["a live clone=1 short"], &["delete-clone a"]),
    ]);
}

#[test]
fn a_copy_that_names_an_earlier_slice_is_changed_and_removed_with_the_later_one() {
    let inherited = "a live clone=1 admitted=1 job=1 job-resized";
    check(&[
        (1, "quota ready recorded=a started", &[inherited], &["push-size a", "sync a"]),
        (1, "quota evicted ready recorded=a started", &[inherited], &["delete-job a"]),
    ]);
}

#[test]
fn a_clone_that_was_finished_for_a_later_slice_is_no_end() {
    let clone = "a live clone=1 admitted=1 clone-finished=WorkloadSliceReplaced job=1 synced";
    let gone = "retry Admitting remote no longer exists, Previously: \"Ready\"";
    check(&[
        (1, "quota ready recorded=a started successor", &[clone], &[]),
        (1, "quota ready recorded=a started", &[clone], &[gone]),
    ]);
}

/// Upstream's scheduler records the cluster of the earlier slice together with the quota, and finishes that slice at once.
#[test]
fn a_slice_that_is_recorded_from_the_start_is_created_there() {
    let hub = "quota recorded=a slice";
    check(&[
        (
            1,
            hub,
            &["a live job=1 job-resized"],
            &["push-size a", "create-clone a", "wait-until 50"],
        ),
        (1, hub, &["a live clone=1 admitted=1 job=1 synced"], &["ready a"]),
        // The earlier slice still has its quota.
        (
            1,
            "quota recorded=a slice extends",
            &["a live short"],
            &["create-clone a", "wait-until 50"],
        ),
        (1, "quota recorded=a slice extends", &["a live clone=1 admitted=1 short"], &["ready a"]),
        // What is not reached may have it.
        (1, hub, &["a lost=0"], &["wait-until 100"]),
        // Any other Workload is recorded where its copy was.
        (
            1,
            "quota recorded=a",
            &["a live"],
            &["retry Admitting remote no longer exists, Previously: \"Ready\""],
        ),
    ]);
}
