//! dockerd in namespaces of its own, where `/run` is empty: socket, pid file and exec root have their usual places there, and a stale one
//! cannot exist. Images and containers are in the daemon's directory.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::real_nodes::cgroups;
use serde_json::{Value, json};

use super::lean_runtime::{self, SUBCOMMAND};
use crate::docker::{DaemonAddress, unusable};

/// The address of the daemon, as clients take it from the environment.
pub(super) const ADDRESS: &str = "unix:///run/docker.sock";

/// A busy machine needs a multiple of the usual two seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two questions.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Starts it and waits until it answers. It ends with the process namespace.
pub(super) fn start(directory: &Path) -> Result<()> {
    let (configuration, log) = (directory.join("daemon.json"), directory.join("dockerd.log"));
    let lean = lean_runtime::is_needed();
    let text = self::configuration(directory, lean.then(std::env::current_exe).transpose()?);
    fs::write(&configuration, text.to_string()).context("writing the daemon's configuration")?;
    let output = File::create(&log).context("creating the daemon's log")?;
    let errors = output.try_clone().context("creating the daemon's log")?;
    let mut dockerd = Command::new("dockerd");
    dockerd.arg("--config-file").arg(configuration).stdin(Stdio::null());
    let started = dockerd.stdout(output).stderr(errors).spawn().context("starting dockerd")?;
    until_answering(started, &log)
}

fn until_answering(mut dockerd: Child, log: &Path) -> Result<()> {
    let begun = Instant::now();
    while let Some(why) = unusable(DaemonAddress::Socket(ADDRESS)) {
        if dockerd.try_wait()?.is_some() {
            let log = fs::read_to_string(log).unwrap_or_default();
            bail!("dockerd ended: {}", last_line(&log));
        }
        if begun.elapsed() > DEADLINE {
            bail!("{why}, {} s after dockerd was started", DEADLINE.as_secs());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// The content of `daemon.json`. `sluice_kind` is this program where runc needs it.
fn configuration(directory: &Path, sluice_kind: Option<std::path::PathBuf>) -> Value {
    let mut configuration = json!({
        "data-root": directory.join("data"),
        "exec-root": "/run/docker",
        "pidfile": "/run/docker.pid",
        "hosts": [ADDRESS],
        "storage-driver": "overlay2",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        // A group of the directory: the kernel removes none of those below it.
        "cgroup-parent": format!("/{}", cgroups::of_lab(directory)),
        // Root may lack the capability to lower the score of a process.
        "oom-score-adjust": 0,
    });
    if let Some(sluice_kind) = sluice_kind {
        configuration["default-runtime"] = json!("lean");
        let lean = json!({"path": sluice_kind, "runtimeArgs": [SUBCOMMAND]});
        configuration["runtimes"] = json!({"lean": lean});
    }
    configuration
}

/// The last line of a log that says something.
fn last_line(log: &str) -> &str {
    log.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it wrote no log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_has_a_data_root_a_control_group_and_the_runtime_of_its_own() {
        let directory = Path::new("/state/docker-7");
        let plain = configuration(directory, None);
        assert_eq!(plain["data-root"], "/state/docker-7/data");
        let group = plain["cgroup-parent"].as_str().unwrap();
        assert!(group.starts_with("/sluice-lab/docker-7-"), "{group}");
        assert!(plain.get("default-runtime").is_none() && plain.get("runtimes").is_none());
        let lean = configuration(directory, Some("/bin/sluice-kind".into()));
        assert_eq!(lean["default-runtime"], "lean");
        let runtime = json!({"path": "/bin/sluice-kind", "runtimeArgs": ["lean-runtime"]});
        assert_eq!(lean["runtimes"]["lean"], runtime);
    }

    #[test]
    fn the_reason_of_an_end_is_the_last_line() {
        let log = "time=1 level=info\nfailed to start daemon: no overlay\n\n";
        assert_eq!(last_line(log), "failed to start daemon: no overlay");
        assert_eq!(last_line("\n"), "it wrote no log");
    }
}
