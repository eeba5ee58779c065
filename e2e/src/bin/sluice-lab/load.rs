//! `load`.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use images::archive;
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
        self.archives.iter().try_for_each(|archive| archive::check(archive))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_not_whole_is_refused_before_any_node_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("empty.tar");
        std::fs::write(&archive, [0; 1024]).unwrap();
        let lab = LabName { name: "absent".to_owned() };
        let load = LoadImages { lab, cluster: "manager".to_owned(), archives: vec![archive] };
        let said = load.run().unwrap_err().to_string();
        assert!(said.contains("empty.tar is no whole archive of an image"), "{said}");
    }
}
