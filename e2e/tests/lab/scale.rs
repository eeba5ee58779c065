//! Thousands of pods.

use anyhow::Result;
use harness::{NodeSpec, secs};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;

use crate::{complete, job, lab, submit};

/// Separate nodes, so that other tests' pods do not interfere.
#[tokio::test]
async fn two_thousand_pods_on_fifty_nodes_finish() -> Result<()> {
    let space = lab().await?.space("scale").await?;
    let worker = space.worker(2)?;
    let nodes = NodeSpec {
        prefix: "scale".into(),
        count: 50,
        labels: [("pool".to_owned(), "scale".to_owned())].into(),
        ..NodeSpec::default()
    };
    worker.add_nodes(&nodes).await?;
    let mut work = job("many", 2000, &[])?;
    if let Some(spec) = work.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
        spec.node_selector = Some([("pool".to_owned(), "scale".to_owned())].into());
    }
    submit(&space, 2, &work).await?;

    let jobs: Api<Job> = worker.api(space.namespace());
    worker.until(&jobs, "many", "completes", secs(300), complete).await?;

    let judgement = space.observer().judge("many", 2000, secs(60)).await?;
    assert_eq!(judgement.verdict, harness::RunVerdict::Once);
    Ok(())
}
