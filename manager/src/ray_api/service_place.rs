//! The cluster of a Service, and whether it is one of Ray.
//!
//! The Service belongs to a Ray object of the manager cluster, and the Workload of that object says which worker runs it. Without an
//! owner, or without a worker, the Service is looked for on the manager cluster. There it has to bear the label of KubeRay, as upstream's
//! proxy demands. What was found is used for a short time, so that the pages of a dashboard cost one search.

use std::{sync::Arc, time::Duration};

use crds::{
    json::text,
    names::labels::{JOB_UID, PREBUILT_WORKLOAD_NAME},
};
use kube::Client;
use ray_api::{
    RayApiRefusal, RayOwnerKind, ServiceCall, ServiceOwner, owner_candidates, owns_service,
};
use remote::WorkerClients;
use runtime::json_object::{get, items};
use serde_json::Value;

use crate::access::ReviewCache;

/// The label that Services of Ray clusters bear.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "kuberay");

/// The time of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Objects of a page of a list, in which an owner is searched for that is named otherwise than the Service.
const LISTED: u32 = 500;

/// Where Workloads are.
const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2";

/// Where a Service is.
#[derive(Clone)]
pub(super) struct ServicePlace {
    /// The client of its cluster.
    pub(super) client: Client,
    /// The worker; none on the manager cluster.
    pub(super) cluster: Option<String>,
    /// The object that it belongs to; none of a RayCluster that the manager cluster does not know.
    pub(super) owner: Option<ServiceOwner>,
}

/// Finds Services.
pub(super) struct ServiceSearch {
    home: Client,
    workers: WorkerClients,
    found: ReviewCache<ServicePlace>,
}

impl ServiceSearch {
    pub(super) fn new(home: Client, workers: WorkerClients) -> Self {
        Self { home, workers, found: ReviewCache::new() }
    }

    /// The place of the Service.
    ///
    /// # Errors
    /// If there is no such Service of Ray, or a cluster could not be asked.
    pub(super) async fn place(
        &self,
        call: &ServiceCall<'_>,
    ) -> Result<ServicePlace, RayApiRefusal> {
        let question = format!("{}/{}", call.namespace, call.service.name);
        let search = tokio::time::timeout(SEARCH_TIMEOUT, self.search(call));
        let search = async { search.await.unwrap_or(Err(RayApiRefusal::LookupFailed)) };
        let found = self.found.get(question.as_bytes(), Box::pin(search)).await;
        found.map_err(Arc::unwrap_or_clone)
    }

    async fn search(&self, call: &ServiceCall<'_>) -> Result<ServicePlace, RayApiRefusal> {
        let failed = |error: kube::Error| failed(call, &error);
        let found = self.owner(call).await.map_err(failed)?;
        let cluster = match &found {
            Some((_, object)) => self.cluster(call.namespace, object).await.map_err(failed)?,
            None => None,
        };
        let client = match &cluster {
            Some(name) => self.workers.client(name).await.map_err(|error| {
                tracing::warn!(cluster = name, %error, "a worker cannot be reached for the Ray API");
                RayApiRefusal::NotConnected(name.clone())
            })?,
            None => self.home.clone(),
        };
        let path = format!("/api/v1/namespaces/{}/services/{}", call.namespace, call.service.name);
        let service = get(&client, &path).await.map_err(failed)?;
        let (label, value) = LABEL;
        let of_ray = service.is_some_and(|service| service["metadata"]["labels"][label] == value);
        if of_ray {
            Ok(ServicePlace { client, cluster, owner: found.map(|(owner, _)| owner) })
        } else {
            Err(RayApiRefusal::NotRayService)
        }
    }

    /// The object that the Service belongs to.
    async fn owner(
        &self,
        call: &ServiceCall<'_>,
    ) -> Result<Option<(ServiceOwner, Value)>, kube::Error> {
        let service = call.service.name;
        for candidate in owner_candidates(service) {
            let path = format!("{}/{}", path(candidate.kind, call.namespace), candidate.name);
            let object = get(&self.home, &path).await?;
            if let Some(object) = object.filter(|it| owns_service(candidate.kind, it, service)) {
                return Ok(Some((candidate, object)));
            }
        }
        for kind in RayOwnerKind::ALL {
            if let Some(object) = self.listed_owner(kind, call).await? {
                let name = text(&object["metadata"]["name"]).to_owned();
                return Ok(Some((ServiceOwner { kind, name }, object)));
            }
        }
        Ok(None)
    }

    /// The object of a kind that the Service belongs to, from all pages of its list. The time of the search limits them.
    async fn listed_owner(
        &self,
        kind: RayOwnerKind,
        call: &ServiceCall<'_>,
    ) -> Result<Option<Value>, kube::Error> {
        let path = format!("{}?limit={LISTED}", path(kind, call.namespace));
        let mut next = String::new();
        loop {
            // Not every cluster serves every kind; one that is not served has no objects.
            let page = get(&self.home, &format!("{path}{next}")).await?;
            let token = page.as_ref().map_or("", |page| text(&page["metadata"]["continue"]));
            next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
            let is_owner = |object: &Value| owns_service(kind, object, call.service.name);
            let found = items(page).into_iter().find(is_owner);
            if found.is_some() || next.is_empty() {
                return Ok(found);
            }
        }
    }

    /// The worker that runs an object; `None` on the manager cluster.
    async fn cluster(
        &self,
        namespace: &str,
        object: &Value,
    ) -> Result<Option<String>, kube::Error> {
        let path = format!("{WORKLOADS}/namespaces/{namespace}/workloads");
        let metadata = &object["metadata"];
        let mut prebuilt = [&metadata["annotations"], &metadata["labels"]].into_iter();
        let prebuilt = prebuilt.find_map(|it| it[PREBUILT_WORKLOAD_NAME].as_str());
        let workloads = match prebuilt.filter(|name| !name.is_empty()) {
            Some(name) => get(&self.home, &format!("{path}/{name}")).await?.into_iter().collect(),
            None => {
                let selector = format!("{JOB_UID}={}", text(&metadata["uid"]));
                let selector = selector.replace('/', "%2F").replace('=', "%3D");
                items(get(&self.home, &format!("{path}?labelSelector={selector}")).await?)
            }
        };
        let mut clusters =
            workloads.iter().map(|workload| text(&workload["status"]["clusterName"]));
        Ok(clusters.find(|name| !name.is_empty()).map(str::to_owned))
    }
}

fn path(kind: RayOwnerKind, namespace: &str) -> String {
    let (group, version) = kind.group_version();
    format!("/apis/{group}/{version}/namespaces/{namespace}/{}", kind.plural())
}

fn failed(call: &ServiceCall<'_>, error: &kube::Error) -> RayApiRefusal {
    let (namespace, service) = (call.namespace, call.service.name);
    let error = runtime::error_chain::describe(error);
    tracing::warn!(namespace, service, error, "cannot look up a Service for the Ray API");
    RayApiRefusal::LookupFailed
}
