//! The namespace of a trace, with its queues, in each cluster.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{case::TraceCase, clusters::ReplayClusters};
use crate::run::{ReplayTarget, create, make_namespace};

/// How long the caches of webhooks may need to see a new queue.
const CACHES: Duration = Duration::from_secs(1);

const API: &str = "/apis/kueue.x-k8s.io/v1beta2";

/// Makes the namespace. A manager cluster with a worker has queues of the ClusterQueue that dispatches.
pub(super) async fn prepare(
    clusters: &ReplayClusters,
    namespace: &str,
    case: &TraceCase,
) -> anyhow::Result<()> {
    match &clusters.worker {
        Some(worker) => {
            let dispatched = [("main", "mk"), ("tiny", "mk")];
            queues(&clusters.manager, namespace, &dispatched).await?;
            ordinary(worker, namespace, case).await?;
        }
        None => ordinary(&clusters.manager, namespace, case).await?,
    }
    sleep(CACHES).await;
    Ok(())
}

async fn ordinary(target: &ReplayTarget, namespace: &str, case: &TraceCase) -> anyhow::Result<()> {
    let tiny = format!("{namespace}-tiny");
    create(target, &format!("{API}/clusterqueues"), &tiny_queue(&tiny)).await?;
    let mut names = vec![("main", "ample"), ("other", "ample"), ("tiny", tiny.as_str())];
    if case.case.ends_with("/life/default-queue") {
        names.push(("default", "ample"));
    }
    queues(target, namespace, &names).await
}

async fn queues(
    target: &ReplayTarget,
    namespace: &str,
    names: &[(&str, &str)],
) -> anyhow::Result<()> {
    make_namespace(target, namespace, &json!({})).await?;
    for (name, cluster_queue) in names {
        let queue = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
            "metadata": {"name": name}, "spec": {"clusterQueue": cluster_queue},
        });
        create(target, &format!("{API}/namespaces/{namespace}/localqueues"), &queue).await?;
    }
    Ok(())
}

/// A ClusterQueue in which nothing ever fits.
fn tiny_queue(name: &str) -> Value {
    let quota = |name: &str, quota: &str| json!({"name": name, "nominalQuota": quota});
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu", "memory", "example.com/gpu"],
            "flavors": [{"name": "plain", "resources": [
                quota("cpu", "100m"), quota("memory", "100Mi"), quota("example.com/gpu", "0"),
            ]}],
        }]},
    })
}
