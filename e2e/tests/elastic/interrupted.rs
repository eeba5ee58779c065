//! The manager starts again, and the queue stops, while a slice waits for quota.

use anyhow::Result;
use serde_json::json;

use crate::fixture::{ElasticFixture, Slice};

fn a_replacement_waits(slices: &[Slice]) -> bool {
    let open: Vec<&Slice> = slices.iter().filter(|one| one.ended.is_empty()).collect();
    matches!(open[..], [old, new] if old.admitted && new.pods == 9 && !new.admitted)
}

fn quota(namespace: &str, cpus: &str) -> serde_json::Value {
    json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": namespace, "resources": [{"name": "cpu", "nominalQuota": cpus}]},
    ]}]})
}

#[tokio::test]
async fn a_manager_that_starts_again_goes_on_with_both_slices() -> Result<()> {
    let mut fixture = ElasticFixture::new("restarted", 2).await?;
    fixture.until_pods(2, 0).await?;
    fixture.resize(9).await?;
    fixture.until_slices("a replacement waits", a_replacement_waits).await?;
    fixture.until_pods(2, 7).await?;
    fixture.restart_manager().await?;
    fixture.change_queue(quota(fixture.namespace(), "9")).await?;
    fixture.until_one_slice(9).await?;
    fixture.until_pods(9, 0).await
}

#[tokio::test]
async fn a_drained_job_comes_back_with_the_slice_of_its_size() -> Result<()> {
    let fixture = ElasticFixture::new("drained", 2).await?;
    fixture.until_pods(2, 0).await?;
    fixture.resize(9).await?;
    fixture.until_slices("a replacement waits", a_replacement_waits).await?;
    fixture.change_queue(json!({"stopPolicy": "HoldAndDrain"})).await?;
    fixture.until_pods(0, 0).await?;
    fixture.until_used("0").await?;
    fixture.resize(4).await?;
    fixture.change_queue(json!({"stopPolicy": "None"})).await?;
    fixture.until_one_slice(4).await?;
    fixture.until_pods(4, 0).await?;
    fixture.until_used("4").await
}
