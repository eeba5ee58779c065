//! The ledger of the observer: which pods started and ended in which cluster, and what follows for a job. Pure.
//!
//! A *run* of a job is the set of pods that one owner object has in one cluster. A job that is dispatched again has a new owner
//! and so another run. A pod has *started* when one of its containers ran. Times are those that pods report, in whole seconds,
//! rounded down: runs do not overlap if one ends in the second in which the other begins.
//!
//! Unseen pods lead to no conclusion. A pod that was deleted between two lists has an unknown end. A pod that existed only
//! between two lists is known only from the scheduler's event. A verdict that depends on either is [`RunVerdict::Unclear`].

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{ContainerState, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::follow::FollowedChange;

/// A job's name, or that of a pod which belongs to nothing.
pub type LedgerJob = String;

/// How a pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodOutcome {
    /// All containers ended with 0.
    Succeeded,
    /// A container failed or was stopped.
    Failed,
    /// It was deleted while it had not reported an end.
    Deleted,
    /// Deleted unseen, between two lists.
    Vanished,
}

/// The recorded state of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRecord {
    /// Its name.
    pub name: String,
    /// When its first container started.
    pub started: Option<Timestamp>,
    /// When and how it ended.
    pub ended: Option<(Timestamp, PodOutcome)>,
    /// Whether the object was deleted.
    pub gone: bool,
    job: LedgerJob,
    cluster: String,
    owner: String,
}

/// All pods that one owner had in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The cluster.
    pub cluster: String,
    /// The uid of the pods' owner.
    pub owner: String,
    /// The pods, in the order in which they were first seen.
    pub pods: Vec<PodRecord>,
}

/// The verdict about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunVerdict {
    /// No pod started.
    NeverRan,
    /// One run, not finished, is going on.
    Running,
    /// One run, and it did all the work.
    Once,
    /// Several runs one after the other, of which the last did all the work or is going on.
    Moved,
    /// Two runs overlap, or a run followed the completed one, or more pods succeeded than required.
    Twice,
    /// It started, no pod is left, and the work is incomplete.
    Lost,
    /// The verdict depends on pods that were deleted unseen.
    Unclear,
}

/// A verdict with its evidence.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The job.
    pub job: LedgerJob,
    /// The verdict.
    pub verdict: RunVerdict,
    /// Every run in which a pod started, in the order of their starts.
    pub runs: Vec<Run>,
    /// What has pods of which none has started.
    pub waiting: Vec<Run>,
    /// Pods of the job that were bound and never seen, as `cluster/name`.
    pub unseen: Vec<String>,
}

/// Pods and their runs, by uid.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// By uid; uids are unique over all clusters. The number is the order of first sight.
    pods: BTreeMap<String, (usize, PodRecord)>,
    /// Pods that were bound and never seen: name and cluster, by uid.
    unseen: BTreeMap<String, (String, String)>,
}

impl Ledger {
    /// Notes a change in a cluster, seen at `now`.
    pub fn note(&mut self, cluster: &str, change: FollowedChange<Pod>, now: Timestamp) {
        match change {
            FollowedChange::Applied(pod) => {
                self.update(cluster, &pod);
            }
            FollowedChange::Deleted(pod) => {
                let record = self.update(cluster, &pod);
                record.gone = true;
                record.ended.get_or_insert((now, PodOutcome::Deleted));
            }
            FollowedChange::Listed(pods) => self.relist(cluster, &pods, now),
        }
    }

    /// Records a scheduling event. It matters if the pod itself is never seen.
    pub fn note_scheduled(&mut self, cluster: &str, uid: &str, name: &str) {
        if !self.pods.contains_key(uid) {
            self.unseen.insert(uid.to_owned(), (name.to_owned(), cluster.to_owned()));
        }
    }

    /// The verdict about a job that needs `work` succeeded pods.
    pub fn judge(&self, job: &str, work: usize) -> Judgement {
        let (runs, waiting): (Vec<Run>, Vec<Run>) =
            self.runs(job).into_iter().partition(|run| run.began().is_some());
        let unseen = self.unseen(job);
        let verdict = verdict(&runs, !unseen.is_empty() || self.lost_sight(job), work);
        Judgement { job: job.to_owned(), verdict, runs, waiting, unseen }
    }

    /// The recorded state of a pod.
    pub fn pod(&self, cluster: &str, name: &str) -> Option<&PodRecord> {
        let mut records = self.pods.values().map(|(_, record)| record);
        records.find(|record| record.cluster == cluster && record.name == name)
    }

    /// The ledger without the pods of a cluster.
    #[must_use]
    pub fn without(mut self, cluster: &str) -> Self {
        self.pods.retain(|_, (_, record)| record.cluster != cluster);
        self.unseen.retain(|_, (_, place)| place != cluster);
        self
    }

    fn relist(&mut self, cluster: &str, pods: &[Pod], now: Timestamp) {
        let there: Vec<String> = pods.iter().filter_map(|pod| pod.uid()).collect();
        for pod in pods {
            self.update(cluster, pod);
        }
        for (uid, (_, record)) in &mut self.pods {
            if record.cluster == cluster && !record.gone && !there.contains(uid) {
                record.gone = true;
                record.ended.get_or_insert((now, PodOutcome::Vanished));
            }
        }
    }

    /// Pods of the job that were never seen. The event has no owner, but pods of a job start with its name.
    fn unseen(&self, job: &str) -> Vec<String> {
        let of_job = |name: &str| {
            name.strip_prefix(job).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let unseen = self.unseen.values().filter(|(name, _)| of_job(name));
        unseen.map(|(name, cluster)| format!("{cluster}/{name}")).collect()
    }

    fn update(&mut self, cluster: &str, pod: &Pod) -> &mut PodRecord {
        let number = self.pods.len();
        let uid = pod.uid().unwrap_or_default();
        self.unseen.remove(&uid);
        let (_, record) = self.pods.entry(uid).or_insert_with(|| (number, opened(cluster, pod)));
        record.started = record.started.or_else(|| started(pod));
        record.ended = record.ended.or_else(|| ended(pod));
        record
    }

    /// In the order of their starts, those without one last.
    fn runs(&self, job: &str) -> Vec<Run> {
        let mut records: Vec<_> = self.pods.values().filter(|(_, one)| one.job == job).collect();
        records.sort_by_key(|(number, _)| *number);
        let mut runs: Vec<Run> = Vec::new();
        for (_, record) in records {
            let same = |run: &&mut Run| run.cluster == record.cluster && run.owner == record.owner;
            match runs.iter_mut().find(same) {
                Some(run) => run.pods.push(record.clone()),
                None => runs.push(Run {
                    cluster: record.cluster.clone(),
                    owner: record.owner.clone(),
                    pods: vec![record.clone()],
                }),
            }
        }
        runs.sort_by_key(|run| (run.began().is_none(), run.began()));
        runs
    }

    /// Whether a pod of the job was deleted unseen, so that it may have started or succeeded.
    fn lost_sight(&self, job: &str) -> bool {
        let vanished = |record: &PodRecord| matches!(record.ended, Some((_, PodOutcome::Vanished)));
        self.pods.values().any(|(_, record)| record.job == job && vanished(record))
    }
}

impl Run {
    /// When its first pod started.
    pub fn began(&self) -> Option<Timestamp> {
        self.pods.iter().filter_map(|pod| pod.started).min()
    }

    /// How many of its pods succeeded.
    pub fn succeeded(&self) -> usize {
        let success = |pod: &&PodRecord| matches!(pod.ended, Some((_, PodOutcome::Succeeded)));
        self.pods.iter().filter(success).count()
    }

    /// When its last pod ended; nothing while one runs.
    pub fn ended(&self) -> Option<Timestamp> {
        let started = self.pods.iter().filter(|pod| pod.started.is_some());
        let ends: Option<Vec<Timestamp>> = started.map(|pod| pod.ended.map(|(at, _)| at)).collect();
        ends?.into_iter().max()
    }
}

fn verdict(runs: &[Run], unseen: bool, work: usize) -> RunVerdict {
    let overlap = runs.iter().zip(runs.iter().skip(1)).any(|(one, next)| overlapping(one, next));
    let redone = runs.iter().rev().skip(1).any(|earlier| earlier.succeeded() >= work);
    let overdone = runs.iter().any(|run| run.succeeded() > work);
    let running = runs.iter().any(|run| run.ended().is_none());
    let finished = runs.last().is_some_and(|run| run.succeeded() == work);
    match runs {
        // What was seen twice was twice, whatever else was not seen.
        _ if overlap || redone || overdone => RunVerdict::Twice,
        _ if unseen => RunVerdict::Unclear,
        [] => RunVerdict::NeverRan,
        [_] if finished => RunVerdict::Once,
        [_] if running => RunVerdict::Running,
        _ if finished || running => RunVerdict::Moved,
        _ => RunVerdict::Lost,
    }
}

/// Whether `one` was still going on when `next`, which began later, began.
fn overlapping(one: &Run, next: &Run) -> bool {
    match (one.ended(), next.began()) {
        (Some(end), Some(begin)) => begin < end,
        (None, _) => true,
        (_, None) => false,
    }
}

fn opened(cluster: &str, pod: &Pod) -> PodRecord {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    let (job, owner) = match owner {
        Some(owner) => (owner.name.clone(), owner.uid.clone()),
        None => (pod.name_any(), pod.uid().unwrap_or_default()),
    };
    let (cluster, name) = (cluster.to_owned(), pod.name_any());
    PodRecord { name, started: None, ended: None, gone: false, job, cluster, owner }
}

/// The earliest start that any container reports, now or before a restart.
fn started(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let states = containers.flat_map(|one| [one.state.as_ref(), one.last_state.as_ref()]);
    states.flatten().filter_map(state_started).min()
}

fn state_started(state: &ContainerState) -> Option<Timestamp> {
    let running = state.running.as_ref().and_then(|running| running.started_at.as_ref());
    let terminated = state.terminated.as_ref().and_then(|ended| ended.started_at.as_ref());
    running.or(terminated).map(|time| time.0)
}

/// The end that the pod itself reports.
fn ended(pod: &Pod) -> Option<(Timestamp, PodOutcome)> {
    let status = pod.status.as_ref()?;
    let outcome = match status.phase.as_deref() {
        Some("Succeeded") => PodOutcome::Succeeded,
        Some("Failed") => PodOutcome::Failed,
        _ => return None,
    };
    let containers = status.container_statuses.iter().flatten();
    let ends = containers
        .filter_map(|one| one.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref())
        .map(|time| time.0);
    // A pod that never had a container counts as ended when it was created.
    let at = ends.max().or_else(|| pod.creation_timestamp().map(|time| time.0))?;
    Some((at, outcome))
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "job {}: {:?}", self.job, self.verdict)?;
        for pod in &self.unseen {
            writeln!(f, "  {pod} got a node and was never seen")?;
        }
        for run in self.runs.iter().chain(&self.waiting) {
            writeln!(f, "  run on {} (owner {})", run.cluster, run.owner)?;
            for pod in &run.pods {
                let started = pod.started.map_or_else(|| "never".to_owned(), |at| at.to_string());
                let ended = pod
                    .ended
                    .map_or_else(|| "runs".to_owned(), |(at, outcome)| format!("{outcome:?} {at}"));
                writeln!(f, "    {} started {started}, {ended}", pod.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
