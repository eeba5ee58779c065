//! An installation without registered workers, and runs of the program.

use std::{path::PathBuf, process::Output};

use anyhow::{Context, Result, bail, ensure};
use crds::v1beta2::Workload;
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT},
    waits,
};
use harness::{Cluster, LabPlan, Space, TestLab, program};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::objects;

/// Two workers with agents. No worker is registered.
pub(crate) struct UnregisteredInstallation {
    pub(crate) installation: Installation<'static>,
    pub(crate) space: Space,
    _programs: Vec<Program>,
}

/// The end of a run of `sluicectl`.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl UnregisteredInstallation {
    /// On the lab of all tests. Only one test may register its workers.
    pub(crate) async fn start(test: &str) -> Result<Self> {
        Self::on(TestLab::shared(2).await?, test).await
    }

    /// On a lab of its own, which ends with the process.
    pub(crate) async fn start_apart(test: &str) -> Result<Self> {
        let lab = TestLab::start(LabPlan { workers: 2, audit: false }).await?;
        Self::on(Box::leak(Box::new(lab)), test).await
    }

    async fn on(lab: &'static TestLab, test: &str) -> Result<Self> {
        let plan = InstallationPlan { workers: 2, elects: true };
        let installation = Installation::of(lab, plan, InstallationPorts::choose()?).await?;
        installation.install().await?;
        let mut programs = vec![installation.first_manager().await?];
        for worker in &installation.workers {
            programs.push(installation.agent(worker, &[]).await?);
        }
        let space = lab.space(test).await?;
        Ok(Self { installation, space, _programs: programs })
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.installation.hub
    }

    /// Worker number `number`, from 1.
    pub(crate) fn worker(&self, number: usize) -> &Cluster {
        &self.installation.workers[number - 1]
    }

    /// Runs the program with the administrator's kubeconfig of the manager cluster.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<CommandResult> {
        let hub = self.hub().state().kubeconfig();
        let output = Command::new(program("sluicectl")?)
            .env("KUBECONFIG", hub)
            .args(arguments)
            .output()
            .await
            .context("running sluicectl")?;
        let result = CommandResult::of(&output);
        // Tokens of service accounts are JSON web tokens: they begin with the encoding of `{"`.
        for text in [&result.out, &result.errors] {
            ensure!(!text.contains("eyJ"), "{arguments:?} printed a token");
        }
        Ok(result)
    }

    /// What the program prints in a run that succeeds.
    pub(crate) async fn succeed(&self, arguments: &[&str]) -> Result<String> {
        let result = self.run(arguments).await?;
        ensure!(result.code == 0, "{arguments:?}: {result:?}");
        Ok(result.out)
    }

    /// The JSON that the program prints in a run that succeeds.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Result<Value> {
        let out = self.succeed(&[arguments, &["-o", "json"]].concat()).await?;
        serde_json::from_str(&out).with_context(|| format!("{arguments:?} printed {out}"))
    }

    /// `join` for a worker, with further arguments.
    pub(crate) async fn join(&self, number: usize, further: &[&str]) -> Result<CommandResult> {
        let (name, kubeconfig) = (format!("worker-{number}"), self.kubeconfig(number)?);
        let arguments = ["join", &name, "--worker-kubeconfig", &kubeconfig, "--timeout", "90s"];
        self.run(&[&arguments, further].concat()).await
    }

    /// `leave` for a worker, with further arguments.
    pub(crate) async fn leave(&self, number: usize, further: &[&str]) -> Result<CommandResult> {
        let (name, kubeconfig) = (format!("worker-{number}"), self.kubeconfig(number)?);
        let arguments = ["leave", &name, "--worker-kubeconfig", &kubeconfig, "--timeout", "90s"];
        self.run(&[&arguments, further].concat()).await
    }

    fn kubeconfig(&self, number: usize) -> Result<String> {
        let path: PathBuf = self.worker(number).state().kubeconfig();
        path.into_os_string().into_string().ok().context("a path in UTF-8")
    }

    /// Submits a Job to a MultiKueue queue.
    pub(crate) async fn submit(&self, mut job: Value) -> Result<()> {
        job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        Ok(self.hub().apply(&job.to_string(), self.space.namespace()).await?)
    }

    /// Waits until a pod of a Job runs on a worker.
    pub(crate) async fn until_running(&self, job: &str, on: usize) -> Result<()> {
        let pods = self.worker(on).api::<Pod>(self.space.namespace());
        let runs = |all: &[Pod]| all.iter().any(|pod| objects::phase(pod) == "Running");
        let labels = format!("batch.kubernetes.io/job-name={job}");
        let what = format!("{job} runs");
        self.worker(on).until_all(&pods, &labels, &what, 2 * TIMEOUT, runs).await?;
        Ok(())
    }

    /// Waits until this holds for the Workload of a Job.
    pub(crate) async fn until_workload(
        &self,
        job: &str,
        what: &str,
        condition: impl Fn(&Workload) -> bool,
    ) -> Result<()> {
        let place = (self.hub(), self.space.namespace());
        waits::until_workload(place, (job, what), 2 * TIMEOUT, condition).await?;
        Ok(())
    }
}

impl CommandResult {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), errors: text(&output.stderr) }
    }

    /// It failed with this code, and says this.
    pub(crate) fn expect_failure(&self, code: i32, text: &str) -> Result<()> {
        if self.code != code || !self.errors.contains(text) {
            bail!("not the failure {code} with {text:?}: {self:?}");
        }
        Ok(())
    }
}

/// The element of a list with this name.
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value> {
    let mut all = list.as_array().into_iter().flatten();
    all.find(|one| one["name"] == name).with_context(|| format!("no {name} in {list}"))
}

/// The queue and the nodes: two cpus on each of two nodes of the first worker, four on one node of the second.
pub(crate) async fn queue_and_nodes(fixture: &UnregisteredInstallation) -> Result<()> {
    let namespace = fixture.space.namespace();
    for (number, count, cpu) in [(1, 2, "2"), (2, 1, "4")] {
        fixture.worker(number).add_nodes(&objects::own_nodes(namespace, count, cpu)).await?;
    }
    objects::own_queue(fixture.hub(), namespace, "8", &["worker-1"]).await
}
