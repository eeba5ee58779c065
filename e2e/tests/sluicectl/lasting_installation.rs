//! `sluice-lab up --sluice` leaves an installation that works, and `down` ends all of it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{program, secs};
use lab::{LabState, ProcessId, StateRoot};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::fixture::named;

/// Three control planes, a manager and two agents, on two cores with other work on them.
const UP: Duration = secs(240);

/// A lab in a folder of this test. Taken down in any case.
struct LastingLab {
    home: tempfile::TempDir,
}

impl LastingLab {
    async fn run(&self, name: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program(name)?);
        command.env("SLUICE_LAB_HOME", self.home.path()).env("SLUICE_LAB", "lasting");
        let output = timeout(UP, command.args(arguments).kill_on_drop(true).output());
        let output = output.await.with_context(|| format!("{name} {arguments:?} takes long"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        ensure!(output.status.success(), "{name} {arguments:?}: {out}{errors}");
        Ok(out)
    }

    fn state(&self) -> Result<LabState> {
        Ok(StateRoot::at(self.home.path().to_owned()).lab("lasting")?)
    }
}

impl Drop for LastingLab {
    fn drop(&mut self) {
        let Ok(lab) = program("sluice-lab") else { return };
        let mut down = std::process::Command::new(lab);
        down.env("SLUICE_LAB_HOME", self.home.path()).args(["down", "--lab", "lasting"]);
        // There is none after the end of the test.
        let _ = down.output();
    }
}

#[tokio::test]
async fn an_installation_stays_after_up_and_ends_with_down() -> Result<()> {
    let lab = LastingLab { home: tempfile::tempdir()? };
    let out = lab.run("sluice-lab", &["up", "--sluice", "--workers", "2"]).await?;
    let state = lab.state()?;
    for command in [" clusters\n", "manager apply --server-side -k ", "explain job/too-large"] {
        ensure!(out.contains(command), "{command} is not among the commands: {out}");
    }
    let programs: Vec<&str> = state.programs.keys().map(String::as_str).collect();
    let expected = ["sluice-agent-worker-1", "sluice-agent-worker-2", "sluice-manager"];
    ensure!(programs == expected, "{programs:?}");
    let programs: Vec<ProcessId> = state.programs.values().copied().collect();
    ensure!(programs.iter().all(|one| one.is_alive()), "a program ended with `up`");

    let hub = state.cluster("manager")?.kubeconfig();
    let list = clusters(&lab, &hub).await?;
    for worker in ["worker-1", "worker-2"] {
        let worker = named(&list["clusters"], worker)?;
        ensure!(worker["active"] == "True" && worker["configs"][0] == "workers", "{worker}");
    }
    let jobs = e2e::installation::root().join("config/samples/multikueue/jobs");
    let jobs = jobs.to_str().context("a path in UTF-8")?;
    lab.run("sluice-lab", &["kubectl", "manager", "apply", "--server-side", "-k", jobs]).await?;
    let wait = "wait --for=condition=Complete --timeout=90s -n team-a job/gang";
    let wait: Vec<&str> = ["kubectl", "manager"].into_iter().chain(wait.split(' ')).collect();
    lab.run("sluice-lab", &wait).await?;

    lab.run("sluice-lab", &["down"]).await?;
    ensure!(!programs.iter().any(|one| one.is_alive()), "a program outlived `down`");
    Ok(())
}

async fn clusters(lab: &LastingLab, hub: &Path) -> Result<Value> {
    let hub = hub.to_str().context("a path in UTF-8")?;
    let out = lab.run("sluicectl", &["--kubeconfig", hub, "clusters", "-o", "json"]).await?;
    serde_json::from_str(&out).with_context(|| format!("not JSON: {out}"))
}
