//! Pods that no node takes although the worker seemed to have room (docs/reference/dispatch.md §4).

use anyhow::Result;
use crds::v1beta2::Workload;
use e2e::world::SOON;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::{
    place,
    site::{Site, delete, said},
};

/// A report does not say that two pods of one Job do not stand each other on a node.
#[tokio::test]
async fn a_job_whose_pods_find_no_node_goes_to_the_next_worker() -> Result<()> {
    let site = Site::shared("stranded").await?;
    site.nodes(1, 1, "2").await?;
    site.queue("2").await?;
    let mut job = place::job("train", 2, "1", 3600);
    job["spec"]["template"]["metadata"]["labels"] = json!({"apart": "yes"});
    job["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"apart": "yes"}},
        }],
    }});
    site.submit(&job).await?;
    site.until_running("train", 1, 1).await?;
    site.nodes(2, 2, "1").await?;

    let clones = site.worker(1).api::<Workload>(site.namespace());
    let stranded = |all: &[Workload]| {
        let mut told = all.iter().filter_map(|one| said(&one.status.conditions, "Evicted"));
        told.any(|said| said.reason == "Unschedulable" && said.message.contains("no node took pod"))
    };
    let what = "a clone is evicted";
    site.worker(1).until_all(&clones, "", what, 2 * SOON, stranded).await?;
    site.until_running("train", 2, 2).await?;
    delete(&site.api::<Job>(), "train").await?;
    site.until_nothing_is_left().await
}
