//! Labs besides the shared one: started by the command-line tool, killed, cleaned up.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use lab::real_nodes::preflight::LACKING_EXIT_CODE;
use lab::{LabState, StateRoot};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{TIMEOUT, lab};

fn tool(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-lab"));
    command.env("SLUICE_LAB_HOME", home).kill_on_drop(true);
    command
}

async fn run(home: &Path, arguments: &[&str]) -> Result<String> {
    let output = tool(home).args(arguments).output().await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(text) } else { bail!("{arguments:?} failed: {text}") }
}

/// Starts a lab that lives as long as the process returned.
async fn up_in_foreground(home: &Path, name: &str) -> Result<Child> {
    let mut child = tool(home)
        .args(["up", "--foreground", "--workers", "0", "--lab", name])
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().context("its output is a pipe")?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = timeout(TIMEOUT, lines.next_line()).await?? {
        if line.contains("ready in") {
            return Ok(child);
        }
    }
    bail!("the lab ended before it was ready")
}

fn processes(lab: &LabState) -> Vec<lab::ProcessId> {
    lab.clusters.iter().flat_map(|cluster| cluster.processes.values().copied()).collect()
}

async fn until_gone(lab: &LabState) -> Result<()> {
    let gone = async {
        while processes(lab).iter().any(|process| process.is_alive()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, gone).await.context("processes outlived their owner")
}

#[tokio::test]
async fn the_processes_of_a_crashed_lab_end_and_the_next_up_removes_its_files() -> Result<()> {
    let shared = lab().await?;
    let home = tempfile::tempdir()?;
    let root = StateRoot::at(home.path().to_owned());

    // Beside the shared lab, so that there are two.
    let said = run(home.path(), &["up", "--workers", "0", "--lab", "crash"]).await?;
    assert!(said.contains("ready in"), "{said}");
    let crashed = root.lab("crash")?;
    assert!(run(home.path(), &["kubectl", "--lab", "crash", "manager", "get", "ns"]).await.is_ok());
    let again = run(home.path(), &["up", "--workers", "0", "--lab", "crash"]).await;
    assert!(format!("{again:?}").contains("is up already"), "{again:?}");

    assert!(crashed.supervisor.signal(Signal::KILL)?);
    until_gone(&crashed).await?;
    assert!(run(home.path(), &["status"]).await?.contains("left over"));

    let mut owner = up_in_foreground(home.path(), "crash").await?;
    let second = root.lab("crash")?;
    assert_ne!(second.supervisor, crashed.supervisor);
    assert!(shared.state().is_alive(), "the other lab is not concerned");

    // The lab of a process ends with it, and its files are removed.
    owner.kill().await?;
    until_gone(&second).await?;
    let removed = async {
        while second.directory.exists() {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, removed).await.context("its directory is still there")?;
    assert_eq!(run(home.path(), &["status"]).await?.trim(), "no labs");
    Ok(())
}

#[tokio::test]
async fn a_program_that_exits_early_is_reported_with_its_log_and_removed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let assets = tempfile::tempdir()?;
    for program in lab::binaries::PROGRAMS {
        let path = assets.path().join(program);
        std::fs::write(&path, "#!/bin/sh\necho no room at the inn >&2\nexit 7\n")?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    }
    let output = tool(home.path())
        .env("KUBEBUILDER_ASSETS", assets.path())
        .args(["up", "--workers", "1"])
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("etcd of manager ended (exit status: 7)"), "{said}");
    assert!(said.contains("no room at the inn"), "{said}");

    assert!(run(home.path(), &["status"]).await?.contains("failed: etcd of manager"));
    until_gone(&StateRoot::at(home.path().to_owned()).lab("default")?).await?;
    run(home.path(), &["down"]).await?;
    assert_eq!(run(home.path(), &["status"]).await?.trim(), "no labs");
    Ok(())
}

#[tokio::test]
async fn real_nodes_on_a_machine_that_lacks_something_start_nothing() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut up = tool(home.path());
    // Without any program of the machine.
    let output = up.env("PATH", home.path()).args(["up", "--real-nodes"]).output().await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lacking = ["real nodes need root", "real nodes need ip (Debian package iproute2)"];
    let is_said = lacking.iter().any(|one| said.contains(one));
    assert!(!output.status.success() && is_said, "{said}");
    // `make test-real` skips a part for this exit code and these lines.
    let output = tool(home.path()).env("PATH", home.path()).arg("preflight").output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(LACKING_EXIT_CODE.into()), "{said}");
    let reasons = said.lines().filter_map(|line| line.strip_prefix("real nodes cannot run here: "));
    assert!(reasons.clone().count() == said.lines().count(), "{said}");
    assert!(reasons.into_iter().any(|one| lacking.contains(&one)), "{said}");
    assert_eq!(run(home.path(), &["status"]).await?.trim(), "no labs");
    Ok(())
}

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| taint.key.as_str()).collect()
}

#[tokio::test]
async fn the_tool_creates_nodes_and_prints_logs() -> Result<()> {
    let shared = lab().await?;
    let cluster = shared.cluster("worker-1").await?;
    let name = shared.state().name.clone();
    let home = shared.state().directory.parent().context("the lab is in a root")?;
    run(
        home,
        &[
            "nodes",
            "worker-1",
            "--lab",
            &name,
            "--prefix=gpu",
            "--count=2",
            "--cpu=4",
            "--label=zone=b",
            "--taint=gpu=yes:NoSchedule",
            "--extended=nvidia.com/gpu=8",
        ],
    )
    .await?;
    let nodes: Api<Node> = cluster.cluster_api();
    let untainted =
        |nodes: &[Node]| nodes.len() == 2 && nodes.iter().all(|node| taints(node) == ["gpu"]);
    let made = cluster.until_all(&nodes, "zone=b", "have one taint", TIMEOUT, untainted).await?;
    let node = made.first().cloned().unwrap_or_default();
    let allocatable = node.status.and_then(|status| status.allocatable).unwrap_or_default();
    assert_eq!(allocatable["nvidia.com/gpu"].0, "8");
    assert_eq!(allocatable["cpu"].0, "4");

    let log = run(home, &["logs", "worker-1", "apiserver", "--tail=3", "--lab", &name]).await?;
    assert_eq!(log.lines().count(), 3, "{log}");
    Ok(())
}

#[tokio::test]
async fn missing_labs_and_components_are_named() -> Result<()> {
    let shared = lab().await?;
    let name = shared.state().name.clone();
    let home = shared.state().directory.parent().context("the lab is in a root")?.to_owned();
    for (arguments, expected) in [
        (vec!["down", "--lab", "nope"], "no lab is called \"nope\""),
        (
            vec!["kubeconfig", "worker-9", "--lab", &name],
            "has no cluster \"worker-9\", only manager",
        ),
        (vec!["kill", "manager", "kubelet", "--lab", &name], "no component is called \"kubelet\""),
    ] {
        let said = run(&home, &arguments).await;
        assert!(format!("{said:?}").replace('\\', "").contains(expected), "{said:?}");
    }
    let path = run(&home, &["kubeconfig", "worker-1", "--lab", &name]).await?;
    assert!(Path::new(path.trim()).is_file(), "{path}");
    Ok(())
}
