//! What is requested, and what is not.

use anyhow::{Result, ensure};
use crds::{meta::is_true, v1beta2::Workload};
use serde_json::json;

use crate::fixture::ProvisioningFixture;

#[tokio::test]
async fn pod_sets_with_the_same_requirements_share_an_entry() -> Result<()> {
    let policy = json!({"podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements"});
    let fixture = ProvisioningFixture::new("merged", &policy).await?;
    fixture.create_workload(&[("driver", 1, "driver"), ("workers", 3, "worker")]).await?;
    let request = fixture.until_request(1).await?;
    let counts: Vec<i32> = request.spec.pod_sets.iter().map(|one| one.count).collect();
    ensure!(counts == [4], "{request:?}");
    fixture.answer(&request, ("Provisioned", "True", "")).await?;
    let workload = fixture.until_state("Ready", "").await?;
    let updates = &workload.status.admission_checks[0].pod_set_updates;
    let names: Vec<&str> = updates.iter().map(|one| one.name.as_str()).collect();
    ensure!(names == ["driver", "workers"], "{updates:?}");
    Ok(())
}

#[tokio::test]
async fn pods_without_a_managed_resource_need_no_request() -> Result<()> {
    let managed = json!({"managedResources": ["example.com/gpu"]});
    let fixture = ProvisioningFixture::new("unmanaged", &managed).await?;
    fixture.create_workload(&[("main", 1, "main")]).await?;
    let admitted = |one: &Workload, _: &_| is_true(&one.status.conditions, "Admitted");
    let workload = fixture.until_workload("is admitted", admitted).await?;
    let check = &workload.status.admission_checks[0];
    ensure!(check.message == "the provisioning request is not needed", "{check:?}");
    let requests = fixture.requests().list(&Default::default()).await?;
    ensure!(requests.items.is_empty(), "{requests:?}");
    Ok(())
}
