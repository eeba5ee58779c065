//! The cluster of a Service, and whether it is one of Ray.
//!
//! The Service belongs to a Ray object of the manager cluster, and the Workload of that object says which worker runs it. Without an
//! owner, or without a worker, the Service is looked for on the manager cluster. There it has to bear the label of KubeRay, as upstream's
//! proxy demands. What was found is used for a short time, so that the pages of a dashboard cost one search.

use std::{sync::Arc, time::Duration};

use crds::{
    names::labels::{JOB_UID, PREBUILT_WORKLOAD_NAME},
    v1beta2::Workload,
};
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use ray_api::{
    RayApiRefusal, RayOwnerKind, ServiceCall, ServiceOwner, owner_candidates, owns_service,
};
use remote::WorkerClients;

use crate::access::ReviewCache;

/// The label that Services of Ray clusters bear.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "kuberay");

/// The time of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The most objects of a kind that are searched for an owner whose name does not follow from that of the Service.
const LISTED: u32 = 500;

/// Where a Service is.
#[derive(Clone)]
pub(super) struct ServicePlace {
    /// The client of its cluster.
    pub(super) client: Client,
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
        let search = async { search.await.unwrap_or_else(|_| Err(lookup_failed(call))) };
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
        let client = match cluster {
            Some(name) => self.workers.client(&name).await.map_err(|error| {
                tracing::warn!(cluster = name, %error, "a worker cannot be reached for the Ray API");
                RayApiRefusal::NotConnected(name)
            })?,
            None => self.home.clone(),
        };
        let services: Api<Service> = Api::namespaced(client.clone(), call.namespace);
        let service = services.get_metadata_opt(call.service.name).await.map_err(failed)?;
        let (label, value) = LABEL;
        let of_ray = service.is_some_and(|it| it.labels().get(label).is_some_and(|it| it == value));
        match of_ray {
            true => Ok(ServicePlace { client, owner: found.map(|(owner, _)| owner) }),
            false => Err(RayApiRefusal::NotRayService(call.service.name.to_owned())),
        }
    }

    /// The object that the Service belongs to.
    async fn owner(
        &self,
        call: &ServiceCall<'_>,
    ) -> Result<Option<(ServiceOwner, DynamicObject)>, kube::Error> {
        let service = call.service.name;
        for candidate in owner_candidates(service) {
            let objects = self.objects(candidate.kind, call.namespace);
            let object = objects.get_opt(&candidate.name).await?;
            if let Some(object) = object.filter(|it| owns(candidate.kind, it, service)) {
                return Ok(Some((candidate, object)));
            }
        }
        for kind in RayOwnerKind::ALL {
            let listed = ListParams::default().limit(LISTED);
            let objects = match self.objects(kind, call.namespace).list(&listed).await {
                Ok(list) => list.items,
                // Not every cluster serves every kind.
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                Err(error) => return Err(error),
            };
            if let Some(object) = objects.into_iter().find(|it| owns(kind, it, service)) {
                return Ok(Some((ServiceOwner { kind, name: object.name_any() }, object)));
            }
        }
        Ok(None)
    }

    /// The worker that runs an object; `None` on the manager cluster.
    async fn cluster(
        &self,
        namespace: &str,
        object: &DynamicObject,
    ) -> Result<Option<String>, kube::Error> {
        let workloads: Api<Workload> = Api::namespaced(self.home.clone(), namespace);
        let prebuilt = [object.annotations(), object.labels()];
        let mut prebuilt = prebuilt.into_iter().filter_map(|it| it.get(PREBUILT_WORKLOAD_NAME));
        let found = match prebuilt.find(|name| !name.is_empty()) {
            Some(name) => workloads.get_opt(name).await?.into_iter().collect(),
            None => {
                let uid = object.uid().unwrap_or_default();
                let of_job = ListParams::default().labels(&format!("{JOB_UID}={uid}"));
                workloads.list(&of_job).await?.items
            }
        };
        Ok(found.into_iter().find_map(|workload| workload.status.cluster_name))
    }

    fn objects(&self, kind: RayOwnerKind, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = kind.group_version();
        // The kind is in no path, and answers are decoded without it.
        let kind_of = GroupVersionKind::gvk(group, version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind_of, kind.plural());
        Api::namespaced_with(self.home.clone(), namespace, &resource)
    }
}

fn owns(kind: RayOwnerKind, object: &DynamicObject, service: &str) -> bool {
    serde_json::to_value(object).is_ok_and(|object| owns_service(kind, &object, service))
}

fn failed(call: &ServiceCall<'_>, error: &kube::Error) -> RayApiRefusal {
    let (namespace, service) = (call.namespace, call.service.name);
    let error = runtime::error_chain::describe(error);
    tracing::warn!(namespace, service, error, "cannot look up a Service for the Ray API");
    lookup_failed(call)
}

fn lookup_failed(call: &ServiceCall<'_>) -> RayApiRefusal {
    RayApiRefusal::LookupFailed(call.service.name.to_owned())
}
