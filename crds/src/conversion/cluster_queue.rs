//! ClusterQueues.
//!
//! Lost in v1beta1: the concurrent admission policy. Lost in v1beta2: the pending workloads status, and usage over time
//! below the fair sharing status.

use serde_json::{Value, json};

use super::{ConvertedParts, Object, queue_usage, rename};

pub(super) fn to_v1beta2(parts: &mut ConvertedParts) {
    set_usage(&mut parts.status);
    rename(&mut parts.spec, "cohort", "cohortName");
    // Flat checks win over a strategy.
    if let Some(Value::Array(names)) = parts.spec.remove("admissionChecks")
        && !names.is_empty()
    {
        let rules: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        parts.spec.insert("admissionChecksStrategy".into(), json!({"admissionChecks": rules}));
    }
    // The old names of one policy.
    if let Some(Value::Object(fungibility)) = parts.spec.get_mut("flavorFungibility") {
        for field in ["whenCanBorrow", "whenCanPreempt"] {
            if matches!(fungibility.get(field).and_then(Value::as_str), Some("Borrow" | "Preempt"))
            {
                fungibility.insert(field.into(), "MayStopSearch".into());
            }
        }
    }
}

pub(super) fn to_v1beta1(parts: &mut ConvertedParts) {
    set_usage(&mut parts.status);
    rename(&mut parts.spec, "cohortName", "cohort");
}

fn set_usage(status: &mut Object) {
    let lists = ["flavorsReservation", "flavorsUsage"];
    queue_usage::set_unset_to_zero(status, &lists, &["total", "borrowed"]);
}
