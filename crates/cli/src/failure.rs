//! Errors of commands.

use crds::worker_drain::DrainParseFailure;

use crate::{
    access::AccessFailure,
    command_exit::CommandExit,
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
    /// How the command ends.
    #[must_use]
    pub fn exit(&self) -> CommandExit {
        match self {
            Self::Access(_)
            | Self::Request(_)
            | Self::Render(_)
            | Self::File { .. }
            | Self::NoWorkload(_) => CommandExit::Failed,
            Self::Name(_) | Self::Deadline(_) | Self::Window(_) | Self::NoWorker => {
                CommandExit::Usage
            }
            Self::Logs(failure) => failure.exit(),
            Self::Drain(failure) => failure.exit(),
            Self::Rebuild(failure) => failure.exit(),
            Self::Fence(failure) => failure.exit(),
            Self::Join(failure) => failure.exit(),
            Self::Leave(failure) => failure.exit(),
        }
    }
}
