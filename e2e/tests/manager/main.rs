//! `sluice-manager` as a process: certificate, permissions, metrics, exit.
//!
//! All tests share one control plane with the manifests of `config/`, and one manager that serves the webhooks with the
//! permissions of its service account.

mod bad_groups;
mod bad_objects;
mod components;
mod jobs;
mod life_cycle;
mod metrics;
mod process;
mod shutdown;
mod trust;

use std::{net::SocketAddr, path::Path, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use e2e::local_webhooks;
use harness::{Cluster, Launch, Process, TestLab, free_port, secs};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Two cores with other work on them are slow.
const TIMEOUT: Duration = secs(60);

/// The namespace of the manager.
const NAMESPACE: &str = "kueue-system";

/// The control plane, and the manager that its webhooks point to.
struct World {
    lab: &'static TestLab,
    cluster: Cluster,
    manager: &'static Running,
}

/// A manager and where it listens.
struct Running {
    process: Process,
    metrics: u16,
}

/// The installation with clients of this test, which do not outlive the test's runtime.
async fn world() -> Result<World> {
    static MANAGER: OnceCell<Running> = OnceCell::const_new();
    let lab = TestLab::shared(0).await?;
    let cluster = lab.cluster("manager").await?;
    let manager = MANAGER.get_or_try_init(|| install(lab, &cluster)).await?;
    Ok(World { lab, cluster, manager })
}

/// Applies the manifests and starts the manager that serves the webhooks.
async fn install(lab: &TestLab, cluster: &Cluster) -> Result<Running> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    cluster.apply(&namespace.to_string(), NAMESPACE).await?;
    let webhooks = free_port()?;
    for folder in ["crds/manifests", "config/webhook"] {
        let manifests = local_webhooks::manifests(&root.join(folder), webhooks)?;
        cluster.apply(&manifests, NAMESPACE).await?;
    }
    let roles = root.join("config/rbac");
    cluster.kubectl(&["apply", "-k", &roles.display().to_string()]).await?;
    start_on(lab, cluster, ("webhooks", webhooks), json!({})).await
}

impl World {
    /// One more manager, as a replica would be.
    async fn another(&self, settings: Value) -> Result<Running> {
        self.another_of("webhooks", settings).await
    }

    /// One more manager with these components.
    async fn another_of(&self, components: &str, settings: Value) -> Result<Running> {
        start_on(self.lab, &self.cluster, (components, free_port()?), settings).await
    }
}

/// Starts a manager with the rights of its service account, and waits until it is ready.
async fn start_on(
    lab: &TestLab,
    cluster: &Cluster,
    (components, webhooks): (&str, u16),
    more: Value,
) -> Result<Running> {
    let (health, metrics) = (free_port()?, free_port()?);
    let mut file = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "webhook": {"host": "127.0.0.1", "port": webhooks},
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health}")},
        "metrics": {"bindAddress": format!("127.0.0.1:{metrics}")},
    });
    merge(&mut file, more);
    let folder = &lab.state().directory;
    let config = write(folder, &format!("manager-{webhooks}.yaml"), &file)?;
    let kubeconfig = cluster.kubeconfig_for(NAMESPACE, "sluice-manager").await?;
    let kubeconfig = serde_json::to_value(kubeconfig).context("the kubeconfig as JSON")?;
    let kubeconfig = write(folder, &format!("manager-{webhooks}.kubeconfig"), &kubeconfig)?;
    let process = Launch::of("sluice-manager")
        .arg(format!("--components={components}"))
        .args(["--log-level=info,sluice_manager=debug", "--config"])
        .arg(config)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .start(lab)?;
    process.ready(SocketAddr::from(([127, 0, 0, 1], health)), "/readyz", TIMEOUT).await?;
    Ok(Running { process, metrics })
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// JSON is YAML.
fn write(folder: &Path, name: &str, value: &Value) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, value.to_string())
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
