//! `up --sluice`: a whole installation that stays, with the samples and two commands' worth of Jobs to submit.
//!
//! Manager and agents are children of the lab's supervisor, so `down` ends them. The workers are registered by the code of
//! `sluicectl join`.

use std::path::Path;

use anyhow::{Context, Result};
use cli::{
    access::ClusterAccess,
    join::{HubAccount, JoinRequest, OtherHub, TokenRequestKind, join},
};
use e2e::installation::{
    self, Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT,
};
use e2e::local_webhooks;
use harness::{Cluster, NodeSpec, TestLab, secs};
use jobs::Kinds;
use lab::{ClusterState, LabState, StateRoot, up};
use serde_json::{Value, json};

/// The team of the samples, and so the namespace of its Jobs.
const TEAM: &str = "team-a";

/// The MultiKueueConfig of the samples.
const CONFIG: &str = "workers";

/// Tokens of the manager's accounts on the workers.
const TOKEN_LIFETIME: std::time::Duration = secs(365 * 24 * 3600);

/// Installs, starts and registers everything. Without success the lab goes down again.
pub(crate) fn start(root: &StateRoot, lab: &LabState) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let started = runtime.block_on(Box::pin(install(lab)));
    if started.is_err() {
        up::down(root, &lab.name).context("taking the lab down after a failure")?;
    }
    started
}

async fn install(state: &LabState) -> Result<()> {
    let lab = TestLab::attached(state.clone());
    let plan = InstallationPlan { workers: state.clusters.len() - 1, elects: true };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?.patient();
    eprintln!("installing config/default on the manager, config/worker on the workers");
    installation.install().await?;
    installation.lasting_manager().await?;
    let hub = access(installation.hub.state()).await?;
    for worker in &installation.workers {
        worker.add_nodes(&NodeSpec { count: 4, ..NodeSpec::default() }).await?;
        installation.lasting_agent(worker).await?;
        let other = access(worker.state()).await?;
        join(&hub, &other, &registration(worker), &|line| eprintln!("{}: {line}", worker.name()))
            .await?;
    }
    samples(&installation).await
}

async fn access(cluster: &ClusterState) -> Result<ClusterAccess> {
    Ok(ClusterAccess::load(Some(&cluster.kubeconfig()), None).await?)
}

fn registration(worker: &Cluster) -> JoinRequest {
    JoinRequest {
        replace_cluster: false,
        other_hub: OtherHub::Refuse,
        name: worker.name().to_owned(),
        hub_namespace: NAMESPACE.to_owned(),
        account: HubAccount { namespace: NAMESPACE.to_owned(), name: "sluice-hub".to_owned() },
        server: None,
        authority: None,
        // All control planes of a lab are on this machine.
        allow_loopback: true,
        token: TokenRequestKind::Expiring(TOKEN_LIFETIME),
        declared: Kinds::default(),
        logs: true,
        config: Some(CONFIG.to_owned()),
        wait: Some(TIMEOUT),
    }
}

/// The sample queue over the workers that are registered, and the team's namespace everywhere.
async fn samples(installation: &Installation<'_>) -> Result<()> {
    let folder = installation::root().join("config/samples/multikueue");
    let built = kustomized(&installation.hub, &folder).await?;
    let names: Vec<&str> = installation.workers.iter().map(Cluster::name).collect();
    let objects = local_webhooks::objects(&built)?.into_iter();
    let objects = objects.filter(|object| object["kind"] != "MultiKueueCluster");
    let text: Vec<String> =
        objects.map(|object| over_workers(object, &names).to_string()).collect();
    installation.hub.apply(&text.join("\n---\n"), TEAM).await?;
    for worker in &installation.workers {
        worker.apply_kustomization(&folder.join("namespace"), TEAM).await?;
    }
    Ok(())
}

async fn kustomized(cluster: &Cluster, folder: &Path) -> Result<String> {
    Ok(cluster.kubectl(&["kustomize", &folder.display().to_string()]).await?)
}

/// The samples name two workers; a lab may have another number.
fn over_workers(mut object: Value, names: &[&str]) -> Value {
    match object["kind"].as_str() {
        Some("MultiKueueConfig") => object["spec"]["clusters"] = json!(names),
        Some("DispatchPolicy") => {
            let clusters = names.iter().map(|name| json!({"name": name, "weight": 1}));
            object["spec"]["clusters"] = clusters.collect();
        }
        _ => {}
    }
    object
}

/// Commands to try.
pub(crate) fn print_commands(lab: &LabState) -> Result<()> {
    let own = std::env::current_exe().context("finding this program")?;
    let sluicectl = own.with_file_name("sluicectl");
    let (hub, sluicectl) = (lab.cluster(lab::state::MANAGER)?.kubeconfig(), sluicectl.display());
    let kubeconfig = format!("--kubeconfig {}", hub.display());
    let jobs = installation::root().join("config/samples/multikueue/jobs");
    let jobs = jobs.canonicalize().unwrap_or(jobs);
    println!("\ntry:");
    println!("  {sluicectl} {kubeconfig} clusters");
    println!(
        "  {} kubectl --lab {} manager apply --server-side -k {}",
        own.display(),
        lab.name,
        jobs.display()
    );
    println!("  {sluicectl} {kubeconfig} explain job/too-large -n {TEAM}");
    println!("\n{} down --lab {} ends all of it", own.display(), lab.name);
    Ok(())
}
