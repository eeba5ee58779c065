//! The image of kind's nodes, made here: `kind create cluster` then needs no registry.
//!
//! A node is Debian's systemd, containerd and runc of unpacked packages, the files of kind's own module, kubeadm, and the images
//! that kubeadm starts: the lab's programs and CoreDNS. The archive is kept in the machine's cache under a key of all of its
//! inputs. kind/README.md says what it lacks.
//!
//! | module | concept |
//! |---|---|
//! | [`root_folder`] | the file system of a node |
//! | [`merged_usr`] | `/bin`, `/sbin` and `/lib` as parts of `/usr` |
//! | [`program_images`] | the images that kubeadm and the network of pods need |
//! | [`containerd`] | images imported into the file system |

mod containerd;
mod merged_usr;
mod program_images;
mod root_folder;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cache::{once, recipe_digest, short_digest};
use containerd::RunningContainerd;
use e2e::installation::root;
use images::archive::is_complete;
use images::folder_image::{FOLDER_IMAGE_SOURCE, FolderImage};
use lab::binaries::kind_program::{COREDNS, KUBEADM};
use lab::binaries::node_programs::NodePrograms;
use lab::binaries::{Binaries, kind_program, module_program};
use lab::real_nodes::container_image::CONTAINER_IMAGE_SOURCE;
use lab::real_nodes::preflight;

/// The name of the image.
pub(crate) const NODE_IMAGE: &str = "lab.sluice.dev/kind-node:v1.36.3";

/// Debian packages, a line `NAME=VERSION` each.
const PACKAGES: &str = include_str!("../../../../../kind/node/packages.txt");

/// The network of pods, which kind applies.
const NETWORK: &str = include_str!("../../../../../kind/node/network.yaml");

/// What makes an image of the parts, as part of the key.
const SOURCES: [&str; 7] = [
    include_str!("mod.rs"),
    include_str!("containerd.rs"),
    include_str!("merged_usr.rs"),
    include_str!("program_images.rs"),
    include_str!("root_folder.rs"),
    FOLDER_IMAGE_SOURCE,
    CONTAINER_IMAGE_SOURCE,
];

/// The file in a directory of the cache.
const ARCHIVE: &str = "kind-node.tar";

/// What a node is made of.
struct NodeParts {
    kubernetes: Binaries,
    node: NodePrograms,
    kubeadm: PathBuf,
    coredns: PathBuf,
    kind_files: PathBuf,
}

impl NodeParts {
    fn find(report: &dyn Fn(&str)) -> Result<Self> {
        let modules = root().join("kind/node");
        Ok(Self {
            kubernetes: Binaries::find(report)?,
            node: NodePrograms::find(report)?,
            kubeadm: module_program::find(&modules, KUBEADM, report)?,
            coredns: module_program::find(&modules, COREDNS, report)?,
            kind_files: kind_program::base_files(&modules.join("kubeadm"))?,
        })
    }

    /// Another part has another path: caches have keys of their inputs in their names.
    fn key(&self) -> String {
        let programs = [
            self.kubernetes.kubectl(),
            self.node.kubelet(),
            self.kubeadm.clone(),
            self.coredns.clone(),
            self.kind_files.clone(),
        ];
        let programs = programs.map(|path| path.display().to_string()).join("\n");
        let recipe = recipe_digest(&SOURCES);
        short_digest(&[&recipe, NODE_IMAGE, PACKAGES, NETWORK, &programs].join("\n"))
    }
}

/// Why the image cannot be made on this machine, in one line.
pub(crate) fn lacking() -> Option<String> {
    let machine = std::env::consts::ARCH;
    if machine != "x86_64" {
        return Some(format!("the image of nodes is for x86_64, and this machine is {machine}"));
    }
    preflight::foreign_release()
}

/// Finds the archive of the image in the cache, or makes it.
pub(crate) fn find(report: &dyn Fn(&str)) -> Result<PathBuf> {
    if let Some(why) = lacking() {
        bail!(why);
    }
    let parts = NodeParts::find(report)?;
    let directory = cache::root()?.join(format!("kind-node-{}", parts.key()));
    let is_made = |directory: &Path| is_complete(&directory.join(ARCHIVE)).unwrap_or_default();
    once::filled(&directory, &is_made, report, |into| make(&parts, into, report))
        .context("making the image of kind's nodes")?;
    Ok(directory.join(ARCHIVE))
}

/// Makes the archive in an empty directory and leaves nothing else there.
fn make(parts: &NodeParts, into: &Path, report: &dyn Fn(&str)) -> Result<()> {
    let folder = into.join("root");
    report("making the image of kind's nodes, once: downloading Debian packages (60 MB)");
    root_folder::fill(&folder, parts, (PACKAGES, NETWORK))?;
    report("packing Kubernetes into the image of kind's nodes");
    let state = into.join("containerd");
    let containerd = RunningContainerd::start(&folder, &state)?;
    program_images::each(&folder, parts, |archive| containerd.import(archive))?;
    containerd.end()?;
    let image = FolderImage {
        reference: NODE_IMAGE,
        root: &folder,
        environment: &[
            "container=docker",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
        ],
        working_directory: "/",
        command: &["/usr/local/bin/entrypoint", "/sbin/init"],
    };
    image.write(&into.join(ARCHIVE))?;
    for left in [folder, state] {
        std::fs::remove_dir_all(&left).with_context(|| format!("removing {}", left.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_covers_every_source_of_the_module() {
        for file in std::fs::read_dir(root().join("e2e/src/bin/sluice-kind/node_image")).unwrap() {
            let path = file.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            assert!(SOURCES.contains(&source.as_str()), "{}", path.display());
        }
    }
}
