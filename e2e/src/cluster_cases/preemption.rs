//! A job of a higher priority takes the place of another one, which starts again later.

use anyhow::Result;
use crds::meta;
use crds::v1beta2::Workload;
use serde_json::json;

use super::{CasePlace, place};
use crate::installation::TIMEOUT;
use crate::{objects, waits};

pub(super) async fn takes_the_place(place: &CasePlace<'_>) -> Result<()> {
    place.queue(2).await?;
    let class = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": place.namespace}, "value": 1000,
    });
    place.submit(&class).await?;
    place.submit(&place::job("victim", 2, objects::LONG)).await?;
    place.until_running("victim", 2).await?;

    let mut urgent = place::job("urgent", 2, 1);
    urgent["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!(place.namespace);
    place.submit(&urgent).await?;
    let preempted = |one: &Workload| {
        meta::find(&one.status.conditions, "Evicted").is_some_and(|one| one.reason == "Preempted")
    };
    let workloads = (place.hub, place.namespace);
    waits::until_workload(workloads, ("victim", "is preempted"), TIMEOUT, preempted).await?;
    place.until_ended("urgent", "Complete").await?;
    place.ensure_once("urgent", 2).await?;
    place.until_running("victim", 2).await?;
    Ok(())
}
