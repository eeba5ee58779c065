//! The containerd of the node, run on this machine by the node's own loader and libraries: it imports images into the folder that
//! becomes the node's file system.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cache::command;
use serde_json::{Value, json};

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// A busy machine needs a multiple of the usual second.
const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two looks at the socket.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Plugins that a mere import does not need, and that want more than files.
const DISABLED: [&str; 6] = [
    "io.containerd.grpc.v1.cri",
    "io.containerd.internal.v1.opt",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
];

/// The runtime specification that kind's configuration of containerd names: the default one with kind's hook, and without limits.
pub(super) fn runtime_spec(root: &Path) -> Result<String> {
    let output = program(root, "ctr").args(["oci", "spec"]).output().context("running ctr")?;
    let spec: Value = serde_json::from_slice(&output.stdout).context("reading the default spec")?;
    Ok(with_hook(spec).to_string())
}

fn with_hook(mut spec: Value) -> Value {
    spec["hooks"]["createContainer"] = json!([{"path": "/kind/bin/mount-product-files.sh"}]);
    if let Some(process) = spec["process"].as_object_mut() {
        process.remove("rlimits");
    }
    spec
}

/// It ends with this value.
pub(super) struct RunningContainerd {
    root: PathBuf,
    process: Child,
    socket: PathBuf,
}

impl RunningContainerd {
    /// Starts it for the file system in `root`. `state` is for files that are not part of that.
    pub(super) fn start(root: &Path, state: &Path) -> Result<Self> {
        fs::create_dir_all(state).with_context(|| format!("creating {}", state.display()))?;
        let (socket, configuration) = (state.join("s"), state.join("config.toml"));
        let text = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = {DISABLED:?}\n[grpc]\naddress = {socket:?}\n",
            root.join("var/lib/containerd"),
            state.join("state"),
        );
        fs::write(&configuration, text).context("writing containerd's configuration")?;
        let log = fs::File::create(state.join("log")).context("creating containerd's log")?;
        // It ends with this process, however that ends.
        let mut command = Command::new("setpriv");
        let containerd = program(root, "containerd");
        command.args(["--pdeathsig", "KILL"]).arg(containerd.get_program());
        command.args(containerd.get_args()).arg("--config").arg(configuration).stdin(Stdio::null());
        let process = command.stdout(Stdio::null()).stderr(log).spawn();
        let process = process.context("starting containerd")?;
        let mut started = Self { root: root.to_owned(), process, socket };
        started.until_listening(&state.join("log"))?;
        Ok(started)
    }

    fn until_listening(&mut self, log: &Path) -> Result<()> {
        let begun = Instant::now();
        while UnixStream::connect(&self.socket).is_err() {
            if self.process.try_wait()?.is_some() || begun.elapsed() > DEADLINE {
                let log = fs::read_to_string(log).unwrap_or_default();
                bail!("containerd does not listen: {}", log.lines().last().unwrap_or_default());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Imports the images of an archive.
    pub(super) fn import(&self, archive: &[u8]) -> Result<()> {
        let path = self.socket.with_file_name("image.tar");
        fs::write(&path, archive).with_context(|| format!("writing {}", path.display()))?;
        let mut ctr = program(&self.root, "ctr");
        ctr.arg("--address").arg(&self.socket).args(["--namespace", "k8s.io"]);
        // Unpacked, the images would be there twice.
        Ok(command::run(ctr.args(["images", "import", "--no-unpack"]).arg(&path))?)
    }

    /// Ends it in order, so that its database is whole.
    pub(super) fn end(mut self) -> Result<()> {
        let pid = self.process.id().to_string();
        command::run(Command::new("kill").args(["-TERM", &pid]))?;
        self.process.wait().context("waiting for containerd").map(drop)
    }
}

impl Drop for RunningContainerd {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A program of the node, with the libraries of the node.
fn program(root: &Path, name: &str) -> Command {
    let libraries = root.join(LIBRARIES);
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(libraries).arg(root.join("usr/bin").join(name));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_has_the_hook_and_no_limits() {
        let spec = with_hook(json!({"process": {"rlimits": [1], "cwd": "/"}}));
        assert_eq!(spec["process"], json!({"cwd": "/"}));
        let hook = spec["hooks"]["createContainer"][0]["path"].as_str().unwrap();
        assert_eq!(hook, "/kind/bin/mount-product-files.sh");
    }
}
