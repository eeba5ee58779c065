//! Each rule once, as lines: the hub, one line per cluster, the steps.

mod changed_clones;
mod moved;
mod preemption_gates;
mod reconcile_group;
mod simulation;
mod slices;

use engine::ids::ClusterId;

use super::*;
use crate::CopyHistory;

const SETTINGS: DispatchTimeouts = DispatchTimeouts {
    worker_lost_timeout: 100,
    admission_timeout: 50,
    start_timeout: 30,
    preemption_timeout: 40,
};
const NAMES: [&str; 3] = ["a", "b", "c"];

fn cluster(name: &str) -> ClusterId {
    ClusterId::from(NAMES.iter().position(|one| *one == name).expect("a, b or c"))
}

fn number(value: &str) -> i64 {
    value.parse().expect("a number")
}

fn epoch(value: &str) -> u64 {
    value.parse().expect("a number")
}

/// `quota nominated=a,b epoch=2 …`. By default it exists, is pending, has epoch 1, was nominated at 0, and its job
/// exists and runs.
fn hub(line: &str) -> LocalWorkload {
    let job = LocalJob { exists: true, ..LocalJob::default() };
    let mut hub = LocalWorkload {
        exists: true,
        epoch: 1,
        create_sent: true,
        is_own_version: true,
        job,
        ..LocalWorkload::default()
    };
    for word in line.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "gone" => hub.exists = false,
            "finished" => hub.finished = true,
            "quota" => hub.quota_reserved = true,
            "evicted" => hub.evicted = true,
            "ready" => hub.check = DispatchCheckState::Ready,
            "retry" => hub.check = DispatchCheckState::Retry,
            "rejected" => hub.check = DispatchCheckState::Rejected,
            "recorded" => hub.recorded_cluster = Some(cluster(value)),
            "nominated" => hub.nominated_clusters = value.split(',').map(cluster).collect(),
            "unconfigured" => {
                hub.unconfigured_clusters = value.split(',').map(cluster).collect();
            }
            "race" => {
                let names = value.split(',').filter(|name| !name.is_empty());
                hub.race = Some(names.map(cluster).collect());
            }
            "race-until" => hub.race_until = Some(Time(number(value))),
            "epoch" => hub.epoch = epoch(value),
            "raised" => hub.epoch_raised = true,
            "unsent" => hub.create_sent = false,
            "nominated-at" => hub.nominated_at = Time(number(value)),
            "awaits-checks" => hub.awaits_other_checks = true,
            "drained-at" => hub.drained_at = Some(Time(number(value))),
            "end-awaited" => hub.end_awaited_since = Some(Time(number(value))),
            "start-awaited" => hub.start_awaited_since = Some(Time(number(value))),
            "highest" => hub.highest_epoch = epoch(value),
            "newer-until" => hub.newer_copy_until = Some(Time(number(value))),
            "suspended" => hub.job.suspended = true,
            "active" => hub.job.active = true,
            "started" => hub.job.started = true,
            "open" => hub.job.open = true,
            "ended" => hub.job.ended = true,
            "jobless" => hub.job.exists = false,
            "once" => hub.exactly_once = true,
            "extends" => hub.predecessor = SlicePredecessor::Runs,
            "earlier-leaves" => hub.predecessor = SlicePredecessor::Leaves,
            "slice" => hub.is_slice = true,
            "successor" => hub.has_successor = true,
            "former" => hub.is_own_version = false,
            "external" => hub.nominated_by_others = true,
            _ => panic!("hub: {word}"),
        }
    }
    hub
}

/// `a live clone=1 admitted=5 job=1 synced …`. Each `job` is one more; `short` lacks one of the hub's.
fn copy(line: &str) -> RemoteCopy {
    let (name, words) = line.split_once(' ').expect("a name and words");
    let mut copy = RemoteCopy {
        cluster: cluster(name),
        connection: RemoteConnection::Connected,
        cleanup_confirmed: false,
        creates_answered: true,
        lease: RemoteLease::default(),
        refused: None,
        clone: None,
        jobs: vec![],
        missing_job: false,
        name_held: false,
    };
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "live" => copy.connection = RemoteConnection::Connected,
            "unlisted" => {
                copy.connection = RemoteConnection::NotSynced { since: Time(number(value)) }
            }
            "lost" => {
                copy.connection = RemoteConnection::Disconnected { since: Time(number(value)) }
            }
            "confirmed" => copy.cleanup_confirmed = true,
            "job-unknown" => {
                copy.jobs.last_mut().expect("a job").history = CopyHistory::Unknown;
            }
            "job-departed" => {
                copy.jobs.last_mut().expect("a job").history = CopyHistory::Departed;
            }
            "unsettled" => copy.creates_answered = false,
            "held" => copy.name_held = true,
            "api-refused" => copy.refused = Some(value.into()),
            "clone" => {
                let epoch = epoch(value);
                copy.clone = Some(RemoteWorkload {
                    epoch,
                    same_spec: true,
                    same_pods: true,
                    same_uid: true,
                    ..RemoteWorkload::default()
                });
            }
            "job" => copy.jobs.push(RemoteJob {
                epoch: epoch(value),
                same_uid: true,
                ..RemoteJob::default()
            }),
            "job-uidless" => copy.jobs.last_mut().expect("a job").same_uid = false,
            "job-end-refused" => copy.jobs.last_mut().expect("a job").end_refused = true,
            "job-suspended" => copy.jobs.last_mut().expect("a job").suspended = true,
            "job-resized" => copy.jobs.last_mut().expect("a job").stale_size = true,
            "job-abandoned" => copy.jobs.last_mut().expect("a job").abandoned = true,
            "job-handed-over" => copy.jobs.last_mut().expect("a job").handed_over = true,
            "job-shared" => copy.jobs.last_mut().expect("a job").shared = true,
            "job-deleting" => copy.jobs.last_mut().expect("a job").deleting = true,
            "job-finished" => copy.jobs.last_mut().expect("a job").finished = true,
            "job-succeeded" => {
                let job = copy.jobs.last_mut().expect("a job");
                (job.finished, job.succeeded) = (true, true);
            }
            "synced" => copy.jobs.last_mut().expect("a job").status_synced = true,
            "short" => copy.missing_job = true,
            "open" => copy.lease.open = true,
            "fenced" => copy.lease.fenced = true,
            _ => clone_word(copy.clone.as_mut().expect("a clone"), key, value),
        }
    }
    copy.missing_job |= copy.jobs.is_empty();
    copy
}

fn clone_word(clone: &mut RemoteWorkload, key: &str, value: &str) {
    match key {
        "clone-deleting" => clone.deleting = true,
        "delete-sent" => clone.delete_sent = true,
        "uidless" => clone.same_uid = false,
        "unknown" => clone.history = CopyHistory::Unknown,
        "departed" => clone.history = CopyHistory::Departed,
        "admitted" => clone.admitted_at = Some(Time(number(value))),
        "awaits-nodes" => clone.awaits_nodes_until = Some(Time(number(value))),
        "evicted" => clone.evicted = true,
        "refused" => clone.refused = Some(value.into()),
        "clone-finished" => clone.finished = Some((value.into(), "all done".into())),
        "other-spec" => clone.same_spec = false,
        "other-pods" => (clone.same_spec, clone.same_pods) = (false, false),
        "other-priority" => clone.stale_priority = true,
        "larger" => clone.stale_size = true,
        "former-stamp" => clone.stamp = StampState::OfFormerLeader,
        "ended-stamp" => clone.stamp = StampState::Ended,
        "gated" => clone.gate = CloneGate::Closed { blocked_since: None },
        "blocked" => {
            clone.gate = CloneGate::Closed { blocked_since: Some(Time(number(value))) };
        }
        "gate-open" => clone.gate = CloneGate::Open { since: Time(number(value)) },
        _ => panic!("copy: {key}"),
    }
}

fn in_words(step: &DispatchStep) -> String {
    let name = |cluster: &ClusterId| NAMES[cluster.index()];
    match step {
        DispatchStep::Nominate => "nominate".to_owned(),
        DispatchStep::PushPriority(one) => format!("push-priority {}", name(one)),
        DispatchStep::PushSize(one) => format!("push-size {}", name(one)),
        DispatchStep::OpenPreemptionGate(one) => format!("open-gate {}", name(one)),
        DispatchStep::Stamp(one) => format!("stamp {}", name(one)),
        DispatchStep::ConfirmVersion => "confirm-version".to_owned(),
        DispatchStep::CreateClone(one) => format!("create-clone {}", name(one)),
        DispatchStep::CreateJobs(one) => format!("create-job {}", name(one)),
        DispatchStep::DeleteJobs(one) => format!("delete-job {}", name(one)),
        DispatchStep::DeleteMembers(one) => format!("delete-members {}", name(one)),
        DispatchStep::DeleteClone(one) => format!("delete-clone {}", name(one)),
        DispatchStep::SyncStatus(one) => format!("sync {}", name(one)),
        DispatchStep::AdoptResult(one) => format!("adopt {}", name(one)),
        DispatchStep::SetCheckReady(one) => format!("ready {}", name(one)),
        DispatchStep::Finish { reason, message, without_end } => {
            let without_end =
                without_end.map(|cluster| format!(", no end from {}", name(&cluster)));
            format!("finish {reason}: {message}{}", without_end.unwrap_or_default())
        }
        DispatchStep::SetCheckRetry(retry) => {
            format!("retry {}", retry.message(|one| NAMES[one.index()]))
        }
        DispatchStep::CancelNomination { cluster, why } => {
            format!("unplace {}: {why}", name(cluster))
        }
        DispatchStep::RaiseEpoch(epoch) => format!("raise-epoch {epoch}"),
        DispatchStep::ClearActivePods => "idle".to_owned(),
        DispatchStep::Withdrawn => "withdrawn".to_owned(),
        DispatchStep::WaitUntil(time) => format!("wait-until {}", time.0),
    }
}

/// A case: time, hub, clusters, steps.
type DecisionCase<'a> = (i64, &'a str, &'a [&'a str], &'a [&'a str]);

fn check(cases: &[DecisionCase<'_>]) {
    for (now, hub_line, copies, expected) in cases {
        let copies: Vec<RemoteCopy> = copies.iter().map(|line| copy(line)).collect();
        let steps = decide(&hub(hub_line), &copies, &SETTINGS, Time(*now));
        let words: Vec<String> = steps.iter().map(in_words).collect();
        assert_eq!(words, *expected, "{hub_line} {copies:#?}");
    }
}

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
fn a_left_over_copy_that_has_succeeded_is_adopted_unless_another_has_started() {
    let done = "b live clone=1 job=1 job-succeeded";
    let pending = "epoch=2 suspended";
    let nominated = "epoch=2 suspended quota nominated=a";
    let running = "epoch=2 quota ready recorded=a";
    check(&[
        (1, pending, &[done], &["adopt b"]),
        (1, pending, &["a lost=0 clone=1 job=1", done], &["adopt b"]),
        (1, nominated, &["a live", done], &["adopt b"]),
        (1, nominated, &["a live clone=2 job=2 job-suspended", done], &["adopt b"]),
        // Nothing says that the other job does not run.
        (
            1,
            nominated,
            &["a lost=0 clone=2 job=2 job-suspended", done],
            &["delete-job b", "wait-until 100"],
        ),
        (1, nominated, &["a live clone=2 job=2", done], &["delete-job b", "wait-until 50"]),
        (1, running, &["a live clone=2 admitted=0 job=2 synced", done], &["delete-job b"]),
        (1, running, &["a live clone=2 admitted=0 job=2 job-suspended synced", done], &["adopt b"]),
        // Withdrawn in the moment of its end.
        (1, "quota evicted ready recorded=b", &[done], &["adopt b"]),
        (1, "quota ready recorded=b", &[done], &["sync b"]),
    ]);
}

#[test]
fn only_the_whole_result_of_the_same_work_is_adopted() {
    let hub = "epoch=2 suspended";
    let removed: &[&str] = &["delete-job b"];
    check(&[
        (1, hub, &["b live clone=1 job=1 job-finished"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job-end-refused"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job=1"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded short"], removed),
        (1, hub, &["b live clone=1 other-pods job=1 job-succeeded"], removed),
        (1, hub, &["b live job=1 job-succeeded"], removed),
        (1, hub, &["b live clone=1 unknown job=1 job-succeeded"], &[]),
        (1, hub, &["b live clone=3 job=3 job-succeeded"], &[]),
        (1, hub, &["b live clone=1 departed job=1 job-succeeded"], removed),
        (1, hub, &["b live clone=1 uidless job=1 job-succeeded"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job-uidless"], removed),
        (1, hub, &["b live clone=1 job=1 job-succeeded job-departed"], removed),
        (1, hub, &["b lost=0 clone=1 job=1 job-succeeded"], &[]),
        (1, hub, &["b live clone=1"], &["delete-clone b"]),
        (1, "epoch=2 jobless", &["b live clone=1 job=1 job-succeeded"], removed),
        (1, "epoch=2 finished", &["b live clone=1 job=1 job-succeeded"], removed),
        (1, "gone", &["b live clone=1 job=1 job-succeeded"], removed),
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
fn a_changed_priority_is_pushed_and_running_work_stays() {
    let recorded = "quota ready recorded=a";
    let nominated = "quota nominated=a";
    check(&[
        (1, recorded, &["a live clone=1 job=1 synced other-priority"], &["push-priority a"]),
        (1, recorded, &["a live clone=1 job=1 other-priority"], &["push-priority a", "sync a"]),
        (
            1,
            nominated,
            &["a live clone=1 job=1 other-priority"],
            &["push-priority a", "wait-until 50"],
        ),
        (1, recorded, &["a lost=0 clone=1 job=1 other-priority"], &["wait-until 100"]),
        (
            1,
            recorded,
            &["a live clone=1 clone-deleting job=1 other-priority"],
            &["retry Admitting remote no longer exists, Previously: \"Ready\""],
        ),
        (1, "gone", &["a live clone=1 other-priority"], &["delete-clone a"]),
    ]);
}

#[test]
fn a_changed_number_of_replicas_is_pushed_to_the_copy_of_the_set() {
    let recorded = "quota ready recorded=a";
    let resized = "clone=1 admitted=1 job=1 job-shared job-resized synced";
    check(&[
        (1, recorded, &[&format!("a live {resized}")], &["push-size a"]),
        (1, recorded, &[&format!("a lost=0 {resized}")], &["wait-until 100"]),
        (1, recorded, &[&format!("a live {resized} job-deleting")], &[]),
        // The first replica made it; this one has no clone there yet.
        (
            1,
            "quota nominated=a",
            &["a live job=1 job-shared job-resized"],
            &["push-size a", "create-clone a", "wait-until 50"],
        ),
        (
            1,
            "quota evicted ready recorded=a",
            &["a live job=1 job-shared job-resized"],
            &["raise-epoch 2"],
        ),
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
fn a_smaller_size_is_pushed_to_every_copy_and_nothing_is_removed() {
    let recorded = "quota ready recorded=a";
    check(&[
        (1, recorded, &["a live clone=1 admitted=1 larger job=1 synced"], &["push-size a"]),
        (1, recorded, &["a live clone=1 admitted=1 job=1 job-resized synced"], &["push-size a"]),
        (1, recorded, &["a live clone=1 larger job=1 job-resized"], &["push-size a", "sync a"]),
        (
            1,
            "quota nominated=a,b race=a,b",
            &["a live clone=1 larger", "b live clone=1"],
            &["push-size a"],
        ),
        (1, recorded, &["a lost=0 clone=1 larger job=1 job-resized"], &["wait-until 100"]),
        (
            1,
            recorded,
            &["a live clone=1 clone-deleting larger job=1"],
            &["retry Admitting remote no longer exists, Previously: \"Ready\""],
        ),
        (
            1,
            recorded,
            &[
                "a live clone=1 clone-finished=Succeeded larger job=1 job-resized job-finished synced",
            ],
            &["finish Succeeded: all done"],
        ),
        (1, "quota epoch=2 ready recorded=a", &["a live clone=1 larger job=1"], &["delete-job a"]),
        (1, "gone", &["a live clone=1 larger"], &["delete-clone a"]),
        (1, "quota evicted ready recorded=a", &["a live clone=1 larger job=1"], &["delete-job a"]),
    ]);
}

#[test]
fn a_copy_of_a_higher_epoch_is_left_alone_for_a_while() {
    let late = "quota ready recorded=a newer-until=9";
    check(&[
        (1, late, &["a live clone=2 job=2"], &["wait-until 9"]),
        (1, "gone newer-until=9", &["a live clone=2 job=2"], &["wait-until 9"]),
        (1, late, &["a live clone=2 job=2 confirmed"], &["wait-until 9"]),
    ]);
}

#[test]
fn a_disputed_copy_is_neither_removed_nor_adopted_before_a_person_confirms() {
    for copy in ["a live clone=2 job=2", "a live clone=1 unknown job=1 job-unknown"] {
        for hub in [
            "quota ready recorded=a",
            "quota nominated=a",
            "quota nominated=b",
            "quota awaits-checks",
            "quota",
            "quota evicted recorded=a",
            "quota nominated=a raised",
            "finished",
            "",
        ] {
            check(&[(99, hub, &[copy, "b live"], &[])]);
        }
    }
    check(&[
        (1, "gone epoch=0", &["a live clone=2 unknown"], &[]),
        (1, "gone epoch=0", &["a live clone=2"], &["delete-clone a"]),
        // Beside a disputed copy the recorded one is followed, and of the others the rest is removed.
        (
            1,
            "quota ready recorded=b",
            &["a live clone=2 job=2", "b live clone=1 job=1"],
            &["sync b"],
        ),
        (1, "finished", &["a live clone=2", "b live clone=1"], &["delete-clone b"]),
        // A lost cluster blocks nothing.
        (
            99,
            "quota nominated=b",
            &["a lost=0 clone=2 job=2", "b unlisted=50"],
            &["wait-until 100"],
        ),
        (
            100,
            "quota nominated=b nominated-at=99",
            &["a lost=0 clone=2", "b live clone=1"],
            &["create-job b", "wait-until 149"],
        ),
    ]);
}

#[test]
fn after_a_confirmation_the_epoch_rises_above_every_copy_and_then_they_are_removed() {
    check(&[
        (1, "", &["a live clone=7 job=7 confirmed"], &["delete-job a"]),
        (1, "quota", &["a live clone=7 job=7 confirmed"], &["raise-epoch 8"]),
        (
            1,
            "quota nominated=b",
            &["a live clone=1 unknown confirmed", "b live"],
            &["raise-epoch 2"],
        ),
        (
            1,
            "quota nominated=b highest=5",
            &["a live clone=1 unknown confirmed"],
            &["raise-epoch 6"],
        ),
        (1, "quota epoch=8", &["a live clone=7 job=7 confirmed"], &["delete-job a"]),
        // With a recorded copy that is current, the others go without a new epoch.
        (
            1,
            "quota ready recorded=b",
            &["a live clone=2 job=2 confirmed", "b live clone=1 job=1 synced"],
            &["delete-job a"],
        ),
        (1, "quota evicted recorded=a highest=7", &["a live"], &["raise-epoch 8"]),
    ]);
}

#[test]
fn hostile_worker_an_epoch_far_above_the_hubs_is_disputed_and_uses_up_no_numbers() {
    let most = u64::MAX;
    let forged = format!("a live clone={most} job={most}");
    let confirmed = format!("{forged} confirmed");
    let lost = format!("a lost=-99 clone={most}");
    check(&[
        (99, "quota nominated=b", &[&forged, "b live"], &[]),
        // The next epoch is that after the hub's own, and the removal does not wait for it.
        (1, "quota evicted recorded=b", &[&lost, "b live"], &["raise-epoch 2"]),
        (1, "quota", &[&confirmed], &["delete-job a"]),
        (1, "quota epoch=7", &["a live clone=65543 confirmed"], &["raise-epoch 65544"]),
        (1, "quota epoch=7", &["a live clone=65544 confirmed"], &["delete-clone a"]),
        (1, "quota epoch=7", &["a live clone=65544 job=9 confirmed"], &["raise-epoch 10"]),
    ]);
}

#[test]
fn the_clusters_with_disputed_copies_are_named_while_a_workload_waits_for_them() {
    for (hub, copies, expected) in [
        ("quota", ["a live clone=2", "b live"], vec![0]),
        ("quota nominated=b", ["a live clone=1 unknown", "b live job=3"], vec![0, 1]),
        ("quota", ["a live clone=2 confirmed", "b lost=0 clone=2"], vec![]),
        ("quota ready recorded=b", ["a live clone=2", "b live clone=1"], vec![]),
        ("quota awaits-checks", ["a live clone=2", "b live"], vec![]),
        ("quota newer-until=101", ["a live clone=2", "b live"], vec![]),
        ("quota evicted", ["a live clone=2", "b live"], vec![0]),
        ("quota evicted recorded=b", ["a live job=1", "b live job=2"], vec![1]),
        ("quota evicted newer-until=101", ["a live clone=2", "b live"], vec![]),
        // Its withdrawal does not wait for these.
        ("quota evicted", ["a lost=0 clone=2", "b lost=1 clone=2"], vec![]),
        ("quota evicted finished", ["a live clone=2", "b live"], vec![]),
        ("", ["a live clone=2", "b live"], vec![]),
    ] {
        let copies = copies.map(copy);
        let blocking = blocking_clusters(&self::hub(hub), &copies, &SETTINGS, Time(100));
        let blocking: Vec<usize> = blocking.iter().map(|one| one.index()).collect();
        assert_eq!(blocking, expected, "{hub}");
    }
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

#[test]
fn a_name_that_is_held_is_no_delay_of_the_cluster() {
    let job = LocalJob { exists: true, ..LocalJob::default() };
    assert!(copy("a live clone=1 admitted=5 short").awaits_start(&job));
    assert!(!copy("a live clone=1 admitted=5 short held").awaits_start(&job));
}
