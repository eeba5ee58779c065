//! `sluice-kind register`, with the clusters of a lab in place of those of kind.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::meta;
use crds::v1beta2::MultiKueueCluster;
use e2e::installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT};
use harness::{Cluster, LabPlan, TestLab};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::task::spawn_blocking;

use crate::{DOCKER, PlayedPrograms, said};

const PLAN: InstallationPlan = InstallationPlan { workers: 2, elects: false };

/// The played kind's clusters, which a lab provides.
fn played_for(lab: &TestLab) -> Result<PlayedPrograms> {
    let played = PlayedPrograms::new(Some(DOCKER))?;
    fs::create_dir_all(played.path("target/kind"))?;
    for cluster in &lab.state().clusters {
        let place = played.path(&format!("target/kind/{}.kubeconfig", cluster.name));
        fs::copy(cluster.kubeconfig(), place)?;
    }
    fs::write(played.path("clusters"), "sluice-manager\nsluice-worker-1\nsluice-worker-2\n")?;
    Ok(played)
}

/// Runs `register` and gives what it said, and whether it succeeded.
async fn register(played: &PlayedPrograms, lab: &TestLab) -> Result<(bool, String)> {
    let mut command = played.command(&["register"])?;
    let kubectl = lab.state().binaries.kubectl();
    command.env("KUBEBUILDER_ASSETS", kubectl.parent().context("a folder")?);
    let output = spawn_blocking(move || command.output()).await??;
    Ok((output.status.success(), said(&output)))
}

async fn secret(hub: &Cluster, name: &str) -> Result<Option<String>> {
    let secret = hub.api::<Secret>(NAMESPACE).get_opt(name).await?;
    let data = secret.and_then(|secret| secret.data?.remove("kubeconfig"));
    data.map(|data| Ok(String::from_utf8(data.0)?)).transpose()
}

#[tokio::test]
async fn workers_are_registered_and_registered_again_and_a_foreign_secret_stays() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: PLAN.workers, audit: false }).await?;
    let installation = Installation::of(&lab, PLAN, InstallationPorts::choose()?).await?;
    let (hub, played) = (&installation.hub, played_for(&lab)?);
    let (succeeded, said) = register(&played, &lab).await?;
    let expected = "a token of sluice-hub on kind cluster sluice-worker-1; \
                    `kubectl apply --server-side -k config/worker` installs the agent there";
    ensure!(!succeeded && said.contains(expected), "{said}");

    installation.install().await?;
    let manager = installation.first_manager().await?;
    let foreign = ["create", "secret", "generic", "worker-2", "-n", NAMESPACE];
    hub.kubectl(&[&foreign[..], &["--from-literal=kubeconfig=foreign"]].concat()).await?;
    let (succeeded, said) = register(&played, &lab).await?;
    ensure!(!succeeded && said.contains("conflict with \"kubectl-create\""), "{said}");
    ensure!(secret(hub, "worker-2").await?.as_deref() == Some("foreign"), "it was overwritten");

    hub.kubectl(&["delete", "secret", "worker-2", "-n", NAMESPACE]).await?;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let (succeeded, said) = register(&played, &lab).await?;
        ensure!(succeeded, "{said}");
        ensure!(!said.contains("token\":"), "the token is printed");
        tokens.push(secret(hub, "worker-1").await?.context("a Secret")?);
    }
    ensure!(tokens[0] != tokens[1], "the token is not replaced");
    let clusters: Api<MultiKueueCluster> = hub.cluster_api();
    let active = |one: &MultiKueueCluster| meta::is_true(&one.status.conditions, "Active");
    for worker in ["worker-1", "worker-2"] {
        hub.until(&clusters, worker, "is active", TIMEOUT, active).await?;
    }
    drop(manager);
    Ok(())
}
