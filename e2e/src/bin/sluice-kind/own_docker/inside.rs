//! Process 1 of a daemon's namespaces: it prepares them, starts the daemon, and runs the command.
//!
//! `/run` is a new file system. What the daemon writes to `/etc` and `/opt` goes to layers in its directory: a key in
//! `/etc/docker`, folders of containerd in `/opt`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use cache::command;

use super::daemon::{self, ADDRESS};
use super::namespaces::exit_code;
use super::overlay;

/// The hidden subcommand of `sluice-kind`.
pub(super) const SUBCOMMAND: &str = "docker-inside";

/// Directories with a layer of the daemon's own.
const LAYERED: [&str; 2] = ["/etc", "/opt"];

/// Variables for other daemons than that at the address.
const OTHERS: [&str; 3] = ["DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"];

/// Become process 1 of a daemon's namespaces.
#[derive(clap::Args)]
pub(crate) struct DockerInside {
    directory: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl DockerInside {
    pub(crate) fn run(self) -> Result<ExitCode> {
        // A failure: the machine has all that a daemon is known to need.
        started(&self.directory).context("Docker's daemon cannot be started")?;
        let [program, arguments @ ..] = &self.command[..] else { return Ok(ExitCode::SUCCESS) };
        let mut command = Command::new(program);
        for name in OTHERS {
            command.env_remove(name);
        }
        let ended = command.args(arguments).env("DOCKER_HOST", ADDRESS).status();
        ended.map(exit_code).with_context(|| format!("running {}", program.display()))
    }
}

fn started(directory: &Path) -> Result<()> {
    // First: mount has a folder there.
    mount("tmpfs", "mode=755", "/run")?;
    LAYERED.iter().try_for_each(|covered| cover(directory, covered))?;
    command::run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    daemon::start(directory)
}

/// Lays a directory of the daemon over one of the machine.
fn cover(directory: &Path, covered: &str) -> Result<()> {
    let [upper, work] = ["upper", "work"]
        .map(|name| directory.join(format!("{}-{name}", covered.trim_start_matches('/'))));
    for layer in [&upper, &work] {
        fs::create_dir(layer).with_context(|| format!("creating {}", layer.display()))?;
    }
    mount("overlay", &overlay::options(Path::new(covered), &upper, &work), covered)
}

fn mount(kind: &str, options: &str, place: &str) -> Result<()> {
    let mut mount = Command::new("mount");
    Ok(command::run(mount.args(["-n", "-t", kind, "-o", options, kind, place]))?)
}
