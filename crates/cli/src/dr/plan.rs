//! The plan: a row per Workload that a worker has a copy of (docs/reference/dispatch.md §11).

use std::collections::BTreeMap;

use crds::{
    meta::{annotation, find_true, is_deleting, is_true},
    names::{
        annotations::{CLEANUP, INCARNATION, REBUILD, WORKLOAD_SLICE_NAME, WORKLOAD_UID},
        conditions::{ADMITTED, EVICTED},
        labels::CONCURRENT_ADMISSION_PARENT,
    },
    v1beta2::{MultiKueueCluster, Workload},
};
use jobs::{
    GenericJob, JobGates, JobObject, equivalence::equivalent_to_prebuilt,
    pods::group::is_group_workload, rebuilt,
};
use serde::Serialize;

use super::{
    admission::{RebuiltAdmission, rebuilt_admission},
    copies::{CopySet, GroupedCopies, choose, group},
    not_rebuilt::NotRebuilt,
    observed::{CopiedObjectName, ObservedHub, ObservedWorker, by_name, job_name, object_name},
};

/// What becomes of a Workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RowState {
    /// It is rebuilt.
    Rebuild,
    /// An earlier run has begun it; the rest follows.
    Continue,
    /// The manager has it.
    Present,
    /// It stays as it is.
    NotRebuilt,
    /// A write failed. The next run continues.
    Failed,
}

/// One Workload of the plan.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name; empty for a job without a clone.
    pub workload: String,
    /// Its jobs, as `Kind/name`.
    pub jobs: Vec<String>,
    /// The worker with the copy that counts; all of them if none does.
    pub clusters: Vec<String>,
    /// Workers from which the manager will remove copies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed_from: Vec<String>,
    /// What becomes of it.
    pub state: RowState,
    /// Why it is not rebuilt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The work.
    #[serde(skip)]
    pub rebuild: Option<WorkloadRebuild>,
}

/// A Workload to be rebuilt.
#[derive(Clone, Debug)]
pub struct WorkloadRebuild {
    /// The copy that counts.
    pub copy: CopySet,
    /// Copies that the manager removes: they are of a lower epoch, or have no job.
    pub others: Vec<CopySet>,
    /// The jobs as they are created, in the order of the copies.
    pub jobs: Vec<JobObject>,
    /// The admission.
    pub admission: RebuiltAdmission,
}

/// Plans what is rebuilt of which copies.
#[must_use]
pub fn plan(hub: &ObservedHub, workers: &[ObservedWorker], gates: JobGates) -> Vec<PlanRow> {
    let GroupedCopies { of_workloads: sets, without_clone } = group(workers, gates);
    let rows = sets.into_iter().map(|(name, sets)| workload_row(name, sets, hub, gates));
    let lone = without_clone.into_iter().map(|(cluster, job)| lone_row(cluster, job));
    rows.chain(lone).collect()
}

fn workload_row(
    (namespace, workload): CopiedObjectName,
    sets: Vec<CopySet>,
    hub: &ObservedHub,
    gates: JobGates,
) -> PlanRow {
    let clusters = sets.iter().map(|set| set.cluster.clone()).collect();
    let mut jobs: Vec<String> = sets.iter().flat_map(|set| &set.jobs).map(kind_and_name).collect();
    jobs.sort();
    jobs.dedup();
    let mut row = PlanRow {
        namespace,
        workload,
        jobs,
        clusters,
        removed_from: Vec::new(),
        state: RowState::NotRebuilt,
        reason: None,
        rebuild: None,
    };
    match decide(sets, hub, gates) {
        Ok(RebuildDecision::Present) => row.state = RowState::Present,
        Ok(RebuildDecision::Rebuild(rebuild, state)) => {
            row.state = state;
            row.clusters = vec![rebuild.copy.cluster.clone()];
            row.removed_from = rebuild.others.iter().map(|set| set.cluster.clone()).collect();
            row.rebuild = Some(*rebuild);
        }
        Err(reason) => row.reason = Some(reason.to_string()),
    }
    row
}

fn lone_row(cluster: &str, job: &JobObject) -> PlanRow {
    PlanRow {
        namespace: object_name(job.metadata()).0,
        workload: String::new(),
        jobs: vec![kind_and_name(job)],
        clusters: vec![cluster.to_owned()],
        removed_from: Vec::new(),
        state: RowState::NotRebuilt,
        reason: Some(NotRebuilt::NoClone.to_string()),
        rebuild: None,
    }
}

/// A job as `Kind/name`.
fn kind_and_name(job: &JobObject) -> String {
    format!("{}/{}", job.kind().name(), job.metadata().name.as_deref().unwrap_or_default())
}

enum RebuildDecision {
    Present,
    Rebuild(Box<WorkloadRebuild>, RowState),
}

fn decide(
    sets: Vec<CopySet>,
    hub: &ObservedHub,
    gates: JobGates,
) -> Result<RebuildDecision, NotRebuilt> {
    let (copy, others) = choose(sets)?;
    let found = hub.workloads.get(&object_name(&copy.clone.metadata));
    if let Some(found) = found
        && is_present(found, &copy.clone)?
    {
        return Ok(RebuildDecision::Present);
    }
    check_cleanup(&copy, hub)?;
    check_copies(&copy)?;
    for job in &copy.jobs {
        // Without its jobs the manager would take the Workload for one that has lost them.
        if hub.kinds.of_framework(job.kind().framework()).is_none() {
            return Err(NotRebuilt::NotEnabled(job.kind().framework().to_owned()));
        }
        check_kind(job, &copy.clone, gates)?;
    }
    let admission = rebuilt_admission(&copy.clone, &copy.cluster, hub)?;
    let jobs = copy.jobs.iter().map(|job| {
        let original = rebuilt::original_job(job, &copy.clone, gates);
        original
            .map_err(|error| NotRebuilt::Unsupported(format!("{}: {error}", kind_and_name(job))))
    });
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    jobs.iter().try_for_each(|job| check_work(job, &copy.clone, gates))?;
    let begun = check_jobs(&jobs, &copy.clone, found, hub)?;
    let state = if begun || found.is_some() { RowState::Continue } else { RowState::Rebuild };
    if state == RowState::Rebuild && is_of(&copy.clone, hub) {
        return Err(NotRebuilt::DeletedHere);
    }
    Ok(RebuildDecision::Rebuild(Box::new(WorkloadRebuild { copy, others, jobs, admission }), state))
}

/// Whether the manager has the Workload; false if an earlier run has begun to rebuild it.
fn is_present(found: &Workload, clone: &Workload) -> Result<bool, NotRebuilt> {
    let exists = || {
        let (namespace, name) = object_name(&found.metadata);
        NotRebuilt::Exists(format!("Workload {namespace}/{name}"))
    };
    match annotation(&found.metadata, REBUILD) {
        Some(mark) if Some(mark) == clone.metadata.uid.as_deref() => Ok(false),
        Some(_) => Err(exists()),
        None => {
            let of = annotation(&clone.metadata, WORKLOAD_UID);
            let same = of.is_none_or(|of| found.metadata.uid.as_deref() == Some(of));
            if same { Ok(true) } else { Err(exists()) }
        }
    }
}

/// Whether the present manager has made, or taken over, a copy.
fn is_of(clone: &Workload, hub: &ObservedHub) -> bool {
    let of = annotation(&clone.metadata, INCARNATION).and_then(|text| text.parse().ok());
    of.is_some() && of == hub.stamp.as_ref().map(|stamp| stamp.incarnation)
}

/// With a confirmation the manager deletes what it does not know, at any moment.
fn check_cleanup(copy: &CopySet, hub: &ObservedHub) -> Result<(), NotRebuilt> {
    let cluster = by_name(&hub.clusters, &copy.cluster, |one: &MultiKueueCluster| &one.metadata);
    let confirmed = cluster.and_then(|one| annotation(&one.metadata, CLEANUP));
    match confirmed {
        Some("confirmed") => Err(NotRebuilt::Cleanup(copy.cluster.clone())),
        _ => Ok(()),
    }
}

/// Whether the copy runs, and goes on running.
fn check_copies(copy: &CopySet) -> Result<(), NotRebuilt> {
    let conditions = &copy.clone.status.conditions;
    if copy.clone.is_finished() {
        return Err(NotRebuilt::Finished);
    }
    if let Some(evicted) = find_true(conditions, EVICTED) {
        return Err(NotRebuilt::Evicted(evicted.reason.clone()));
    }
    if is_deleting(&copy.clone.metadata) {
        return Err(NotRebuilt::Deleted("its clone".to_owned()));
    }
    let mut deleted = copy.jobs.iter().filter(|job| is_deleting(job.metadata()));
    if let Some(job) = deleted.next() {
        return Err(NotRebuilt::Deleted(kind_and_name(job)));
    }
    if !is_true(conditions, ADMITTED) {
        return Err(NotRebuilt::NotAdmitted);
    }
    if copy.jobs.is_empty() { Err(NotRebuilt::NoJob) } else { Ok(()) }
}

/// Whether a job can be made from its copy alone.
fn check_kind(job: &JobObject, clone: &Workload, gates: JobGates) -> Result<(), NotRebuilt> {
    let (name, kind) = (kind_and_name(job), job.kind().name());
    let labels = clone.metadata.labels.as_ref();
    let unsupported = |why: &str| Err(NotRebuilt::Unsupported(format!("{name} {why}")));
    if job.set_size().is_some() {
        return unsupported("is a set of replicas: apply it again");
    }
    let is_slice = annotation(&clone.metadata, WORKLOAD_SLICE_NAME).is_some();
    if job.asks_for_elasticity(gates) || is_slice {
        return unsupported("is elastic: its sizes are those of lost Workloads");
    }
    if labels.is_some_and(|all| all.contains_key(CONCURRENT_ADMISSION_PARENT)) {
        return unsupported("has variants: their parent is lost");
    }
    if job.as_pod().is_none() && job.kind().fields().is_none() && !is_batch(job) {
        return unsupported("is of a kind whose Workloads another program makes");
    }
    if let Some(why) = job.unresolved().filter(|_| job.contradicts_itself()) {
        return Err(NotRebuilt::Unsupported(format!("{name} would get no Workload: {why}")));
    }
    if job.unresolved().is_some() {
        return Err(NotRebuilt::Unsupported(format!(
            "{name} needs other objects: {kind} is not rebuilt"
        )));
    }
    Ok(())
}

fn is_batch(job: &JobObject) -> bool {
    job.kind() == jobs::job::kind()
}

/// Whether the manager will find that the job matches the Workload, which has quota: it may have the counts of another version of Kueue.
/// Members of a group are compared by their roles.
fn check_work(job: &JobObject, clone: &Workload, gates: JobGates) -> Result<(), NotRebuilt> {
    let same = match job.as_pod().filter(|_| is_group_workload(clone)) {
        Some(pod) => clone.spec.pod_sets.iter().any(|set| set.name == pod.role()),
        None => equivalent_to_prebuilt(job, clone, None, gates),
    };
    if same { Ok(()) } else { Err(NotRebuilt::Differs(kind_and_name(job))) }
}

/// Whether an earlier run has made any of the jobs.
fn check_jobs(
    jobs: &[JobObject],
    clone: &Workload,
    workload: Option<&Workload>,
    hub: &ObservedHub,
) -> Result<bool, NotRebuilt> {
    let mut begun = false;
    for job in jobs {
        match (hub.jobs.get(&job_name(job)), workload) {
            (Some(found), Some(workload)) if owns(workload, found) => begun = true,
            (Some(found), None) if is_marked(found, clone) => begun = true,
            (Some(_), _) => return Err(NotRebuilt::Exists(kind_and_name(job))),
            (None, Some(_)) => return Err(NotRebuilt::Gone(kind_and_name(job))),
            (None, None) => {}
        }
    }
    Ok(begun)
}

fn is_marked(job: &JobObject, clone: &Workload) -> bool {
    let mark = job.annotation(REBUILD);
    mark.is_some() && mark == clone.metadata.uid.as_deref()
}

fn owns(workload: &Workload, job: &JobObject) -> bool {
    let mut owners = workload.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == job.metadata().uid.as_ref())
}

/// How many rows of a plan there are of each state.
#[must_use]
pub fn counts(rows: &[PlanRow]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.state.text()).or_default() += 1;
    }
    counts
}

impl RowState {
    /// Its word in a table.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Continue => "continue",
            Self::Present => "present",
            Self::NotRebuilt => "not rebuilt",
            Self::Failed => "failed",
        }
    }
}
