//! The supervisor against a mock home cluster that serves lists, and ends the watch at each change.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use cluster::control::{ManagerInput, WorkerInput};
use crds::{decode::Decode, v1beta2::MultiKueueCluster};
use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use runtime::{
    Stop,
    watch::{Stores, WatchMetrics},
};
use serde_json::{Value, json};
use tokio::sync::{
    mpsc::{Sender, channel},
    watch,
};

use super::{
    SEEN, TestServer, active, hub::nothing_there, next_status, patched, unregistered_context,
};
use crate::{
    context::WorkerContext, kubeconfig_file::KubeconfigDirectory,
    kubeconfig_secret::kubeconfig_secrets, supervisor::WorkerSupervisor,
};

/// Objects by path, and a number that increases with each change.
#[derive(Clone, Default)]
pub(super) struct Home {
    pub(super) version: u64,
    pub(super) objects: BTreeMap<&'static str, Value>,
    /// Reads of this object get a 404 that does not name it.
    pub(super) unnamed_at: Option<&'static str>,
}

const CLUSTERS: &str = "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters";
const SECRETS: &str = "/api/v1/namespaces/kueue-system/secrets";
pub(super) const EAST: &str = "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters/east";
const PROFILES: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/kueue-system/clusterprofiles";
const KUBECONFIG: &str = "/api/v1/namespaces/kueue-system/secrets/east-config";

pub(super) fn put(home: &watch::Sender<Home>, path: &'static str, object: Option<Value>) {
    home.send_modify(|home| {
        home.version += 1;
        match object {
            Some(mut object) => {
                object["metadata"] = json!({ "resourceVersion": home.version.to_string(),
                    "name": path.rsplit('/').next() });
                home.objects.insert(path, object);
            }
            None => {
                home.objects.remove(path);
            }
        }
    });
}

fn register(home: &watch::Sender<Home>) {
    let source = json!({ "kubeConfig": { "locationType": "Secret", "location": "east-config" } });
    put(home, EAST, Some(json!({ "spec": { "clusterSource": source } })));
}

pub(super) fn client(home: watch::Receiver<Home>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let home = home.clone();
        async move {
            if request.method() == http::Method::PATCH {
                return Ok::<_, Infallible>(respond(&patched(request).await));
            }
            Ok(answer(home, request.uri()).await)
        }
    });
    Client::new(service, "kueue-system")
}

async fn answer(mut home: watch::Receiver<Home>, uri: &http::Uri) -> Response<Body> {
    let query = uri.query().unwrap_or_default();
    if query.contains("watch=true") {
        let state = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let state: u64 = state.and_then(|text| text.parse().ok()).unwrap_or_default();
        home.wait_for(|home| home.version > state).await.expect("a change");
        let gone = json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "old" });
        return respond(&json!({ "type": "ERROR", "object": gone }));
    }
    let home = home.borrow();
    if home.unnamed_at == Some(uri.path()) {
        return unnamed_404();
    }
    if let Some(object) = home.objects.get(uri.path()) {
        return respond(object);
    }
    if ![CLUSTERS, SECRETS, PROFILES].contains(&uri.path()) {
        let mut names = uri.path().rsplit('/');
        let details = json!({ "name": names.next(), "kind": names.next() });
        let missing =
            json!({ "kind": "Status", "code": 404, "reason": "NotFound", "details": details });
        let mut response = respond(&missing);
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let inside = |path: &str| path.rsplit_once('/').is_some_and(|(list, _)| list == uri.path());
    let items: Vec<&Value> =
        home.objects.iter().filter(|(path, _)| inside(path)).map(|(_, object)| object).collect();
    let metadata = json!({ "resourceVersion": home.version.to_string() });
    respond(&json!({ "metadata": metadata, "items": items }))
}

/// What an API server answers about a resource that it does not serve.
pub(super) fn unnamed_404() -> Response<Body> {
    let mut response = respond(&json!({ "kind": "Status", "code": 404, "reason": "NotFound" }));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn respond(value: &Value) -> Response<Body> {
    Response::new(Body::from(format!("{value}\n").into_bytes()))
}

/// A context with stores and a control that follow the home cluster.
pub(super) fn supervised(
    home: watch::Receiver<Home>,
    lost_after: &str,
    seen: Sender<ManagerInput>,
) -> WorkerContext {
    let client = client(home);
    let mut stores = Stores::new(client.clone(), &WatchMetrics::default(), Stop::new());
    let mut clusters = stores.of(MultiKueueCluster::decode_text).subscribe();
    let secrets = kubeconfig_secrets(&mut stores, "kueue-system");
    tokio::spawn(stores.run());
    let mut context = unregistered_context(client, lost_after, seen);
    context.settings.secrets = secrets;
    let inputs = context.inputs.clone();
    tokio::spawn(async move {
        while inputs.send(ManagerInput::MultiKueueCluster(clusters.next().await)).await.is_ok() {}
    });
    context
}

#[tokio::test]
async fn a_worker_is_connected_until_some_time_after_the_deletion_of_its_cluster_object() {
    let server = TestServer::new(["one"]).await;
    let (home, served) = watch::channel(Home { version: 1, ..Home::default() });
    let (inputs, mut heard) = channel(SEEN);
    let context = Arc::new(supervised(served, "25ms", inputs));
    let term = Stop::new();
    let run = tokio::spawn({
        let term = term.clone();
        async move {
            let mut supervisor = WorkerSupervisor::new(context, term);
            supervisor.run().await;
            supervisor.end().await;
        }
    });

    register(&home);
    let status = next_status(&mut heard).await;
    assert_eq!((status.active, status.reason), (false, "BadKubeConfig"));
    assert_eq!(status.message, "load client config failed: Secret \"east-config\" not found");

    let data = json!({ "kubeconfig": STANDARD.encode(server.kubeconfig("one")) });
    put(&home, KUBECONFIG, Some(json!({ "data": data })));
    while next_status(&mut heard).await != active() {}

    put(&home, EAST, None);
    let status = next_status(&mut heard).await;
    assert_eq!((status.active, &*status.message), (false, "the connection was ended"));

    register(&home);
    assert_eq!(next_status(&mut heard).await, active());

    term.cancel();
    assert!(!next_status(&mut heard).await.active);
    run.await.expect("the supervisor");
}

#[tokio::test]
async fn a_kubeconfig_in_a_file_is_followed() {
    let server = TestServer::new(["one", "two"]).await;
    let (home, served) = watch::channel(Home { version: 1, ..Home::default() });
    let (inputs, mut heard) = channel(SEEN);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("east");
    let kubeconfig_files = KubeconfigDirectory::new(directory.path().to_owned());
    let mut context = supervised(served, "30m", inputs);
    context.settings.kubeconfig_files = kubeconfig_files;
    let run = tokio::spawn(async move {
        WorkerSupervisor::new(Arc::new(context), Stop::new()).run().await;
    });

    let location = file.display().to_string();
    let source = json!({ "kubeConfig": { "locationType": "Path", "location": location } });
    put(&home, EAST, Some(json!({ "spec": { "clusterSource": source } })));
    let status = next_status(&mut heard).await;
    assert_eq!((status.active, status.reason), (false, "BadKubeConfig"));
    assert_eq!(
        status.message,
        format!("load client config failed: open {location}: no such file or directory")
    );

    std::fs::write(&file, server.kubeconfig("one")).expect("a file");
    while next_status(&mut heard).await != active() {}
    // Other credentials for the same server end no connection.
    std::fs::write(&file, server.kubeconfig("two")).expect("a file");
    server.wait_for_use("two").await;

    std::fs::remove_file(&file).expect("the file");
    let status = next_status(&mut heard).await;
    assert_eq!((status.active, status.reason), (false, "BadKubeConfig"));
    run.abort();
}

#[tokio::test]
async fn a_clean_worker_is_disconnected_at_once() {
    let server = TestServer::new(["one"]).await;
    let (home, served) = watch::channel(Home { version: 1, ..Home::default() });
    let (inputs, mut heard) = channel(SEEN);
    let context = Arc::new(supervised(served, "30m", inputs));
    let observed = context.inputs.clone();
    let clean = async || {
        for input in nothing_there("east") {
            observed.send(input).await.expect("control");
        }
    };
    let run = tokio::spawn(async move { WorkerSupervisor::new(context, Stop::new()).run().await });

    let data = json!({ "kubeconfig": STANDARD.encode(server.kubeconfig("one")) });
    put(&home, KUBECONFIG, Some(json!({ "data": data })));
    register(&home);
    while next_status(&mut heard).await != active() {}
    clean().await;
    put(&home, EAST, None);
    assert!(!next_status(&mut heard).await.active, "nothing is left to be done there");

    register(&home);
    while next_status(&mut heard).await != active() {}
    put(&home, EAST, None);
    clean().await;
    assert!(!next_status(&mut heard).await.active, "nothing is left there any more");
    let last = heard.recv().await.expect("an input");
    assert!(matches!(last, ManagerInput::Worker(_, WorkerInput::GivenUp)), "{last:?}");
    run.abort();
}
