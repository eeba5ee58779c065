//! The manager and the agent, with the rights of their service accounts.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use harness::{Cluster, Launch, Process, free_port, secs};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{Installation, InstallationPorts, NAMESPACE, TIMEOUT};

/// Between two looks at metrics.
const SCRAPE_AGAIN: Duration = Duration::from_millis(100);

/// A running program with its endpoints.
#[derive(Debug)]
pub struct Program {
    /// The process.
    pub process: Process,
    /// Metrics over plain HTTP.
    pub metrics: SocketAddr,
    /// Probes over plain HTTP.
    pub health: SocketAddr,
}

impl Program {
    /// The text of its metrics.
    ///
    /// # Errors
    /// If the endpoint cannot be reached.
    pub async fn scrape(&self) -> Result<String> {
        get(self.metrics, "/metrics").await.context("reading the metrics")
    }

    /// The answer of its probes to this path, with status line and headers.
    ///
    /// # Errors
    /// If the endpoint cannot be reached.
    pub async fn probe(&self, path: &str) -> Result<String> {
        get(self.health, path).await.with_context(|| format!("reading {path}"))
    }

    /// Waits until this holds for the text of its metrics, and returns it. Metrics cannot be watched.
    ///
    /// # Errors
    /// If it does not hold in time, or the endpoint cannot be reached.
    pub async fn until_scraped(&self, what: &str, holds: impl Fn(&str) -> bool) -> Result<String> {
        let scraped = async {
            loop {
                let text = self.scrape().await?;
                if holds(&text) {
                    return anyhow::Ok(text);
                }
                sleep(SCRAPE_AGAIN).await;
            }
        };
        let explain = || format!("waiting until {what}: {}", self.process.log_tail(20));
        timeout(TIMEOUT, scraped).await.with_context(explain)?
    }
}

/// One request over plain HTTP.
async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // HTTP 1.0: the body is not encoded and ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The account of the manager.
const MANAGER: &str = "sluice-manager";

/// Tokens of programs that a test starts.
const HOUR: Duration = secs(3600);

/// Tokens of programs that live as long as the lab.
const YEAR: Duration = secs(365 * 24 * 3600);

/// A program that is to be started, with its endpoints.
struct PreparedLaunch {
    launch: Launch,
    health: SocketAddr,
    metrics: SocketAddr,
}

pub(super) async fn manager(
    installation: &Installation<'_>,
    (ports, components): (InstallationPorts, Option<&str>),
    blocks: &Value,
    environment: &[(&str, &str)],
) -> Result<Program> {
    let account = (MANAGER, HOUR);
    let mut prepared = prepare_manager(installation, ports, blocks, account).await?;
    if let Some(components) = components {
        prepared.launch = prepared.launch.arg("--components").arg(components);
    }
    start(installation, prepared, environment).await
}

/// The manager's program with the API of Ray clusters only, and its account.
pub(super) async fn ray_api(installation: &Installation<'_>, port: u16) -> Result<Program> {
    let (ports, account) = (InstallationPorts::choose()?, ("sluice-ray-api", HOUR));
    let mut prepared = prepare_manager(installation, ports, &Value::Null, account).await?;
    prepared.launch = prepared
        .launch
        .arg("--components=ray-api")
        .arg(format!("--ray-api-bind-address=127.0.0.1:{port}"));
    start(installation, prepared, &[]).await
}

pub(super) async fn agent(
    installation: &Installation<'_>,
    worker: &Cluster,
    blocks: &Value,
    environment: &[(&str, &str)],
) -> Result<Program> {
    let prepared = prepare_agent(installation, worker, blocks, HOUR).await?;
    start(installation, prepared, environment).await
}

pub(super) async fn lasting_manager(
    installation: &Installation<'_>,
    ports: InstallationPorts,
) -> Result<()> {
    let account = (MANAGER, YEAR);
    let prepared = prepare_manager(installation, ports, &Value::Null, account).await?;
    start_lasting(installation, prepared, "sluice-manager").await
}

pub(super) async fn lasting_agent(installation: &Installation<'_>, worker: &Cluster) -> Result<()> {
    let prepared = prepare_agent(installation, worker, &Value::Null, YEAR).await?;
    start_lasting(installation, prepared, &format!("sluice-agent-{}", worker.name())).await
}

async fn prepare_manager(
    installation: &Installation<'_>,
    ports: InstallationPorts,
    blocks: &Value,
    account: (&str, Duration),
) -> Result<PreparedLaunch> {
    let (health, metrics) = (local(free_port()?), local(free_port()?));
    let mut file = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "webhook": {"host": "127.0.0.1", "port": ports.webhooks},
        "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": ports.visibility},
        "health": {"healthProbeBindAddress": health.to_string()},
        "metrics": {"bindAddress": metrics.to_string()},
        "leaderElection": {"leaderElect": installation.plan.elects},
        "multiKueue": {"dispatcherName": "sluice.dev/capacity", "workerLostTimeout": "60s"},
    });
    if installation.hasty {
        // Shorter than shipped, so that a standby takes over soon. A busy machine delays a renewal by seconds, and nothing
        // here starts a manager again that lost its lease.
        file["leaderElection"] = json!({
            "leaderElect": installation.plan.elects,
            "leaseDuration": "12s", "renewDeadline": "10s", "retryPeriod": "500ms",
        });
    }
    add(&mut file, blocks);
    let config = write(installation, &format!("manager-{}.yaml", health.port()), &file)?;
    let kubeconfig = kubeconfig(installation, &installation.hub, account, health.port()).await?;
    let launch = Launch::of("sluice-manager")
        .args(["--metrics-plain", "--config"])
        .arg(config)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--worker-kubeconfig-directory")
        .arg(installation.kubeconfig_directory())
        .args(&installation.flags);
    Ok(PreparedLaunch { launch, health, metrics })
}

async fn prepare_agent(
    installation: &Installation<'_>,
    worker: &Cluster,
    blocks: &Value,
    token_lifetime: Duration,
) -> Result<PreparedLaunch> {
    let (health, metrics) = (local(free_port()?), local(free_port()?));
    let mut file = json!({
        "apiVersion": "config.sluice.dev/v1alpha1",
        "kind": "AgentConfiguration",
        "leaderElection": {"leaderElect": false},
    });
    add(&mut file, blocks);
    let config = write(installation, &format!("agent-{}.yaml", health.port()), &file)?;
    let account = ("sluice-agent", token_lifetime);
    let kubeconfig = kubeconfig(installation, worker, account, health.port()).await?;
    let launch = Launch::of("sluice-agent")
        .arg("--config")
        .arg(config)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg(format!("--health-probe-bind-address={health}"))
        .arg(format!("--metrics-bind-address={metrics}"));
    let launch = if installation.queues { launch.arg("--admission=quota") } else { launch };
    let launch = match &installation.head_proxy {
        Some(proxy) => launch.args(["--operators=auto", "--ray-head-proxy", proxy]),
        None => launch,
    };
    Ok(PreparedLaunch { launch, health, metrics })
}

async fn start(
    installation: &Installation<'_>,
    prepared: PreparedLaunch,
    environment: &[(&str, &str)],
) -> Result<Program> {
    let PreparedLaunch { launch, health, metrics } = prepared;
    let launch = configured(installation, launch);
    let launch = environment.iter().fold(launch, |launch, (name, value)| launch.env(name, *value));
    let process = launch.start(installation.lab)?;
    process.ready(health, "/readyz", TIMEOUT).await?;
    Ok(Program { process, metrics, health })
}

/// Leaves the program to the supervisor of the lab.
async fn start_lasting(
    installation: &Installation<'_>,
    prepared: PreparedLaunch,
    name: &str,
) -> Result<()> {
    let launch = configured(installation, prepared.launch);
    let program = launch.start_lasting(name, installation.lab).await?;
    Ok(program.ready(prepared.health, "/readyz", TIMEOUT).await?)
}

/// With the declared kinds, the security of RayClusters, and the build of the installation.
fn configured(installation: &Installation<'_>, launch: Launch) -> Launch {
    let launch = match &installation.declared {
        Some((_, definitions)) => launch.arg("--job-kinds").arg(definitions),
        None => launch,
    };
    let launch = match &installation.ray_security {
        Some(file) => launch.arg("--ray-security").arg(file),
        None => launch,
    };
    match &installation.build {
        Some(folder) => launch.built_in(Some(folder.clone())),
        None => launch.arg("--log-level=info,cluster=debug,runtime=debug"),
    }
}

/// A block replaces that of the same name, but for its address, which the installation has chosen.
fn add(file: &mut Value, blocks: &Value) {
    for (name, block) in blocks.as_object().into_iter().flatten() {
        let address = file[name].get("bindAddress").cloned();
        file[name] = block.clone();
        if let Some(address) = address {
            file[name]["bindAddress"] = address;
        }
    }
}

/// A kubeconfig with a fresh token of a service account, of this lifetime, in a file.
async fn kubeconfig(
    installation: &Installation<'_>,
    cluster: &Cluster,
    (account, lifetime): (&str, Duration),
    number: u16,
) -> Result<PathBuf> {
    let kubeconfig = cluster.kubeconfig_for_long(NAMESPACE, account, lifetime).await?;
    let kubeconfig = serde_json::to_value(kubeconfig).context("the kubeconfig as JSON")?;
    write(installation, &format!("{account}-{}-{number}.kubeconfig", cluster.name()), &kubeconfig)
}

/// JSON is YAML.
fn write(installation: &Installation<'_>, name: &str, value: &Value) -> Result<PathBuf> {
    let path = installation.file(name);
    std::fs::write(&path, value.to_string())
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
