//! Two MultiKueueClusters of one cluster: the second is refused, and the first is not affected.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::MultiKueueCluster;
use e2e::installation::NAMESPACE;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, ReportedCondition, delete},
    objects,
};

#[tokio::test]
async fn a_cluster_with_two_multikueueclusters_keeps_its_jobs_and_reports_it() -> Result<()> {
    let fixture = DispatchFixture::shared("registered_twice").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", 8)).await?;
    fixture.until_running("train", 2, 1).await?;

    let secrets = fixture.hub().api::<Secret>(NAMESPACE);
    let data = secrets.get("worker-1").await?.data.context("a kubeconfig")?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "twin", "namespace": NAMESPACE}, "data": data,
    });
    let twin = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": "twin"},
        "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": "twin"}}},
    });
    fixture.hub().apply(&format!("{secret}\n---\n{twin}\n"), NAMESPACE).await?;
    let refused = |said: &ReportedCondition| said.reason == "ClusterAlreadyRegistered";
    let said = fixture.until_worker("twin", "is refused", refused).await?;
    let message = "this cluster is registered as \"worker-1\" already";
    ensure!(!said.status && said.message == message, "{said:?}");

    fixture.expect_once("train", 2).await?;
    fixture.until_worker("worker-1", "is active", |said| said.status).await?;
    delete(&fixture.hub().cluster_api::<MultiKueueCluster>(), "twin").await
}
