//! Invalid kubeconfigs of workers and their conditions (docs/reference/multikueue.md §1.2, §1.4, §2.9).

use std::path::Path;

use anyhow::{Context, Result, ensure};
use crds::v1beta2::{AdmissionCheck, MultiKueueCluster};
use e2e::installation::{NAMESPACE, TIMEOUT};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, api::Patch, api::PatchParams};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, ReportedCondition, delete, said},
    objects,
};

/// A kubeconfig of one user at one server.
fn kubeconfig(cluster: &Value, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "there", "user": "us"}}],
        "clusters": [{"name": "there", "cluster": cluster}],
        "users": [{"name": "us", "user": user}],
    })
    .to_string()
}

/// What is in the Secret, and the reason and message of the condition.
fn bad_ones() -> Vec<(&'static str, Option<Value>, &'static str, &'static str)> {
    let server = json!({"server": "https://127.0.0.1:1"});
    let insecure = json!({"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": true});
    let token = json!({"token": "t"});
    let plugin = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}});
    let holds = |text: String| Some(json!({"kubeconfig": text}));
    let (bad, unsafe_one) = ("BadKubeConfig", "InsecureKubeConfig");
    vec![
        ("missing", None, bad, "Secret \"bad-missing\" not found"),
        (
            "keyless",
            Some(json!({"config": "x"})),
            bad,
            "key \"kubeconfig\" not found in secret \"bad-keyless\"",
        ),
        ("garbage", holds("]:{".to_owned()), bad, "failed to parse kubeconfig: line 1, column 1"),
        (
            "insecure",
            holds(kubeconfig(&insecure, &token)),
            unsafe_one,
            "insecure TLS verification is not allowed for cluster there",
        ),
        ("plugin", holds(kubeconfig(&server, &plugin)), unsafe_one, "exec plugins are not allowed"),
    ]
}

fn registration(name: &str, data: Option<&Value>) -> String {
    let cluster = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": name},
        "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": name}}},
    });
    let secret = data.map(|data| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE}, "stringData": data,
        })
    });
    secret.into_iter().chain([cluster]).map(|one| format!("---\n{one}\n")).collect()
}

#[tokio::test]
async fn an_invalid_kubeconfig_is_refused_with_kueues_message() -> Result<()> {
    let fixture = DispatchFixture::shared("credentials").await?;
    for (name, data, ..) in bad_ones() {
        let text = registration(&format!("bad-{name}"), data.as_ref());
        fixture.hub().apply(&text, NAMESPACE).await?;
    }
    for (name, _, reason, message) in bad_ones() {
        let expected = ReportedCondition {
            status: false,
            reason: reason.to_owned(),
            message: format!("load client config failed: {message}"),
        };
        let name = format!("bad-{name}");
        let said = fixture.until_worker(&name, "says what is wrong", |said| !said.status).await?;
        ensure!(said == expected, "{name}: {said:?}");
        delete(&fixture.hub().cluster_api::<MultiKueueCluster>(), &name).await?;
    }
    Ok(())
}

/// Replaces the kubeconfig in the Secret of a worker. Returns the previous one.
async fn replace(secrets: &Api<Secret>, name: &str, text: &ByteString) -> Result<ByteString> {
    let before = secrets.get(name).await?.data.unwrap_or_default();
    let before = before.get("kubeconfig").cloned().context("a kubeconfig")?;
    let fields = json!({"data": {"kubeconfig": text}});
    secrets.patch(name, &PatchParams::default(), &Patch::Merge(&fields)).await?;
    Ok(before)
}

#[tokio::test]
async fn an_invalid_secret_affects_only_its_own_worker() -> Result<()> {
    let fixture = DispatchFixture::alone("broken_secret").await?;
    let secrets = fixture.hub().api::<Secret>(NAMESPACE);
    let garbage = ByteString(b"]:{".to_vec());
    let one = replace(&secrets, "worker-1", &garbage).await?;
    let outcome = one_is_broken(&fixture, &secrets, &garbage).await;
    replace(&secrets, "worker-1", &one).await?;
    outcome?;

    for name in ["worker-1", "worker-2"] {
        fixture.until_worker(name, "is active again", |said| said.message == "Connected").await?;
    }
    until_check(&fixture, true, "Active", "The admission check is active").await?;
    fixture.submit(&objects::job("after", 1, "2", 1)).await?;
    fixture.expect_once("after", 1).await
}

/// The first worker is broken; the other is, too, for a while.
async fn one_is_broken(
    fixture: &DispatchFixture,
    secrets: &Api<Secret>,
    garbage: &ByteString,
) -> Result<()> {
    fixture.nodes(1, 1, "2").await?;
    fixture.nodes(2, 1, "1").await?;
    fixture.queue("4").await?;
    let broken = |said: &ReportedCondition| !said.status && said.reason == "BadKubeConfig";
    fixture.until_worker("worker-1", "is broken", broken).await?;
    until_check(fixture, true, "SomeActiveClusters", "Inactive clusters: [worker-1]").await?;
    fixture.submit(&objects::job("meanwhile", 1, "1", 1)).await?;
    fixture.expect_once("meanwhile", 1).await?;

    let other = replace(secrets, "worker-2", garbage).await?;
    let both = "Inactive clusters: [worker-1 worker-2]";
    let outcome = until_check(fixture, false, "NoUsableClusters", both).await;
    replace(secrets, "worker-2", &other).await?;
    outcome
}

/// Makes the kubeconfig of a worker that in a Secret or file.
async fn locate(fixture: &DispatchFixture, name: &str, kind: &str, location: &str) -> Result<()> {
    let source = json!({"kubeConfig": {"locationType": kind, "location": location}});
    let fields = json!({"spec": {"clusterSource": source}});
    let clusters = fixture.hub().cluster_api::<MultiKueueCluster>();
    clusters.patch(name, &PatchParams::default(), &Patch::Merge(&fields)).await?;
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_in_a_file_connects_a_worker() -> Result<()> {
    let fixture = DispatchFixture::alone("file").await?;
    let secrets = fixture.hub().api::<Secret>(NAMESPACE);
    let directory = fixture.installation.kubeconfig_directory();
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("worker-1");
    let text = replace(&secrets, "worker-1", &ByteString(b"]:{".to_vec())).await?;
    let outcome = connected_by(&fixture, &file, &text.0).await;
    replace(&secrets, "worker-1", &text).await?;
    locate(&fixture, "worker-1", "Secret", "worker-1").await?;
    outcome?;
    fixture.until_worker("worker-1", "is active again", |said| said.message == "Connected").await?;
    Ok(())
}

async fn connected_by(fixture: &DispatchFixture, file: &Path, text: &[u8]) -> Result<()> {
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("4").await?;
    let broken = |said: &ReportedCondition| !said.status && said.reason == "BadKubeConfig";
    fixture.until_worker("worker-1", "has no kubeconfig", broken).await?;

    let place = file.display().to_string();
    for (location, cause) in [
        ("/etc/passwd", "kubeconfig path is not under the allowed prefix".to_owned()),
        (place.as_str(), format!("open {place}: no such file or directory")),
    ] {
        locate(fixture, "worker-1", "Path", location).await?;
        let message = format!("load client config failed: {cause}");
        let says = |said: &ReportedCondition| said.message == message;
        fixture.until_worker("worker-1", &message, says).await?;
    }
    std::fs::write(file, text)?;
    fixture.until_worker("worker-1", "is connected", |said| said.message == "Connected").await?;
    fixture.submit(&objects::job("by-file", 1, "1", 1)).await?;
    fixture.expect_once("by-file", 1).await?;

    std::fs::remove_file(file)?;
    fixture.until_worker("worker-1", "has no kubeconfig", broken).await?;
    Ok(())
}

async fn until_check(
    fixture: &DispatchFixture,
    status: bool,
    reason: &str,
    message: &str,
) -> Result<()> {
    let expected =
        ReportedCondition { status, reason: reason.to_owned(), message: message.to_owned() };
    let says = |check: &AdmissionCheck| {
        said(&check.status.conditions, "Active").is_some_and(|said| said == expected)
    };
    let checks = fixture.hub().cluster_api::<AdmissionCheck>();
    let what = format!("says {reason}: {message}");
    fixture.hub().until(&checks, fixture.namespace(), &what, TIMEOUT, says).await?;
    Ok(())
}
