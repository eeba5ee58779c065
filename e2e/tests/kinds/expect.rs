//! What the suite expects of Workloads and started jobs.

use anyhow::{Context, Result, ensure};
use crds::{
    meta::{Condition, is_true},
    names::{annotations::WORKLOAD, labels::POD_SET},
    v1beta2::Workload,
};
use e2e::objects::OWN;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::kind_under_test::KindUnderTest;

/// A Workload has the pod sets of a job, its queue, and the job as its controller.
pub(crate) fn is_workload_of(
    tested: &KindUnderTest,
    workload: &Workload,
    job: &Value,
) -> Result<()> {
    let owners = json!(workload.owner_references());
    let owner = &owners[0];
    let expected = json!({
        "apiVersion": tested.kind.api_version(), "kind": tested.kind.name(),
        "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": true,
    });
    for (field, value) in expected.as_object().into_iter().flatten() {
        ensure!(owner[field] == *value, "{field} of {owner}");
    }
    let sets = workload.spec.pod_sets.iter();
    let sets: Vec<(&str, i32)> =
        sets.map(|set| (set.name.as_str(), set.count.unwrap_or(1))).collect();
    ensure!(sets == tested.pod_sets, "{sets:?}");
    ensure!(workload.spec.queue_name == "queue", "{:?}", workload.spec.queue_name);
    Ok(())
}

/// The templates of a job have the node selector and tolerations of the flavor, and name pod set and Workload.
pub(crate) fn is_started(
    tested: &KindUnderTest,
    job: &Value,
    workload: &Workload,
    namespace: &str,
) -> Result<()> {
    for (template, (set, _)) in tested.templates_of(job).iter().zip(tested.pod_sets) {
        ensure!(template["spec"]["nodeSelector"][OWN] == namespace, "{template}");
        let tolerations = template["spec"]["tolerations"].as_array().context("tolerations")?;
        ensure!(tolerations.iter().any(|one| one["key"] == OWN), "{template}");
        ensure!(template["metadata"]["labels"][POD_SET] == *set, "{template}");
        let annotation = &template["metadata"]["annotations"][WORKLOAD];
        ensure!(*annotation == *workload.name_any(), "{template}");
    }
    Ok(())
}

/// A Workload is evicted because it is not active, and holds no quota.
pub(crate) fn is_deactivated(workload: &Workload) -> bool {
    let conditions = &workload.status.conditions;
    let evicted = condition(workload, "Evicted");
    evicted.is_some_and(|one| one.status == "True" && one.reason == "Deactivated")
        && !is_true(conditions, "QuotaReserved")
        && workload.status.admission.is_none()
}

/// When a condition became true.
pub(crate) fn since(workload: &Workload, kind: &str) -> Result<Timestamp> {
    let condition = condition(workload, kind).filter(|one| one.status == "True");
    let time = condition.and_then(|one| one.last_transition_time.as_ref());
    Ok(time.with_context(|| format!("{kind} of {}", workload.name_any()))?.0)
}

pub(crate) fn condition<'a>(workload: &'a Workload, kind: &str) -> Option<&'a Condition> {
    workload.status.conditions.iter().find(|one| one.r#type == kind)
}
