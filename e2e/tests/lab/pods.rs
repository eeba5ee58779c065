//! Annotations control the simulation of pods.

use anyhow::{Context, Result};
use e2e::objects::phase;
use harness::annotation::{EXIT_CODE, NEVER_READY, READY_SECONDS, RUN_SECONDS, STOP_SECONDS};
use harness::{Cluster, Space};
use k8s_openapi::api::core::v1::{Pod, PodSchedulingGate};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::{TIMEOUT, is_ready, lab, pod};

async fn start<'a>(space: &'a Space, pod: &Pod) -> Result<(&'a Cluster, Api<Pod>)> {
    let cluster = space.worker(1)?;
    let pods: Api<Pod> = cluster.api(space.namespace());
    pods.create(&PostParams::default(), pod).await?;
    Ok((cluster, pods))
}

/// Seconds from the container's start to its end, and its exit code.
fn ran(pod: &Pod) -> Option<(i64, i32)> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let ended = status.state.as_ref()?.terminated.as_ref()?;
    let seconds =
        ended.finished_at.as_ref()?.0.as_second() - ended.started_at.as_ref()?.0.as_second();
    Some((seconds, ended.exit_code))
}

#[tokio::test]
async fn annotations_set_the_run_time_and_exit_code_of_a_pod() -> Result<()> {
    let space = lab().await?.space("run_time").await?;
    let template = pod("p", &[(RUN_SECONDS, "2"), (EXIT_CODE, "3")])?;
    let (cluster, pods) = start(&space, &template).await?;

    let running = cluster.until(&pods, "p", "runs", TIMEOUT, |pod| phase(pod) == "Running").await?;
    assert!(is_ready(&running));
    let ended = cluster.until(&pods, "p", "fails", TIMEOUT, |pod| phase(pod) == "Failed").await?;

    let (seconds, code) = ran(&ended).context("a pod that ended says how")?;
    assert!(seconds >= 2, "{seconds}");
    assert_eq!(code, 3);
    assert!(!is_ready(&ended));
    Ok(())
}

#[tokio::test]
async fn a_pod_becomes_ready_late_and_another_one_never() -> Result<()> {
    let space = lab().await?.space("readiness").await?;
    let (cluster, pods) =
        start(&space, &pod("late", &[(READY_SECONDS, "1"), (RUN_SECONDS, "30")])?).await?;
    start(&space, &pod("never", &[(NEVER_READY, "true"), (RUN_SECONDS, "3")])?).await?;

    let unready = |pod: &Pod| phase(pod) == "Running" && !is_ready(pod);
    cluster.until(&pods, "late", "runs and is not ready", TIMEOUT, unready).await?;
    cluster.until(&pods, "late", "is ready", TIMEOUT, is_ready).await?;
    // Had it become ready in between, the watch would have shown it: there is one state after "running".
    let ended = |pod: &Pod| is_ready(pod) || phase(pod) == "Succeeded";
    let never = cluster.until(&pods, "never", "ends or is ready", TIMEOUT, ended).await?;
    assert_eq!(phase(&never), "Succeeded");
    Ok(())
}

#[tokio::test]
async fn a_gated_pod_is_not_bound_until_its_gate_is_removed() -> Result<()> {
    let space = lab().await?.space("gate").await?;
    let mut template = pod("p", &[])?;
    if let Some(spec) = &mut template.spec {
        spec.scheduling_gates = Some(vec![PodSchedulingGate { name: "x.dev/gate".into() }]);
    }
    let (cluster, pods) = start(&space, &template).await?;
    let gated = |pod: &Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.reason.as_deref() == Some("SchedulingGated"))
    };
    let waiting = cluster.until(&pods, "p", "is gated", TIMEOUT, gated).await?;
    assert_eq!(waiting.spec.and_then(|spec| spec.node_name), None);

    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods.patch("p", &PatchParams::default(), &open).await?;
    cluster.until(&pods, "p", "succeeds", TIMEOUT, |pod| phase(pod) == "Succeeded").await?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_pod_terminates_slowly_and_a_finalizer_keeps_it() -> Result<()> {
    let space = lab().await?.space("stop").await?;
    let mut template = pod("p", &[(RUN_SECONDS, "600"), (STOP_SECONDS, "2")])?;
    template.metadata.finalizers = Some(vec!["lab.sluice.dev/held".into()]);
    let (cluster, pods) = start(&space, &template).await?;
    cluster.until(&pods, "p", "runs", TIMEOUT, |pod| phase(pod) == "Running").await?;

    pods.delete("p", &DeleteParams::default()).await?;

    let stopping = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let marked = cluster.until(&pods, "p", "is being deleted", TIMEOUT, stopping).await?;
    assert_eq!(phase(&marked), "Running", "the containers run until they have stopped");
    let stopped = cluster.until(&pods, "p", "stops", TIMEOUT, |pod| phase(pod) == "Failed").await?;
    assert_eq!(ran(&stopped).map(|(_, code)| code), Some(143));

    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("p", &PatchParams::default(), &release).await?;
    cluster.until_gone(&pods, "p", TIMEOUT).await?;
    Ok(())
}
