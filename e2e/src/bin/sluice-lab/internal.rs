//! Internal subcommands: the supervisor, the tether of its children, the gateway and the nodes of a lab with real nodes.

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

/// Connect the real nodes of the lab in a directory. Runs in a network namespace of its own.
#[derive(clap::Args)]
pub(crate) struct Gateway {
    directory: PathBuf,
}

impl Gateway {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Ok(lab::real_nodes::gateway::run(&self.directory)?)
    }
}

/// Be process 1 of the real node in a directory. Runs in namespaces of its own.
#[derive(clap::Args)]
pub(crate) struct Node {
    directory: PathBuf,
}

impl Node {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Ok(lab::real_nodes::init::run(&self.directory)?)
    }
}

/// Start a killed program of the real node in a directory again. Runs in the namespaces of the node.
#[derive(clap::Args)]
pub(crate) struct NodeProgram {
    directory: PathBuf,
    program: String,
}

impl NodeProgram {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Ok(lab::real_nodes::init::start_again(&self.directory, &self.program)?)
    }
}

/// Import the images of an archive at standard input into the real node in a directory. Runs in the namespaces of the node.
#[derive(clap::Args)]
pub(crate) struct NodeImport {
    directory: PathBuf,
}

impl NodeImport {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Ok(lab::real_nodes::init::import(&self.directory)?)
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
