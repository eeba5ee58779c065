//! Pods that no node of a worker takes although it reported free capacity (docs/reference/dispatch.md §4).

use anyhow::Result;
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::{
    fixture::{DispatchFixture, delete, said},
    objects,
};

/// A capacity report does not contain anti-affinity between pods of a Job.
#[tokio::test]
async fn a_job_whose_pods_fit_no_node_is_dispatched_to_the_next_worker() -> Result<()> {
    let fixture = DispatchFixture::shared("stranded").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    let mut job = objects::job("train", 2, "1", 3600);
    job["spec"]["template"]["metadata"]["labels"] = json!({"apart": "yes"});
    job["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"apart": "yes"}},
        }],
    }});
    fixture.submit(&job).await?;
    fixture.until_running("train", 1, 1).await?;
    fixture.nodes(2, 2, "1").await?;

    let clones = fixture.worker(1).api::<Workload>(fixture.namespace());
    let stranded = |all: &[Workload]| {
        let mut evicted = all.iter().filter_map(|one| said(&one.status.conditions, "Evicted"));
        evicted
            .any(|said| said.reason == "Unschedulable" && said.message.contains("no node took pod"))
    };
    let what = "a clone is evicted";
    fixture.worker(1).until_all(&clones, "", what, 2 * TIMEOUT, stranded).await?;
    fixture.until_running("train", 2, 2).await?;
    delete(&fixture.api::<Job>(), "train").await?;
    fixture.until_nothing_is_left().await
}
