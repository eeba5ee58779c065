//! `status`, `kubeconfig`, `logs`, `kubectl`.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use lab::identity::Liveness;
use lab::{ClusterState, Component, LabState, Phase, ProcessId, StateRoot, logs};

use crate::LabName;

/// Show all labs, their clusters and processes.
#[derive(clap::Args)]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let directories = StateRoot::of_user()?.directories()?;
        if directories.is_empty() {
            println!("no labs");
        }
        for directory in directories {
            match LabState::load(&directory) {
                Ok(lab) => show(&lab),
                Err(error) => println!("{}: {error}", directory.display()),
            }
        }
        Ok(())
    }
}

fn show(lab: &LabState) {
    let phase = match &lab.phase {
        Phase::Failed { reason } => format!("failed: {reason}"),
        _ if !lab.is_alive() => "left over; the next up removes it".to_owned(),
        Phase::Starting => "starting".to_owned(),
        Phase::Ready { .. } => "ready".to_owned(),
    };
    println!("lab {:?}: {phase}, {} MB resident", lab.name, lab.resident() / 1_000_000);
    for cluster in &lab.clusters {
        println!("  {} {}", cluster.name, cluster.server());
        for (component, process) in &cluster.processes {
            show_process(component.program(), *process);
        }
    }
    for (name, process) in &lab.programs {
        show_process(name, *process);
    }
}

fn show_process(name: &str, process: ProcessId) {
    let state = match process.liveness() {
        Liveness::Running => "running",
        Liveness::Paused => "paused",
        Liveness::Gone => "dead",
    };
    let megabytes = process.resident() / 1_000_000;
    println!("    {:<24} {state:<8} pid {:<8} {megabytes:>5} MB", name, process.pid());
}

/// Print the path of a cluster's kubeconfig.
#[derive(clap::Args)]
pub(crate) struct KubeconfigCommand {
    /// The cluster: manager, worker-1, …
    cluster: String,
    #[command(flatten)]
    lab: LabName,
}

impl KubeconfigCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        println!("{}", self.lab.load()?.cluster(&self.cluster)?.kubeconfig().display());
        Ok(())
    }
}

/// Print a component's log.
#[derive(clap::Args)]
pub(crate) struct Logs {
    /// The cluster: manager, worker-1, …
    cluster: String,
    /// The component: etcd, apiserver, controller-manager, scheduler, kwok.
    component: Component,
    /// Only this many lines of its end.
    #[arg(long)]
    tail: Option<usize>,
    #[command(flatten)]
    lab: LabName,
}

impl Logs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let lab = self.lab.load()?;
        let path = lab.cluster(&self.cluster)?.log(self.component);
        if let Some(lines) = self.tail {
            println!("{}", logs::tail(&path, lines));
            return Ok(());
        }
        let log = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        std::io::stdout().write_all(&log).context("print the log")
    }
}

/// Run kubectl against a cluster.
#[derive(clap::Args)]
pub(crate) struct Kubectl {
    #[command(flatten)]
    lab: LabName,
    /// The cluster: manager, worker-1, …
    cluster: String,
    /// kubectl's arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Kubectl {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let lab = self.lab.load()?;
        let cluster: &ClusterState = lab.cluster(&self.cluster)?;
        let kubectl = lab.binaries.kubectl();
        let error = Command::new(&kubectl)
            .env("KUBECONFIG", cluster.kubeconfig())
            .args(self.arguments)
            .exec();
        Err(error).with_context(|| format!("run {}", kubectl.display()))
    }
}
