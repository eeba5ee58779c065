//! A larger slice of an elastic job replaces the running one; the test creates the Workloads.

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{ClusterQueue, Workload};
use e2e::installation::TIMEOUT;
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, holds, said},
    objects,
};

/// A slice with this number of pods of one cpu, and the slice that it replaces.
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
async fn a_larger_slice_is_charged_only_for_the_difference_to_the_replaced_one() -> Result<()> {
    let fixture = DispatchFixture::shared("slices").await?;
    objects::queue(fixture.hub(), fixture.namespace(), "5", &[]).await?;
    let (hub, workloads) = (fixture.hub(), fixture.api::<Workload>());
    hub.apply(&slice("small", 3, None).to_string(), fixture.namespace()).await?;
    let admitted = |one: &Workload| holds(one, "Admitted");
    hub.until(&workloads, "small", "is admitted", TIMEOUT, admitted).await?;

    // Three and five are more than there is, but the five are instead of the three.
    let old = format!("{}/small", fixture.namespace());
    hub.apply(&slice("large", 5, Some(old)).to_string(), fixture.namespace()).await?;
    hub.until(&workloads, "large", "is admitted", TIMEOUT, admitted).await?;
    let over = |one: &Workload| holds(one, "Finished");
    let small = hub.until(&workloads, "small", "is over", TIMEOUT, over).await?;
    let why = said(&small.status.conditions, "Finished").context("a condition")?;
    ensure!(why.reason == "WorkloadSliceReplaced", "{why:?}");

    let queues = hub.cluster_api::<ClusterQueue>();
    let uses_five = |queue: &ClusterQueue| {
        let flavors = queue.status.flavors_usage.iter();
        let totals: Vec<_> = flavors.flat_map(|one| &one.resources).collect();
        totals.iter().any(|one| one.total.as_ref().is_some_and(|total| total.to_string() == "5"))
    };
    hub.until(&queues, fixture.namespace(), "uses what the larger has", TIMEOUT, uses_five).await?;
    ensure!(holds(&workloads.get("large").await?, "Admitted"), "it stays");
    Ok(())
}
