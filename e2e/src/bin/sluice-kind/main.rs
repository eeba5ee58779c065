//! `sluice-kind`: three clusters of kind for the tests that need only API servers and nodes. See kind/README.md.
#![expect(clippy::print_stdout, reason = "a command line tool's output")]

mod clusters;
mod docker;
mod node_image;
mod programs;
mod registration;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use clusters::KindClusters;
use node_image::NODE_IMAGE;

#[derive(Parser)]
#[command(name = "sluice-kind", about = "Three clusters of kind: a manager and two workers")]
struct KindCli {
    #[command(subcommand)]
    command: KindCommand,
}

#[derive(Subcommand)]
enum KindCommand {
    /// Make the clusters.
    Up {
        /// Try it with any limit of inotify instances.
        #[arg(long)]
        ignore_inotify: bool,
        /// Make the image of the nodes here, once, or take an archive of `node-image`, in place of pulling kind's image.
        #[arg(long, value_name = "ARCHIVE", num_args = 0..=1)]
        own_node_image: Option<Option<PathBuf>>,
    },
    /// Make the image of the nodes, and print the path of its archive.
    NodeImage,
    /// Load the images of `make images`, and a busybox, on all nodes.
    Load,
    /// Register the workers at the manager. Manager and agents are installed before.
    Register,
    /// Run the test on the clusters.
    Test,
    /// Delete the clusters.
    Down,
}

fn main() -> ExitCode {
    match run(KindCli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: KindCommand) -> Result<()> {
    if matches!(command, KindCommand::NodeImage) {
        println!("{}\n  {}", NODE_IMAGE, node_image::find(&|line| println!("{line}"))?.display());
        return Ok(());
    }
    if let Some(why) = docker::unusable() {
        println!("kind: SKIPPED, nothing was done: {why}");
        return Ok(());
    }
    let clusters = KindClusters::of_workspace()?;
    match command {
        KindCommand::Up { ignore_inotify, own_node_image } => {
            clusters.up(ignore_inotify, own_node_image)
        }
        // It needs no Docker.
        KindCommand::NodeImage => Ok(()),
        KindCommand::Load => clusters.load(),
        KindCommand::Register => clusters.register(),
        KindCommand::Test => clusters.test(),
        KindCommand::Down => clusters.down(),
    }
}
