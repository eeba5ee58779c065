//! The first admission is kept; a variant preempts behind its gate; a Job changes while it waits.

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::fixture::{LONG, VariantsFixture, admitted_flavor, ended};

const RETAIN_FIRST: &str = "RetainFirstAdmission";

#[tokio::test]
async fn the_first_admission_is_kept_until_the_job_is_over() -> Result<()> {
    let fixture = VariantsFixture::new("kept", RETAIN_FIRST, ["0", "4"]).await?;
    fixture.submit("train", 2, 4, false).await?;
    fixture.until_admitted("train", "worse").await?;
    let inactive = |all: &[Workload]| {
        let best = fixture.variant(all, "train", "best");
        best.is_some_and(|one| one.spec.active == Some(false))
    };
    fixture.until_workloads("the better variant competes no longer", inactive).await?;
    fixture.change_quota(["4", "4"]).await?;
    let over = |all: &[Workload]| all.len() == 3 && all.iter().all(|one| !ended(one).is_empty());
    let all = fixture.until_workloads("all are over", over).await?;
    for one in &all {
        ensure!(ended(one) == "Succeeded", "{one:?}");
        let flavor = admitted_flavor(one);
        ensure!(flavor.is_none_or(|flavor| flavor == fixture.flavor("worse")), "{flavor:?}");
    }
    fixture.until_used(["0", "0"], 0).await
}

#[tokio::test]
async fn a_variant_preempts_once_its_gate_is_open() -> Result<()> {
    let fixture = VariantsFixture::new("gates", RETAIN_FIRST, ["2", "0"]).await?;
    fixture.submit("low", 2, LONG, true).await?;
    fixture.until_runs_on("low", "best", 2).await?;
    fixture.submit("high", 2, LONG, false).await?;
    fixture.until_event("PreemptionUngatedVariant").await?;
    fixture.until_runs_on("high", "best", 2).await?;
    fixture.until_runs_on("low", "best", 0).await?;
    fixture.until_used(["2", "0"], 1).await?;
    // The other one comes back with its variants.
    fixture.delete("high").await?;
    fixture.until_runs_on("low", "best", 2).await
}

#[tokio::test]
async fn a_job_that_changes_while_it_waits_gets_other_variants() -> Result<()> {
    let fixture = VariantsFixture::new("changed", RETAIN_FIRST, ["2", "2"]).await?;
    fixture.submit("train", 3, LONG, false).await?;
    let waits = |all: &[Workload]| all.len() == 3;
    fixture.until_workloads("it has two variants", waits).await?;
    let patch = Patch::Merge(json!({"spec": {"parallelism": 2}}));
    let _: Job = fixture.jobs().patch("train", &PatchParams::default(), &patch).await?;
    fixture.until_admitted("train", "best").await?;
    fixture.until_runs_on("train", "best", 2).await
}
