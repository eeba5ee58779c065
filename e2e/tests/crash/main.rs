//! Manager and agent crash before and after every write; every Job runs to its end, and no object remains.
//!
//! [`crash_points`] lists the writes, each with a [`scenario`] that leads to it. A write without a crash point fails
//! [`crash_points::every_write_has_a_crash_point`], one of an operator [`crash_points::every_write_of_the_operators_has_a_crash_point`],
//! and a crash point that is not reached fails the loop.

mod crash_points;
mod observed_job;
mod scenario;
mod setup;

use std::{
    iter::Enumerate,
    sync::Mutex,
    time::{Duration, Instant},
    vec::IntoIter,
};

use anyhow::{Context, Error, Result, ensure};
use e2e::installation::{
    Installation, InstallationPlan, InstallationPorts, NAMESPACE, Program, TIMEOUT,
};
use futures::future::try_join_all;
use harness::{LabPlan, Observer, ProcessError, RayHeads, TestLab, secs};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use self::{
    crash_points::{CrashPoint, CrashingProgram},
    observed_job::ObservedJob,
    scenario::Scenario,
};

const PLAN: InstallationPlan = InstallationPlan { workers: 1, elects: false };

/// How the agent secures RayClusters. The manager has no such setting: the RayClusters are made on the worker.
const RAY_SECURITY: &str = "kuberay: {rayDashboardOAuthEnabled: false, ingressDomain: example.com, certGeneratorImage: certs}";

/// Number of environments in parallel. In each, the test mostly waits.
const ENVIRONMENTS: usize = 5;

/// Timeout until the crash after the last write was observed.
const CRASH_TIMEOUT: Duration = secs(5);

/// The installation of one loop, whose programs are restarted after a crash.
struct CrashEnvironment<'a> {
    installation: Installation<'a>,
    /// The installation with agents that secure RayClusters.
    secured: Installation<'a>,
    /// Whether the next agent secures RayClusters.
    secures: bool,
    manager: Option<Program>,
    agent: Option<Program>,
    heads: RayHeads,
    observer: Observer,
}

impl<'a> CrashEnvironment<'a> {
    async fn open(lab: &'a TestLab) -> Result<Self> {
        let heads = RayHeads::start().context("playing Ray heads")?;
        heads.set_status("SUCCEEDED");
        let ports = InstallationPorts::choose()?;
        let installation = Installation::of(lab, PLAN, ports).await?.with_operators(heads.proxy());
        let secured = Installation::of(lab, PLAN, ports).await?.with_operators(heads.proxy());
        let secured = secured.with_ray_security(RAY_SECURITY)?;
        installation.install().await?;
        let manager = installation.first_manager_with(&configured(Value::Null)).await?;
        let agent =
            installation.agent(installation.workers.first().context("a worker")?, &[]).await?;
        installation.register().await?;
        setup::prepare(&installation).await?;
        let observer = setup::observe(&installation).await?;
        let (manager, agent) = (Some(manager), Some(agent));
        Ok(Self { installation, secured, secures: false, manager, agent, heads, observer })
    }

    /// Starts a program, in place of the running one, optionally with a crash point.
    async fn start(&mut self, program: CrashingProgram, death: Option<&CrashPoint>) -> Result<()> {
        let crash_points = death.map(CrashPoint::setting);
        let environment: Vec<(&str, &str)> =
            crash_points.iter().map(|crash_points| ("FAILPOINTS", crash_points.as_str())).collect();
        let blocks = death.map_or(Value::Null, |crash_point| blocks(crash_point.scenario));
        self.stop(program).await?;
        match program {
            CrashingProgram::Manager => {
                let blocks = configured(blocks);
                let manager = self
                    .installation
                    .manager_on(self.installation.ports(), &blocks, &environment)
                    .await?;
                self.manager = Some(manager);
            }
            CrashingProgram::Agent => {
                let installation = if self.secures { &self.secured } else { &self.installation };
                let worker = installation.workers.first().context("a worker")?;
                self.agent = Some(installation.agent_with(worker, &blocks, &environment).await?);
            }
        }
        Ok(())
    }

    async fn stop(&mut self, program: CrashingProgram) -> Result<()> {
        let program = match program {
            CrashingProgram::Manager => self.manager.take(),
            CrashingProgram::Agent => self.agent.take(),
        };
        if let Some(old) = program {
            old.process.terminate(TIMEOUT).await?;
        }
        Ok(())
    }

    /// The program crashes at its crash point during the scenario, and is restarted.
    async fn die_at(&mut self, number: usize, crash_point: &CrashPoint) -> Result<()> {
        let name = format!("job-{number}");
        self.secures = crash_point.scenario == Scenario::Secured;
        if crash_point.scenario == Scenario::Untrusted {
            self.stop(crash_point.program).await?;
            let secrets = self.installation.hub.api::<Secret>(NAMESPACE);
            secrets.delete("kueue-webhook-server-cert", &DeleteParams::default()).await?;
        }
        let former = match crash_point.scenario {
            Scenario::TakenOver => Some(CrashPoint::BEFORE_CREATES),
            Scenario::LeasedTakenOver => Some(CrashPoint::AFTER_CLONE),
            _ => None,
        };
        if let Some(former) = former {
            self.start(former.program, Some(&former)).await?;
            self.until_death(&name, &former).await?;
            self.manager = None;
        }
        if crash_point.scenario == Scenario::Fenced {
            self.observed(&name, crash_point, false).until_granted().await?;
            self.stop(CrashingProgram::Manager).await?;
        }
        if crash_point.scenario == Scenario::Gated {
            self.stop(CrashingProgram::Agent).await?;
        }
        let death = match self.start(crash_point.program, Some(crash_point)).await {
            Ok(()) => self.until_death(&name, crash_point).await?,
            Err(error) => death_at_start(error)?,
        };
        ensure!(death.contains("signal"), "it did not die of its own hand: {death}");
        match crash_point.program {
            CrashingProgram::Manager => self.manager = None,
            CrashingProgram::Agent => self.agent = None,
        }
        self.observed(&name, crash_point, true).meanwhile().await?;
        self.start(crash_point.program, None).await?;
        // It would leave the worker out for a minute, or does not run.
        if [Scenario::Forbidden, Scenario::Fenced].contains(&crash_point.scenario) {
            self.start(CrashingProgram::Manager, None).await?;
        }
        if crash_point.scenario == Scenario::Gated {
            self.observed(&name, crash_point, true).until_gate_is_open().await?;
            self.start(CrashingProgram::Agent, None).await?;
        }
        let observed = self.observed(&name, crash_point, true);
        observed.run().await.context("after the death")?;
        observed.judge(&self.observer).await
    }

    fn observed<'b>(
        &'b self,
        name: &'b str,
        crash_point: &CrashPoint,
        again: bool,
    ) -> ObservedJob<'b> {
        ObservedJob {
            installation: &self.installation,
            scenario: crash_point.scenario,
            name,
            heads: &self.heads,
            again,
        }
    }

    /// How it ended.
    async fn until_death(&self, name: &str, crash_point: &CrashPoint) -> Result<String> {
        let program = match crash_point.program {
            CrashingProgram::Manager => &self.manager,
            CrashingProgram::Agent => &self.agent,
        };
        let ended = program.as_ref().context("the program runs")?.process.ended();
        let observed = self.observed(name, crash_point, false);
        tokio::pin!(ended);
        tokio::select! {
            status = &mut ended => Ok(status),
            lived = observed.run() => {
                // The last write of a program may be observed before the program has ended, and a
                // manager that has ended does not answer for the webhooks that later writes need.
                let died = tokio::time::timeout(CRASH_TIMEOUT, ended).await;
                died.map_err(|_| match lived {
                    Ok(()) => Error::msg(format!("{} is never reached", crash_point.failpoint())),
                    Err(error) => error,
                })
            }
        }
    }
}

/// A manager's configuration: the enabled kinds of jobs and gates beside these fields.
fn configured(mut fields: Value) -> Value {
    let frameworks = ["batch/job", "pod", "statefulset", "ray.io/rayjob"];
    fields["integrations"] = json!({ "frameworks": frameworks });
    fields["featureGates"] = json!({
        "FailureRecoveryPolicy": true, "ConcurrentAdmission": true,
        "MultiKueueManagerQuotaAutomation": true, "MultiKueueOrchestratedPreemption": true,
    });
    fields
}

/// What a course wants of the configuration.
fn blocks(scenario: Scenario) -> Value {
    match scenario {
        Scenario::Elected => json!({"leaderElection": {
            "leaderElect": true,
            "leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms",
        }}),
        Scenario::Forbidden => json!({"namespaces": {"allow": ["elsewhere"]}}),
        _ => Value::Null,
    }
}

/// The exit of a program that was never ready.
fn death_at_start(error: Error) -> Result<String> {
    match error.downcast::<ProcessError>()? {
        ProcessError::Ended { status, .. } => Ok(status),
        other => Err(other.into()),
    }
}

/// Crash points that are not tested yet.
type RemainingCrashPoints = Mutex<Enumerate<IntoIter<CrashPoint>>>;

/// Tests one crash point after the other, in an environment of its own.
async fn die_everywhere(left: &RemainingCrashPoints) -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: PLAN.workers, audit: false }).await?;
    let mut environment = CrashEnvironment::open(&lab).await?;
    loop {
        let next = left.lock().map_err(|_| Error::msg("an environment failed"))?.next();
        let Some((number, crash_point)) = next else { return Ok(()) };
        let started = Instant::now();
        let what = || {
            format!(
                "{:?} dies at {} ({:?})",
                crash_point.program,
                crash_point.setting(),
                crash_point.scenario
            )
        };
        environment.die_at(number, &crash_point).await.with_context(what)?;
        eprintln!("{}: {:?}", what(), started.elapsed());
    }
}

#[tokio::test]
async fn every_job_runs_to_its_end_whichever_write_the_programs_crash_at() -> Result<()> {
    let mut crash_points = crash_points::chosen();
    // The longest first: a fence waits until the time of its lease is over.
    crash_points.sort_by_key(|crash_point| crash_point.scenario != Scenario::Fenced);
    let environments = ENVIRONMENTS.min(crash_points.len());
    let left = Mutex::new(crash_points.into_iter().enumerate());
    try_join_all((0..environments).map(|_| die_everywhere(&left))).await?;
    Ok(())
}
