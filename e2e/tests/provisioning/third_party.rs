//! A check of another controller, which the test plays: what its states and updates do to the Workload and its Job.

use anyhow::{Result, ensure};
use crds::{
    meta::{find, is_true},
    v1beta2::{AdmissionCheck, Workload},
};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::fixture::{ProvisioningFixture, WORKLOAD};

const CONTROLLER: &str = "example.com/licences";

impl ProvisioningFixture {
    /// With a queue that has an active check of the played controller.
    async fn with_licences(test: &str) -> Result<Self> {
        let fixture = Self::with_check(test, |_| json!({"controllerName": CONTROLLER})).await?;
        let active = json!({
            "type": "Active", "status": "True", "reason": "Active", "message": "there are licences",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = Patch::Merge(json!({"status": {"conditions": [active]}}));
        let checks = fixture.hub.cluster_api::<AdmissionCheck>();
        checks.patch_status(fixture.namespace(), &PatchParams::default(), &status).await?;
        Ok(fixture)
    }

    /// Waits until the controller is asked: the Workload has quota, and the check is Pending after so many retries.
    async fn until_asked(&self, retries: i32) -> Result<Workload> {
        let asked = |one: &Workload, state: &crds::v1beta2::AdmissionCheckState| {
            // An eviction resets the check before it releases the quota, and the release resets it again.
            is_true(&one.status.conditions, "QuotaReserved")
                && !is_true(&one.status.conditions, "Evicted")
                && state.state == "Pending"
                && state.retry_count.unwrap_or_default() == retries
        };
        self.until_workload(&format!("waits for its check, {retries} retries"), asked).await
    }

    /// The controller sets fields of its check.
    async fn decide(&self, workload: &Workload, fields: &Value) -> Result<()> {
        let mut state = json!({
            "name": self.namespace(), "message": "played",
            "lastTransitionTime": k8s_openapi::jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
        });
        json_patch::merge(&mut state, fields);
        let status = Patch::Merge(json!({"status": {"admissionChecks": [state]}}));
        let name = workload.name_any();
        self.workloads().patch_status(&name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    async fn job(&self) -> Result<Job> {
        Ok(self.hub.api::<Job>(self.namespace()).get(WORKLOAD).await?)
    }
}

#[tokio::test]
async fn a_retry_waits_and_what_a_ready_check_adds_reaches_the_pods() -> Result<()> {
    let fixture = ProvisioningFixture::with_licences("licensed").await?;
    fixture.submit(1, json!({})).await?;
    let workload = fixture.until_asked(0).await?;
    fixture.decide(&workload, &json!({"state": "Retry", "requeueAfterSeconds": 3})).await?;
    let delayed = |one: &Workload, _: &_| {
        let state = one.status.requeue_state.as_ref();
        let evicted = find(&one.status.conditions, "Evicted");
        state.is_some_and(|state| state.requeue_at.is_some())
            && evicted.is_some_and(|one| one.status == "True" && one.reason == "AdmissionCheck")
    };
    fixture.until_workload("is evicted until the delay is over", delayed).await?;
    let workload = fixture.until_asked(1).await?;
    let tolerates =
        json!({"key": "example.com/licensed", "operator": "Exists", "effect": "NoSchedule"});
    let update = json!({
        "name": "main", "labels": {"example.com/licence": "seven"},
        "annotations": {"example.com/server": "licences.example.com"},
        "nodeSelector": {"example.com/licensed": "yes"}, "tolerations": [tolerates],
    });
    fixture.decide(&workload, &json!({"state": "Ready", "podSetUpdates": [update]})).await?;
    let pods = fixture.hub.api::<Pod>(fixture.namespace());
    let labels = "example.com/licence=seven";
    let one = |pods: &[Pod]| pods.len() == 1;
    let pods = fixture.hub.until_all(&pods, labels, "a pod is there", 2 * TIMEOUT, one).await?;
    let (annotations, spec) = (pods[0].annotations(), json!(pods[0].spec));
    ensure!(annotations["example.com/server"] == "licences.example.com", "{annotations:?}");
    ensure!(spec["nodeSelector"]["example.com/licensed"] == "yes", "{spec}");
    ensure!(spec["tolerations"].as_array().is_some_and(|all| all.contains(&tolerates)), "{spec}");
    Ok(())
}

#[tokio::test]
async fn a_rejection_deactivates_the_workload() -> Result<()> {
    let fixture = ProvisioningFixture::with_licences("unlicensed").await?;
    fixture.submit(1, json!({})).await?;
    let workload = fixture.until_asked(0).await?;
    fixture.decide(&workload, &json!({"state": "Rejected"})).await?;
    let deactivated = |one: &Workload, _: &_| {
        let evicted = find(&one.status.conditions, "Evicted");
        one.spec.active == Some(false)
            && !is_true(&one.status.conditions, "QuotaReserved")
            && evicted.is_some_and(|one| one.reason == "DeactivatedDueToAdmissionCheck")
    };
    fixture.until_workload("is deactivated", deactivated).await?;
    let job = fixture.job().await?;
    ensure!(job.spec.and_then(|spec| spec.suspend) == Some(true), "it does not start");
    Ok(())
}

#[tokio::test]
async fn an_update_against_the_job_ends_its_start() -> Result<()> {
    let fixture = ProvisioningFixture::with_licences("contradicted").await?;
    let template = json!({"metadata": {"labels": {"example.com/licence": "one"}}});
    fixture.submit(1, json!({"spec": {"template": template}})).await?;
    let workload = fixture.until_asked(0).await?;
    let update = json!({"name": "main", "labels": {"example.com/licence": "two"}});
    fixture.decide(&workload, &json!({"state": "Ready", "podSetUpdates": [update]})).await?;
    let failed = |one: &Workload, _: &_| {
        let finished = find(&one.status.conditions, "Finished");
        finished.is_some_and(|one| {
            one.reason == "FailedToStart" && one.message.contains("example.com/licence")
        })
    };
    fixture.until_workload("ends because its job cannot start", failed).await?;
    let job = fixture.job().await?;
    ensure!(job.spec.and_then(|spec| spec.suspend) == Some(true), "it does not start");
    Ok(())
}
