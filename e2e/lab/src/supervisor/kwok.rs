//! kwok, started until it has really taken over.
//!
//! A kwok (v0.8.0) that starts on a busy machine now and then passes over the pods that were waiting on a node, says
//! nothing, and never comes back to them. A pod starts at once here (`stages/pod-start.yaml`), so pods that still wait a
//! few seconds later have been passed over, and another start takes them up.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
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

/// Between two looks at the pods.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

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
            Some(now) if !now.is_disjoint(before) => sleep(LOOK_AGAIN).await,
            _ => return true,
        }
    }
    false
}

/// The pods that have a node and don't run yet, by uid. Nothing when the API server doesn't say.
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
