//! Writes the files of a node: configurations, the kubeconfig, the launch file, and the images that its pods need.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::configuration::{BUSYBOX_IMAGE, SAMPLE_IMAGE};
use super::container_image::{ImageFile, LabImage};
use super::init::NodeLaunch;
use super::{configuration, node::RealNode};
use crate::binaries::node_programs::NodePrograms;
use crate::state::write_private;

/// Names of busybox that tests and samples use as commands.
const TOOLS: [&str; 24] = [
    "sh", "cat", "date", "dd", "echo", "env", "false", "grep", "head", "hostname", "id", "kill",
    "ls", "mkdir", "mv", "nc", "rm", "seq", "sleep", "tail", "test", "touch", "true", "wget",
];

/// A file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {source}", .path.display())]
pub struct NodeFileError {
    operation: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

/// The archives of the images, below the directory of the lab.
pub fn image_archives(lab: &Path) -> [PathBuf; 2] {
    ["pause.tar", "busybox.tar"].map(|name| lab.join(name))
}

/// Writes the archives.
///
/// # Errors
/// If a program cannot be read, or an archive cannot be written.
pub fn write_images(lab: &Path, programs: &NodePrograms) -> Result<(), NodeFileError> {
    let image = |references: &[&str], program: PathBuf, name: &str, links: &[&str]| {
        let mut references = references.iter().map(|one| (*one).to_owned());
        let content = std::fs::read(&program).map_err(file("read", &program))?;
        Ok(LabImage {
            reference: references.next().unwrap_or_default(),
            other_references: references.collect(),
            programs: vec![ImageFile { path: format!("bin/{name}"), program: content }],
            links: links.iter().map(|link| (*link).to_owned()).collect(),
            command: vec![format!("/bin/{}", links.first().unwrap_or(&name))],
            ..LabImage::default()
        })
    };
    let images = [
        image(&[configuration::PAUSE_IMAGE], programs.pause(), "pause", &[])?,
        image(&[BUSYBOX_IMAGE, SAMPLE_IMAGE], programs.busybox(), "busybox", &TOOLS)?,
    ];
    for (path, image) in image_archives(lab).into_iter().zip(images) {
        let archive = image.archive().map_err(file("pack", &path))?;
        std::fs::write(&path, archive).map_err(file("write", &path))?;
    }
    Ok(())
}

/// What the files of a node refer to.
#[derive(Debug)]
pub struct NodeContext<'a> {
    /// The directory of the lab.
    pub lab: &'a Path,
    /// The programs.
    pub programs: &'a NodePrograms,
    /// The certificate of the authority that signed the API server's client certificate.
    pub authority: &'a Path,
    /// The kubeconfig of kubelet and kube-proxy, as text.
    pub kubeconfig: &'a str,
    /// The control group of the node.
    pub cgroup: &'a str,
}

/// Writes all files of a node.
///
/// # Errors
/// If one cannot be written.
pub fn write(node: &RealNode, context: &NodeContext<'_>) -> Result<(), NodeFileError> {
    let at = |name: &str| node.directory.join(name);
    let networks = at("networks");
    std::fs::create_dir_all(&networks).map_err(file("create", &networks))?;
    let programs = context.programs;
    let launch = NodeLaunch {
        node: node.clone(),
        programs: programs.clone(),
        images: image_archives(context.lab).to_vec(),
    };
    let kubelet = configuration::kubelet(node, context.authority, &format!("/{}", context.cgroup));
    let containerd =
        configuration::containerd(&programs.runc(), &programs.cni_plugins(), &networks);
    let kube_proxy = configuration::kube_proxy(node, &at("kubeconfig"));
    let files = [
        (at("kubeconfig"), context.kubeconfig.to_owned()),
        (at("kubelet.json"), kubelet.to_string()),
        (at("kube-proxy.json"), kube_proxy.to_string()),
        (at("containerd.toml"), containerd),
        (networks.join("lab.conflist"), configuration::network(node).to_string()),
        (NodeLaunch::file(&node.directory), json(&launch)),
    ];
    for (path, content) in files {
        write_private(&path, content.as_bytes()).map_err(file("write", &path))?;
    }
    Ok(())
}

/// Neither maps with other keys than text nor failing types are in the launch file.
fn json(launch: &NodeLaunch) -> String {
    serde_json::to_value(launch).unwrap_or(Value::Null).to_string()
}

fn file(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> NodeFileError {
    let path = path.to_owned();
    move |source| NodeFileError { operation, path, source }
}
