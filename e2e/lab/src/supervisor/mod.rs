//! The process that owns the processes of a lab.
//!
//! `up` starts it in the background. It reads the state of the lab, starts all clusters in parallel, writes "ready" or "failed",
//! and then handles requests until it is stopped, is signalled, or its owner ends. It runs on one thread, its main thread, because
//! children are tethered to the thread that started them ([`crate::tether`]).
//!
//! A component that ends is not restarted without a request: fault tests kill components.

mod boot;
mod children;
mod kwok;
mod real_nodes;
mod requests;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use futures::future::{join_all, select_all};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::identity::ProcessId;
use crate::leftovers;
use crate::real_nodes::cgroups;
use crate::state::{LabState, Phase, StateError};
use children::Children;

pub use boot::BootError;

/// The hidden subcommand of `sluice-lab`.
pub const SUBCOMMAND: &str = "supervise";

/// Why a supervisor ended early.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The lab's state could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A cluster did not start.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The system refused something a supervisor needs.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Supervises the lab in `directory`. With `owned`, the end of standard input ends the lab.
///
/// Must be called on the main thread.
pub fn supervise(
    directory: &Path,
    sluice_lab: PathBuf,
    owned: bool,
) -> Result<(), SupervisorError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("start the runtime"))?;
    let mut state = LabState::load(directory)?;
    state.supervisor = ProcessId::own().unwrap_or(state.supervisor);
    state.save()?;
    let supervisor = Supervisor { state: Mutex::new(state), children: Children::new(sluice_lab) };
    let result = runtime.block_on(supervisor.run(owned));
    // A thread may still be reading standard input; nothing waits for it.
    runtime.shutdown_background();
    result
}

/// A lab and its child processes.
struct Supervisor {
    state: Mutex<LabState>,
    children: Children,
}

impl Supervisor {
    async fn run(&self, owned: bool) -> Result<(), SupervisorError> {
        let mut ends =
            vec![signalled(SignalKind::terminate())?, signalled(SignalKind::interrupt())?];
        if owned {
            ends.push(Box::pin(end_of_input()));
        }
        let listener =
            UnixListener::bind(self.state().socket()).map_err(system("listen on control.sock"))?;
        let work = async {
            self.boot().await?;
            Ok(self.serve(&listener).await)
        };
        let finished = tokio::select! {
            result = work => result,
            _ = select_all(ends) => Ok(None),
        };
        self.children.kill_all().await;
        self.remove_cgroups();
        match finished {
            Ok(asked) => {
                leftovers::remove_directory(&self.state().directory)?;
                if let Some(connection) = asked {
                    connection.done().await;
                }
                Ok(())
            }
            // The directory stays, for its logs; the next `up` or `down` removes it.
            Err(error) => Err(error),
        }
    }

    /// Starts all clusters in parallel and records the result.
    async fn boot(&self) -> Result<(), SupervisorError> {
        let begun = Instant::now();
        let clusters = self.state().clusters;
        let gateway = real_nodes::start_gateway(self).await.map_err(BootError::from);
        let boots = match gateway {
            Ok(()) => join_all(clusters.iter().map(|cluster| boot::boot(self, cluster))).await,
            Err(error) => vec![Err(error)],
        };
        let failed = boots.into_iter().find_map(Result::err);
        let phase = match &failed {
            None => {
                let after = begun.elapsed().as_millis();
                Phase::Ready { after_millis: u64::try_from(after).unwrap_or(u64::MAX) }
            }
            Some(error) => Phase::Failed { reason: error.to_string() },
        };
        self.change(|state| state.phase = phase)?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Removes the control groups of the real nodes. What remains is removed with the lab's directory.
    fn remove_cgroups(&self) {
        if let Err(error) = cgroups::remove(&cgroups::of_lab(&self.state().directory)) {
            eprintln!("{error}");
        }
    }

    /// The state as it is now.
    fn state(&self) -> LabState {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Changes the state and writes it.
    fn change(&self, change: impl FnOnce(&mut LabState)) -> Result<(), StateError> {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut state);
        state.save()
    }
}

type End = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn signalled(kind: SignalKind) -> Result<End, SupervisorError> {
    let mut stream = signal(kind).map_err(system("wait for signals"))?;
    Ok(Box::pin(async move {
        stream.recv().await;
    }))
}

/// Ends when the owner, which holds the other end of standard input, has ended.
async fn end_of_input() {
    let reader = tokio::task::spawn_blocking(|| {
        let mut ignored = [0; 64];
        let mut input = std::io::stdin();
        while matches!(input.read(&mut ignored), Ok(read) if read > 0) {}
    });
    // After a read error the end of the owner would not be noticed, so it counts as the end.
    let _ = reader.await;
}

fn system(operation: &'static str) -> impl FnOnce(std::io::Error) -> SupervisorError {
    move |source| SupervisorError::System { operation, source }
}
