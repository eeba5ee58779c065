//! The life of a registration: join, work, explanation, drain, leave.

use anyhow::{Context, Result, ensure};
use crds::{
    names::annotations::POLICY,
    v1alpha1::DispatchPolicy,
    v1beta2::{MultiKueueCluster, MultiKueueConfig, Workload},
};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicy,
    core::v1::{Namespace, Secret, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::{
    fixture::{UnregisteredInstallation, named, queue_and_nodes},
    objects,
};

/// The account that `join` makes on the second worker.
const ACCOUNT: [&str; 4] = ["--worker-namespace", "hub-access", "--service-account", "east-hub"];

#[tokio::test]
async fn a_worker_joins_runs_jobs_is_drained_and_leaves_nothing_behind() -> Result<()> {
    let fixture = UnregisteredInstallation::start("registration").await?;
    let namespace = fixture.space.namespace().to_owned();
    refusals(&fixture).await?;

    // The first worker: the account of config/worker is there, and is used.
    let joined = fixture.join(1, &["--allow-loopback"]).await?;
    ensure!(joined.code == 0, "{joined:?}");
    ensure!(joined.out.contains("worker: ClusterRole sluice-hub kept"), "{joined:?}");
    queue_and_nodes(&fixture).await?;

    // The second one: join makes everything, and adds the worker to the configuration.
    let further = [&ACCOUNT[..], &["--allow-loopback", "--config", &namespace]].concat();
    let joined = fixture.join(2, &further).await?;
    ensure!(joined.code == 0, "{joined:?}");
    ensure!(
        joined.out.contains("worker: ServiceAccount hub-access/east-hub created"),
        "{joined:?}"
    );
    ensure!(joined.out.ends_with("MultiKueueCluster worker-2 is active\n"), "{joined:?}");
    let again = fixture.join(2, &further).await?;
    ensure!(again.code == 0 && !again.out.contains("created"), "{again:?}");

    work(&fixture).await?;
    drain(&fixture).await?;
    end(&fixture).await?;
    permanent_token(&fixture).await
}

/// Nothing is made when something is in the way.
async fn refusals(fixture: &UnregisteredInstallation) -> Result<()> {
    fixture.join(2, &ACCOUNT).await?.expect_failure(4, "--allow-loopback")?;
    let dry = fixture.join(2, &[&ACCOUNT[..], &["--allow-loopback", "--dry-run"]].concat()).await?;
    ensure!(dry.code == 0, "{dry:?}");
    for part in ["kind: MultiKueueCluster", "name: east-hub-job-kinds", "--- # manager cluster"] {
        ensure!(dry.out.contains(part), "{part} is not in {dry:?}");
    }
    let itself = fixture.hub().state().kubeconfig();
    let itself = itself.to_str().context("a path in UTF-8")?;
    let arguments = ["join", "itself", "--worker-kubeconfig", itself, "--allow-loopback"];
    fixture.run(&arguments).await?.expect_failure(4, "is the manager cluster itself")?;
    fixture
        .run(&["drain", "worker-2"])
        .await?
        .expect_failure(1, "no MultiKueueCluster worker-2")?;
    // A Secret of another owner is in the way: the account on the worker is not made either.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "worker-2"}});
    fixture.hub().apply(&secret.to_string(), "kueue-system").await?;
    let refused = fixture.join(2, &[&ACCOUNT[..], &["--allow-loopback"]].concat()).await?;
    refused.expect_failure(4, "Secret kueue-system/worker-2 exists, was not made by join")?;
    let secrets: Api<Secret> = fixture.hub().api("kueue-system");
    secrets.delete("worker-2", &DeleteParams::default()).await?;

    let clusters: Api<MultiKueueCluster> = fixture.hub().cluster_api();
    let clusters = clusters.list(&ListParams::default()).await?.items;
    ensure!(clusters.is_empty(), "a refused join made {clusters:?}");
    let accounts: Api<ServiceAccount> = fixture.worker(2).api("hub-access");
    ensure!(accounts.get_opt("east-hub").await?.is_none(), "a refused join made an account");
    Ok(())
}

/// A Job runs on the worker that has joined, with the rights of its own account; one without room is explained.
async fn work(fixture: &UnregisteredInstallation) -> Result<()> {
    let namespace = fixture.space.namespace();
    fixture.submit(objects::job("wide", 1, "4", 600)).await?;
    fixture.until_running("wide", 2).await?;
    fixture.submit(objects::job("larger", 1, "3", 1)).await?;
    let explained =
        |one: &Workload| one.status.conditions.iter().any(|one| one.message.contains("worker-2: "));
    fixture.until_workload("larger", "names a reason", explained).await?;

    let models = fixture.json(&["explain", "job/larger", "-n", namespace]).await?;
    let reasons = &models[0]["clusterReasons"];
    let reason = |number: usize| reasons[number]["reason"].as_str().unwrap_or_default();
    ensure!(models[0]["state"] == "Pending" && reasons[0]["cluster"] == "worker-1", "{models}");
    ensure!(reason(0).contains("the most free on a node is 2"), "{models}");
    ensure!(reason(1).contains("one pod needs 3 cpu"), "{models}");
    let text = fixture.succeed(&["explain", "wide", "-n", namespace]).await?;
    ensure!(text.contains("Cluster:     worker-2"), "{text}");
    let missing = fixture.run(&["explain", "missing", "-n", namespace]).await?;
    missing.expect_failure(1, "no Workload")?;

    let list = fixture.json(&["clusters"]).await?;
    let second = named(&list["clusters"], "worker-2")?;
    ensure!(second["active"] == "True" && second["workloads"] == 1, "{second}");
    ensure!(second["configs"][0] == namespace && second["tokenExpires"].is_string(), "{second}");
    let queues = fixture.json(&["top"]).await?;
    let queue = named(&queues["clusterQueues"], namespace)?;
    ensure!(
        queue["quotas"][0]["nominal"] == "8" && queue["quotas"][0]["flavor"] == namespace,
        "{queue}"
    );
    Ok(())
}

/// A drain with a deadline moves the Job to the other worker.
async fn drain(fixture: &UnregisteredInstallation) -> Result<()> {
    let refused = fixture.leave(2, &[]).await?;
    refused.expect_failure(4, "worker-2 has 1 Workload (")?;
    let namespace = fixture.space.namespace();
    let mut wide = objects::own_nodes(namespace, 1, "4");
    wide.prefix = format!("{namespace}-wide");
    fixture.worker(1).add_nodes(&wide).await?;
    // The one that waits takes that room first, and ends.
    let finished = |one: &Workload| crds::meta::is_true(&one.status.conditions, "Finished");
    fixture.until_workload("larger", "is finished", finished).await?;
    let cordoned = fixture.succeed(&["cordon", "worker-2"]).await?;
    ensure!(
        cordoned.contains(&format!("MultiKueueConfig {namespace} names DispatchPolicy")),
        "{cordoned}"
    );
    ensure!(
        fixture.succeed(&["cordon", "worker-2"]).await? == "worker-2 unchanged\n",
        "changed again"
    );
    let still = fixture.run(&["drain", "worker-2", "--wait", "--timeout", "0s"]).await?;
    still.expect_failure(3, "worker-2 still has 1 Workload after 0 s")?;
    let drain = ["drain", "worker-2", "--deadline", "0s", "--wait", "--timeout", "2m"];
    let drained = fixture.succeed(&drain).await?;
    ensure!(drained.ends_with("worker-2 is drained\n"), "{drained}");
    fixture.until_running("wide", 1).await?;
    let list = fixture.json(&["clusters"]).await?;
    ensure!(named(&list["clusters"], "worker-2")?["drain"]["deadline"].is_string(), "{list}");
    Ok(())
}

/// `leave` removes what `join` made, and nothing else.
async fn end(fixture: &UnregisteredInstallation) -> Result<()> {
    let left = fixture.leave(2, &[]).await?;
    ensure!(left.code == 0, "{left:?}");
    let (hub, worker) = (fixture.hub(), fixture.worker(2));
    let clusters: Api<MultiKueueCluster> = hub.cluster_api();
    ensure!(clusters.get_opt("worker-2").await?.is_none(), "{left:?}");
    ensure!(clusters.get_opt("worker-1").await?.is_some(), "{left:?}");
    let secrets: Api<Secret> = hub.api("kueue-system");
    ensure!(secrets.get_opt("worker-2").await?.is_none(), "{left:?}");
    let configs: Api<MultiKueueConfig> = hub.cluster_api();
    let config = configs.get(fixture.space.namespace()).await?;
    ensure!(config.spec.clusters == ["worker-1"], "{config:?}");
    let roles: Api<ClusterRole> = worker.cluster_api();
    let bindings: Api<ClusterRoleBinding> = worker.cluster_api();
    let rules: Api<ValidatingAdmissionPolicy> = worker.cluster_api();
    ensure!(rules.get_opt("east-hub-job-kinds").await?.is_none(), "the policy is left");
    ensure!(
        rules.get_opt("sluice-hub-job-kinds").await?.is_some(),
        "that of config/worker is gone"
    );
    for name in ["east-hub", "east-hub-job-kinds", "east-hub-logs"] {
        ensure!(roles.get_opt(name).await?.is_none(), "role {name} is left");
        ensure!(bindings.get_opt(name).await?.is_none(), "binding {name} is left");
    }
    ensure!(roles.get_opt("sluice-hub").await?.is_some(), "the role of config/worker is gone");
    worker.until_gone(&worker.cluster_api::<Namespace>(), "hub-access", TIMEOUT).await?;
    let annotations = config.metadata.annotations.unwrap_or_default();
    ensure!(!annotations.contains_key(POLICY), "{annotations:?}");
    let policies: Api<DispatchPolicy> = hub.cluster_api();
    let policies = policies.list(&ListParams::default()).await?.items;
    ensure!(policies.is_empty(), "the policy of the drain is left: {policies:?}");
    // The one that moved runs on.
    fixture.until_running("wide", 1).await?;
    let unknown = fixture.run(&["leave", "worker-2", "--hub-only"]).await?;
    unknown.expect_failure(1, "no MultiKueueCluster worker-2")?;
    let unknown = fixture.run(&["uncordon", "worker-2"]).await?;
    unknown.expect_failure(1, "no MultiKueueCluster worker-2")
}

/// A worker joins again with a token that does not expire, in a configuration of its own, and leaves.
async fn permanent_token(fixture: &UnregisteredInstallation) -> Result<()> {
    let further = ["--allow-loopback", "--permanent-token", "--config", "own"];
    let joined = fixture.join(2, &[&ACCOUNT[..], &further].concat()).await?;
    ensure!(joined.code == 0 && !joined.out.contains("expires"), "{joined:?}");
    let list = fixture.json(&["clusters"]).await?;
    let second = named(&list["clusters"], "worker-2")?;
    ensure!(second["configs"][0] == "own" && second["tokenExpires"].is_null(), "{second}");
    let secrets: Api<Secret> = fixture.worker(2).api("hub-access");
    ensure!(secrets.get_opt("east-hub-token").await?.is_some(), "{joined:?}");
    fixture.succeed(&["cordon", "worker-2"]).await?;

    let left = fixture.leave(2, &[]).await?;
    ensure!(left.code == 0, "{left:?}");
    let configs: Api<MultiKueueConfig> = fixture.hub().cluster_api();
    ensure!(configs.get_opt("own").await?.is_none(), "{left:?}");
    let worker = fixture.worker(2);
    worker.until_gone(&worker.cluster_api::<Namespace>(), "hub-access", TIMEOUT).await?;
    Ok(())
}
