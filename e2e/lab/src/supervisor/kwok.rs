//! Starts kwok until it handles all pods.
//!
//! kwok v0.8.0 on a busy machine sometimes ignores pods that were bound before its start, and never handles them. Pods start at
//! once in the lab (`stages/pod-start.yaml`), so pods that are pending after a few seconds were ignored, and kwok is restarted.
//! Running pods show it only when they should have ended: they are patched a few times, because kwok handles changed pods.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::Supervisor;
use super::boot::{self, BootError};
use crate::component::Component;
use crate::logs;
use crate::state::ClusterState;

/// Starts before it is taken for broken.
const STARTS: usize = 5;

/// From kwok's start until every waiting pod has started, with a good margin.
const TAKE_OVER: Duration = Duration::from_secs(5);

/// Pause between two checks of the pods.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// When the pods that run are touched, after kwok's start.
const TOUCHES: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(8),
];

/// What touching a pod changes.
const TOUCHED: &str = "lab.sluice.dev/touched";

/// A request to an API server that is paused is not answered; then there is nothing to wait for either.
const ONE_REQUEST: Duration = Duration::from_secs(5);

/// Starts kwok and returns when the pods that waited for it have started.
pub(super) async fn start(
    lab: &Supervisor,
    cluster: &ClusterState,
    extra: &[String],
) -> Result<(), BootError> {
    let component = Component::Kwok;
    for _ in 0..STARTS {
        boot::launch(lab, cluster, component, extra).await?;
        // Asked only now, because those that got their node while kwok was starting are in danger, too.
        let waiting = waiting(cluster).await.unwrap_or_default();
        if taken_over(cluster, &waiting).await {
            tokio::spawn(touch(cluster.clone()));
            return Ok(());
        }
        let killed = lab.children.kill(&cluster.name, component).await;
        killed.map_err(|source| BootError::Start {
            cluster: cluster.name.clone(),
            component,
            source,
        })?;
    }
    let log = logs::tail(&cluster.log(component), 20);
    Err(BootError::Late { cluster: cluster.name.clone(), component, log })
}

/// Whether none of the pods waits any more, now or soon.
async fn taken_over(cluster: &ClusterState, before: &BTreeSet<String>) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < TAKE_OVER {
        match waiting(cluster).await {
            Some(now) if !now.is_disjoint(before) => sleep(POLL_INTERVAL).await,
            _ => return true,
        }
    }
    false
}

/// Patches the running pods. Errors are ignored.
async fn touch(cluster: ClusterState) {
    static TOUCH: AtomicUsize = AtomicUsize::new(0);
    let begun = Instant::now();
    for at in TOUCHES {
        let number = TOUCH.fetch_add(1, Ordering::Relaxed);
        sleep(at.saturating_sub(begun.elapsed())).await;
        let Ok(client) = cluster.client().await else {
            continue;
        };
        let params = ListParams::default().fields("status.phase=Running");
        let all: Api<Pod> = Api::all(client.clone());
        let Ok(Ok(pods)) = timeout(ONE_REQUEST, all.list(&params)).await else {
            continue;
        };
        for pod in pods.items {
            let api: Api<Pod> =
                Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            let touched = json!({"metadata": {"annotations": {TOUCHED: number.to_string()}}});
            let (name, params) = (pod.name_any(), PatchParams::default());
            let _ = timeout(ONE_REQUEST, api.patch(&name, &params, &Patch::Merge(&touched))).await;
        }
    }
}

/// Bound pods that do not run yet, by uid; empty if the API server does not respond.
async fn waiting(cluster: &ClusterState) -> Option<BTreeSet<String>> {
    let client = cluster.client().await.ok()?;
    let pods: Api<Pod> = Api::all(client);
    let params = ListParams::default().fields("status.phase=Pending");
    let pods = timeout(ONE_REQUEST, pods.list(&params)).await.ok()?.ok()?;
    let bound = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let live = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    let waiting = pods.items.iter().filter(|pod| bound(pod) && live(pod));
    Some(waiting.filter_map(ResourceExt::uid).collect())
}
