//! The words of the cases: a line for the hub, a line for each cluster, and the steps.
//!
//! The hub's Workload exists with epoch 1, was nominated at 0 and is pending; a create may have been sent, and its job exists and is
//! open to a status. A word changes that; `=T` is a time, `=N` an epoch, `=a,b` are clusters.
//!
//! | word of the hub | meaning |
//! |---|---|
//! | `gone`, `finished`, `quota`, `evicted` | the Workload is deleted, is finished, holds quota, is being evicted |
//! | `ready`, `retry`, `rejected` | state of the MultiKueue check |
//! | `awaits-checks` | another check is not Ready |
//! | `recorded=a`, `nominated=a,b`, `unconfigured=b` | clusters: recorded, nominated, and not in the MultiKueueConfig any more |
//! | `race=a,b`, `race-until=T`, `external` | clusters that may be nominated now, the end of the race, another program nominates |
//! | `epoch=N`, `raised`, `highest=N`, `newer-until=T` | the epoch, raised since the nomination, the highest of any copy, how long a newer copy is awaited |
//! | `nominated-at=T`, `start-awaited=T`, `end-awaited=T`, `drained-at=T` | times of the nomination, of waiting for a start or an end, and of a drain |
//! | `unsent` | no create was sent |
//! | `once`, `former` | under ExactlyOnce; the observed version is of a former leader |
//! | `extends`, `earlier-leaves`, `slice`, `successor` | the earlier slice runs or leaves; the Workload replaces one, or is replaced |
//! | `jobless`, `suspended`, `active`, `started`, `open`, `ended` | the hub's jobs: none, suspended, with active pods, with a copied status, without an end, all with one |
//!
//! | word of a cluster | meaning |
//! |---|---|
//! | `live`, `unlisted=T`, `lost=T` | reached, connected and not listed since, not connected since |
//! | `confirmed`, `open`, `fenced` | a user has confirmed the cleanup; its leases are open, or it is fenced |
//! | `unsettled`, `api-refused=why`, `held` | a create has no answer, was refused, or waits for the name of a job |
//! | `clone=N`, `job=N`, `short` | the clone and one more job, by epoch; a job of the hub has no copy |
//! | `admitted=T`, `evicted`, `refused=why`, `clone-finished=reason`, `awaits-nodes=T` | conditions of the clone |
//! | `clone-deleting`, `delete-sent` | the clone is being deleted, or its deletion was sent |
//! | `other-spec`, `other-pods`, `other-priority`, `larger` | what the clone asks for differs from the hub's Workload |
//! | `uidless`, `unknown`, `departed`, `job-uidless`, `job-unknown`, `job-departed` | history of the clone, and of the last job |
//! | `former-stamp`, `ended-stamp` | the stamp of the clone is of a former leader, or of an ended session |
//! | `gated`, `blocked=T`, `gate-open=T` | the preemption gate of the clone |
//! | `synced`, `job-suspended`, `job-deleting`, `job-finished`, `job-succeeded`, `job-end-refused` | state of the last job |
//! | `job-resized`, `job-abandoned`, `job-handed-over`, `job-shared` | the last job has another size, outlives its member, is another slice's, or is shared |
//!
//! The steps are named in [`in_words`].

use engine::ids::ClusterId;

use super::super::*;
use crate::CopyHistory;

pub(super) const SETTINGS: DispatchTimeouts = DispatchTimeouts {
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
pub(super) fn hub(line: &str) -> LocalWorkload {
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
pub(super) fn copy(line: &str) -> RemoteCopy {
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

pub(super) fn in_words(step: &DispatchStep) -> String {
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

pub(super) fn check(cases: &[DecisionCase<'_>]) {
    for (now, hub_line, copies, expected) in cases {
        let copies: Vec<RemoteCopy> = copies.iter().map(|line| copy(line)).collect();
        let steps = decide(&hub(hub_line), &copies, &SETTINGS, Time(*now));
        let words: Vec<String> = steps.iter().map(in_words).collect();
        assert_eq!(words, *expected, "{hub_line} {copies:#?}");
    }
}
