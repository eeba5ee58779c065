//! What the owner of a raw Workload writes: its end, and the end of its eviction.

use anyhow::{Context, Result};
use crds::meta::is_true;
use crds::names::conditions::{ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED};
use crds::v1beta2::Workload;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// The time of all conditions; nothing measured reads it.
const AT: &str = "2026-01-01T00:00:00Z";

/// The Workload is admitted and neither evicted nor finished.
pub(super) fn runs(workload: &Workload) -> bool {
    let conditions = &workload.status.conditions;
    is_true(conditions, ADMITTED) && !is_true(conditions, EVICTED) && !is_true(conditions, FINISHED)
}

/// The Workload is evicted and holds quota until its owner has stopped.
pub(super) fn is_stopping(workload: &Workload) -> bool {
    let conditions = &workload.status.conditions;
    is_true(conditions, EVICTED) && is_true(conditions, QUOTA_RESERVED)
}

/// Adds the condition Finished.
pub(super) async fn finish(api: &Api<Workload>, name: &str) -> Result<()> {
    let condition = condition(FINISHED, "True", "JobFinished", "Job finished successfully");
    let patch = json!([{"op": "add", "path": "/status/conditions/-", "value": condition}]);
    let patch: json_patch::Patch = serde_json::from_value(patch).context("a patch")?;
    let patch = Patch::Json::<Workload>(patch);
    let patched = api.patch_status(name, &PatchParams::default(), &patch).await;
    patched.map(drop).with_context(|| format!("finishing {name}"))
}

/// Takes the reservation of an evicted Workload, as the reconciler of a stopped job does. A conflict is left to the next event.
pub(super) async fn release(api: &Api<Workload>, workload: &Workload) -> Result<()> {
    let mut conditions: Vec<Value> = Vec::new();
    for one in &workload.status.conditions {
        let value = serde_json::to_value(one)?;
        conditions.push(match one.r#type.as_str() {
            QUOTA_RESERVED => condition(QUOTA_RESERVED, "False", "Pending", "Evicted"),
            ADMITTED => {
                condition(ADMITTED, "False", "NoReservation", "The workload has no reservation")
            }
            _ => value,
        });
    }
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": workload.resource_version()},
        "status": {"admission": null, "conditions": conditions},
    }));
    match api.patch_status(&workload.name_any(), &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("releasing {}", workload.name_any())),
    }
}

/// The status of an admitted Workload, for the replay of its writes.
pub(super) fn admission(queue: &str, cpu: &str) -> Value {
    json!({"status": {
        "admission": {"clusterQueue": queue, "podSetAssignments": [{
            "name": "main", "count": 1,
            "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": cpu},
        }]},
        "conditions": [
            condition(QUOTA_RESERVED, "True", "QuotaReserved", "Quota reserved in ClusterQueue"),
            condition(ADMITTED, "True", "Admitted", "The workload is admitted"),
        ],
    }})
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": AT,
    })
}
