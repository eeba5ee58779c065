//! Labs beside the shared one: started by the command line tool, killed, cleaned up.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use lab::{LabState, StateRoot};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{SOON, lab};

fn tool(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-lab"));
    command.env("SLUICE_LAB_HOME", home).kill_on_drop(true);
    command
}

async fn run(home: &Path, arguments: &[&str]) -> Result<String> {
    let output = tool(home).args(arguments).output().await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(text)
    } else {
        bail!("{arguments:?} failed: {text}")
    }
}

/// Starts a lab that lives as long as the process returned.
async fn up_in_foreground(home: &Path, name: &str) -> Result<Child> {
    let mut child = tool(home)
        .args(["up", "--foreground", "--workers", "0", "--lab", name])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().context("its output is a pipe")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = timeout(SOON, lines.next_line()).await?? {
        if line.contains("ready in") {
            return Ok(child);
        }
    }
    bail!("the lab ended before it was ready")
}

fn processes(lab: &LabState) -> Vec<lab::ProcessId> {
    lab.clusters
        .iter()
        .flat_map(|cluster| cluster.processes.values().copied())
        .collect()
}

async fn until_gone(lab: &LabState) -> Result<()> {
    let gone = async {
        while processes(lab).iter().any(|process| process.is_alive()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, gone)
        .await
        .context("processes outlived their owner")
}

#[tokio::test]
async fn a_crashed_lab_takes_its_processes_along_and_the_next_up_removes_the_rest() -> Result<()> {
    let shared = lab().await?;
    let home = tempfile::tempdir()?;
    let root = StateRoot::at(home.path().to_owned());

    // Beside the shared lab, so that there are two.
    let said = run(home.path(), &["up", "--workers", "0", "--lab", "crash"]).await?;
    assert!(said.contains("ready in"), "{said}");
    let crashed = root.lab("crash")?;
    assert!(
        run(
            home.path(),
            &["kubectl", "--lab", "crash", "manager", "get", "ns"]
        )
        .await
        .is_ok()
    );
    let again = run(home.path(), &["up", "--workers", "0", "--lab", "crash"]).await;
    assert!(format!("{again:?}").contains("is up already"), "{again:?}");

    assert!(crashed.supervisor.signal(Signal::KILL)?);
    until_gone(&crashed).await?;
    assert!(run(home.path(), &["status"]).await?.contains("left over"));

    let mut owner = up_in_foreground(home.path(), "crash").await?;
    let second = root.lab("crash")?;
    assert_ne!(second.supervisor, crashed.supervisor);
    assert!(shared.state().is_alive(), "the other lab is not concerned");

    // A lab that belongs to a process goes with it, files and all.
    owner.kill().await?;
    until_gone(&second).await?;
    let removed = async {
        while second.directory.exists() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, removed)
        .await
        .context("its directory is still there")?;
    assert_eq!(run(home.path(), &["status"]).await?.trim(), "no labs");
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_is_named() -> Result<()> {
    let shared = lab().await?;
    let name = shared.state().name.clone();
    let home = shared
        .state()
        .directory
        .parent()
        .context("the lab is in a root")?
        .to_owned();
    for (arguments, expected) in [
        (vec!["down", "--lab", "nope"], "no lab is called \"nope\""),
        (
            vec!["kubeconfig", "worker-9", "--lab", &name],
            "has no cluster \"worker-9\", only manager",
        ),
        (
            vec!["kill", "manager", "kubelet", "--lab", &name],
            "no component is called \"kubelet\"",
        ),
    ] {
        let said = run(&home, &arguments).await;
        assert!(
            format!("{said:?}").replace('\\', "").contains(expected),
            "{said:?}"
        );
    }
    let path = run(&home, &["kubeconfig", "worker-1", "--lab", &name]).await?;
    assert!(Path::new(path.trim()).is_file(), "{path}");
    Ok(())
}
