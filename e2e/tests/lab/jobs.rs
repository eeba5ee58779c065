//! Jobs on kwok's nodes.

use anyhow::Result;
use e2e::objects::job_is;
use harness::RunVerdict;
use harness::annotation::EXIT_CODE;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;

use crate::{TIMEOUT, complete, job, lab, submit};

#[tokio::test]
async fn a_job_of_three_pods_completes() -> Result<()> {
    let space = lab().await?.space("three_pods").await?;
    submit(&space, 1, &job("train", 3, &[])?).await?;

    let jobs: Api<Job> = space.worker(1)?.api(space.namespace());
    let done = space.worker(1)?.until(&jobs, "train", "completes", TIMEOUT, complete).await?;

    assert_eq!(done.status.and_then(|status| status.succeeded), Some(3));
    let judgement = space.observer().judge("train", 3, TIMEOUT).await?;
    assert_eq!(judgement.verdict, RunVerdict::Once, "{judgement}");
    Ok(())
}

#[tokio::test]
async fn a_job_whose_pods_fail_fails() -> Result<()> {
    let space = lab().await?.space("failing_job").await?;
    submit(&space, 1, &job("train", 2, &[(EXIT_CODE, "1")])?).await?;

    let jobs: Api<Job> = space.worker(1)?.api(space.namespace());
    space.worker(1)?.until(&jobs, "train", "fails", TIMEOUT, |job| job_is(job, "Failed")).await?;

    let judgement = space.observer().judge("train", 2, TIMEOUT).await?;
    assert_eq!(judgement.verdict, RunVerdict::Lost, "{judgement}");
    Ok(())
}
