//! One control plane with two managers, which all tests share. The first one serves the aggregated API.

use anyhow::{Context, Result, ensure};
use e2e::{
    installation::{
        Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT, first_user,
    },
    objects,
};
use harness::{LabPlan, Space, TestLab, free_port, program};
use http::Request;
use k8s_openapi::{
    api::core::v1::ConfigMap, kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api, Client, Config,
    client::Body,
    config::{AuthInfo, KubeConfigOptions},
};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    sync::OnceCell,
    time::{Instant, sleep_until},
};

/// The group, as paths have it.
pub(crate) const BASE: &str = "/apis/visibility.kueue.x-k8s.io";

const PLAN: InstallationPlan = InstallationPlan { workers: 0, elects: true };

/// The managers and their ports.
struct Managers {
    lab: TestLab,
    ports: InstallationPorts,
    first: Program,
    second: Program,
    second_port: u16,
}

/// The shared installation with clients of one test, and a namespace of its own.
pub(crate) struct VisibilityFixture {
    pub(crate) installation: Installation<'static>,
    pub(crate) namespace: String,
    managers: &'static Managers,
    _space: Space,
}

/// A response: its status and its body, which is null if it is no JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

async fn managers() -> Result<&'static Managers> {
    static MANAGERS: OnceCell<Managers> = OnceCell::const_new();
    MANAGERS.get_or_try_init(start).await
}

async fn start() -> Result<Managers> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: true }).await?;
    let ports = InstallationPorts::choose()?;
    let installation = Installation::of(&lab, PLAN, ports).await?;
    installation.install().await?;
    let first = installation.first_manager().await?;
    let second_port = free_port()?;
    let blocks = json!({"visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": second_port}});
    let second = installation.further_manager_with(&blocks).await?;
    installation.aggregate_visibility().await?;
    drop(installation);
    Ok(Managers { lab, ports, first, second, second_port })
}

impl VisibilityFixture {
    /// A namespace with a ClusterQueue of its name, and the LocalQueues `queue` and `other`.
    pub(crate) async fn new(test: &str) -> Result<Self> {
        let managers = managers().await?;
        Self::of(managers, managers.lab.space(test).await?).await
    }

    /// A namespace with these queues while no other test runs.
    pub(crate) async fn alone(test: &str) -> Result<Self> {
        let managers = managers().await?;
        Self::of(managers, managers.lab.space_alone(test).await?).await
    }

    async fn of(managers: &'static Managers, space: Space) -> Result<Self> {
        let installation = Installation::of(&managers.lab, PLAN, managers.ports).await?;
        let namespace = space.namespace().to_owned();
        objects::queue(&installation.hub, &namespace, "1", &[]).await?;
        let this = Self { installation, namespace, managers, _space: space };
        this.apply(&json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
            "metadata": {"name": "other"}, "spec": {"clusterQueue": this.namespace},
        }))
        .await?;
        Ok(this)
    }

    pub(crate) async fn apply(&self, object: &Value) -> Result<()> {
        Ok(self.installation.hub.apply(&object.to_string(), &self.namespace).await?)
    }

    /// The path of the pending Workloads of the ClusterQueue.
    pub(crate) fn of_cluster_queue(&self, version: &str) -> String {
        format!("{BASE}/{version}/clusterqueues/{}/pendingworkloads", self.namespace)
    }

    /// The path of the pending Workloads of a LocalQueue.
    pub(crate) fn of_local_queue(&self, version: &str, name: &str) -> String {
        let namespace = &self.namespace;
        format!("{BASE}/{version}/namespaces/{namespace}/localqueues/{name}/pendingworkloads")
    }

    /// A response to the administrator, by the API server.
    pub(crate) async fn get(&self, path: &str) -> Result<ApiResponse> {
        get(&self.installation.hub.client(), path, &[]).await
    }

    /// Asks until the response is as wanted.
    pub(crate) async fn until(
        &self,
        path: &str,
        what: &str,
        wanted: impl Fn(&ApiResponse) -> bool,
    ) -> Result<ApiResponse> {
        until(&self.installation.hub.client(), path, what, wanted).await
    }

    /// The port of the manager that the API server calls.
    pub(crate) fn first_port(&self) -> u16 {
        self.managers.ports.visibility()
    }

    /// The port of the other manager.
    pub(crate) fn second_port(&self) -> u16 {
        self.managers.second_port
    }

    /// How many writes each manager has sent.
    pub(crate) async fn writes_of_managers(&self) -> Result<[f64; 2]> {
        let Managers { first, second, .. } = self.managers;
        Ok([writes_of(first).await?, writes_of(second).await?])
    }

    /// The log of the manager that the API server calls.
    pub(crate) fn log(&self) -> String {
        self.managers.first.process.log_tail(40)
    }

    /// A client of the API server with these credentials.
    pub(crate) async fn at_api_server(&self, user: AuthInfo) -> Result<Client> {
        let kubeconfig = self.installation.hub.kubeconfig()?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.auth_info = user;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// The token of a service account, which is created.
    pub(crate) async fn token(&self, name: &str) -> Result<AuthInfo> {
        let metadata = json!({"name": name});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        self.apply(&account).await?;
        first_user(self.installation.hub.kubeconfig_for(&self.namespace, name).await?)
    }

    /// The administrator's certificate.
    pub(crate) fn administrator(&self) -> Result<AuthInfo> {
        first_user(self.installation.hub.kubeconfig()?)
    }

    /// The certificate of the front proxy.
    pub(crate) fn front_proxy(&self) -> AuthInfo {
        let folder = self.installation.hub.state().directory.join("pki");
        let file = |name: &str| Some(folder.join(name).display().to_string());
        AuthInfo {
            client_certificate: file("front-proxy.crt"),
            client_key: file("front-proxy.key"),
            ..AuthInfo::default()
        }
    }

    /// A client of a manager itself.
    pub(crate) async fn at_manager(&self, port: u16, user: AuthInfo) -> Result<Client> {
        self.installation.client_of("kueue-webhook-server-cert", port, user).await
    }

    /// What `sluicectl explain` prints about a Job.
    pub(crate) async fn explained(&self, job: &str) -> Result<Value> {
        let job = format!("job/{job}");
        let output = Command::new(program("sluicectl")?)
            .env("KUBECONFIG", self.installation.hub.state().kubeconfig())
            .args(["explain", &job, "-n", &self.namespace, "-o", "json"])
            .output()
            .await
            .context("running sluicectl")?;
        ensure!(output.status.success(), "{output:?}");
        let models: Value = serde_json::from_slice(&output.stdout)?;
        Ok(models[0].clone())
    }

    pub(crate) fn api_services(&self) -> Api<APIService> {
        self.installation.hub.cluster_api()
    }

    pub(crate) fn config_maps(&self, namespace: &str) -> Api<ConfigMap> {
        self.installation.hub.api(namespace)
    }
}

/// A response to a GET with these headers.
pub(crate) async fn get(
    client: &Client,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<ApiResponse> {
    let request = headers
        .iter()
        .fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    let response = client.send(request.body(Body::empty())?).await?;
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await?;
    Ok(ApiResponse { code, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

/// Asks until the response is as wanted.
pub(crate) async fn until(
    client: &Client,
    path: &str,
    what: &str,
    wanted: impl Fn(&ApiResponse) -> bool,
) -> Result<ApiResponse> {
    until_with(client, path, &[], what, wanted).await
}

/// Asks with headers until the response is as wanted.
pub(crate) async fn until_with(
    client: &Client,
    path: &str,
    headers: &[(&str, &str)],
    what: &str,
    wanted: impl Fn(&ApiResponse) -> bool,
) -> Result<ApiResponse> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let response = get(client, path, headers).await?;
        if wanted(&response) {
            return Ok(response);
        }
        ensure!(Instant::now() < deadline, "{path} {what}: {response:?}");
        // The API has no watch, so it is asked again.
        sleep_until(Instant::now() + harness::secs(1) / 10).await;
    }
}

/// The sum of the series of `sluice_writes_total`.
async fn writes_of(manager: &Program) -> Result<f64> {
    let metrics = manager.scrape().await?;
    let lines = metrics.lines().filter(|line| line.starts_with("sluice_writes_total{"));
    let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(counts.sum())
}
