//! StatefulSets on the manager's own cluster: one Workload for all pods.

use anyhow::{Result, ensure};
use crds::{
    meta::is_true,
    names::{annotations::POD_SUSPENDING_PARENT, labels::POD_GROUP_NAME},
    v1beta2::Workload,
};
use e2e::installation::TIMEOUT;
use harness::annotation;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::pods::{PodsFixture, is_gated};

fn stateful_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "store", "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {
            "serviceName": "store", "replicas": replicas,
            "selector": {"matchLabels": {"app": "store"}},
            "template": {
                "metadata": {
                    "labels": {"app": "store"}, "annotations": {annotation::RUN_SECONDS: "3600"},
                },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
                    }],
                },
            },
        },
    })
}

async fn until_scaled(
    fixture: &PodsFixture,
    sets: &Api<StatefulSet>,
    replicas: usize,
) -> Result<()> {
    let scaled = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    sets.patch("store", &PatchParams::default(), &scaled).await?;
    until_running(fixture, replicas).await
}

/// Until there are so many pods, all of one group, and none waits.
async fn until_running(fixture: &PodsFixture, replicas: usize) -> Result<()> {
    let run = |all: &[Pod]| all.len() == replicas && !all.iter().any(is_gated);
    let what = format!("{replicas} pods run");
    let pods = fixture.hub.until_all(&fixture.pods(), "", &what, 2 * TIMEOUT, run).await?;
    let group = |pod: &Pod| pod.annotations().get(POD_GROUP_NAME).cloned();
    ensure!(pods.windows(2).all(|pair| group(&pair[0]) == group(&pair[1])), "one group");
    ensure!(pods.iter().all(|pod| group(pod).is_some()), "every pod is of a group");
    Ok(())
}

/// Until the only Workload asks for so many pods, and has quota or is on hold.
async fn until_workload(fixture: &PodsFixture, pods: i32, admitted: bool) -> Result<()> {
    let is = |all: &[Workload]| {
        let [workload] = all else { return false };
        let count = workload.spec.pod_sets.first().and_then(|set| set.count);
        let conditions = &workload.status.conditions;
        is_true(conditions, "Admitted") == admitted
            && workload.status.is_on_hold() != admitted
            && (count == Some(pods) || !admitted)
    };
    let workloads: Api<Workload> = fixture.hub.api(fixture.space.namespace());
    let what = format!("one Workload of {pods} pods, admitted: {admitted}");
    fixture.hub.until_all(&workloads, "", &what, 2 * TIMEOUT, is).await?;
    Ok(())
}

/// A set runs, goes to zero and gives its quota back, and comes back with another size.
#[tokio::test]
async fn a_stateful_set_has_one_workload_from_zero_to_zero() -> Result<()> {
    let fixture = PodsFixture::new("statefulset", "3").await?;
    let sets: Api<StatefulSet> = fixture.hub.api(fixture.space.namespace());
    let created =
        sets.create(&PostParams::default(), &serde_json::from_value(stateful_set(2))?).await?;
    let template = &serde_json::to_value(&created)?["spec"]["template"]["metadata"];
    ensure!(template["annotations"][POD_SUSPENDING_PARENT] == "statefulset", "{template}");
    until_running(&fixture, 2).await?;
    until_workload(&fixture, 2, true).await?;

    let other = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let refused = sets.patch("store", &PatchParams::default(), &other).await;
    ensure!(refused.is_err(), "a running set changes its size to zero only");
    until_scaled(&fixture, &sets, 0).await?;
    until_workload(&fixture, 0, false).await?;
    fixture.until_quota_is_free().await?;
    until_scaled(&fixture, &sets, 3).await?;
    until_workload(&fixture, 3, true).await?;

    sets.delete("store", &DeleteParams::background()).await?;
    let gone = <[Pod]>::is_empty;
    fixture.hub.until_all(&fixture.pods(), "", "all are gone", 2 * TIMEOUT, gone).await?;
    fixture.until_quota_is_free().await
}
