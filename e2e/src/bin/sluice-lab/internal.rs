//! Internal subcommands: the supervisor, and the tether of its children.

use std::ffi::OsString;
use std::path::PathBuf;

/// Supervise the lab in a directory.
#[derive(clap::Args)]
pub(crate) struct Supervise {
    directory: PathBuf,
    /// The end of standard input ends the lab.
    #[arg(long)]
    owned: bool,
}

impl Supervise {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let own = std::env::current_exe()?;
        Ok(lab::supervisor::supervise(&self.directory, own, self.owned)?)
    }
}

/// Become a program that dies with its parent.
#[derive(clap::Args)]
pub(crate) struct Tether {
    parent: u32,
    program: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Tether {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Err(lab::tether::become_program(self.parent, &self.program, &self.arguments).into())
    }
}
