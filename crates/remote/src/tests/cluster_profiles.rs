//! The supervisor with a ClusterProfile, and a command that prints what is in a file as its token.

use std::{path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use cluster::control::{ConnectionStatus, ManagerInput, WorkerInput};
use config::{AccessProvider, ExecConfig};
use runtime::{
    Stop,
    watch::{Stores, WatchMetrics},
};
use serde_json::{Value, json};
use tokio::{
    sync::{
        mpsc::{Receiver, channel},
        watch,
    },
    task::JoinHandle,
};

use super::{
    SEEN, TestServer, active, next_status,
    supervision::{EAST, Home, client, put, supervised},
};
use crate::{cluster_profile::ClusterProfiles, supervisor::WorkerSupervisor};

const PROFILE: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/kueue-system/clusterprofiles/east-profile";

/// Its credential is good until the end of the year 9999.
fn provider(token: &Path) -> AccessProvider {
    let script = format!(
        r#"printf '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"%s"}}}}' "$(cat {})""#,
        token.display()
    );
    let exec_config = ExecConfig {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script],
        api_version: "client.authentication.k8s.io/v1".to_owned(),
        ..ExecConfig::default()
    };
    AccessProvider { name: "files".to_owned(), exec_config }
}

/// A ClusterProfile with one provider.
fn profile(provider: &str, cluster: &Value) -> Value {
    json!({ "status": { "accessProviders": [{ "name": provider, "cluster": cluster }] } })
}

fn cluster(server: &TestServer) -> Value {
    json!({
        "server": format!("https://localhost:{}", server.address.port()),
        "certificate-authority-data": STANDARD.encode(&server.authority.certificate),
    })
}

/// A supervisor with a registered cluster that names a ClusterProfile.
struct Supervised {
    home: watch::Sender<Home>,
    heard: Receiver<ManagerInput>,
    run: JoinHandle<()>,
}

fn supervise(token: &Path) -> Supervised {
    let (home, served) = watch::channel(Home { version: 1, ..Home::default() });
    let (inputs, heard) = channel(SEEN);
    let mut stores = Stores::new(client(served.clone()), &WatchMetrics::default(), Stop::new());
    let profiles = ClusterProfiles::watch(&mut stores, "kueue-system", &[provider(token)]);
    tokio::spawn(stores.run());
    let mut context = supervised(served, "30m", inputs);
    context.settings.profiles = Some(profiles);
    let run = tokio::spawn(async move {
        WorkerSupervisor::new(Arc::new(context), Stop::new()).run().await;
    });
    let source = json!({ "clusterProfileRef": { "name": "east-profile" } });
    put(&home, EAST, Some(json!({ "spec": { "clusterSource": source } })));
    Supervised { home, heard, run }
}

#[tokio::test]
async fn a_404_that_does_not_name_the_profile_ends_no_connection() {
    let server = TestServer::new(["one", "two"]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    std::fs::write(&token, "one").expect("a file");
    let Supervised { home, mut heard, run } = supervise(&token);
    put(&home, PROFILE, Some(profile("files", &cluster(&server))));
    while next_status(&mut heard).await != active() {}

    home.send_modify(|home| home.unnamed_at = Some(PROFILE));
    std::fs::write(&token, "two").expect("a file");
    let mut changed = cluster(&server);
    changed["tls-server-name"] = json!("localhost");
    put(&home, PROFILE, Some(profile("files", &changed)));
    server.wait_for_probes().await;
    home.send_modify(|home| home.unnamed_at = None);
    server.wait_for_use("two").await;
    while let Ok(input) = heard.try_recv() {
        let lost = |status: &ConnectionStatus| !status.active;
        let is_lost =
            matches!(&input, ManagerInput::Worker(_, WorkerInput::Connection(it)) if lost(it));
        assert!(!is_lost, "{input:?}");
    }
    run.abort();
}

#[tokio::test]
async fn a_profile_and_the_command_of_its_provider_make_the_connection() {
    let server = TestServer::new(["one", "two"]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    std::fs::write(&token, "one").expect("a file");
    let Supervised { home, mut heard, run } = supervise(&token);
    let refused = async |heard: &mut _, reason: &str, message: &str| {
        let mut said = next_status(heard).await;
        // A probe of a former connection may fail on a busy machine.
        while said.reason != reason {
            said = next_status(heard).await;
        }
        assert!(!said.active);
        assert_eq!(said.message, format!("load client config failed: {message}"));
    };
    refused(
        &mut heard,
        "BadClusterProfile",
        "ClusterProfile.multicluster.x-k8s.io \"east-profile\" not found",
    )
    .await;
    put(&home, PROFILE, Some(profile("another", &cluster(&server))));
    let message = "no matching cluster accessor found for cluster profile \"east-profile\"";
    refused(&mut heard, "BadClusterProfile", message).await;
    put(&home, PROFILE, Some(profile("files", &cluster(&server))));
    while next_status(&mut heard).await != active() {}
    server.wait_for_use("one").await;

    // A revoked credential is replaced as soon as a probe is refused.
    std::fs::write(&token, "two").expect("a file");
    server.state.tokens.send_modify(|tokens| {
        tokens.remove("one");
    });
    server.wait_for_use("two").await;
    while next_status(&mut heard).await != active() {}

    let mut unsafe_one = cluster(&server);
    unsafe_one["insecure-skip-tls-verify"] = json!(true);
    put(&home, PROFILE, Some(profile("files", &unsafe_one)));
    let message = "insecure TLS verification is not allowed for cluster profile";
    refused(&mut heard, "BadRestConfig", message).await;
    put(&home, PROFILE, Some(profile("files", &cluster(&server))));
    while next_status(&mut heard).await != active() {}

    // A command that fails is repeated, and said with the attempts.
    std::fs::remove_file(&token).expect("the file");
    server.state.tokens.send_modify(|tokens| {
        tokens.remove("two");
    });
    let said = next_status(&mut heard).await;
    assert_eq!((said.active, said.reason), (false, "ClientConnectionFailed"));
    run.abort();
}
