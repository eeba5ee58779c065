//! An agent asks an autoscaler for the nodes of work that fits only with new ones (docs/reference/dispatch.md §4). The autoscaler is
//! played: the test answers the requests and adds the nodes.

use anyhow::{Context, Result, ensure};
use crds::{v1alpha1::ClusterCapacity, v1beta2::Workload};
use e2e::{
    audit_log::forbidden,
    installation::{NAMESPACE, TIMEOUT, root},
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use provisioning::{EntryTemplate, ProvisioningRequest};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, delete, said},
    headroom::{STATUS_CONFIG_MAP, add_node, status},
    objects::{self, LONG, OWN},
};

/// The kind that an autoscaler serves.
const PROVISIONING_REQUESTS: &str = include_str!("../provisioning/provisioning-request-crd.yaml");

const CONSUMES: &str = "autoscaling.x-k8s.io/consume-provisioning-request";

/// Waits for the only request on a worker.
async fn until_asked(fixture: &DispatchFixture, number: usize) -> Result<ProvisioningRequest> {
    let worker = fixture.worker(number);
    let requests = worker.api::<ProvisioningRequest>(fixture.namespace());
    let asks = |all: &[ProvisioningRequest]| all.len() == 1;
    let all = worker.until_all(&requests, "", "one request", TIMEOUT, asks).await?;
    all.into_iter().next().context("a request")
}

/// The autoscaler sets a condition of a request.
async fn answer(
    fixture: &DispatchFixture,
    number: usize,
    request: &ProvisioningRequest,
    (condition, message): (&str, &str),
) -> Result<()> {
    let requests = fixture.worker(number).api::<ProvisioningRequest>(fixture.namespace());
    let status = json!({"status": {"conditions": [{
        "type": condition, "status": "True", "reason": "Played", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(status));
    requests.patch_status(&request.name_any(), &params, &patch).await?;
    Ok(())
}

/// Waits until neither request nor template is left on a worker.
async fn until_clean(fixture: &DispatchFixture, number: usize) -> Result<()> {
    let (worker, namespace) = (fixture.worker(number), fixture.namespace());
    let requests = worker.api::<ProvisioningRequest>(namespace);
    let none = <[ProvisioningRequest]>::is_empty;
    worker.until_all(&requests, "", "no request is left", TIMEOUT, none).await?;
    let templates = worker.api::<EntryTemplate>(namespace);
    let none = <[EntryTemplate]>::is_empty;
    worker.until_all(&templates, "", "no template is left", TIMEOUT, none).await?;
    Ok(())
}

/// Waits until the manager knows that the autoscaler of a worker can add nodes of this test.
async fn until_headroom(fixture: &DispatchFixture, number: usize) -> Result<()> {
    let reports = fixture.hub().cluster_api::<ClusterCapacity>();
    let own = fixture.namespace();
    let known = |report: &ClusterCapacity| {
        let mut shapes = report.status.elastic.iter().map(|one| &one.node_shape.labels);
        shapes.any(|labels| labels.get(OWN).is_some_and(|label| label == own))
    };
    let worker = fixture.worker(number).name();
    fixture.hub().until(&reports, worker, "shows new nodes", 2 * TIMEOUT, known).await?;
    Ok(())
}

/// Replaces the agents by some with these blocks in their configuration.
async fn replace_agents(fixture: &DispatchFixture, blocks: &Value) -> Result<()> {
    let mut agents = fixture.shared.agents.lock().await;
    for agent in agents.drain(..) {
        agent.process.terminate(TIMEOUT).await?;
    }
    for worker in &fixture.installation.workers {
        agents.push(fixture.installation.agent_with(worker, blocks, &[]).await?);
    }
    Ok(())
}

/// Both workers have one node of two cpus, an autoscaler that can add two more, and an agent that asks it for them.
async fn two_autoscalers(fixture: &DispatchFixture) -> Result<()> {
    for worker in &fixture.installation.workers {
        worker.apply(PROVISIONING_REQUESTS, "default").await?;
        let role = root().join("config/worker/provisioning");
        worker.apply_kustomization(&role, NAMESPACE).await?;
    }
    let class = json!({"provisioningRequest": {"provisioningClassName": "atomic.lab"}});
    replace_agents(fixture, &class).await?;
    for number in [1, 2] {
        add_node(fixture, number, "first").await?;
        let group = status(fixture.namespace(), 1, "NoActivity");
        fixture.worker(number).apply(&group, "kube-system").await?;
    }
    fixture.ordered_queue("8").await?;
    until_headroom(fixture, 1).await?;
    until_headroom(fixture, 2).await
}

/// The installation is as before for other tests.
async fn without_autoscalers(fixture: &DispatchFixture) -> Result<()> {
    for worker in &fixture.installation.workers {
        delete(&worker.api::<ConfigMap>("kube-system"), STATUS_CONFIG_MAP).await?;
    }
    replace_agents(fixture, &Value::Null).await
}

/// Runs a scenario between the two.
async fn with_autoscalers(
    test: &str,
    scenario: impl AsyncFnOnce(&DispatchFixture) -> Result<()>,
) -> Result<()> {
    let fixture = DispatchFixture::alone(test).await?;
    two_autoscalers(&fixture).await?;
    let outcome = scenario(&fixture).await;
    without_autoscalers(&fixture).await?;
    outcome
}

#[tokio::test]
async fn work_runs_on_the_nodes_that_were_provided_and_goes_elsewhere_where_none_are() -> Result<()>
{
    with_autoscalers("provisioned", refused_and_provided).await
}

async fn refused_and_provided(fixture: &DispatchFixture) -> Result<()> {
    fixture.submit(&objects::job("gang", 2, "2", LONG)).await?;
    let refused = until_asked(fixture, 1).await?;
    ensure!(refused.spec.provisioning_class_name == "atomic.lab", "{refused:?}");
    ensure!(refused.spec.pod_sets.iter().map(|one| one.count).sum::<i32>() == 2, "{refused:?}");
    let pods = fixture.worker(1).api::<Pod>(fixture.namespace());
    ensure!(pods.list(&ListParams::default()).await?.items.is_empty(), "a pod before the nodes");

    answer(fixture, 1, &refused, ("Failed", "no nodes for sale")).await?;
    let provided = until_asked(fixture, 2).await?;
    until_clean(fixture, 1).await?;
    let left_out = |one: &Workload| one.status.nominated_cluster_names == ["worker-2"];
    fixture.until_workload("gang", "is nominated for the other worker", left_out).await?;

    add_node(fixture, 2, "second").await?;
    answer(fixture, 2, &provided, ("Provisioned", "")).await?;
    fixture.until_running("gang", 2, 2).await?;
    let pods = fixture.worker(2).api::<Pod>(fixture.namespace());
    for pod in pods.list(&ListParams::default()).await? {
        let consumed = pod.annotations().get(CONSUMES);
        ensure!(consumed == Some(&provided.name_any()), "{:?}", pod.annotations());
    }
    fixture.expect_once_when_ended("gang", 2).await?;
    until_clean(fixture, 2).await?;
    for worker in &fixture.installation.workers {
        // An API server that another test has restarted forbids everything for a moment.
        let of_requests = ["/provisioningrequests", "/podtemplates"];
        let mut refused = forbidden(worker, "sluice-agent")?;
        refused.retain(|one| of_requests.iter().any(|resource| one.contains(resource)));
        ensure!(refused.is_empty(), "{refused:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_reason_of_a_refusal_reaches_the_workload() -> Result<()> {
    with_autoscalers("unprovided", refused_twice).await
}

async fn refused_twice(fixture: &DispatchFixture) -> Result<()> {
    // Of another size than the work of other tests: a refusal leaves a worker out for all work of a size.
    fixture.submit(&objects::job("gang", 2, "1500m", 1)).await?;
    for number in [1, 2] {
        let request = until_asked(fixture, number).await?;
        answer(fixture, number, &request, ("Failed", &format!("no stock {number}"))).await?;
    }
    let words = ["worker-1", "no stock 1", "worker-2", "no stock 2"];
    let explained = |one: &Workload| {
        let known = said(&one.status.conditions, "QuotaReserved");
        known.is_some_and(|known| words.iter().all(|word| known.message.contains(word)))
    };
    fixture.until_workload("gang", "names both refusals", explained).await?;
    until_clean(fixture, 1).await?;
    until_clean(fixture, 2).await
}
