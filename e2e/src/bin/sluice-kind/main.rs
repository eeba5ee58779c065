//! `sluice-kind`: three clusters of kind for the tests that need only API servers and nodes. See kind/README.md.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

mod clusters;
mod docker;
mod node_counts;
mod node_image;
mod own_docker;
mod programs;
mod registration;
mod variables;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use lab::real_nodes::preflight::LACKING_EXIT_CODE;

use clusters::KindClusters;
use docker::DaemonAddress;
use node_counts::KindNodeCounts;
use node_image::NODE_IMAGE;
use own_docker::inside::DockerInside;
use own_docker::{WithDocker, lean_runtime};

#[derive(Parser)]
#[command(name = "sluice-kind", about = "Three clusters of kind: a manager and two workers")]
struct KindCli {
    #[command(subcommand)]
    command: KindCommand,
}

#[derive(Subcommand)]
enum KindCommand {
    #[command(flatten)]
    Clusters(ClusterCommand),
    /// Make the image of the nodes, and print the path of its archive.
    NodeImage,
    WithDocker(WithDocker),
    #[command(hide = true)]
    DockerInside(DockerInside),
    /// Become runc, without a capability that root lacks.
    #[command(hide = true, disable_help_flag = true)]
    LeanRuntime {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Subcommand)]
enum ClusterCommand {
    /// Make the clusters.
    Up {
        /// Try it with any limit of inotify instances.
        #[arg(long)]
        ignore_inotify: bool,
        /// Make the image of the nodes here, once, or take an archive of `node-image`, in place of pulling kind's image.
        #[arg(long, value_name = "ARCHIVE", num_args = 0..=1)]
        own_node_image: Option<Option<PathBuf>>,
        /// Give each cluster one node: three nodes need no other limit than the kernel's default.
        #[arg(long)]
        single_nodes: bool,
        /// Give the larger worker one node beside its control plane, and the other clusters one node each: no other limit either.
        #[arg(long, conflicts_with = "single_nodes")]
        few_nodes: bool,
    },
    /// Load the images of `make images`, and a busybox, on all nodes.
    Load {
        /// Load the programs of the debug build instead.
        #[arg(long)]
        debug: bool,
    },
    /// Register the workers at the manager. Manager and agents are installed before.
    Register,
    /// Run the test on the clusters.
    Test,
    /// Delete the clusters.
    Down,
}

fn main() -> ExitCode {
    match run(KindCli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: KindCommand) -> Result<ExitCode> {
    let done = match command {
        KindCommand::Clusters(command) => match docker::unusable(DaemonAddress::OfEnvironment) {
            Some(why) => return Ok(skipped(&why)),
            None => command.run(&KindClusters::of_workspace()?),
        },
        KindCommand::NodeImage => print_node_image(),
        KindCommand::WithDocker(with_docker) => return with_docker.run(),
        KindCommand::DockerInside(inside) => return inside.run(),
        KindCommand::LeanRuntime { arguments } => lean_runtime::become_runc(&arguments),
    };
    done.map(|()| ExitCode::SUCCESS)
}

impl ClusterCommand {
    fn run(self, clusters: &KindClusters) -> Result<()> {
        match self {
            Self::Up { ignore_inotify, own_node_image, single_nodes, few_nodes } => {
                let nodes = match (single_nodes, few_nodes) {
                    (true, _) => KindNodeCounts::One,
                    (_, true) => KindNodeCounts::Few,
                    _ => KindNodeCounts::Unequal,
                };
                clusters.up(nodes, ignore_inotify, own_node_image)
            }
            Self::Load { debug } => clusters.load(debug),
            Self::Register => clusters.register(),
            Self::Test => clusters.test(),
            Self::Down => clusters.down(),
        }
    }
}

fn print_node_image() -> Result<()> {
    println!("{}\n  {}", NODE_IMAGE, node_image::find(&|line| println!("{line}"))?.display());
    Ok(())
}

/// Says why nothing was done. The exit code is not that of a failure.
fn skipped(why: &str) -> ExitCode {
    println!("kind: SKIPPED, nothing was done: {why}");
    ExitCode::from(LACKING_EXIT_CODE)
}
