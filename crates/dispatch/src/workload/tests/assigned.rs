//! The recorded cluster: its status, its end, and when it is given up.

use super::*;

#[test]
fn the_recorded_cluster_runs_the_job_and_its_status_is_copied() {
    let hub = "quota ready recorded=a";
    check(&[
        (1, hub, &["a live clone=1 admitted=1"], &["create-job a"]),
        (1, hub, &["a live clone=1 admitted=1 unsettled"], &[]),
        (1, hub, &["a live clone=1 job=1"], &["sync a"]),
        (1, hub, &["a live clone=1 job=1 synced"], &[]),
        (1, "quota ready recorded=a suspended", &["a live clone=1 job=1"], &[]),
        (1, "quota ready recorded=a jobless", &["a live clone=1 job=1"], &[]),
        (1, hub, &["a live clone=1 job=1 job-deleting"], &[]),
        (1, hub, &["a unlisted=0"], &["wait-until 100"]),
        (1, hub, &["a live clone=1 job=1 synced", "b live clone=1 job=1"], &["delete-job b"]),
    ]);
}

#[test]
fn a_recorded_cluster_without_the_workload_sets_the_check_to_retry() {
    let gone = "retry Admitting remote no longer exists, Previously: \"Ready\"";
    let lost = "retry Admitting remote lost, Previously: \"Ready\"";
    let evicted = "retry Workload evicted on worker cluster: \"a\", resetting for re-admission. \
                   Previously: \"Ready\"";
    let refused = "retry Worker cluster \"a\" refused the job, resetting for re-dispatch, \
                   Previously: \"Ready\"";
    let unrecorded = "retry Admission check is Ready but no admitting cluster is recorded; this is \
                      unexpected, please report it, Previously: \"Ready\"";
    let hub = "quota ready recorded=a";
    check(&[
        (1, hub, &["a live"], &[gone]),
        (1, hub, &["a live job=1"], &[gone]),
        (1, "quota ready recorded=a started", &["a live clone=1"], &[gone]),
        (1, hub, &["a live clone=1 api-refused=forbidden"], &[refused]),
        (99, hub, &["a lost=0 clone=1 job=1"], &["wait-until 100"]),
        (100, hub, &["a lost=0 clone=1 job=1"], &[lost]),
        (1, hub, &["a live clone=1 job=1 evicted"], &[evicted]),
        (1, "quota ready", &["a live clone=1 job=1"], &[unrecorded]),
    ]);
}

#[test]
fn a_worker_that_admits_and_starts_nothing_is_given_up() {
    let dead = "retry Worker cluster \"a\" did not start the job in time, resetting for \
                re-dispatch, Previously: \"Ready\"";
    let hub = "quota ready recorded=a start-awaited=10";
    let waiting = "a live clone=1 admitted=1 job=1 job-suspended synced";
    check(&[
        (39, hub, &[waiting], &["wait-until 40"]),
        (40, hub, &[waiting], &[dead]),
        // Its agent is dead, and no create of the job is answered.
        (39, hub, &["a live clone=1 admitted=1 unsettled"], &["wait-until 40"]),
        (40, hub, &["a live clone=1 admitted=1 unsettled"], &[dead]),
        // It runs, it ends, it was evicted, or it is not reached: other rules hold.
        (99, hub, &["a live clone=1 admitted=1 job=1 synced"], &[]),
        (99, hub, &["a live clone=1 admitted=1 job=1 job-suspended job-deleting"], &[]),
        (99, hub, &["a lost=20 clone=1 job=1 job-suspended"], &["wait-until 120"]),
        // A process that does not remember begins to wait.
        (99, "quota ready recorded=a", &[waiting], &[]),
    ]);
}

#[test]
fn running_work_leaves_a_drained_cluster_at_the_deadline() {
    let hub = "quota ready recorded=a drained-at=10";
    let drained = "retry Worker cluster \"a\" is drained, resetting for re-dispatch, Previously: \
                   \"Ready\"";
    check(&[
        (9, hub, &["a live clone=1 job=1 synced"], &["wait-until 10"]),
        (10, hub, &["a live clone=1 job=1 synced"], &[drained]),
        // What has ended there has ended.
        (
            10,
            hub,
            &["a live clone=1 job=1 job-finished synced clone-finished=Succeeded"],
            &["finish Succeeded: all done"],
        ),
    ]);
}

#[test]
fn the_final_status_is_copied_before_the_workload_is_finished() {
    let hub = "quota ready recorded=a";
    let done = "finish Succeeded: all done";
    let finished = "a live clone=1 job=1 clone-finished=Succeeded";
    let sync = |words: &str| format!("{finished} {words}");
    check(&[
        (1, hub, &[&sync("job-finished")], &["sync a"]),
        (1, hub, &[&sync("synced")], &[]),
        (1, hub, &[&sync("job-finished synced")], &[done]),
        (1, "quota ready recorded=a suspended", &[&sync("job-finished")], &[]),
        (1, "quota ready recorded=a jobless", &[finished], &[done]),
        (1, hub, &["a live clone=1 clone-finished=Succeeded"], &[done]),
        (1, hub, &["a live clone=1 job=1 clone-finished=FailedToStart"], &["sync a"]),
        (
            1,
            hub,
            &["a live clone=1 job=1 clone-finished=FailedToStart synced"],
            &["finish FailedToStart: all done"],
        ),
        (
            1,
            hub,
            &["a live clone=1 job=1 clone-finished=OutOfSync"],
            &[
                "retry Remote workload on worker cluster \"a\" is out of sync with its user job, resetting for \
               re-dispatch, Previously: \"Ready\"",
            ],
        ),
    ]);
}

#[test]
fn a_job_without_a_copy_to_take_its_end_from_is_reported_with_the_end_of_its_workload() {
    let hub = "quota ready recorded=a open";
    let finished = "a live clone=1 clone-finished=Succeeded";
    let (done, reported) =
        ("finish Succeeded: all done", "finish Succeeded: all done, no end from a");
    let copy = |words: &str| format!("{finished} {words}");
    check(&[
        (1, hub, &[finished], &[reported]),
        (1, "quota ready recorded=a open started", &[finished], &[reported]),
        (1, "quota ready recorded=a open suspended", &[finished], &[reported]),
        (1, hub, &[&copy("job=1 job-finished synced short")], &[reported]),
        // The create of the job has no answer: it may be there.
        (1, hub, &[&copy("unsettled")], &[]),
        (1, hub, &[&copy("job=1 job-finished synced short unsettled")], &[]),
        (1, hub, &[&copy("job=1 job-finished short unsettled")], &["sync a"]),
        (1, "quota ready recorded=a jobless", &[&copy("unsettled")], &[done]),
        (1, hub, &[&copy("job=1 job-finished synced")], &[done]),
        (1, hub, &[&copy("job=1 job-finished job-end-refused")], &["sync a"]),
        (1, hub, &[&copy("job=1 job-finished job-end-refused synced")], &[reported]),
        (1, "quota ready recorded=a", &[finished], &[done]),
        (1, "quota ready recorded=a jobless", &[finished], &[done]),
    ]);
}

#[test]
fn a_copy_that_may_exist_is_waited_for_no_longer_than_its_start() {
    let hub = "quota ready recorded=a open end-awaited=10";
    let reported = "finish Succeeded: all done, no end from a";
    let unsettled = "a live clone=1 clone-finished=Succeeded unsettled";
    let synced =
        "a live clone=1 clone-finished=Succeeded job=1 job-finished synced short unsettled";
    check(&[
        (39, hub, &[unsettled], &["wait-until 40"]),
        (40, hub, &[unsettled], &[reported]),
        (40, hub, &[synced], &[reported]),
        // Its end is copied first.
        (
            40,
            hub,
            &["a live clone=1 clone-finished=Succeeded job=1 job-finished short unsettled"],
            &["sync a"],
        ),
        (40, hub, &["a lost=20 clone=1 clone-finished=Succeeded unsettled"], &["wait-until 120"]),
        // A process that does not remember begins to wait.
        (99, "quota ready recorded=a open", &[unsettled], &[]),
    ]);
}

#[test]
fn a_copy_of_another_epoch_is_never_adopted() {
    let hub = "quota ready recorded=a epoch=2";
    check(&[
        (1, hub, &["a live clone=1 job=1 clone-finished=Succeeded"], &["delete-job a"]),
        (1, hub, &["a live clone=1"], &["delete-clone a"]),
        (1, hub, &["a live clone=2 job=1"], &["delete-job a"]),
        (1, hub, &["a live clone=2 job=2 job-unknown"], &[]),
        (1, hub, &["a live clone=2 departed job=2"], &["delete-job a"]),
        (1, hub, &["a live clone=2 other-spec job=2"], &["delete-job a"]),
    ]);
}

#[test]
fn a_check_in_retry_waits_for_the_eviction() {
    check(&[
        (1, "quota retry recorded=a", &["a live clone=1 job=1"], &[]),
        (1, "quota rejected nominated=a", &["a live"], &[]),
    ]);
}

/// An API server that answers and never completes a list is not reached.
#[test]
fn a_cluster_that_is_never_listed_is_lost_like_one_without_a_connection() {
    check(&[
        (
            100,
            "quota evicted ready recorded=a",
            &["a unlisted=0 clone=1 job=1"],
            &["raise-epoch 2"],
        ),
        (
            100,
            "quota ready recorded=a",
            &["a unlisted=0 clone=1 job=1"],
            &["retry Admitting remote lost, Previously: \"Ready\""],
        ),
        (100, "quota nominated=a", &["a unlisted=0"], &["raise-epoch 2"]),
        (
            100,
            "quota nominated=a epoch=2 raised unsent",
            &["a unlisted=0"],
            &["unplace a: the worker was lost before it admitted the workload"],
        ),
        (100, "gone active recorded=a", &["a unlisted=0 clone=1"], &["idle"]),
    ]);
}

/// A Workload that runs on `a`, with a check that is not Ready.
#[test]
fn work_goes_on_where_it_is_recorded_whatever_its_check_says() {
    const GONE: &str = "retry Admitting remote no longer exists, Previously: \"Ready\"";
    let running = &["a live clone=1 admitted=1 job=1 synced"][..];
    check(&[
        // Another check took the place of the one that was Ready, or a client has set its state.
        (1, "epoch=1 quota started recorded=a", running, &["ready a"]),
        (1, "epoch=1 quota started recorded=a nominated=a", running, &["ready a"]),
        // A further check is open: nothing is taken back, and nothing starts.
        (1, "epoch=1 quota started recorded=a awaits-checks", running, &[]),
        (1, "epoch=1 quota started recorded=a", &["a live clone=1 job=1 synced"], &[]),
        (1, "epoch=1 quota started recorded=a", &["a live"], &[GONE]),
        (1, "epoch=1 quota started recorded=a", &["a lost=0 clone=1 job=1"], &["wait-until 100"]),
        // A later slice gets a clone of its own where its predecessor runs.
        (
            1,
            "epoch=1 quota started recorded=a nominated=a extends",
            &["a live job=1 synced"],
            &["create-clone a", "wait-until 50"],
        ),
    ]);
}

#[test]
fn a_clone_that_its_worker_has_deactivated_is_reported_as_evicted() {
    let hub = "epoch=1 quota ready started recorded=a";
    let evicted = "retry Workload evicted on worker cluster: \"a\", resetting for re-admission. Previously: \"Ready\"";
    check(&[
        (1, hub, &["a live clone=1 other-spec evicted job=1 synced"], &[evicted]),
        (1, hub, &["a live clone=1 other-spec job=1 synced"], &["delete-job a"]),
    ]);
}
