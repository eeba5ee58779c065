//! A command with a Docker: the daemon that answers, or else one that is started for the command and ends with it.
//!
//! ```text
//! sluice-kind with-docker ──> setpriv ──> unshare ─┬─ new mount, network, process and IPC namespaces
//!   waits, removes the directory                  └─> sluice-kind docker-inside (process 1) ─┬─> dockerd ──> containers
//!                                                                                            └─> the command
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`requirements`] | what a daemon needs and the machine lacks |
//! | [`overlay`] | whether the file system of its directory takes the daemon's layers |
//! | [`directory`] | the directory of a daemon, and what outlives its processes |
//! | [`kernel_settings`] | settings that a kubelet changes for the whole machine |
//! | [`namespaces`] | the process outside, which waits and cleans |
//! | [`inside`] | process 1 inside, which starts daemon and command |
//! | [`daemon`] | dockerd and its configuration |
//! | [`lean_runtime`] | runc without a capability that root lacks |
//!
//! Invariants:
//! * Processes, mounts, network interfaces and rules of the packet filter end with process 1, however it ends. The directory and empty
//!   control groups remain after a crash, and the next start removes them.
//! * The command shares the daemon's network: ports that Docker publishes on loopback are there, and there is no way out of it.

mod daemon;
mod directory;
pub(crate) mod inside;
mod kernel_settings;
pub(crate) mod lean_runtime;
mod namespaces;
mod overlay;
mod requirements;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::docker::{DaemonAddress, unusable};
use crate::variables::{KIND_VARIABLE, NODE_IMAGE_VARIABLE, kind_program};
use crate::{node_image, skipped};
use directory::{DaemonDirectory, daemons_of_user};

/// Run a command with the Docker that answers, or with one that is started for it and ends with it.
#[derive(clap::Args)]
pub(crate) struct WithDocker {
    /// Make kind and the image of the nodes before the command: it may have no network to get them from.
    #[arg(long)]
    own_node_image: bool,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl WithDocker {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let dead = unusable(DaemonAddress::OfEnvironment);
        if let Some(why) = self.lacking(dead.as_deref()) {
            return Ok(skipped(&why));
        }
        let variables = if self.own_node_image { prepared()? } else { Vec::new() };
        if dead.is_some() {
            let directory = DaemonDirectory::create(&daemons_of_user()?)?;
            let ended = namespaces::run(directory.path(), &self.command, &variables);
            return directory.remove().and(ended);
        }
        let [program, arguments @ ..] = &self.command[..] else { return Ok(ExitCode::SUCCESS) };
        let error = Command::new(program).args(arguments).envs(variables).exec();
        Err(error).with_context(|| format!("running {}", program.display()))
    }

    /// Why the command cannot run, in one line. `dead` is why the Docker of this machine cannot be used.
    fn lacking(&self, dead: Option<&str>) -> Option<String> {
        let of_image = if self.own_node_image { node_image::lacking() } else { None };
        of_image.or_else(|| {
            let dead = dead?;
            let lacking =
                requirements::lacking().or_else(|| overlay::lacking(&daemons_of_user().ok()?));
            lacking.map(|lacking| format!("{dead}; {lacking}"))
        })
    }
}

/// Makes what a command would need a network for, and says where it is.
fn prepared() -> Result<Vec<(&'static str, OsString)>> {
    let report = |line: &str| println!("{line}");
    let (kind, archive) = (kind_program()?, node_image::find(&report)?);
    Ok(vec![(KIND_VARIABLE, kind.into()), (NODE_IMAGE_VARIABLE, archive.into())])
}
