//! The state of every Job, from watches of the manager cluster: phase, worker and reason.

use std::collections::BTreeMap;

use crds::{
    meta::is_true,
    names::conditions::{ADMITTED, FINISHED, QUOTA_RESERVED},
    v1beta2::Workload,
};
use e2e::objects::job_is;
use harness::FollowedChange;
use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};

/// The phase of a Job. Later phases sort first, so that a short table shows active Jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobState {
    /// Pods of it run.
    Running,
    /// A worker was selected or has admitted it.
    Placed,
    /// It waits for capacity.
    Waiting,
    /// It failed.
    Failed,
    /// It is complete.
    Finished,
}

impl JobState {
    /// In chronological order.
    pub(crate) const ALL: [Self; 5] =
        [Self::Waiting, Self::Placed, Self::Running, Self::Finished, Self::Failed];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Placed => "placed",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// One line of the show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobRow {
    pub(crate) name: String,
    pub(crate) state: JobState,
    /// The worker; empty before there is one.
    pub(crate) place: String,
    /// Why there, or why it waits.
    pub(crate) why: String,
    /// Succeeded pods, from the status of the Job on the manager cluster.
    pub(crate) succeeded: usize,
}

/// The state of every Job.
#[derive(Default)]
pub(crate) struct JobTable {
    jobs: BTreeMap<String, Job>,
    /// By the name of the Job that owns it, or by the kind of another owner.
    workloads: BTreeMap<String, Workload>,
}

/// Something was seen.
pub(crate) enum WatchUpdate {
    Job(Box<FollowedChange<Job>>),
    Workload(Box<FollowedChange<Workload>>),
}

impl JobTable {
    pub(crate) fn handle(&mut self, update: WatchUpdate) {
        match update {
            WatchUpdate::Job(change) => take(&mut self.jobs, *change, |job| Some(job.name_any())),
            WatchUpdate::Workload(change) => take(&mut self.workloads, *change, owner),
        }
    }

    /// Every Job that is there, in the order of names.
    pub(crate) fn rows(&self) -> impl Iterator<Item = JobRow> {
        let others = self.workloads.iter().filter(|(_, one)| !is_of_job(one));
        let others = others.map(|(kind, _)| kind.as_str());
        self.jobs.keys().map(String::as_str).chain(others).filter_map(|name| self.row(name))
    }

    /// One Job, or the job of another kind.
    pub(crate) fn row(&self, name: &str) -> Option<JobRow> {
        let Some(job) = self.jobs.get(name) else {
            return self
                .workloads
                .get(name)
                .filter(|one| !is_of_job(one))
                .map(|one| other(name, one));
        };
        let workload = self.workloads.get(name);
        let place = workload.and_then(place).unwrap_or_default().to_owned();
        let state = state(job, !place.is_empty());
        let why = match (state, workload) {
            (_, None) => String::new(),
            (JobState::Waiting, Some(workload)) => waits_for(workload).to_owned(),
            (_, Some(workload)) => placed_for(workload).to_owned(),
        };
        let status = job.status.as_ref();
        let succeeded = status.and_then(|status| status.succeeded).unwrap_or_default();
        let succeeded = usize::try_from(succeeded).unwrap_or_default();
        Some(JobRow { name: name.to_owned(), state, place, why, succeeded })
    }

    /// Whether nothing is left of a Job on the manager cluster.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        !self.jobs.contains_key(name) && !self.workloads.contains_key(name)
    }
}

fn take<K: Resource + Clone>(
    known: &mut BTreeMap<String, K>,
    change: FollowedChange<K>,
    key: impl Fn(&K) -> Option<String>,
) {
    match change {
        FollowedChange::Listed(all) => {
            *known = all.into_iter().filter_map(|one| Some((key(&one)?, one))).collect();
        }
        FollowedChange::Applied(one) => {
            if let Some(key) = key(&one) {
                known.insert(key, one);
            }
        }
        FollowedChange::Deleted(one) => {
            if let Some(key) = key(&one) {
                known.remove(&key);
            }
        }
    }
}

/// The name of its Job, or the kind of its owner: there is one job of every other kind.
fn owner(workload: &Workload) -> Option<String> {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    let job = owners.clone().find(|owner| owner.kind == "Job").map(|owner| owner.name.clone());
    job.or_else(|| owners.next().map(|owner| owner.kind.to_lowercase()))
}

fn is_of_job(workload: &Workload) -> bool {
    workload.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Job")
}

/// The row of a job of another kind, from its Workload.
fn other(name: &str, workload: &Workload) -> JobRow {
    let place = place(workload).unwrap_or_default().to_owned();
    let conditions = &workload.status.conditions;
    let finished = conditions.iter().find(|one| one.r#type == FINISHED && one.status == "True");
    let state = match finished {
        Some(finished) if finished.reason == "Succeeded" => JobState::Finished,
        Some(_) => JobState::Failed,
        None if is_true(conditions, ADMITTED) => JobState::Running,
        None if !place.is_empty() => JobState::Placed,
        None => JobState::Waiting,
    };
    let why = if state == JobState::Waiting { waits_for(workload) } else { placed_for(workload) };
    JobRow { name: name.to_owned(), state, place, why: why.to_owned(), succeeded: 0 }
}

fn place(workload: &Workload) -> Option<&str> {
    let status = &workload.status;
    status.cluster_name.as_ref().or(status.nominated_cluster_names.first()).map(String::as_str)
}

fn state(job: &Job, placed: bool) -> JobState {
    let status = job.status.as_ref();
    let count = |count: Option<i32>| count.unwrap_or_default();
    let begun = status.map_or(0, |status| count(status.active) + count(status.succeeded));
    match (job_is(job, "Complete"), job_is(job, "Failed")) {
        (true, _) => JobState::Finished,
        (_, true) => JobState::Failed,
        _ if begun > 0 => JobState::Running,
        _ if placed => JobState::Placed,
        _ => JobState::Waiting,
    }
}

/// The message of the QuotaReserved condition.
fn waits_for(workload: &Workload) -> &str {
    let mut conditions = workload.status.conditions.iter();
    conditions
        .find(|one| one.r#type == QUOTA_RESERVED && one.status == "False")
        .map_or("", |one| &one.message)
}

/// The message of the admission check, or the nominated clusters before there is one.
fn placed_for(workload: &Workload) -> &str {
    let said = workload.status.admission_checks.first().map_or("", |check| &*check.message);
    let reserved = is_true(&workload.status.conditions, QUOTA_RESERVED);
    if said.is_empty() && reserved { "quota and room are reserved together" } else { said }
}
