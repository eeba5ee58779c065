//! The rows of docs/reference/multikueue.md §2.3, and the hazards of docs/reference/multikueue.md §2.15 that are decided here, by
//! their numbers.

use super::check;

#[test]
fn step_2_without_quota_or_at_the_end_copies_are_removed_everywhere_reachable() {
    check(&[
        (
            1,
            "finished",
            &["a live clone=1 job=1", "b live clone=1"],
            &["delete-job a", "delete-clone b"],
        ),
        // First, because the copy that is not reached may come back beside those of the next nomination.
        (1, "nominated=a", &["a live clone=1", "b lost=0 clone=1"], &["raise-epoch 2"]),
        (1, "nominated=a epoch=2", &["a live clone=1", "b lost=0 clone=1"], &["delete-clone a"]),
    ]);
}

#[test]
fn step_3_a_remote_end_is_copied_and_then_finishes_the_workload() {
    let hub = "quota ready recorded=a";
    check(&[
        (1, hub, &["a live clone=1 job=1 job-finished clone-finished=Succeeded"], &["sync a"]),
        (
            1,
            hub,
            &["a live clone=1 job=1 job-finished synced clone-finished=Succeeded"],
            &["finish Succeeded: all done"],
        ),
    ]);
}

#[test]
fn step_3_of_several_ends_that_of_the_recorded_cluster_counts() {
    let earlier = "a live clone=1 job=1 job-finished clone-finished=Succeeded";
    let recorded = "b live clone=1 job=1 job-finished synced clone-finished=Failed";
    check(&[
        (
            9,
            "quota ready recorded=b",
            &[earlier, recorded],
            &["delete-job a", "finish Failed: all done"],
        ),
        (
            9,
            "quota nominated=a,b race=a,b",
            &["a live clone=1 clone-finished=Succeeded", "b live clone=1 clone-finished=Failed"],
            &["raise-epoch 2"],
        ),
    ]);
}

#[test]
fn step_3_out_of_sync_is_a_retry_while_ready_and_never_an_end() {
    let retry = "retry Remote workload on worker cluster \"a\" is out of sync with its user job, \
                 resetting for re-dispatch, Previously: \"Ready\"";
    let copy = "a live clone=1 job=1 synced clone-finished=OutOfSync";
    check(&[
        (1, "quota ready recorded=a", &[copy], &[retry]),
        (1, "quota retry recorded=a", &[copy], &[]),
    ]);
}

#[test]
fn step_3_a_copy_without_its_owner_is_a_retry_while_the_job_is_open() {
    let retry = "retry Remote workload on worker cluster \"a\" is out of sync with its user job, \
                 resetting for re-dispatch, Previously: \"Ready\"";
    let end = "finish OwnerNotFound: all done";
    let (missing, there) = (
        "a live clone=1 clone-finished=OwnerNotFound",
        "a live clone=1 job=1 synced clone-finished=OwnerNotFound",
    );
    check(&[
        (1, "quota ready recorded=a started", &[missing], &[retry]),
        // The worker's Kueue may take a job for missing that runs.
        (1, "quota ready recorded=a started", &[there], &[retry]),
        (1, "quota retry recorded=a started", &[missing], &[]),
        // An end that is still there counts.
        (
            1,
            "quota ready recorded=a started",
            &["a live clone=1 job=1 job-finished clone-finished=OwnerNotFound"],
            &["sync a"],
        ),
        // Nothing is left to be dispatched.
        (1, "quota ready recorded=a ended", &[missing], &[end]),
        (1, "quota ready recorded=a jobless", &[missing], &[end]),
    ]);
}

#[test]
fn step_4a_the_local_job_of_an_evicted_workload_shows_no_active_pods() {
    let hub = "quota evicted ready recorded=a active raised epoch=2";
    check(&[
        (1, hub, &["a live clone=1 evicted job=1"], &["delete-job a"]),
        (1, hub, &["a live"], &["idle"]),
    ]);
}

#[test]
fn step_4b_an_eviction_on_the_worker_is_a_retry_once_the_check_is_ready() {
    let retry = "retry Workload evicted on worker cluster: \"a\", resetting for re-admission. \
                 Previously: \"Ready\"";
    check(&[
        (1, "quota ready recorded=a", &["a live clone=1 evicted job=1"], &[retry]),
        // Not yet: in a race it is requeued on the worker.
        (1, "quota nominated=a,b race=a,b", &["a live clone=1 evicted", "b live clone=1"], &[]),
    ]);
}

#[test]
fn step_5_another_spec_removes_the_copy_and_another_priority_is_written() {
    let hub = "quota nominated=a,b race=a,b";
    check(&[
        (1, hub, &["a live clone=1 other-spec", "b live clone=1"], &["delete-clone a"]),
        (
            1,
            "quota ready recorded=a",
            &["a live clone=1 other-priority job=1 synced"],
            &["push-priority a"],
        ),
    ]);
}

#[test]
fn step_6_the_earliest_admission_wins() {
    let hub = "quota nominated=a,b race=a,b";
    check(&[(
        9,
        hub,
        &["a live clone=1 admitted=5", "b live clone=1 admitted=4"],
        &["delete-clone a"],
    )]);
}

#[test]
fn step_6_of_two_admissions_in_one_second_the_first_name_wins_in_every_process() {
    let hub = "quota nominated=b,a race=a,b";
    let (a, b) = ("a live clone=1 admitted=5", "b live clone=1 admitted=5");
    check(&[(9, hub, &[a, b], &["delete-clone b"]), (9, hub, &[a, "b live"], &["ready a"])]);
}

#[test]
fn step_6_a_winner_that_has_left_the_config_is_not_recorded() {
    let hub = "quota nominated=a,b race=b unconfigured=a";
    let (a, b) = ("a live clone=1 admitted=4", "b live clone=1");
    check(&[
        (9, hub, &[a, b], &["nominate", "delete-clone a"]),
        (9, "quota nominated=b race=b", &["a live", "b live clone=1 admitted=6"], &["ready b"]),
        // Once it is recorded, the config says nothing about what runs.
        (
            9,
            "quota ready recorded=a unconfigured=a",
            &["a live clone=1 admitted=4 job=1 synced"],
            &[],
        ),
    ]);
}

#[test]
fn step_6a_a_winner_that_is_lost_waits_and_one_that_lacks_its_clone_does_not() {
    let lost = "retry Admitting remote lost, Previously: \"Ready\"";
    let gone = "retry Admitting remote no longer exists, Previously: \"Ready\"";
    let unrecorded = "retry Admission check is Ready but no admitting cluster is recorded; this is \
                      unexpected, please report it, Previously: \"Ready\"";
    let hub = "quota ready recorded=a";
    check(&[
        (99, hub, &["a lost=0 clone=1 job=1"], &["wait-until 100"]),
        (100, hub, &["a lost=0 clone=1 job=1"], &[lost]),
        (1, hub, &["a live"], &[gone]),
        (1, "quota ready", &["a live clone=1"], &[unrecorded]),
    ]);
}

#[test]
fn step_6b_every_other_copy_goes_before_the_winner_is_recorded_and_its_job_made() {
    let hub = "quota nominated=a,b race=a,b";
    check(&[
        (9, hub, &["a live clone=1 admitted=5", "b live clone=1"], &["delete-clone b"]),
        (9, hub, &["a live clone=1 admitted=5", "b live"], &["ready a"]),
        (9, "quota ready recorded=a", &["a live clone=1 admitted=5"], &["create-job a"]),
        // Evicted here: what runs there is stopped.
        (
            9,
            "quota evicted ready recorded=a",
            &["a live clone=1 admitted=5 job=1"],
            &["delete-job a"],
        ),
    ]);
}

#[test]
fn step_8_a_check_that_is_not_pending_nominates_nothing() {
    check(&[
        (1, "quota retry race=a", &["a live"], &[]),
        (1, "quota rejected race=a", &["a live"], &[]),
    ]);
}

#[test]
fn step_9_nomination_follows_when_every_other_check_is_ready() {
    check(&[
        (1, "quota awaits-checks race=a", &["a live"], &[]),
        (1, "quota race=a", &["a live"], &["nominate"]),
    ]);
}

#[test]
fn hazard_4_a_returning_copy_of_an_earlier_epoch_displaces_no_recorded_cluster() {
    check(&[(
        9,
        "quota ready recorded=b epoch=2",
        &["a live clone=1 admitted=1 job=1", "b live clone=2 admitted=5 job=2 synced"],
        &["delete-job a"],
    )]);
}

#[test]
fn hazard_5_nothing_is_left_to_do_when_every_cluster_is_nominated() {
    check(&[(999, "quota nominated=a,b race=a,b", &["a live clone=1", "b live clone=1"], &[])]);
}

#[test]
fn a_race_with_an_end_is_cancelled_when_no_queue_has_admitted_the_workload() {
    let hub = "quota nominated=a,b race=a,b race-until=300";
    let copies: &[&str] = &["a live clone=1", "b live clone=1"];
    let late = "unplace a: not admitted by the worker in time";
    check(&[
        (299, hub, copies, &["wait-until 300"]),
        (300, hub, copies, &["raise-epoch 2"]),
        (300, "quota nominated=a,b race=a,b race-until=300 raised epoch=2", copies, &[late]),
        (300, hub, &["a live clone=1 admitted=299", "b live"], &["ready a"]),
    ]);
}

#[test]
fn step_6b_work_without_a_recorded_cluster_is_recorded_where_it_is_admitted() {
    let hub = "quota ready nominated=b";
    let runs = "a live clone=1 admitted=1 job=1";
    let retry = "retry Admission check is Ready but no admitting cluster is recorded; this is unexpected, \
                 please report it, Previously: \"Ready\"";
    check(&[
        (1, hub, &[runs], &["ready a"]),
        (1, hub, &[runs, "b live clone=1"], &["delete-clone b"]),
        (1, hub, &[runs, "b live clone=1 admitted=2 job=1"], &["delete-job b"]),
        // The clone of a cluster that was not reached when the race ended.
        (
            1,
            hub,
            &["a live clone=1 admitted=2 job=1", "b live clone=1 admitted=1"],
            &["delete-clone b"],
        ),
        (1, hub, &["a unlisted=0", "b live clone=1 admitted=1"], &["wait-until 100"]),
        // It may run where the hub does not look.
        (1, hub, &["a lost=0 clone=1 admitted=1 job=1", "b live"], &["wait-until 100"]),
        (1, hub, &["a unlisted=0"], &["wait-until 100"]),
        (1, hub, &["a live clone=1", "b live"], &[retry]),
        (1, hub, &[], &[retry]),
    ]);
}

#[test]
fn step_1_a_slice_that_another_one_replaces_or_extends_leaves_its_copies() {
    check(&[
        // It has finished because the later slice took its jobs over.
        (1, "finished quota", &["a live clone=1 job=1 job-handed-over"], &[]),
        // It grows the job and has no quota yet.
        (1, "extends", &["a live short"], &[]),
    ]);
}

#[test]
fn step_7_one_gate_is_opened_while_no_copy_is_admitted() {
    let hub = "quota nominated=a,b race=a,b";
    check(&[
        (9, hub, &["a live clone=1 blocked=5", "b live clone=1 blocked=6"], &["open-gate a"]),
        // Step 6 comes first.
        (9, hub, &["a live clone=1 blocked=5", "b live clone=1 admitted=8"], &["delete-clone a"]),
    ]);
}

#[test]
fn consequence_of_two_workers_that_admit_at_once_the_earlier_one_gets_the_jobs() {
    let hub = "quota nominated=a,b race=a,b";
    let (late, early) = ("a live clone=1 admitted=5", "b live clone=1 admitted=4");
    check(&[
        (9, hub, &[late, early], &["delete-clone a"]),
        (9, hub, &["a live", early], &["ready b"]),
        (9, "quota ready recorded=b", &["a live", early], &["create-job b"]),
    ]);
}

#[test]
fn consequence_a_clone_that_is_preempted_before_it_was_seen_admitted_stays_nominated() {
    let hub = "quota nominated=a,b race=a,b";
    check(&[
        (9, hub, &["a live clone=1 evicted", "b live clone=1"], &[]),
        (9, hub, &["a live clone=1 admitted=8", "b live"], &["ready a"]),
    ]);
}

#[test]
fn consequence_a_clone_that_is_preempted_after_ready_is_dispatched_again() {
    let retry = "retry Workload evicted on worker cluster: \"a\", resetting for re-admission. \
                 Previously: \"Ready\"";
    check(&[
        (9, "quota ready recorded=a", &["a live clone=1 evicted job=1"], &[retry]),
        (9, "epoch=2", &["a live clone=1 evicted job=1"], &["delete-job a"]),
        (9, "epoch=2", &["a live clone=1 evicted"], &["delete-clone a"]),
        (9, "quota epoch=2", &["a live", "b live"], &["nominate"]),
    ]);
}

#[test]
fn consequence_an_end_that_was_not_seen_counts_when_the_worker_is_back_in_time() {
    let hub = "quota ready recorded=a";
    let lost = "retry Admitting remote lost, Previously: \"Ready\"";
    let ended = "a live clone=1 job=1 job-finished clone-finished=Succeeded";
    check(&[
        (99, hub, &["a lost=0 clone=1 job=1"], &["wait-until 100"]),
        (99, hub, &[ended], &["sync a"]),
        (100, hub, &["a lost=0 clone=1 job=1"], &[lost]),
    ]);
}

#[test]
fn consequence_an_edited_job_is_dispatched_again() {
    let gone = "retry Admitting remote no longer exists, Previously: \"Ready\"";
    let hub = "quota ready recorded=a";
    check(&[
        (9, hub, &["a live clone=1 other-spec job=1 synced"], &["delete-job a"]),
        (9, hub, &["a live clone=1 other-spec"], &["delete-clone a"]),
        (9, hub, &["a live"], &[gone]),
    ]);
}

#[test]
fn consequence_a_clone_that_finished_without_its_job_finishes_the_workload() {
    let hub = "quota ready recorded=a open";
    let finish = "finish Succeeded: all done, no end from a";
    let unanswered = "a live clone=1 clone-finished=Succeeded unsettled";
    check(&[
        (9, hub, &["a live clone=1 clone-finished=Succeeded"], &[finish]),
        // The create of the job has no answer: it is read first, for a while.
        (39, &format!("{hub} end-awaited=10"), &[unanswered], &["wait-until 40"]),
        (40, &format!("{hub} end-awaited=10"), &[unanswered], &[finish]),
    ]);
}
