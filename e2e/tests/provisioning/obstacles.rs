//! Configs, kinds and names that are missing or taken, and a new manager in the middle.

use anyhow::Result;
use crds::meta::is_true;
use e2e::manager_lab::ManagerLab;
use kube::api::DeleteParams;
use provisioning::attempt::request_name;
use serde_json::json;

use crate::fixture::{self, CRD, ProvisioningFixture, WORKLOAD};

#[tokio::test]
async fn a_check_is_active_once_its_config_is_there() -> Result<()> {
    let fixture = ProvisioningFixture::without_config("unconfigured").await?;
    let name = fixture.namespace();
    let message = format!("ProvisioningRequestConfig.kueue.x-k8s.io {name:?} not found");
    fixture.until_check_is(&("False", "BadParametersRef", &message)).await?;
    fixture.create_workload(&[("main", 1, "main")]).await?;
    fixture.configure(&json!({})).await?;
    fixture.until_request(1).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_is_served_later_is_used_from_then_on() -> Result<()> {
    let lab = ManagerLab::start(&["batch/job"]).await?;
    let hub = lab.installation().await?.hub;
    fixture::queue(&hub, "default", &fixture::provisioning_check("default")).await?;
    fixture::configure(&hub, "default", &json!({})).await?;
    let message = "the cluster does not serve provisioningrequests.autoscaling.x-k8s.io/v1";
    let unavailable = ("False", "ProvisioningRequestsUnavailable", message);
    fixture::until_check_is(&hub, "default", &unavailable).await?;
    hub.apply(CRD, "default").await?;
    let active = ("True", "Active", "The admission check is active");
    fixture::until_check_is(&hub, "default", &active).await
}

#[tokio::test]
async fn a_foreign_request_of_the_name_is_left_alone() -> Result<()> {
    let fixture = ProvisioningFixture::new("foreign", &json!({})).await?;
    let name = request_name(WORKLOAD, fixture.namespace(), 1);
    let foreign = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
        "metadata": {"name": name},
        "spec": {
            "provisioningClassName": "other",
            "podSets": [{"count": 1, "podTemplateRef": {"name": "other"}}],
        },
    });
    fixture.hub.apply(&foreign.to_string(), fixture.namespace()).await?;
    fixture.create_workload(&[("main", 1, "main")]).await?;
    let message = format!(
        "ProvisioningRequest {name:?} exists, and Workload {WORKLOAD:?} does not control it"
    );
    fixture.until_state("Pending", &message).await?;
    fixture.requests().delete(&name, &DeleteParams::default()).await?;
    let request = fixture.until_request(1).await?;
    fixture.answer(&request, ("Provisioned", "True", "")).await?;
    fixture.until_state("Ready", "").await?;
    Ok(())
}

#[tokio::test]
async fn a_new_manager_goes_on_with_the_request_of_the_last() -> Result<()> {
    let mut fixture = ProvisioningFixture::new("handed", &json!({})).await?;
    fixture.create_workload(&[("main", 1, "main")]).await?;
    let request = fixture.until_request(1).await?;
    let before = request.metadata.uid.clone();
    fixture.restart_manager().await?;
    let request = fixture.until_request(1).await?;
    assert_eq!(request.metadata.uid, before);
    fixture.answer(&request, ("Provisioned", "True", "")).await?;
    let admitted =
        |one: &crds::v1beta2::Workload, _: &_| is_true(&one.status.conditions, "Admitted");
    fixture.until_workload("is admitted", admitted).await?;
    Ok(())
}
