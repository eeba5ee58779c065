//! A worker whose MultiKueueCluster is deleted (docs/reference/dispatch.md §9).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{MultiKueueCluster, Workload};
use e2e::world::SOON;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::{
    house::House,
    place,
    site::{Site, delete, said},
};

/// One that is not clean is kept for two minutes, twice the time after which these managers give up a silent worker.
const LET_GO: std::time::Duration = harness::secs(45);

#[tokio::test]
async fn it_finishes_what_it_has_gets_nothing_new_and_is_let_go() -> Result<()> {
    let site = Site::alone("unregistered").await?;
    site.nodes(2, 1, "2").await?;
    site.queue("4").await?;
    site.submit(&place::job("last", 2, "1", 8)).await?;
    site.until_running("last", 2, 2).await?;
    let clusters = site.hub().cluster_api::<MultiKueueCluster>();
    delete(&clusters, "worker-2").await?;

    let outcome = after_the_end(&site).await;
    let deleted = delete(&clusters, "west").await;
    site.world.register().await?;
    site.until_worker("worker-2", "is active again", |said| said.status).await?;
    outcome?;
    deleted?;
    site.expect_once("next", 2).await
}

async fn after_the_end(site: &Site) -> Result<()> {
    site.submit(&place::job("next", 2, "1", 1)).await?;
    site.expect_once("last", 2).await?;
    // One cluster is one registration's: another name gets it when the old one has let go.
    let again = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": "west"},
        "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": "worker-2"}}},
    });
    site.hub().apply(&again.to_string(), site.namespace()).await?;
    let clusters = site.hub().cluster_api::<MultiKueueCluster>();
    let active = |one: &MultiKueueCluster| {
        said(&one.status.conditions, "Active").is_some_and(|said| said.status)
    };
    site.hub().until(&clusters, "west", "is active", LET_GO, active).await?;
    let waits = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| said.message.ends_with("worker-2: not connected"))
    };
    let next = site.until_workload("next", "waits for the worker", waits).await?;
    ensure!(next.status.cluster_name.is_none(), "{:?}", next.status);
    Ok(())
}

#[tokio::test]
async fn one_that_went_while_no_manager_ran_is_told_of_and_goes_on_when_it_is_registered_again()
-> Result<()> {
    let site = Site::alone("left_behind").await?;
    let mut manager = House::alone().await?.manager.lock().await;
    site.nodes(2, 1, "2").await?;
    site.queue("4").await?;
    site.submit(&place::job("train", 2, "1", 8)).await?;
    site.until_running("train", 2, 2).await?;
    let admitted = |one: &Workload| one.status.cluster_name.as_deref() == Some("worker-2");
    site.until_workload("train", "is recorded there", admitted).await?;
    manager.take().context("a manager")?.process.terminate(SOON).await?;
    delete(&site.hub().cluster_api::<MultiKueueCluster>(), "worker-2").await?;
    *manager = Some(site.world.manager(true, &[]).await?);

    let told = |all: &[Event]| {
        all.iter().any(|one| {
            let about = one.regarding.as_ref();
            one.reason.as_deref() == Some("LeftBehind")
                && about.is_some_and(|about| about.kind.as_deref() == Some("MultiKueueCluster"))
        })
    };
    let events = site.hub().api::<Event>("default");
    let outcome = site.hub().until_all(&events, "", "it is told of", SOON, told).await;
    site.world.register().await?;
    outcome?;
    site.expect_once("train", 2).await
}
