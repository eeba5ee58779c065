//! The position of a pending Workload in its ClusterQueue, and what it lacks, from the visibility API.
//!
//! The API is optional: a manager that does not serve it, or refuses it to the caller, gives none of it. Only the replica that leads
//! has explanations.

use crds::v1beta2::Workload;
use http::Request;
use kube::Client;
use serde::Deserialize;

#[derive(Deserialize)]
struct PendingWorkloadSummary {
    #[serde(default)]
    items: Vec<PendingWorkloadItem>,
}

#[derive(Deserialize)]
struct PendingWorkloadItem {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    #[serde(flatten)]
    place: PendingPlace,
}

/// What the visibility API says of a pending Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PendingPlace {
    /// The position among the pending Workloads of the ClusterQueue, from 0.
    #[serde(default, rename = "positionInClusterQueue")]
    pub position: i64,
    /// What it lacks and what would make it admissible; empty if the replica does not say.
    #[serde(default)]
    pub explanation: String,
}

/// Asks the manager.
pub async fn read(client: &Client, workload: &Workload) -> Option<PendingPlace> {
    let namespace = workload.metadata.namespace.as_deref()?;
    let queue = Some(workload.spec.queue_name.as_str()).filter(|name| !name.is_empty())?;
    let path = format!(
        "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
    );
    let request = Request::get(path).body(Vec::new()).ok()?;
    let summary: PendingWorkloadSummary = client.request(request).await.ok()?;
    let own = summary.items.into_iter().find(|one| one.metadata.name == workload.metadata.name);
    own.map(|one| one.place)
}
