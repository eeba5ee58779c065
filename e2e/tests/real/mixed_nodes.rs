//! A worker with a real node and a played one: kwok plays the pods of its own node only.

use anyhow::{Result, ensure};
use e2e::objects::{self, OWN};
use harness::annotation;
use serde_json::json;

use crate::fixture::RealFixture;

#[tokio::test]
#[ignore = "make test-real"]
async fn jobs_run_in_containers_of_the_real_node_and_are_played_on_the_other_one() -> Result<()> {
    let fixture = RealFixture::open_on("real_mixed", &["worker-1"]).await?;
    let worker = &fixture.workers[0];
    worker.add_nodes(&objects::own_nodes(fixture.namespace(), 1, "1")).await?;
    let script = "note started; sleep 2; note ended";
    let mut played = fixture.job("played", 2, script);
    let template = &mut played["spec"]["template"];
    template["metadata"] = json!({"annotations": {annotation::RUN_SECONDS: "2"}});
    template["spec"]["nodeSelector"] = json!({OWN: fixture.namespace()});
    template["spec"]["tolerations"] =
        json!([{"key": OWN, "value": fixture.namespace(), "effect": "NoSchedule"}]);
    for job in [&played, &fixture.job("contained", 2, script)] {
        fixture.submit(job).await?;
    }
    for job in ["played", "contained"] {
        fixture.until_ended(job, "Complete").await?;
        fixture.ensure_once(job, 2).await?;
    }
    fixture.until_no_pod_is_left().await?;
    let contained = fixture.ensure_once("contained", 2).await?;
    ensure!(contained.runs[0].pods.len() == 2, "{contained}");
    fixture.whole_diary()?.ensure_as_seen(worker.name(), &[contained])
}
