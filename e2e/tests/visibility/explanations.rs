//! What a pending Workload lacks, from every replica.

use anyhow::{Result, ensure};
use e2e::objects;
use serde_json::json;

use crate::fixture::{ApiResponse, VisibilityFixture, until};

#[tokio::test]
async fn every_replica_explains_a_pending_workload() -> Result<()> {
    let fixture = VisibilityFixture::new("explained").await?;
    let mut job = objects::job("large", 1, "2", 1);
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    fixture.apply(&job).await?;
    let path = fixture.of_cluster_queue("v1beta2");
    let text = |response: &ApiResponse| {
        let text = response.body["items"][0]["explanation"].as_str();
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let mut texts = Vec::new();
    // One of them leads, the other one reads the Events of the leader.
    for port in [fixture.first_port(), fixture.second_port()] {
        let client = fixture.at_manager(port, fixture.administrator()?).await?;
        let response =
            until(&client, &path, "has an explanation", |one| text(one).is_some()).await?;
        texts.extend(text(&response));
    }
    ensure!(texts.len() == 2 && texts[0] == texts[1], "{texts:?}");
    ensure!(texts[0].contains("with +1 cpu in flavor"), "{texts:?}");
    Ok(())
}
