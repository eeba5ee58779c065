//! The tasks of the process.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use ::leader::{AdmissionExplanations, ClientMetrics, HOME};
use anyhow::Context;
use axum::{Router, middleware};
use config::gates::Gate;
use kube::Client;
use prometheus_client::registry::Registry;
use runtime::{
    Shutdown, Stop,
    cert_secret::CertSecret,
    client,
    health::{self, HealthChecks, HealthEndpoint},
    metrics, profiles,
    server::Server,
    tls::{self, CertificateSlot},
    watch::Stores,
};
use rustls::ServerConfig;
use tokio::task::JoinSet;
use webhooks::cache::SharedWebhookCache;

use crate::{
    args::ManagerArgs,
    build_info,
    certificates::{self, CalledServers, CertificateSource, METRICS_CERT_DIR, ManagedCertificate},
    components::ManagerComponent,
    ineffective_settings, integrations,
    kueue_metrics::{KueueMetrics, MetricsSettings},
    leader, listen, metrics_access, ray_api, resource_names,
    settings::ProcessSettings,
    visibility::{self, PodsMetrics},
    webhook_cache,
};

/// A replica that serves neither webhooks nor the visibility API.
const NOTHING_CALLED: CalledServers =
    CalledServers { webhooks: false, visibility: false, ray_security: false };

/// Runs until the servers are to stop, or until a task ends.
pub(crate) async fn run(
    args: &ManagerArgs,
    settings: &ProcessSettings,
    components: &BTreeSet<ManagerComponent>,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let stop = shutdown.serving();
    let metrics = ClientMetrics::default();
    let measured = KueueMetrics::new(MetricsSettings::new(&settings.file, &settings.gates));
    let (pods_metrics, explanations) = <(PodsMetrics, AdmissionExplanations)>::default();
    let count = metrics.requests.of(HOME);
    let client =
        client::connect(args.kubeconfig.as_deref(), build_info::USER_AGENT, &count).await?;
    let kinds = resource_names::resolve(&settings.kinds, &client).await;
    let settings = &ProcessSettings { kinds, ..settings.clone() };
    let slot = CertificateSlot::new();
    let tls = tls::server_config(slot.clone(), &settings.tls()).context("tls")?;
    let mut tasks = JoinSet::new();
    let mut stores = Stores::new(client.clone(), &metrics.watches, stop.clone());

    let called = called_servers(settings, components);
    let metrics_server = MetricsServer::new(args, settings)?;
    let mut ready = if components.contains(&ManagerComponent::RayApi) {
        let (ray_api, api_server) = ((settings, &args.ray_api), (&client, &metrics.requests));
        ray_api::start(ray_api, api_server, &slot, shutdown, &mut tasks).await?
    } else {
        let served = (called, metrics_server.shares_certificate());
        keep_certificate(settings, &client, &slot, served, stop, &mut tasks)
    };
    if called.webhooks {
        let cache = webhooks(settings, (&client, &mut stores), &tls, shutdown, &mut tasks).await?;
        ready = webhook_cache::add_check(ready, cache);
    }
    // `components::select` guarantees that jobs are there as well.
    if components.contains(&ManagerComponent::Core) {
        let metrics = (&metrics, &measured, &explanations);
        leader::start(settings, (&client, &mut stores), components, metrics, shutdown, &mut tasks)?;
    }
    if called.visibility {
        let slot = visibility_slot(settings, &slot, stop, &mut tasks);
        let tls = tls::server_config_with_clients(slot, &settings.tls()).context("tls")?;
        let metrics = (&metrics.requests, pods_metrics.clone());
        let observed = (&client, &mut stores, explanations);
        let checked = (ready, &mut tasks);
        ready = visibility::start(settings, observed, metrics, tls, shutdown, checked).await?;
    }
    // After webhooks, leader and visibility, which have asked for their stores by now.
    tasks.spawn(stores.run());
    // The name is that of kube-apiserver: no new requests while the process stops.
    ready = ready.with("shutdown", is_leading(shutdown));
    serve_probes(settings, ready, stop, &mut tasks).await?;
    serve_profiles(settings, stop, &mut tasks).await?;
    let registry = registry((&metrics, measured, &pods_metrics), settings);
    metrics_server.start(settings, (registry, client), tls, stop, &mut tasks).await?;
    Ok(runtime::tasks::supervise(tasks, stop.clone()).await?)
}

/// Whether the process is not about to stop.
fn is_leading(shutdown: &Shutdown) -> impl Fn() -> bool + Send + Sync + 'static {
    let leading = shutdown.leading().clone();
    move || !leading.is_cancelled()
}

/// The servers of this process that the API server calls.
fn called_servers(
    settings: &ProcessSettings,
    components: &BTreeSet<ManagerComponent>,
) -> CalledServers {
    let webhooks = components.contains(&ManagerComponent::Webhooks);
    CalledServers {
        webhooks,
        visibility: components.contains(&ManagerComponent::Visibility)
            && settings.gates.enabled(Gate::VisibilityOnDemand),
        ray_security: webhooks && settings.ray_security.is_some(),
    }
}

/// Serves liveness and readiness probes, unless their address is empty.
async fn serve_probes(
    settings: &ProcessSettings,
    ready: HealthChecks,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let health = &settings.file.health;
    if let Some((host, port)) = listen::parse(&health.health_probe_bind_address)? {
        // Liveness shows that requests are served; a check of other systems would restart the
        // process in vain.
        let alive = HealthChecks::default().with("ping", || true);
        let router = health::router(
            HealthEndpoint::new(&health.liveness_endpoint_name, alive),
            HealthEndpoint::new(&health.readiness_endpoint_name, ready),
        );
        let listener = listen::bind("health probes", &host, port).await?;
        tasks.spawn(Server::plain(router).run(listener, stop.clone()));
    }
    Ok(())
}

/// Serves profiles, if they have an address. Without authorization, as Kueue: the address decides about access.
async fn serve_profiles(
    settings: &ProcessSettings,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    if let Some((host, port)) = listen::parse(&settings.file.pprof_bind_address)? {
        let listener = listen::bind("profiles", &host, port).await?;
        tasks.spawn(Server::plain(profiles::router(stop.clone())).run(listener, stop.clone()));
    }
    Ok(())
}

/// How metrics are served.
struct MetricsServer {
    /// Host and port, if metrics are served at all.
    address: Option<(String, u16)>,
    /// Without TLS there is no authorization either: a token is not sent over plain HTTP.
    tls: bool,
    authentication: bool,
    /// Where a certificate of its own is mounted.
    certificate: Option<PathBuf>,
}

impl MetricsServer {
    fn new(args: &ManagerArgs, settings: &ProcessSettings) -> anyhow::Result<Self> {
        Ok(Self {
            address: listen::parse(&settings.file.metrics.bind_address)?,
            tls: !args.metrics_plain,
            authentication: args.metrics_authentication,
            certificate: settings.certificates().of_metrics(Path::new(METRICS_CERT_DIR)),
        })
    }

    /// Whether it needs the certificate of the other servers.
    fn shares_certificate(&self) -> bool {
        self.address.is_some() && self.tls && self.certificate.is_none()
    }

    /// Starts to serve, with its own certificate or else with `shared`.
    async fn start(
        self,
        settings: &ProcessSettings,
        (registry, client): (Registry, Client),
        shared: Arc<ServerConfig>,
        stop: &Stop,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        let Some((host, port)) = self.address else {
            return Ok(());
        };
        let router = metrics::router(Arc::new(registry));
        let server = if self.tls {
            let tls = match self.certificate {
                Some(directory) => metrics_tls(directory, settings, stop, tasks)?,
                None => shared,
            };
            let router = if self.authentication { guarded(router, client) } else { router };
            Server::tls(router, tls)
        } else {
            Server::plain(router)
        };
        let listener = listen::bind("metrics", &host, port).await?;
        tasks.spawn(server.run(listener, stop.clone()));
        Ok(())
    }
}

/// Serves webhooks. Returns the cache that they need.
async fn webhooks(
    settings: &ProcessSettings,
    (client, stores): (&Client, &mut Stores),
    tls: &Arc<ServerConfig>,
    shutdown: &Shutdown,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<SharedWebhookCache> {
    let stop = shutdown.serving();
    let webhook = &settings.file.webhook;
    // An address that cannot be bound is an error of the start, and not of a task later.
    let listener = listen::bind("webhooks", &webhook.host, webhook.port).await?;
    let cache = webhook_cache::start(stores, stop, tasks);
    let jobs = settings.job_webhooks(client, &cache);
    let router = webhooks::router(settings.webhook_gates(), jobs);
    let router = match &settings.ray_security {
        Some(config) => router.merge(webhooks::ray_security_router(config.clone())),
        None => router,
    };
    let server = Server::tls(router, tls.clone()).leaving_at(shutdown.leading().clone());
    tasks.spawn(server.run(listener, stop.clone()));
    Ok(cache)
}

/// TLS with the certificate of metrics.
fn metrics_tls(
    directory: PathBuf,
    settings: &ProcessSettings,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<Arc<ServerConfig>> {
    let slot = CertificateSlot::new();
    let tls = tls::server_config(slot.clone(), &settings.tls()).context("tls")?;
    tasks.spawn(certificates::follow(directory, slot, stop.clone()));
    Ok(tls)
}

/// Metrics with authorization.
fn guarded(router: Router, client: Client) -> Router {
    let access = metrics_access::MetricsAccess::new(client);
    router.layer(middleware::from_fn_with_state(access, metrics_access::check))
}

/// Kueue's metrics under the prefix `kueue`, all others under `sluice`.
fn registry(
    (metrics, measured, pods): (&ClientMetrics, KueueMetrics, &PodsMetrics),
    settings: &ProcessSettings,
) -> Registry {
    let mut registry = Registry::default();
    let kueue = registry.sub_registry_with_prefix("kueue");
    build_info::register(kueue);
    kueue.register_collector(Box::new(measured.clone()));
    registry.register_collector(Box::new(measured.multi_kueue()));
    let sluice = registry.sub_registry_with_prefix("sluice");
    sluice.register_collector(Box::new(measured.workers()));
    sluice.register_collector(Box::new(measured.integrations()));
    metrics.register(sluice);
    pods.register(sluice);
    integrations::register(sluice, &settings.kinds);
    ineffective_settings::register(sluice, &settings.ineffective);
    registry
}

/// The slot of the visibility API: that of the webhooks if the manager creates the certificate, else one that is filled from the
/// mounted directory.
fn visibility_slot(
    settings: &ProcessSettings,
    created: &Arc<CertificateSlot>,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> Arc<CertificateSlot> {
    if matches!(settings.certificates(), CertificateSource::Managed { .. }) {
        return created.clone();
    }
    let slot = CertificateSlot::new();
    tasks.spawn(certificates::follow(visibility::CERT_DIR.into(), slot.clone(), stop.clone()));
    slot
}

/// Starts to manage the certificate of the servers that are called, and of the metrics. Returns the readiness checks of the
/// certificate.
fn keep_certificate(
    settings: &ProcessSettings,
    client: &Client,
    slot: &Arc<CertificateSlot>,
    (called, tls_metrics): (CalledServers, bool),
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> HealthChecks {
    let (slot, served) = (slot.clone(), slot.clone());
    let source = settings.certificates();
    // Readiness waits for a certificate that is called. That of metrics alone may never be mounted.
    let is_called = match source {
        // The visibility API has a directory of its own.
        CertificateSource::Directory(_) => called.webhooks,
        CertificateSource::Managed { .. } => called != NOTHING_CALLED,
    };
    if !is_called && !tls_metrics {
        return HealthChecks::default();
    }
    let trusted = match source {
        CertificateSource::Directory(dir) => {
            tasks.spawn(certificates::follow(dir, slot, stop.clone()));
            None
        }
        CertificateSource::Managed { service, secret } => {
            let namespace = settings.file.namespace().to_owned();
            let host = &settings.file.webhook.host;
            let mut names = certificates::names(&service, &namespace, host);
            if called.visibility {
                let host = &settings.file.visibility_server.bind_address;
                let service = visibility::service(&settings.name_prefix);
                let further = certificates::names(&service, &namespace, host);
                let new = further.into_iter().filter(|name| !names.contains(name));
                names.extend(new.collect::<Vec<_>>());
            }
            let secret = CertSecret { namespace, name: secret, names };
            let targets = certificates::targets(called, &settings.name_prefix);
            let own = ManagedCertificate::new(client.clone(), secret, slot, targets);
            let trusted = own.trusted();
            tasks.spawn(own.keep(stop.clone()));
            Some(trusted)
        }
    };
    let checks = HealthChecks::default();
    if !is_called {
        return checks;
    }
    let checks = checks.with("certificate", move || served.is_loaded());
    match trusted {
        // The API server refuses the certificate until it has the CA, so all calls would fail.
        Some(trusted) => checks.with("ca-injection", move || trusted.load(Ordering::Relaxed)),
        None => checks,
    }
}

#[cfg(test)]
mod tests {
    use config::{Configuration, JobKinds, gates::Gates};
    use jobs::Kinds;
    use remote::KubeconfigDirectory;

    use super::*;

    #[test]
    fn the_build_is_a_metric() {
        let mut text = String::new();
        let settings = ProcessSettings {
            file: Configuration::default(),
            gates: Gates::default(),
            kinds: JobKinds::all(&Kinds::default()),
            kubeconfig_files: KubeconfigDirectory::default(),
            name_prefix: "kueue".to_owned(),
            ineffective: Vec::new(),
            ray_security: None,
            queue_status_period: cluster::control::QUEUE_STATUS_PERIOD,
        };
        let measured = KueueMetrics::new(MetricsSettings::new(&settings.file, &settings.gates));
        let registry =
            registry((&ClientMetrics::default(), measured, &PodsMetrics::default()), &settings);
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains("kueue_build_info{git_version=\"v"), "{text}");
    }
}
