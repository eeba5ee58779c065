//! A larger slice of an elastic job takes the place of the one that runs. Nobody owns these Workloads: whoever resizes a job
//! makes them.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{ClusterQueue, Workload};
use e2e::world::SOON;
use serde_json::{Value, json};

use crate::{
    place,
    site::{Site, holds, said},
};

/// A slice of so many pods of one cpu; and in whose place.
fn slice(name: &str, pods: usize, replaces: Option<String>) -> Value {
    let mut annotations = json!({"kueue.x-k8s.io/elastic-job": "true"});
    if let Some(old) = replaces {
        annotations["kueue.x-k8s.io/workload-slice-replacement-for"] = json!(old);
    }
    let requests = json!({"requests": {"cpu": "1"}});
    let container = json!({"name": "main", "image": "none", "resources": requests});
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"queueName": "queue", "podSets": [{
            "name": "main", "count": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }]},
    })
}

#[tokio::test]
async fn a_larger_slice_is_charged_for_what_it_asks_beyond_the_one_that_it_ends() -> Result<()> {
    let site = Site::shared("slices").await?;
    place::queue(site.hub(), site.namespace(), "5", &[]).await?;
    let (hub, workloads) = (site.hub(), site.api::<Workload>());
    hub.apply(&slice("small", 3, None).to_string(), site.namespace()).await?;
    let admitted = |one: &Workload| holds(one, "Admitted");
    hub.until(&workloads, "small", "is admitted", SOON, admitted).await?;

    // Three and five are more than there is, but the five are instead of the three.
    let old = format!("{}/small", site.namespace());
    hub.apply(&slice("large", 5, Some(old)).to_string(), site.namespace()).await?;
    hub.until(&workloads, "large", "is admitted", SOON, admitted).await?;
    let over = |one: &Workload| holds(one, "Finished");
    let small = hub.until(&workloads, "small", "is over", SOON, over).await?;
    let why = said(&small.status.conditions, "Finished").context("a condition")?;
    ensure!(why.reason == "WorkloadSliceReplaced", "{why:?}");

    let queues = hub.cluster_api::<ClusterQueue>();
    let uses_five = |queue: &ClusterQueue| {
        let flavors = queue.status.flavors_usage.iter();
        let totals: Vec<_> = flavors.flat_map(|one| &one.resources).collect();
        totals.iter().any(|one| one.total.as_ref().is_some_and(|total| total.to_string() == "5"))
    };
    hub.until(&queues, site.namespace(), "uses what the larger has", SOON, uses_five).await?;
    ensure!(holds(&workloads.get("large").await?, "Admitted"), "it stays");
    Ok(())
}
