//! Workloads of a worker, which is reached over TLS by the kubeconfig of its MultiKueueCluster.

use std::sync::Arc;

use axum::{Router, extract::Request};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use runtime::{
    Stop, certs,
    server::Server,
    tls::{self, CertificateSlot, ServerTls},
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use super::played::{PODS, PlayedCluster, PlayedLog, WORKLOADS, ask, refusal, text};

/// A manager cluster and its worker `east`, which runs a Workload of the manager with the pod `a`.
struct PlayedClusters {
    home: PlayedCluster,
    worker: PlayedCluster,
    stop: Stop,
}

impl Drop for PlayedClusters {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The labels of a copy.
fn copy_of(origin: &str, uid: &str) -> serde_json::Value {
    json!({
        "labels": {"kueue.x-k8s.io/multikueue-origin": origin},
        "annotations": {"sluice.dev/workload-uid": uid},
    })
}

async fn clusters() -> PlayedClusters {
    let (home, worker, stop) = (PlayedCluster::default(), PlayedCluster::default(), Stop::new());
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "of-copy", "uid": "job"});
    home.set_workload(&json!({"ownerReferences": [job]}), &json!({"clusterName": "east"}));
    worker.set_workload(&copy_of("multikueue", "u"), &json!({}));
    worker.set_pods(&[("a", "copy"), ("thief", "another")]);
    let mut copy = copy_of("multikueue", "u");
    copy["uid"] = json!("copy");
    worker.set("/apis/batch/v1/namespaces/ml/jobs/of-copy", json!({"metadata": copy}));
    let now = Timestamp::now();
    let authority = certs::make_authority("east", now).expect("an authority");
    let pair = certs::issue(&authority, &["localhost".to_owned()], now).expect("a certificate");
    let slot = CertificateSlot::new();
    slot.load(&pair.certificate, &pair.key).expect("a pair");
    let config = tls::server_config(slot, &ServerTls::default()).expect("a configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let answers = worker.clone();
    let router = Router::new().fallback(move |request: Request| {
        let answers = answers.clone();
        async move {
            let target = request.uri().path_and_query().map(ToString::to_string);
            answers.answer(&target.unwrap_or_default()).await
        }
    });
    tokio::spawn(Server::tls(router, config).run(listener, stop.clone()));
    register(&home, port, &authority.certificate);
    PlayedClusters { home, worker, stop }
}

fn register(home: &PlayedCluster, port: u16, authority: &str) {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "east",
        "clusters": [{"name": "east", "cluster": {
            "server": format!("https://localhost:{port}"),
            "certificate-authority-data": ByteString(authority.as_bytes().to_vec()),
        }}],
        "users": [{"name": "manager", "user": {"token": "hush"}}],
        "contexts": [{"name": "east", "context": {"cluster": "east", "user": "manager"}}],
    });
    let text = ByteString(kubeconfig.to_string().into_bytes());
    home.set(
        "/api/v1/namespaces/ns/secrets/east",
        json!({"metadata": {}, "data": {"kubeconfig": text}}),
    );
    set_active(home, "True");
}

fn set_active(home: &PlayedCluster, status: &str) {
    let active = json!({"type": "Active", "status": status, "reason": "R", "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let source = json!({"kubeConfig": {"locationType": "Secret", "location": "east"}});
    home.set(
        "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters/east",
        json!({"metadata": {"name": "east"}, "spec": {"clusterSource": source},
               "status": {"conditions": [active]}}),
    );
}

#[tokio::test]
async fn the_log_comes_from_the_recorded_worker() {
    let clusters = clusters().await;
    let api = clusters.home.api(&clusters.stop);
    assert_eq!(text(ask(&api, "log").await).await.as_deref(), Some("a line\n"));
    let list = text(ask(&api, "pods").await).await.expect("a list");
    assert!(list.contains(r#""cluster":"east""#) && !list.contains("thief"), "{list}");
    let unknown = refusal(ask(&api, "log?pod=thief").await).await;
    assert_eq!(
        unknown,
        (404, "Workload \"w\" has no pod \"thief\" on cluster \"east\"".to_owned())
    );
    assert!(clusters.home.logs_read().is_empty());
}

#[tokio::test]
async fn the_end_of_the_caller_ends_the_connection_to_the_worker() {
    let clusters = clusters().await;
    clusters.worker.set_log(PlayedLog::Endless);
    let api = clusters.home.api(&clusters.stop);
    let responses =
        [ask(&api, "log?pod=a&follow=true").await, ask(&api, "log?pod=a&follow=true").await];
    clusters.worker.until_open(2).await;
    drop(responses);
    clusters.worker.until_open(0).await;
}

#[tokio::test]
async fn only_the_copy_of_the_workload_counts() {
    let clusters = clusters().await;
    let api = clusters.home.api(&clusters.stop);
    for (origin, uid) in [("another-manager", "u"), ("multikueue", "of-a-former-workload")] {
        clusters.worker.set_workload(&copy_of(origin, uid), &json!({}));
        assert_eq!(ask(&api, "log?pod=a").await.status(), 409, "{origin} {uid}");
    }
    clusters.worker.remove(&format!("{WORKLOADS}/w"));
    let (code, message) = refusal(ask(&api, "log?pod=a").await).await;
    assert_eq!(code, 404);
    assert!(message.starts_with("cluster \"east\" has no copy of Workload \"w\""), "{message}");
    assert!(clusters.worker.logs_read().is_empty());
}

#[tokio::test]
async fn a_worker_without_the_right_or_the_connection_says_so() {
    let clusters = clusters().await;
    let api = clusters.home.api(&clusters.stop);
    clusters.worker.forbid(&format!("{PODS}/a/log"));
    let (code, message) = refusal(ask(&api, "log?pod=a").await).await;
    assert!(code == 502 && message.contains("see the ClusterRole sluice-hub-logs"), "{message}");
    set_active(&clusters.home, "False");
    let (code, message) = refusal(ask(&api, "log?pod=a").await).await;
    let expected =
        "cluster \"east\" is not connected: the MultiKueueCluster \"east\" is not active";
    assert_eq!((code, &*message), (503, expected));
}

#[tokio::test]
async fn logs_of_a_hung_worker_keep_nothing_else_waiting() {
    let clusters = clusters().await;
    let api = Arc::new(clusters.home.api(&clusters.stop));
    clusters.worker.hang(&format!("{WORKLOADS}/w"));
    let mut waiting = JoinSet::new();
    for _ in 0..16 {
        let api = api.clone();
        waiting.spawn(async move { ask(&api, "log?pod=a").await.status() });
    }
    clusters.worker.until_asked(16).await;
    let full = ask(&api, "log?pod=a").await;
    assert_eq!(full.status(), 429);
    assert_eq!(full.headers()["retry-after"], "5");
    let admitted = json!({"type": "Admitted", "status": "True", "reason": "R", "message": "",
                          "lastTransitionTime": "2026-01-01T00:00:00Z"});
    clusters.home.set_workload(&json!({}), &json!({"conditions": [admitted]}));
    clusters.home.set_pods(&[("a", "job")]);
    assert_eq!(text(ask(&api, "log?pod=a").await).await.as_deref(), Some("a line\n"));
    waiting.abort_all();
}
