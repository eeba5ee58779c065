//! Nominated clusters, alone or in a race, until one is recorded or the nomination ends.

use super::*;

#[test]
fn a_nominated_cluster_that_leaves_the_configuration_gets_nothing_new() {
    let race = "quota nominated=a,b unconfigured=b race=a";
    check(&[
        // The shorter nomination is written, and what is there is removed.
        (
            1,
            race,
            &["a live clone=1", "b live clone=1 admitted=5"],
            &["nominate", "delete-clone b"],
        ),
        (1, race, &["a live", "b live"], &["nominate", "create-clone a"]),
        (
            1,
            race,
            &["a live clone=1 admitted=9", "b live clone=1 admitted=5"],
            &["nominate", "delete-clone b"],
        ),
        (1, race, &["a live clone=1 admitted=9", "b live"], &["nominate", "ready a"]),
        (
            1,
            "quota nominated=b unconfigured=b race=",
            &["b live clone=1 admitted=5"],
            &["nominate", "delete-clone b"],
        ),
        // A clone alone starts nothing where nothing answers.
        (1, race, &["a live clone=1 admitted=9", "b lost=0 clone=1"], &["nominate", "ready a"]),
        // One that was chosen alone is cancelled, and its job stopped before.
        (
            1,
            "quota nominated=b unconfigured=b",
            &["b live clone=1 admitted=5 job=1"],
            &["delete-job b"],
        ),
        (1, "quota nominated=b unconfigured=b", &["b live clone=1 admitted=5"], &["raise-epoch 2"]),
        (
            1,
            "quota nominated=b unconfigured=b epoch=2 raised",
            &["b live clone=1"],
            &["unplace b: it was taken out of the MultiKueueConfig"],
        ),
        (1, "quota nominated=b unconfigured=b", &["b lost=0 job=1"], &["wait-until 100"]),
        // A recorded one keeps its work.
        (
            1,
            "quota ready recorded=b nominated=b unconfigured=b",
            &["b live clone=1 admitted=5 job=1 synced"],
            &[],
        ),
    ]);
}

#[test]
fn a_single_nominated_cluster_gets_clone_and_job_at_once() {
    let hub = "quota nominated=a";
    check(&[
        (1, hub, &["a live"], &["create-clone a", "create-job a", "wait-until 50"]),
        (1, hub, &["a live clone=1"], &["create-job a", "wait-until 50"]),
        (1, hub, &["a live job=1"], &["create-clone a", "wait-until 50"]),
        (1, hub, &["a live clone=1 job=1"], &["wait-until 50"]),
        (1, hub, &["a live unsettled"], &["wait-until 50"]),
        (1, hub, &["a unlisted=0"], &["wait-until 100"]),
        (1, hub, &[], &[]),
    ]);
}

#[test]
fn a_race_creates_clones_only() {
    let hub = "quota nominated=a,b";
    check(&[
        (1, hub, &["a live", "b live clone=1"], &["create-clone a"]),
        (999, hub, &["a live clone=1", "b live clone=1 evicted"], &[]),
        (1, hub, &["a live clone=1 refused=no", "b live clone=1"], &[]),
        (1, hub, &["a live clone=1", "b lost=0"], &["wait-until 100"]),
    ]);
}

#[test]
fn stale_copies_are_removed_before_new_ones_are_created() {
    let hub = "quota nominated=a epoch=2";
    check(&[
        (1, hub, &["a live clone=1 job=1"], &["delete-job a", "wait-until 50"]),
        (1, hub, &["a live clone=1"], &["delete-clone a", "wait-until 50"]),
        (1, hub, &["a live clone=2 other-spec job=2"], &["delete-job a", "wait-until 50"]),
        (1, hub, &["a live clone=2 other-spec"], &["delete-clone a", "wait-until 50"]),
        (1, hub, &["a live clone=2 job=1"], &["delete-job a", "wait-until 50"]),
        (1, hub, &["a live clone=2 clone-deleting"], &["wait-until 50"]),
        (
            1,
            hub,
            &["a live", "b live clone=1"],
            &["delete-clone b", "create-clone a", "create-job a", "wait-until 50"],
        ),
        (1, hub, &["a live", "b live clone=2 job=2"], &["delete-job b", "wait-until 50"]),
        (1, hub, &["a live", "b lost=0 clone=2 job=2"], &["wait-until 50"]),
    ]);
}

#[test]
fn the_first_cluster_to_admit_is_recorded_when_the_other_copies_are_gone() {
    let hub = "quota nominated=a,b,c";
    check(&[
        (1, "quota nominated=a", &["a live clone=1 job=1 admitted=1"], &["ready a"]),
        (
            9,
            hub,
            &["a live clone=1 admitted=5", "b live clone=1 admitted=4", "c live clone=1"],
            &["delete-clone a", "delete-clone c"],
        ),
        (9, hub, &["a live", "b live clone=1 admitted=4", "c live"], &["ready b"]),
        (
            9,
            hub,
            &["a live clone=1 admitted=4", "b live", "c live clone=1 admitted=4"],
            &["delete-clone c"],
        ),
        (9, hub, &["a live unsettled", "b live clone=1 admitted=4", "c live"], &[]),
        (
            9,
            hub,
            &["a lost=0 clone=1 admitted=1", "b live clone=1 admitted=4", "c unlisted=0"],
            &["ready b"],
        ),
        (
            9,
            "quota nominated=a epoch=2",
            &["a live clone=2 job=2 admitted=1", "b live clone=1 job=1 job-deleting"],
            &["ready a"],
        ),
    ]);
}

#[test]
fn an_admitted_and_finished_clone_is_recorded_and_not_run_again() {
    check(&[(
        1,
        "quota nominated=a",
        &["a live clone=1 job=1 admitted=1 clone-finished=Succeeded"],
        &["ready a"],
    )]);
}

#[test]
fn a_single_cluster_is_recorded_after_its_api_server_took_the_job() {
    let hub = "quota nominated=a";
    check(&[
        (1, hub, &["a live clone=1 admitted=1 unsettled"], &["wait-until 50"]),
        (1, hub, &["a live clone=1 admitted=1"], &["create-job a", "wait-until 50"]),
        (1, hub, &["a live clone=1 admitted=1 job=1"], &["ready a"]),
    ]);
}

#[test]
fn a_nomination_is_cancelled_after_the_job_is_gone() {
    let hub = "quota nominated=a";
    let raised = "quota nominated=a raised epoch=2 unsent";
    check(&[
        (1, hub, &["a live clone=1 job=1 refused=full"], &["delete-job a"]),
        (1, hub, &["a live clone=1 job=1 job-deleting refused=full"], &[]),
        (1, hub, &["a live clone=1 refused=full unsettled"], &[]),
        (1, hub, &["a live clone=1 refused=full"], &["raise-epoch 2"]),
        (1, raised, &["a live clone=1 refused=full"], &["unplace a: full"]),
        (1, hub, &["a live api-refused=forbidden"], &["raise-epoch 2"]),
        (1, raised, &["a live api-refused=forbidden"], &["unplace a: forbidden"]),
        // The agent admitted before the API server answered.
        (1, hub, &["a live clone=1 admitted=1 api-refused=forbidden"], &["raise-epoch 2"]),
        (1, hub, &["a live clone=1 evicted admitted=1"], &["raise-epoch 2"]),
        (
            1,
            raised,
            &["a live clone=1 evicted"],
            &["unplace a: evicted on the worker before it was recorded on the manager"],
        ),
        (1, hub, &["a live clone=1 clone-finished=Failed"], &["raise-epoch 2"]),
        (
            1,
            raised,
            &["a live clone=1 clone-finished=Failed"],
            &["unplace a: finished on the worker before it was admitted there"],
        ),
        (50, hub, &["a live clone=1 job=1"], &["delete-job a"]),
        (50, hub, &["a live clone=1"], &["raise-epoch 2"]),
        (50, raised, &["a live clone=1"], &["unplace a: not admitted by the worker in time"]),
        (
            1,
            "quota nominated=a,b",
            &["a live clone=1 refused=x", "b live clone=1 refused=y"],
            &["raise-epoch 2"],
        ),
    ]);
}

#[test]
fn a_clone_that_waits_for_new_nodes_is_waited_for_while_its_agent_reports() {
    let hub = "quota nominated=a";
    check(&[
        (1, hub, &["a live clone=1 job=1 awaits-nodes=30"], &["wait-until 50"]),
        (60, hub, &["a live clone=1 job=1 awaits-nodes=80"], &["wait-until 80"]),
        (80, hub, &["a live clone=1 job=1 awaits-nodes=80"], &["delete-job a"]),
        (60, hub, &["a live clone=1 job=1 awaits-nodes=80 refused=none"], &["delete-job a"]),
        (60, hub, &["a live clone=1 job=1 awaits-nodes=80 admitted=55"], &["ready a"]),
        // A clone of an earlier epoch is not this Workload's.
        (
            60,
            "quota nominated=a epoch=2",
            &["a live clone=1 job=1 awaits-nodes=80"],
            &["delete-job a"],
        ),
    ]);
}

#[test]
fn a_nominated_cluster_that_is_lost_is_written_off_if_nothing_can_have_started() {
    check(&[
        (1, "quota nominated=a unsent", &["a lost=0"], &["raise-epoch 2"]),
        (
            1,
            "quota nominated=a unsent raised epoch=2",
            &["a lost=0"],
            &["unplace a: the worker was lost before it admitted the workload"],
        ),
        (99, "quota nominated=a", &["a lost=0 clone=1 job=1"], &["wait-until 100"]),
        (100, "quota nominated=a", &["a lost=0 clone=1 job=1"], &["raise-epoch 2"]),
        (
            1,
            "quota nominated=a raised epoch=2 unsent",
            &["a live clone=1 job=1"],
            &["delete-job a"],
        ),
    ]);
}

#[test]
fn a_race_waits_for_clusters_that_are_not_reached_until_they_are_lost() {
    let race = "quota race= nominated=a,b unsent";
    let queue = "quota race=a,b race-until=60 nominated=a,b unsent";
    check(&[
        (1, race, &["a lost=0", "b lost=5"], &["wait-until 100"]),
        (1, race, &["a lost=0", "b live clone=1 refused=no"], &["wait-until 100"]),
        (100, race, &["a lost=0", "b lost=5"], &["wait-until 105"]),
        (105, race, &["a lost=0", "b lost=5"], &["raise-epoch 2"]),
        (999, "quota race= nominated=a unsent once", &["a lost=0"], &[]),
        (2, "quota race= nominated=a unsent once", &["a lost=0 fenced"], &["raise-epoch 2"]),
        // Nothing was sent there: the time of the queues is that of the race.
        (59, queue, &["a lost=0", "b lost=5"], &["wait-until 60"]),
        (60, queue, &["a lost=0", "b lost=5"], &["raise-epoch 2"]),
        (60, "quota race=a race-until=60 nominated=a", &["a lost=0"], &["wait-until 100"]),
    ]);
}

#[test]
fn what_another_program_nominates_stays_while_a_cluster_is_not_reached() {
    let unsent = "quota race= external nominated=a,b unsent";
    let sent = "quota race= external nominated=a,b";
    check(&[
        (1, unsent, &["a lost=0", "b lost=5"], &["wait-until 100"]),
        (999, unsent, &["a lost=0", "b lost=5"], &[]),
        (999, sent, &["a lost=0 clone=1", "b unlisted=5"], &[]),
        (999, sent, &["a lost=0", "b live clone=1 refused=no"], &[]),
        (999, sent, &["a lost=0", "b live"], &["create-clone b"]),
        (999, sent, &["a lost=0 clone=1", "b live clone=1 admitted=1"], &["ready b"]),
        (1, sent, &["a live clone=1 refused=no", "b live clone=1 refused=no"], &["raise-epoch 2"]),
    ]);
}

#[test]
fn nothing_is_nominated_or_created_before_every_other_check_is_ready() {
    let waiting = "quota awaits-checks";
    let nominated = "quota awaits-checks nominated=a";
    check(&[
        (1, waiting, &[], &[]),
        (1, nominated, &["a live"], &[]),
        // What an earlier version created is taken back before it starts.
        (1, nominated, &["a live clone=1 admitted=1 job=1"], &["delete-job a"]),
        (1, nominated, &["a live clone=1 admitted=1"], &["delete-clone a"]),
        (1, "quota", &[], &["nominate"]),
        (1, "quota", &["a live clone=1"], &["delete-clone a"]),
    ]);
}

#[test]
fn a_clone_whose_deletion_was_sent_takes_no_other_clones_place() {
    let race = "quota race=a,b nominated=a,b";
    let sent = "a live clone=1 delete-sent";
    let admitted = "a live clone=1 delete-sent admitted=5";
    check(&[
        // `b` was the only one to have admitted its clone when the deletion was sent. Then so has `a`, in the same second.
        (5, race, &[admitted, "b live clone=1 admitted=5"], &["delete-clone a"]),
        (5, race, &["a live", "b live clone=1 admitted=5"], &["ready b"]),
        // What became of the other clone meanwhile brings none back that may be deleted at any time.
        (5, race, &[admitted, "b live"], &["delete-clone a", "create-clone b"]),
        (5, race, &[sent, "b live clone=1 evicted"], &["delete-clone a"]),
        (5, race, &["a live", "b live clone=1"], &["create-clone a"]),
    ]);
}

#[test]
fn clusters_that_race_get_clones_and_the_winner_the_job() {
    check(&[
        (1, "quota race=a,b", &[], &["nominate"]),
        // Without a cluster the quota is kept.
        (1, "quota race=", &[], &[]),
        (1, "quota race=a nominated=a", &["a live"], &["create-clone a"]),
        // A single cluster has as much time as it needs.
        (99, "quota race=a nominated=a", &["a live clone=1"], &[]),
        (1, "quota race=a nominated=a", &["a live clone=1 evicted"], &[]),
        (1, "quota race=a nominated=a", &["a live clone=1 admitted=1"], &["ready a"]),
        (1, "quota ready recorded=a race=", &["a live clone=1 admitted=1"], &["create-job a"]),
        // A cluster that is reached later joins.
        (1, "quota race=a,b nominated=a", &["a live clone=1"], &["nominate"]),
        (
            1,
            "quota race=b nominated=a raised unsent",
            &["a live clone=1 refused=no"],
            &["unplace a: no"],
        ),
    ]);
}

#[test]
fn a_name_that_is_held_is_no_delay_of_the_cluster() {
    let job = LocalJob { exists: true, ..LocalJob::default() };
    assert!(copy("a live clone=1 admitted=5 short").awaits_start(&job));
    assert!(!copy("a live clone=1 admitted=5 short held").awaits_start(&job));
}
