//! `load`.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use lab::real_nodes::running_node::RunningNode;

use crate::LabName;

/// Import images of archives into all real nodes of a cluster.
#[derive(clap::Args)]
pub(crate) struct LoadImages {
    #[command(flatten)]
    lab: LabName,
    /// The cluster: manager, worker-1, …
    cluster: String,
    /// Archives as `docker save` and `make images` write them.
    #[arg(required = true)]
    archives: Vec<PathBuf>,
}

impl LoadImages {
    pub(crate) fn run(self) -> Result<()> {
        let lab = self.lab.load()?;
        let cluster = lab.cluster(&self.cluster)?;
        ensure!(!cluster.real_nodes.is_empty(), "{} has no real nodes", cluster.name);
        let own = std::env::current_exe()?;
        for node in &cluster.real_nodes {
            let running = RunningNode::find(&lab.directory, cluster, node)?;
            for archive in &self.archives {
                running.import(&own, archive)?;
                println!("{} {}: {}", cluster.name, node.name, archive.display());
            }
        }
        Ok(())
    }
}
