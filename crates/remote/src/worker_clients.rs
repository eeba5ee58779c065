//! Clients of workers for requests of users, on any replica.
//!
//! The connection of a worker belongs to the leader, and carries its writes and watches. Requests of users have a client of their
//! own with the same kubeconfig: a slow or large answer holds up no write, and a replica that does not lead, or runs nothing else, has
//! one as well. Nothing is kept open or watched until there is a request.

use std::{collections::BTreeMap, time::Duration};

use crds::{
    decode::Decode,
    meta::is_true,
    names::conditions::ACTIVE,
    v1beta2::{MultiKueueCluster, MultiKueueClusterSpec},
};
use kube::{Api, Client, api::GetParams};
use parking_lot::Mutex;
use runtime::{json_object, request_metrics::RequestMetrics};

use crate::{
    client::{self, describe},
    kubeconfig::Kubeconfig,
    kubeconfig_file::KubeconfigDirectory,
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::Fingerprint,
    load_kubeconfig::{KubeconfigSources, NotLoaded},
    reconcile::location,
};

/// The timeout of each read.
const DEADLINE: Duration = Duration::from_secs(5);

/// Why there is no client for a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerUnavailable {
    /// The MultiKueueCluster could not be read.
    #[error("cannot read the MultiKueueCluster {name:?}: {cause}")]
    Unread {
        /// Its name.
        name: Box<str>,
        /// What is wrong.
        cause: String,
    },
    /// The MultiKueueCluster does not exist, or its condition `Active` is not true.
    #[error("the MultiKueueCluster {0:?} is not active")]
    Inactive(Box<str>),
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig of {name:?}: {cause}")]
    Kubeconfig {
        /// The name of the MultiKueueCluster.
        name: Box<str>,
        /// What is wrong.
        cause: String,
    },
}

/// Clients by the name of the MultiKueueCluster.
pub struct WorkerClients {
    home: Client,
    namespace: String,
    files: KubeconfigDirectory,
    requests: RequestMetrics,
    /// A client stays as long as its kubeconfig, so that connections are used again.
    known: Mutex<BTreeMap<Box<str>, (Fingerprint, Client)>>,
}

impl WorkerClients {
    /// Clients of the workers that are registered on the cluster of `home`, with Secrets in `namespace`.
    #[must_use]
    pub fn new(
        home: Client,
        namespace: &str,
        files: KubeconfigDirectory,
        requests: RequestMetrics,
    ) -> Self {
        Self { home, namespace: namespace.to_owned(), files, requests, known: Mutex::default() }
    }

    /// The client of a worker, by its present kubeconfig.
    ///
    /// # Errors
    /// If the worker is not active, or its kubeconfig cannot be used.
    pub async fn client(&self, name: &str) -> Result<Client, WorkerUnavailable> {
        let spec = self.active(name).await?;
        self.by_kubeconfig(name, &spec).await
    }

    /// The client of a worker by its present kubeconfig, whether or not a manager reaches it.
    ///
    /// # Errors
    /// If the kubeconfig cannot be used.
    pub async fn by_kubeconfig(
        &self,
        name: &str,
        spec: &MultiKueueClusterSpec,
    ) -> Result<Client, WorkerUnavailable> {
        let failed = |cause: String| WorkerUnavailable::Kubeconfig { name: name.into(), cause };
        let refused = |refused: KubeconfigRefused| failed(refused.to_string());
        let location = location(&spec.cluster_source).map_err(refused)?;
        let sources = KubeconfigSources {
            home: &self.home,
            namespace: &self.namespace,
            files: &self.files,
            deadline: DEADLINE,
        };
        let text = sources.read(&location).await;
        let text = text.map_err(|error: NotLoaded| failed(error.to_string()))?;
        let fingerprint = Fingerprint::of(&text);
        if let Some((known, client)) = self.known.lock().get(name)
            && *known == fingerprint
        {
            return Ok(client.clone());
        }
        let kubeconfig = Kubeconfig::read(&text).map_err(refused)?;
        let client = client::build(&kubeconfig, &self.requests.of(name));
        let client = client.map_err(|error| failed(error.to_string()))?;
        self.known.lock().insert(name.into(), (fingerprint, client.clone()));
        Ok(client)
    }

    /// The spec of the MultiKueueCluster. An inactive one may name another cluster than the one with the work.
    async fn active(&self, name: &str) -> Result<MultiKueueClusterSpec, WorkerUnavailable> {
        let unread = |cause| WorkerUnavailable::Unread { name: name.into(), cause };
        // Decoded from JSON, as by the watches: the program has that code already.
        let clusters = Api::<MultiKueueCluster>::all(self.home.clone());
        let request = kube::core::Request::new(clusters.resource_url());
        let request = request.get(name, &GetParams::default());
        let request = request.map_err(|error| unread(error.to_string()))?;
        let answer = tokio::time::timeout(DEADLINE, json_object::find(&self.home, request)).await;
        let answer = answer.map_err(|_| unread(format!("no answer within {DEADLINE:?}")))?;
        let found = answer.map_err(|error| unread(describe(&error)))?;
        let found = found.and_then(|one| MultiKueueCluster::decode(&one).ok());
        let is_active = |cluster: &MultiKueueCluster| is_true(&cluster.status.conditions, ACTIVE);
        match found.filter(is_active) {
            Some(cluster) => Ok(cluster.spec),
            None => {
                // The client of a removed worker is not needed any more.
                self.known.lock().remove(name);
                Err(WorkerUnavailable::Inactive(name.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use http::{Request, Response, StatusCode};
    use k8s_openapi::ByteString;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;
    use crate::kubeconfig::sample_text;

    /// A manager cluster with the worker `east` and its Secret.
    #[derive(Clone, Default)]
    struct PlayedHub(Arc<Mutex<BTreeMap<&'static str, Value>>>);

    const CLUSTER: &str = "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters/east";
    const SECRET: &str = "/api/v1/namespaces/ns/secrets/kubeconfig";

    impl PlayedHub {
        fn set(&self, path: &'static str, object: Value) {
            self.0.lock().insert(path, object);
        }

        fn set_active(&self, status: &str) {
            let source = json!({"locationType": "Secret", "location": "kubeconfig"});
            let condition = json!({"type": "Active", "status": status});
            let cluster = json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
                "metadata": {"name": "east"},
                "spec": {"clusterSource": {"kubeConfig": source}},
                "status": {"conditions": [condition]},
            });
            self.set(CLUSTER, cluster);
        }

        fn set_kubeconfig(&self, text: &str) {
            let text = ByteString(text.as_bytes().to_vec());
            self.set(SECRET, json!({"metadata": {}, "data": {"kubeconfig": text}}));
        }

        fn clients(&self) -> WorkerClients {
            let this = self.clone();
            let service = service_fn(move |request: Request<Body>| {
                let object = this.0.lock().get(request.uri().path()).cloned();
                let name = request.uri().path().rsplit('/').next();
                let absent = json!({
                    "kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": name},
                });
                let text = object.as_ref().unwrap_or(&absent).to_string();
                let mut response = Response::new(Body::from(text.into_bytes()));
                if object.is_none() {
                    *response.status_mut() = StatusCode::NOT_FOUND;
                }
                async move { Ok::<_, Infallible>(response) }
            });
            let home = Client::new(service, "ns");
            let files = KubeconfigDirectory::default();
            WorkerClients::new(home, "ns", files, RequestMetrics::default())
        }
    }

    #[tokio::test]
    async fn an_active_worker_has_a_client_for_each_kubeconfig() {
        let hub = PlayedHub::default();
        let clients = hub.clients();
        let error = async || clients.client("east").await.err().map(|error| error.to_string());
        let inactive = Some("the MultiKueueCluster \"east\" is not active".to_owned());
        assert_eq!(error().await, inactive, "there is none");
        hub.set_active("True");
        let absent = "cannot use the kubeconfig of \"east\": Secret \"kubeconfig\" not found";
        assert_eq!(error().await.as_deref(), Some(absent));
        hub.set_kubeconfig(&sample_text());
        assert_eq!(error().await, None);
        let known = || clients.known.lock().get("east").map(|(fingerprint, _)| *fingerprint);
        let first = known();
        assert!(first.is_some());
        hub.set_kubeconfig(&format!("{} ", sample_text()));
        assert_eq!(error().await, None);
        assert!(known() != first, "the client has the present kubeconfig");
        hub.set_active("False");
        assert_eq!(error().await, inactive);
        assert!(known().is_none());
    }
}
