//! Whether the API server reaches the webhooks yet.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::run::{ReplayTarget, plain};

/// Between two tries.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Kinds with webhooks or a conversion, by plural.
const KINDS: [(&str, &str); 6] = [
    ("Workload", "namespaces/kueue-system/workloads"),
    ("LocalQueue", "namespaces/kueue-system/localqueues"),
    ("ClusterQueue", "clusterqueues"),
    ("Cohort", "cohorts"),
    ("ResourceFlavor", "resourceflavors"),
    ("MultiKueueCluster", "multikueueclusters"),
];

/// Waits until objects of every kind can be created in the old version, dry: schema, conversion and webhooks answer.
///
/// # Errors
/// If they do not within the time; the error says what the API server answered last.
pub async fn until_served(target: &ReplayTarget, within: Duration) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let served = async {
        for (kind, path) in KINDS {
            let path = format!("/apis/kueue.x-k8s.io/v1beta1/{path}?dryRun=All");
            let object = json!({
                "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "is-it-served"},
            });
            loop {
                match target.send(&plain("POST", &path, "application/json"), Some(&object)).await {
                    Ok(reply) if reply.code < 500 && reply.code != 404 => break,
                    Ok(reply) => last = reply.body["message"].clone(),
                    Err(error) => last = error.to_string().into(),
                }
                sleep(POLL_INTERVAL).await;
            }
        }
    };
    let in_time = timeout(within, served).await.is_ok();
    anyhow::ensure!(in_time, "the API server does not reach the webhooks: {last}");
    Ok(())
}
