//! The phases of a RayJob.
//!
//! ```text
//! New -> Initializing -> Running -----------------> Complete
//!             |    ^        |  \-----------> Failed
//!             v    |        v
//!           Waiting      Retrying -> New
//!
//! Initializing, Waiting, Running --suspend--> Suspending -> Suspended --resume--> New
//! any but the last three --deadline, failure--> Failed, or Retrying
//! ```
//! Source: docs/reference/ray.md §8.

/// `status.jobDeploymentStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobPhase {
    /// Names of the attempt are not chosen yet.
    New,
    /// The cluster is not ready yet.
    Initializing,
    /// The user has not named the job of the cluster yet.
    Waiting,
    /// The job may run.
    Running,
    /// Cluster and submitter are being removed; the RayJob is suspended then.
    Suspending,
    /// Cluster and submitter are being removed; a new attempt follows.
    Retrying,
    /// Suspended.
    Suspended,
    /// The job succeeded, or was stopped.
    Complete,
    /// The last attempt failed.
    Failed,
    /// The RayJob is invalid.
    ValidationFailed,
    /// Written by another version of the operator.
    Unknown,
}

const NAMES: &[(JobPhase, &str)] = &[
    (JobPhase::New, ""),
    (JobPhase::Initializing, "Initializing"),
    (JobPhase::Waiting, "Waiting"),
    (JobPhase::Running, "Running"),
    (JobPhase::Suspending, "Suspending"),
    (JobPhase::Retrying, "Retrying"),
    (JobPhase::Suspended, "Suspended"),
    (JobPhase::Complete, "Complete"),
    (JobPhase::Failed, "Failed"),
    (JobPhase::ValidationFailed, "ValidationFailed"),
];

impl JobPhase {
    pub(super) fn parse(name: &str) -> Self {
        NAMES.iter().find(|(_, known)| *known == name).map_or(Self::Unknown, |(phase, _)| *phase)
    }

    /// As it stands in the status. An unknown phase is never written.
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(phase, _)| *phase == self).map_or("", |(_, name)| name)
    }

    /// Whether the RayJob was accepted once.
    pub(super) fn is_begun(self) -> bool {
        !matches!(self, Self::New | Self::ValidationFailed)
    }

    /// Whether nothing follows.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::ValidationFailed)
    }
}
