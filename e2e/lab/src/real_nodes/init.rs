//! Process 1 of a real node: it prepares the node's namespaces, starts the node's programs and reaps what ends.
//!
//! It is started in new mount, network, process, host name and IPC namespaces. A program that ends is not started again: fault tests
//! kill programs.

use std::fs::{File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::mount_bind;
use rustix::process::{WaitOptions, wait};
use serde::{Deserialize, Serialize};

use super::configuration::CONTAINERD_SOCKET;
use super::links::{self, LinkError};
use super::node::{LABEL, REAL, RealNode};
use super::preflight::REPLACED;
use crate::binaries::node_programs::NodePrograms;

/// The hidden subcommand of `sluice-lab`.
pub const SUBCOMMAND: &str = "node";

/// The hidden subcommand of `sluice-lab` that starts a killed program again, in the namespaces of the node.
pub const RESTART_SUBCOMMAND: &str = "node-program";

/// The hidden subcommand of `sluice-lab` that imports images from its standard input, in the namespaces of the node.
pub const IMPORT_SUBCOMMAND: &str = "node-import";

/// A busy machine needs a multiple of the usual second.
const DEADLINE: Duration = Duration::from_secs(120);

/// Pause between two looks, for example for the network.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Settings of the whole kernel that a kubelet changes unless they have these values. It sees files of the node in their place.
pub const KERNEL_SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A file or directory of the node.
    #[error("{operation} {}: {source}", .path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The launch file holds something else.
    #[error("read {}: {source}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The network.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Something did not happen in time.
    #[error("{0} in {limit} s", limit = DEADLINE.as_secs())]
    Late(&'static str),
    /// A node has no such program.
    #[error("{0:?} is no program of a node")]
    UnknownProgram(String),
    /// An image could not be imported.
    #[error("import image {}: {status}", .path.display())]
    Image {
        /// Its archive.
        path: PathBuf,
        /// How the import ended.
        status: String,
    },
}

/// What process 1 of a node needs to know, in `node.json` in the node's directory.
#[derive(Debug, Serialize, Deserialize)]
pub struct NodeLaunch {
    /// The node.
    pub node: RealNode,
    /// Its programs.
    pub programs: NodePrograms,
    /// Archives of its images.
    pub images: Vec<PathBuf>,
}

impl NodeLaunch {
    /// The file of the node in `directory`.
    pub fn file(directory: &Path) -> PathBuf {
        directory.join("node.json")
    }

    fn load(directory: &Path) -> Result<Self, InitError> {
        let path = Self::file(directory);
        let text = std::fs::read(&path).map_err(file("read", &path))?;
        serde_json::from_slice(&text).map_err(|source| InitError::Malformed { path, source })
    }

    /// A configuration file of the node.
    pub fn configuration(&self, name: &str) -> PathBuf {
        self.node.directory.join(name)
    }
}

/// Runs the node in `directory`, until it is killed or cannot be started.
///
/// # Errors
/// If the node cannot be started.
pub fn run(directory: &Path) -> Result<(), InitError> {
    let launch = NodeLaunch::load(directory)?;
    replace_directories(directory)?;
    cover_kernel_settings(directory)?;
    links::forward()?;
    until("the node got no network", has_default_route)?;
    start_containerd(&launch)?;
    import_images(&launch)?;
    start_kubelet(&launch)?;
    start_kube_proxy(&launch)?;
    reap()
}

/// Starts a program of the running node in `directory` again. This process is in the namespaces of the node.
///
/// # Errors
/// If the node has no such program, or it cannot be started.
pub fn start_again(directory: &Path, program: &str) -> Result<(), InitError> {
    let launch = NodeLaunch::load(directory)?;
    match program {
        "containerd" => start_containerd(&launch),
        "kubelet" => start_kubelet(&launch),
        "kube-proxy" => start_kube_proxy(&launch),
        other => Err(InitError::UnknownProgram(other.to_owned())),
    }
}

/// Imports the images of the archive at standard input into the running node in `directory`. This process is in the namespaces of the node.
///
/// # Errors
/// If it is not an archive of images.
pub fn import(directory: &Path) -> Result<(), InitError> {
    import_image(&NodeLaunch::load(directory)?, Path::new("-"), Stdio::inherit())
}

/// Gives the node its own directories in place of those of the host.
fn replace_directories(directory: &Path) -> Result<(), InitError> {
    for target in REPLACED {
        let own = directory.join(target.trim_start_matches('/').replace('/', "-"));
        std::fs::create_dir_all(&own).map_err(file("create", &own))?;
        mount_bind(&own, target).map_err(|error| file("mount", Path::new(target))(error.into()))?;
    }
    Ok(())
}

fn cover_kernel_settings(directory: &Path) -> Result<(), InitError> {
    let own = directory.join("kernel-settings");
    std::fs::create_dir_all(&own).map_err(file("create", &own))?;
    for (name, value) in KERNEL_SETTINGS {
        let target = Path::new("/proc/sys").join(name);
        if target.exists() {
            let source = own.join(name.replace('/', "."));
            std::fs::write(&source, format!("{value}\n")).map_err(file("write", &source))?;
            mount_bind(&source, &target).map_err(|error| file("mount", &target)(error.into()))?;
        }
    }
    Ok(())
}

/// The supervisor connects the node after its namespaces exist; the default route comes last.
fn has_default_route() -> bool {
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    routes.lines().any(|line| line.split_whitespace().nth(1) == Some("00000000"))
}

fn start_containerd(launch: &NodeLaunch) -> Result<(), InitError> {
    let configuration = launch.configuration("containerd.toml");
    let mut command = command(launch, &launch.programs.containerd());
    command.arg("--config").arg(configuration);
    start(launch, "containerd", command)?;
    until("containerd did not listen", || UnixStream::connect(CONTAINERD_SOCKET).is_ok())
}

fn import_images(launch: &NodeLaunch) -> Result<(), InitError> {
    launch.images.iter().try_for_each(|image| import_image(launch, image, Stdio::null()))
}

fn import_image(launch: &NodeLaunch, image: &Path, input: Stdio) -> Result<(), InitError> {
    let mut ctr = command(launch, &launch.programs.ctr());
    ctr.args(["--namespace", "k8s.io", "images", "import"]).arg(image).stdin(input);
    let status = ctr.status().map_err(file("import", image))?;
    if status.success() {
        return Ok(());
    }
    Err(InitError::Image { path: image.to_owned(), status: status.to_string() })
}

fn start_kubelet(launch: &NodeLaunch) -> Result<(), InitError> {
    let node = &launch.node;
    let mut command = command(launch, &launch.programs.kubelet());
    command
        .arg("--config")
        .arg(launch.configuration("kubelet.json"))
        .arg("--kubeconfig")
        .arg(launch.configuration("kubeconfig"))
        .arg(format!("--hostname-override={}", node.name))
        .arg(format!("--node-ip={}", node.address()))
        .arg(format!("--node-labels={LABEL}={REAL}"));
    start(launch, "kubelet", command)
}

fn start_kube_proxy(launch: &NodeLaunch) -> Result<(), InitError> {
    let mut command = command(launch, &launch.programs.kube_proxy());
    command.arg("--config").arg(launch.configuration("kube-proxy.json"));
    start(launch, "kube-proxy", command)
}

/// A program with the node's search path.
fn command(launch: &NodeLaunch, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", launch.programs.path())
        .env("LD_LIBRARY_PATH", launch.programs.libraries())
        .env("HOME", "/root")
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

/// Starts a program, its output appended to its log. Process 1 of the node reaps it.
fn start(launch: &NodeLaunch, name: &str, mut command: Command) -> Result<(), InitError> {
    let path = launch.node.log(name);
    let log: File =
        OpenOptions::new().create(true).append(true).open(&path).map_err(file("open", &path))?;
    let errors = log.try_clone().map_err(file("open", &path))?;
    let started = command.stdout(log).stderr(errors).spawn().map(drop);
    started.map_err(file("start the program of", &path))
}

fn until(late: &'static str, reached: impl Fn() -> bool) -> Result<(), InitError> {
    let begun = Instant::now();
    while !reached() {
        if begun.elapsed() > DEADLINE {
            return Err(InitError::Late(late));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Reaps the programs and the orphans of the node. The node stays when all programs have ended.
fn reap() -> ! {
    loop {
        if wait(WaitOptions::empty()).is_err() {
            // There is no child at the moment.
            std::thread::park();
        }
    }
}

fn file(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> InitError {
    let path = path.to_owned();
    move |source| InitError::File { operation, path, source }
}
