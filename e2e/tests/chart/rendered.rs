//! A manager that runs with what the chart renders: its configuration, its flags, the rights of its account, and names of the release.

use anyhow::{Context, Result, ensure};
use e2e::{
    installation::{Installation, InstallationPlan, InstallationPorts, NAMESPACE, TIMEOUT, root},
    local_webhooks, objects,
};
use harness::{LabPlan, TestLab};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::helm::Helm;

/// A name that no object has by default.
const FULLNAME: &str = "batch";

/// The namespace of the Job, and the prefix of its queue.
const SPACE: &str = "charted";

/// Blocks of the file that name addresses of a pod, where the lab has its own.
const OF_PODS: [&str; 3] = ["health", "leaderElection", "webhook"];

#[tokio::test]
async fn a_job_runs_to_its_end_with_the_rendered_installation() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let rendered = rendered().await?;
    let plan = InstallationPlan { workers: 0, elects: true };
    let installation = Installation::of(&lab, plan, InstallationPorts::choose()?).await?;
    let installation = installation.with_flags(flags(&rendered)?);
    apply(&installation, &rendered).await?;
    let blocks = configuration(&rendered)?;
    let _manager = installation.first_manager_with(&blocks).await?;

    ensure_trusted(&installation).await?;
    job_ends(&installation).await?;
    installation.aggregate_visibility_of(rendered).await?;
    let path =
        format!("/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{SPACE}/pendingworkloads");
    let pending = installation.hub.kubectl(&["get", "--raw", &path]).await?;
    ensure!(pending.contains("PendingWorkloadsSummary"), "{pending}");
    Ok(())
}

async fn rendered() -> Result<Vec<Value>> {
    let values = [
        "fullnameOverride=batch",
        "managerConfig.config.multiKueue.origin=charted",
        r#"controllerManager.featureGates=[{"name": "PriorityBoost", "enabled": true}]"#,
    ];
    local_webhooks::objects(&Helm::find()?.template(&values, &[]).await?)
}

/// Applies everything, in the namespace that `helm install --create-namespace` would create.
async fn apply(installation: &Installation<'_>, rendered: &[Value]) -> Result<()> {
    let hub = &installation.hub;
    hub.apply(&std::fs::read_to_string(root().join("config/manager/namespace.yaml"))?, NAMESPACE)
        .await?;
    let text = local_webhooks::localised(rendered.to_vec(), installation.ports().webhooks());
    Ok(hub.apply(&text, NAMESPACE).await?)
}

fn named<'a>(rendered: &'a [Value], kind: &str) -> Result<&'a Value> {
    let found = rendered.iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("no {kind} is rendered"))
}

/// The flags of the Deployment. The lab has a file of its own for the configuration.
fn flags(rendered: &[Value]) -> Result<Vec<String>> {
    let container = &named(rendered, "Deployment")?["spec"]["template"]["spec"]["containers"][0];
    let all: Vec<String> = serde_json::from_value(container["args"].clone())?;
    let flags: Vec<String> =
        all.into_iter().filter(|flag| !flag.starts_with("--config=")).collect();
    let expected = [
        "--feature-gates=PriorityBoost=true",
        "--name-prefix=batch",
        "--shutdown-delay-duration=5s",
    ];
    ensure!(flags == expected, "{flags:?}");
    Ok(flags)
}

/// The configuration of the ConfigMap, without addresses.
fn configuration(rendered: &[Value]) -> Result<Value> {
    let text = &named(rendered, "ConfigMap")?["data"]["controller_manager_config.yaml"];
    let mut file: Value = serde_saphyr::from_str(text.as_str().context("no file")?)?;
    let blocks = file.as_object_mut().context("no object")?;
    blocks.retain(|name, _| !OF_PODS.contains(&name.as_str()));
    ensure!(file["multiKueue"]["origin"] == "charted", "{file}");
    Ok(file)
}

/// Waits until the manager has injected its CA into the configuration with the name of the release.
async fn ensure_trusted(installation: &Installation<'_>) -> Result<()> {
    let configurations: Api<MutatingWebhookConfiguration> = installation.hub.cluster_api();
    let name = format!("{FULLNAME}-mutating-webhook-configuration");
    let has_ca = |one: &MutatingWebhookConfiguration| {
        let mut webhooks = one.webhooks.iter().flatten();
        webhooks.all(|webhook| webhook.client_config.ca_bundle.is_some())
    };
    installation.hub.until(&configurations, &name, "has the CA", TIMEOUT, has_ca).await?;
    Ok(())
}

async fn job_ends(installation: &Installation<'_>) -> Result<()> {
    let hub = &installation.hub;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}});
    hub.apply(&namespace.to_string(), SPACE).await?;
    objects::queue(hub, SPACE, "4", &[]).await?;
    hub.add_nodes(&objects::nodes(SPACE, 1, "4")).await?;
    let jobs: Api<Job> = hub.api(SPACE);
    let job = serde_json::from_value(objects::job("ends", 2, "1", 1))?;
    let job = jobs.create(&PostParams::default(), &job).await?;
    let suspended = job.spec.and_then(|spec| spec.suspend);
    ensure!(suspended == Some(true), "the rendered webhook suspends the Job: {suspended:?}");
    let ended = |job: &Job| objects::job_is(job, "Complete");
    hub.until(&jobs, "ends", "is complete", TIMEOUT, ended).await?;
    Ok(())
}
