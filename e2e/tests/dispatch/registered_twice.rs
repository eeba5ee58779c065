//! One worker cluster under two names: the second is refused, and takes nothing from the first.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::MultiKueueCluster;
use e2e::world::NAMESPACE;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::{
    place,
    site::{Said, Site, delete},
};

#[tokio::test]
async fn a_cluster_that_is_registered_twice_keeps_its_jobs_and_says_so() -> Result<()> {
    let site = Site::shared("registered_twice").await?;
    site.nodes(1, 1, "2").await?;
    site.queue("2").await?;
    site.submit(&place::job("train", 2, "1", 8)).await?;
    site.until_running("train", 2, 1).await?;

    let secrets = site.hub().api::<Secret>(NAMESPACE);
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
    site.hub().apply(&format!("{secret}\n---\n{twin}\n"), NAMESPACE).await?;
    let refused = |said: &Said| said.reason == "ClusterAlreadyRegistered";
    let said = site.until_worker("twin", "is refused", refused).await?;
    let message = "this cluster is registered as \"worker-1\" already";
    ensure!(!said.status && said.message == message, "{said:?}");

    site.expect_once("train", 2).await?;
    site.until_worker("worker-1", "is active", |said| said.status).await?;
    delete(&site.hub().cluster_api::<MultiKueueCluster>(), "twin").await
}
