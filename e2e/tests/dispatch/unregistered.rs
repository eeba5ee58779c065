//! The MultiKueueCluster of a worker is deleted (docs/reference/dispatch.md §9).

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{MultiKueueCluster, Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, delete, said},
    objects,
};

/// A worker with objects stays connected for two minutes, twice the `workerLostTimeout` of these managers.
const LET_GO: std::time::Duration = harness::secs(45);

#[tokio::test]
async fn an_unregistered_worker_finishes_its_jobs_gets_no_new_ones_and_is_disconnected()
-> Result<()> {
    let fixture = DispatchFixture::alone("unregistered").await?;
    fixture.nodes(2, 1, "2").await?;
    fixture.queue("4").await?;
    fixture.submit(&objects::job("last", 2, "1", 8)).await?;
    fixture.until_running("last", 2, 2).await?;
    let clusters = fixture.hub().cluster_api::<MultiKueueCluster>();
    delete(&clusters, "worker-2").await?;

    let outcome = after_the_end(&fixture).await;
    let deleted = delete(&clusters, "west").await;
    fixture.installation.register().await?;
    fixture.until_worker("worker-2", "is active again", |said| said.status).await?;
    outcome?;
    deleted?;
    fixture.expect_once("next", 2).await
}

async fn after_the_end(fixture: &DispatchFixture) -> Result<()> {
    fixture.submit(&objects::job("next", 2, "1", 1)).await?;
    fixture.expect_once("last", 2).await?;
    // A cluster belongs to one MultiKueueCluster: another one can use it after the end of the connection.
    let again = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": "west"},
        "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": "worker-2"}}},
    });
    fixture.hub().apply(&again.to_string(), fixture.namespace()).await?;
    let clusters = fixture.hub().cluster_api::<MultiKueueCluster>();
    let active = |one: &MultiKueueCluster| {
        said(&one.status.conditions, "Active").is_some_and(|said| said.status)
    };
    fixture.hub().until(&clusters, "west", "is active", LET_GO, active).await?;
    let is_pending = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| said.message.ends_with("worker-2: not connected"))
    };
    let next = fixture.until_workload("next", "is pending without the worker", is_pending).await?;
    ensure!(next.status.cluster_name.is_none(), "{:?}", next.status);
    Ok(())
}

#[tokio::test]
async fn one_that_went_while_no_manager_ran_is_told_of_and_goes_on_when_it_is_registered_again()
-> Result<()> {
    let fixture = DispatchFixture::alone("left_behind").await?;
    let mut manager = fixture.shared.manager.lock().await;
    fixture.nodes(2, 1, "2").await?;
    fixture.queue("4").await?;
    fixture.submit(&objects::job("train", 2, "1", 8)).await?;
    fixture.until_running("train", 2, 2).await?;
    let admitted = |one: &Workload| one.status.cluster_name.as_deref() == Some("worker-2");
    fixture.until_workload("train", "is recorded there", admitted).await?;
    manager.take().context("a manager")?.process.terminate(TIMEOUT).await?;
    delete(&fixture.hub().cluster_api::<MultiKueueCluster>(), "worker-2").await?;
    *manager = Some(fixture.installation.first_manager().await?);

    let published = |all: &[Event]| {
        all.iter().any(|one| {
            let about = one.regarding.as_ref();
            one.reason.as_deref() == Some("LeftBehind")
                && about.is_some_and(|about| about.kind.as_deref() == Some("MultiKueueCluster"))
        })
    };
    let events = fixture.hub().api::<Event>("default");
    let outcome = fixture.hub().until_all(&events, "", "has the Event", TIMEOUT, published).await;
    fixture.installation.register().await?;
    outcome?;
    fixture.expect_once("train", 2).await
}
