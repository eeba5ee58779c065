//! The tasks of the process.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::leader::{AdmissionExplanations, HOME};
use anyhow::Context;
use axum::{Router, middleware};
use config::gates::Gate;
use kube::Client;
use prometheus_client::registry::Registry;
use runtime::{
    Shutdown, client,
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
    certificate_plan::certificate_plan,
    certificates::{self, CalledServers, CertificateSource, METRICS_CERT_DIR},
    components::ManagerComponent,
    ineffective_settings, integrations, leader, listen, metrics_access,
    process_parts::{ProcessMetrics, ProcessParts},
    ray_api, resource_names,
    settings::ProcessSettings,
    visibility, webhook_cache,
};

/// Runs until the servers are to stop, or until a task ends.
pub(crate) async fn run(
    args: &ManagerArgs,
    settings: &ProcessSettings,
    components: &BTreeSet<ManagerComponent>,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let metrics = ProcessMetrics::new(settings);
    let count = metrics.clients.requests.of(HOME);
    let client =
        client::connect(args.kubeconfig.as_deref(), build_info::USER_AGENT, &count).await?;
    let kinds = resource_names::resolve(&settings.kinds, &client).await;
    let settings = &ProcessSettings { kinds, ..settings.clone() };
    let mut parts = ProcessParts {
        settings,
        components,
        stores: Stores::new(client.clone(), &metrics.clients.watches, shutdown.serving().clone()),
        client,
        metrics,
        explanations: AdmissionExplanations::default(),
        shutdown,
        tasks: JoinSet::new(),
    };
    start_components(args, &mut parts).await?;
    let ProcessParts { stores, mut tasks, .. } = parts;
    // After webhooks, leader and visibility, which have asked for their stores by now.
    tasks.spawn(stores.run());
    Ok(runtime::tasks::supervise(tasks, shutdown.serving().clone()).await?)
}

/// Starts the selected components, and the servers of probes, profiles and metrics.
async fn start_components(args: &ManagerArgs, parts: &mut ProcessParts<'_>) -> anyhow::Result<()> {
    let (settings, components) = (parts.settings, parts.components);
    let slot = CertificateSlot::new();
    let tls = tls::server_config(slot.clone(), &settings.tls()).context("tls")?;
    let called = called_servers(settings, components);
    let metrics_server = MetricsServer::new(args, settings)?;
    let mut ready = if components.contains(&ManagerComponent::RayApi) {
        ray_api::start(&args.ray_api, &slot, parts).await?
    } else {
        let plan = certificate_plan(settings, called, metrics_server.shares_certificate());
        plan.map(|plan| plan.start(&slot, parts)).unwrap_or_default()
    };
    if called.webhooks {
        let cache = webhooks(&tls, parts).await?;
        ready = webhook_cache::add_check(ready, cache);
    }
    // `components::select` guarantees that jobs are there as well.
    if components.contains(&ManagerComponent::Core) {
        leader::start(parts)?;
    }
    if called.visibility {
        let slot = visibility_slot(&slot, parts);
        let tls = tls::server_config_with_clients(slot, &settings.tls()).context("tls")?;
        ready = visibility::start(ready, tls, parts).await?;
    }
    // The name is that of kube-apiserver: no new requests while the process stops.
    ready = ready.with("shutdown", is_leading(parts.shutdown));
    serve_probes(ready, parts).await?;
    serve_profiles(parts).await?;
    metrics_server.start(tls, parts).await
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
async fn serve_probes(ready: HealthChecks, parts: &mut ProcessParts<'_>) -> anyhow::Result<()> {
    let health = &parts.settings.file.health;
    if let Some((host, port)) = listen::parse(&health.health_probe_bind_address)? {
        // Liveness shows that requests are served; a check of other systems would restart the
        // process in vain.
        let alive = HealthChecks::default().with("ping", || true);
        let router = health::router(
            HealthEndpoint::new(&health.liveness_endpoint_name, alive),
            HealthEndpoint::new(&health.readiness_endpoint_name, ready),
        );
        let listener = listen::bind("health probes", &host, port).await?;
        let stop = parts.stop();
        parts.tasks.spawn(Server::plain(router).run(listener, stop));
    }
    Ok(())
}

/// Serves profiles, if they have an address. Without authorization, as Kueue: the address decides about access.
async fn serve_profiles(parts: &mut ProcessParts<'_>) -> anyhow::Result<()> {
    if let Some((host, port)) = listen::parse(&parts.settings.file.pprof_bind_address)? {
        let listener = listen::bind("profiles", &host, port).await?;
        let stop = parts.stop();
        parts.tasks.spawn(Server::plain(profiles::router(stop.clone())).run(listener, stop));
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
        shared: Arc<ServerConfig>,
        parts: &mut ProcessParts<'_>,
    ) -> anyhow::Result<()> {
        let Some((host, port)) = self.address else {
            return Ok(());
        };
        let router = metrics::router(Arc::new(registry(&parts.metrics, parts.settings)));
        let server = if self.tls {
            let tls = match self.certificate {
                Some(directory) => metrics_tls(directory, parts)?,
                None => shared,
            };
            let router =
                if self.authentication { guarded(router, parts.client.clone()) } else { router };
            Server::tls(router, tls)
        } else {
            Server::plain(router)
        };
        let listener = listen::bind("metrics", &host, port).await?;
        let stop = parts.stop();
        parts.tasks.spawn(server.run(listener, stop));
        Ok(())
    }
}

/// Serves webhooks. Returns the cache that they need.
async fn webhooks(
    tls: &Arc<ServerConfig>,
    parts: &mut ProcessParts<'_>,
) -> anyhow::Result<SharedWebhookCache> {
    let (settings, stop) = (parts.settings, parts.stop());
    let webhook = &settings.file.webhook;
    // An address that cannot be bound is an error of the start, and not of a task later.
    let listener = listen::bind("webhooks", &webhook.host, webhook.port).await?;
    let cache = webhook_cache::start(parts);
    let jobs = settings.job_webhooks(&parts.client, &cache);
    let router = webhooks::router(settings.webhook_gates(), jobs);
    let router = match &settings.ray_security {
        Some(config) => router.merge(webhooks::ray_security_router(config.clone())),
        None => router,
    };
    let server = Server::tls(router, tls.clone()).leaving_at(parts.shutdown.leading().clone());
    parts.tasks.spawn(server.run(listener, stop));
    Ok(cache)
}

/// TLS with the certificate of metrics.
fn metrics_tls(
    directory: PathBuf,
    parts: &mut ProcessParts<'_>,
) -> anyhow::Result<Arc<ServerConfig>> {
    let slot = CertificateSlot::new();
    let tls = tls::server_config(slot.clone(), &parts.settings.tls()).context("tls")?;
    let stop = parts.stop();
    parts.tasks.spawn(certificates::follow(directory, slot, stop));
    Ok(tls)
}

/// Metrics with authorization.
fn guarded(router: Router, client: Client) -> Router {
    let access = metrics_access::MetricsAccess::new(client);
    router.layer(middleware::from_fn_with_state(access, metrics_access::check))
}

/// Kueue's metrics under the prefix `kueue`, all others under `sluice`.
fn registry(metrics: &ProcessMetrics, settings: &ProcessSettings) -> Registry {
    let ProcessMetrics { clients, kueue: measured, pods } = metrics;
    let mut registry = Registry::default();
    let kueue = registry.sub_registry_with_prefix("kueue");
    build_info::register(kueue);
    kueue.register_collector(Box::new(measured.clone()));
    registry.register_collector(Box::new(measured.multi_kueue()));
    let sluice = registry.sub_registry_with_prefix("sluice");
    sluice.register_collector(Box::new(measured.workers()));
    sluice.register_collector(Box::new(measured.integrations()));
    clients.register(sluice);
    pods.register(sluice);
    integrations::register(sluice, &settings.kinds);
    ineffective_settings::register(sluice, &settings.ineffective);
    registry
}

/// The slot of the visibility API: that of the webhooks if the manager creates the certificate, else one that is filled from the
/// mounted directory.
fn visibility_slot(
    created: &Arc<CertificateSlot>,
    parts: &mut ProcessParts<'_>,
) -> Arc<CertificateSlot> {
    if matches!(parts.settings.certificates(), CertificateSource::Managed { .. }) {
        return created.clone();
    }
    let (slot, stop) = (CertificateSlot::new(), parts.stop());
    parts.tasks.spawn(certificates::follow(visibility::CERT_DIR.into(), slot.clone(), stop));
    slot
}

#[cfg(test)]
mod tests {
    use config::Configuration;

    use super::*;

    #[test]
    fn the_build_is_a_metric() {
        let mut text = String::new();
        let settings = ProcessSettings::of(Configuration::default());
        let metrics = ProcessMetrics::new(&settings);
        let registry = registry(&metrics, &settings);
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains("kueue_build_info{git_version=\"v"), "{text}");
    }
}
