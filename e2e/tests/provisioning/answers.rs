//! What the conditions of a request do to its Workload.

use anyhow::{Result, ensure};
use crds::{meta::is_true, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::fixture::{ProvisioningFixture, WORKLOAD};

const CONSUMES: &str = "autoscaling.x-k8s.io/consume-provisioning-request";

fn admitted(workload: &Workload) -> bool {
    is_true(&workload.status.conditions, "Admitted")
}

impl ProvisioningFixture {
    async fn until_pods(&self, count: usize) -> Result<Vec<Pod>> {
        let labels = format!("batch.kubernetes.io/job-name={WORKLOAD}");
        let there = |pods: &[Pod]| {
            let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
            pods.iter().filter(stays).count() == count
        };
        let pods = self.hub.api::<Pod>(self.namespace());
        let what = format!("{count} pods are there");
        Ok(self.hub.until_all(&pods, &labels, &what, 2 * TIMEOUT, there).await?)
    }

    async fn until_deactivated(&self) -> Result<()> {
        let inactive = |one: &Workload, _: &_| one.spec.active == Some(false);
        self.until_workload("is deactivated", inactive).await?;
        Ok(())
    }
}

#[tokio::test]
async fn provisioned_room_admits_the_workload_and_reaches_its_pods() -> Result<()> {
    let selector = json!([{"key": "lab.example/zone", "valueFromProvisioningClassDetail": "zone"}]);
    let config =
        json!({"parameters": {"size": "big"}, "podSetUpdates": {"nodeSelector": selector}});
    let fixture = ProvisioningFixture::new("provisioned", &config).await?;
    let annotations = json!({"provreq.kueue.x-k8s.io/until": "noon"});
    fixture.submit(2, json!({"metadata": {"annotations": annotations}})).await?;
    let request = fixture.until_request(1).await?;
    ensure!(
        request.spec.parameters
            == [("size", "big"), ("until", "noon")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        "{request:?}"
    );
    ensure!(request.spec.pod_sets[0].count == 2, "{request:?}");
    fixture.answer(&request, ("Accepted", "True", "")).await?;
    fixture.answer(&request, ("Provisioned", "False", "room at noon")).await?;
    fixture.until_state("Pending", "room at noon").await?;
    fixture.answer(&request, ("Provisioned", "True", "there it is")).await?;
    fixture.until_state("Ready", "there it is").await?;
    for pod in fixture.until_pods(2).await? {
        ensure!(pod.annotations().get(CONSUMES) == Some(&request.name_any()), "{pod:?}");
        let selector = pod.spec.and_then(|spec| spec.node_selector).unwrap_or_default();
        ensure!(selector.get("lab.example/zone").map(String::as_str) == Some("a"), "{selector:?}");
    }
    // Kubernetes deletes what is owned: the Workload with its Job, the request with it, templates with that.
    let jobs = fixture.hub.api::<Job>(fixture.namespace());
    jobs.delete(WORKLOAD, &DeleteParams::background()).await?;
    let gone = "no template is left";
    fixture.hub.until_all(&fixture.templates(), "", gone, 2 * TIMEOUT, <[_]>::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn a_failed_attempt_is_repeated_after_its_backoff() -> Result<()> {
    let retry = json!({"backoffLimitCount": 1, "backoffBaseSeconds": 1});
    let fixture = ProvisioningFixture::new("repeated", &json!({"retryStrategy": retry})).await?;
    fixture.submit(1, json!({})).await?;
    let first = fixture.until_request(1).await?;
    fixture.answer(&first, ("Failed", "True", "no room")).await?;
    let second = fixture.until_request(2).await?;
    fixture.hub.until_gone(&fixture.requests(), &first.name_any(), TIMEOUT).await?;
    fixture.answer(&second, ("Provisioned", "True", "")).await?;
    fixture.until_workload("is admitted", |one, _| admitted(one)).await?;
    let pods = fixture.until_pods(1).await?;
    ensure!(pods[0].annotations().get(CONSUMES) == Some(&second.name_any()), "{pods:?}");
    Ok(())
}

#[tokio::test]
async fn the_last_attempt_deactivates_the_workload() -> Result<()> {
    let retry = json!({"backoffLimitCount": 1, "backoffBaseSeconds": 1});
    let fixture = ProvisioningFixture::new("rejected", &json!({"retryStrategy": retry})).await?;
    fixture.submit(1, json!({})).await?;
    for attempt in [1, 2] {
        let request = fixture.until_request(attempt).await?;
        fixture.answer(&request, ("Failed", "True", "no room")).await?;
    }
    fixture.until_deactivated().await?;
    let none = "no request is left";
    fixture.hub.until_all(&fixture.requests(), "", none, TIMEOUT, <[_]>::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn a_booking_expires_before_the_admission_and_capacity_is_revoked_after_it() -> Result<()> {
    let retry = json!({"backoffLimitCount": 1, "backoffBaseSeconds": 1});
    let fixture = ProvisioningFixture::new("expired", &json!({"retryStrategy": retry})).await?;
    fixture.submit(1, json!({})).await?;
    let first = fixture.until_request(1).await?;
    fixture.answer(&first, ("BookingExpired", "True", "too late")).await?;
    let second = fixture.until_request(2).await?;
    fixture.answer(&second, ("Provisioned", "True", "")).await?;
    fixture.until_workload("is admitted", |one, _| admitted(one)).await?;
    fixture.until_pods(1).await?;
    fixture.answer(&second, ("BookingExpired", "True", "too late")).await?;
    fixture.answer(&second, ("CapacityRevoked", "True", "the nodes are gone")).await?;
    fixture.until_deactivated().await?;
    fixture.until_pods(0).await?;
    Ok(())
}
