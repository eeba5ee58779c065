//! Errors of commands, and the exit code of each (docs/sluicectl.md).

use crds::worker_drain::DrainParseFailure;

use crate::{
    access::AccessFailure,
    dr::RebuildFailure,
    drain::{DeadlineParseFailure, DrainFailure},
    explain::NameParseFailure,
    fence::FenceFailure,
    join::JoinFailure,
    leave::LeaveFailure,
    logs::LogsFailure,
    output::RenderFailure,
    requests::RequestFailure,
};

/// A request failed, an object is missing or a file cannot be read.
pub const FAILED: u8 = 1;
/// The command line is wrong; clap uses the same code.
pub const USAGE: u8 = 2;
/// The state was not reached before the deadline. What was changed stays.
pub const TIMED_OUT: u8 = 3;
/// Refused before anything was changed.
pub const REFUSED: u8 = 4;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// A kubeconfig is unusable.
    #[error(transparent)]
    Access(#[from] AccessFailure),
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// The result could not be rendered.
    #[error(transparent)]
    Render(#[from] RenderFailure),
    /// The name on the command line selects nothing.
    #[error(transparent)]
    Name(#[from] NameParseFailure),
    /// The deadline on the command line is none.
    #[error(transparent)]
    Deadline(#[from] DeadlineParseFailure),
    /// A deadline and a window contradict each other.
    #[error(transparent)]
    Window(#[from] DrainParseFailure),
    /// A file of the command line cannot be read.
    #[error("cannot read {file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The worker is not named.
    #[error(
        "the worker's kubeconfig is missing: name it with --worker-kubeconfig or --worker-context"
    )]
    NoWorker,
    /// No Workload has the name.
    #[error("{0}")]
    NoWorkload(String),
    /// Logs were not read.
    #[error(transparent)]
    Logs(#[from] LogsFailure),
    /// A drain failed.
    #[error(transparent)]
    Drain(#[from] DrainFailure),
    /// A manager cluster was not rebuilt.
    #[error(transparent)]
    Rebuild(#[from] RebuildFailure),
    /// A confirmation failed.
    #[error(transparent)]
    Fence(#[from] FenceFailure),
    /// A registration failed.
    #[error(transparent)]
    Join(#[from] JoinFailure),
    /// The end of a registration failed.
    #[error(transparent)]
    Leave(#[from] LeaveFailure),
}

impl CommandFailure {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Access(_)
            | Self::Request(_)
            | Self::Render(_)
            | Self::File { .. }
            | Self::NoWorkload(_) => FAILED,
            Self::Logs(failure) => of_logs(failure),
            Self::Name(_) | Self::Deadline(_) | Self::Window(_) | Self::NoWorker => USAGE,
            Self::Drain(failure) => of_drain(failure),
            Self::Rebuild(failure) => of_rebuild(failure),
            Self::Fence(failure) => of_fence(failure),
            Self::Join(failure) => of_join(failure),
            Self::Leave(failure) => of_leave(failure),
        }
    }
}

fn of_logs(failure: &LogsFailure) -> u8 {
    match failure {
        LogsFailure::TooMany(_) => USAGE,
        LogsFailure::Request(_)
        | LogsFailure::NotServed
        | LogsFailure::NoWorkload { .. }
        | LogsFailure::NoPods { .. }
        | LogsFailure::NoPod { .. }
        | LogsFailure::NoContainer { .. }
        | LogsFailure::CutOff { .. } => FAILED,
    }
}

fn of_drain(failure: &DrainFailure) -> u8 {
    match failure {
        DrainFailure::Request(_) | DrainFailure::NoCluster(_) | DrainFailure::Policy { .. } => {
            FAILED
        }
        DrainFailure::NotDispatchedTo(_) | DrainFailure::PolicyNameTaken { .. } => REFUSED,
        DrainFailure::StillThere { .. } | DrainFailure::NoAnswer { .. } => TIMED_OUT,
    }
}

fn of_rebuild(failure: &RebuildFailure) -> u8 {
    match failure {
        RebuildFailure::NotAccepted | RebuildFailure::SameCluster { .. } => REFUSED,
        RebuildFailure::Request(_)
        | RebuildFailure::Configuration(_)
        | RebuildFailure::Unavailable(_)
        | RebuildFailure::Worker { .. }
        | RebuildFailure::NoCluster(_)
        | RebuildFailure::NoIdentity(_)
        | RebuildFailure::Incomplete(_)
        | RebuildFailure::Undecodable { .. } => FAILED,
    }
}

fn of_fence(failure: &FenceFailure) -> u8 {
    match failure {
        FenceFailure::Request(_) | FenceFailure::NoCluster(_) => FAILED,
        FenceFailure::Reached(_)
        | FenceFailure::NoSession(_)
        | FenceFailure::NotAccepted { .. } => REFUSED,
    }
}

fn of_join(failure: &JoinFailure) -> u8 {
    match failure {
        JoinFailure::Request(_)
        | JoinFailure::Render(_)
        | JoinFailure::Configuration(_)
        | JoinFailure::Authority { .. }
        | JoinFailure::Roles(_)
        | JoinFailure::NoToken { .. }
        | JoinFailure::NoObject { .. } => FAILED,
        JoinFailure::NotActive { .. } => TIMED_OUT,
        JoinFailure::Endpoint(_)
        | JoinFailure::OwnershipConflict(_)
        | JoinFailure::SameCluster
        | JoinFailure::RegisteredAs { .. }
        | JoinFailure::OtherCluster { .. }
        | JoinFailure::NotInstalled => REFUSED,
    }
}

fn of_leave(failure: &LeaveFailure) -> u8 {
    match failure {
        LeaveFailure::Request(_) | LeaveFailure::Configuration(_) | LeaveFailure::NoCluster(_) => {
            FAILED
        }
        LeaveFailure::Drain(failure) => of_drain(failure),
        LeaveFailure::CopiesLeft { .. } | LeaveFailure::NoAnswer { .. } => TIMED_OUT,
        LeaveFailure::RemainingWork { .. }
        | LeaveFailure::OtherCluster { .. }
        | LeaveFailure::RegisteredAs { .. }
        | LeaveFailure::NotJoined(_)
        | LeaveFailure::NoWorkerAccess => REFUSED,
    }
}
