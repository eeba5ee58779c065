//! The next write of a rebuild, from what the objects show (docs/reference/dispatch.md §11).
//!
//! ```text
//! CreateJob* ─> CreateWorkload ─> Reserve ─> Admit ─> StampJob* ─> StampClone ─> (the same of others) ─> UnmarkJob* ─> UnmarkWorkload
//! ```
//!
//! A write that was done shows in the objects, so that a run continues where an earlier one ended.

use crds::{
    meta::{annotation, is_rebuilding},
    names::annotations::{INCARNATION, WORKLOAD_UID},
    v1beta2::Workload,
};
use jobs::{GenericJob, JobObject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{copies::CopySet, observed::HubStamp};

/// A write. Numbers are those of jobs and of other copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebuildStep {
    /// Create a job on the manager cluster.
    CreateJob(usize),
    /// Create the Workload.
    CreateWorkload,
    /// Write quota and nomination to its status.
    Reserve,
    /// Write the worker, the check and the admission to its status.
    Admit,
    /// Stamp a job on a worker.
    StampJob(CopyRole, usize),
    /// Stamp a clone.
    StampClone(CopyRole),
    /// Take the mark from a job.
    UnmarkJob(usize),
    /// Take the mark from the Workload.
    UnmarkWorkload,
}

/// Which copy of a Workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyRole {
    /// The one that counts.
    Chosen,
    /// One that the manager removes.
    Other(usize),
}

/// What is there of a rebuild.
#[derive(Clone, Debug)]
pub struct RebuildProgress {
    /// The jobs of the manager cluster, in the order of the plan.
    pub jobs: Vec<Option<JobObject>>,
    /// The Workload of the manager cluster.
    pub workload: Option<Workload>,
    /// The copy that counts.
    pub copy: CopySet,
    /// The others.
    pub others: Vec<CopySet>,
}

impl RebuildProgress {
    /// The next write; `None` if all are done.
    #[must_use]
    pub fn next(&self, stamp: &HubStamp) -> Option<RebuildStep> {
        let Some(workload) = &self.workload else {
            let missing = self.jobs.iter().position(Option::is_none);
            return Some(missing.map_or(RebuildStep::CreateWorkload, RebuildStep::CreateJob));
        };
        // What nothing holds back any more is the manager's.
        if !is_rebuilding(&workload.metadata) {
            return None;
        }
        if !workload.has_quota_reservation() {
            return Some(RebuildStep::Reserve);
        }
        if workload.status.cluster_name.is_none() {
            return Some(RebuildStep::Admit);
        }
        let uid = workload.metadata.uid.as_deref().unwrap_or_default();
        let chosen = std::iter::once((CopyRole::Chosen, &self.copy));
        let others = self.others.iter().enumerate();
        let mut copies = chosen.chain(others.map(|(number, set)| (CopyRole::Other(number), set)));
        let unstamped = copies.find_map(|(role, set)| next_stamp(role, set, (stamp, uid)));
        let marked =
            |job: &Option<JobObject>| job.as_ref().is_some_and(|job| is_rebuilding(job.metadata()));
        let marked = self.jobs.iter().position(marked).map(RebuildStep::UnmarkJob);
        unstamped.or(marked).or(Some(RebuildStep::UnmarkWorkload))
    }
}

/// The job first: a clone that is known beside a job that is not would look like one without a job.
fn next_stamp(role: CopyRole, set: &CopySet, of: (&HubStamp, &str)) -> Option<RebuildStep> {
    let job = set.jobs.iter().position(|job| !is_stamped(job.metadata(), of));
    let clone = (!is_stamped(&set.clone.metadata, of)).then_some(RebuildStep::StampClone(role));
    job.map(|number| RebuildStep::StampJob(role, number)).or(clone)
}

fn is_stamped(metadata: &ObjectMeta, (stamp, uid): (&HubStamp, &str)) -> bool {
    annotation(metadata, WORKLOAD_UID) == Some(uid)
        && annotation(metadata, INCARNATION) == Some(stamp.incarnation.to_string().as_str())
}

impl RebuildStep {
    /// The name of the crash points around the write.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::CreateJob(_) => "rebuild-job",
            Self::CreateWorkload => "rebuild-workload",
            Self::Reserve => "rebuild-reserve",
            Self::Admit => "rebuild-admit",
            Self::StampJob(..) => "rebuild-stamp-job",
            Self::StampClone(_) => "rebuild-stamp-clone",
            Self::UnmarkJob(_) => "rebuild-unmark-job",
            Self::UnmarkWorkload => "rebuild-unmark-workload",
        }
    }
}
