//! The tasks of the process.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use ::leader::{ClientMetrics, HOME};
use anyhow::Context;
use axum::{Router, middleware};
use kube::Client;
use prometheus_client::registry::Registry;
use runtime::{
    Stop,
    cert_secret::CertSecret,
    client, health,
    health::HealthChecks,
    metrics,
    server::Server,
    tls::{self, CertificateSlot},
    watch::Stores,
};
use rustls::ServerConfig;
use tokio::task::JoinSet;

use crate::{
    args::ManagerArgs,
    build_info,
    certificates::{self, CertificateSource, ManagedCertificate},
    components::ManagerComponent,
    idle_settings, integrations,
    kueue_metrics::{KueueMetrics, MetricsSettings},
    leader, listen, metrics_access,
    settings::ProcessSettings,
    webhook_cache,
};

/// Runs until `stop`, or until a task ends.
pub(crate) async fn run(
    args: &ManagerArgs,
    settings: &ProcessSettings,
    components: &BTreeSet<ManagerComponent>,
    stop: Stop,
) -> anyhow::Result<()> {
    let metrics = ClientMetrics::default();
    let measured = KueueMetrics::new(MetricsSettings::new(&settings.file, &settings.gates));
    let count = metrics.requests.of(HOME);
    let kubeconfig = args.kubeconfig.as_deref();
    let client = client::connect(kubeconfig, build_info::USER_AGENT, &count).await?;
    let slot = CertificateSlot::new();
    let tls = tls::server_config(slot.clone(), &settings.tls()).context("tls")?;
    let mut tasks = JoinSet::new();
    let mut stores = Stores::new(client.clone(), &metrics.watches, stop.clone());

    // A replica without webhooks has nothing that readiness could wait for.
    let ready = if components.contains(&ManagerComponent::Webhooks) {
        webhooks(settings, (&client, &mut stores), (&slot, &tls), &stop, &mut tasks).await?
    } else {
        HealthChecks::default()
    };
    // `components::select` guarantees that jobs and scheduler are there as well.
    if components.contains(&ManagerComponent::Core) {
        let dispatches = components.contains(&ManagerComponent::Multikueue);
        let metrics = (&metrics, &measured);
        leader::start(settings, (&client, &mut stores), dispatches, metrics, &stop, &mut tasks)?;
    }
    // After webhooks and leader, which have asked for their stores by now.
    tasks.spawn(stores.run());
    serve_probes(settings, ready, &stop, &mut tasks).await?;
    if let Some((host, port)) = listen::parse(&settings.file.metrics.bind_address)? {
        let router = metrics::router(Arc::new(registry((&metrics, measured), settings)));
        let server = if args.metrics_plain {
            Server::plain(router)
        } else {
            Server::tls(guarded(router, client), tls)
        };
        let listener = listen::bind("metrics", &host, port).await?;
        tasks.spawn(server.run(listener, stop.clone()));
    }
    Ok(runtime::tasks::supervise(tasks, stop).await?)
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
            (&health.liveness_endpoint_name, alive),
            (&health.readiness_endpoint_name, ready),
        );
        let listener = listen::bind("health probes", &host, port).await?;
        tasks.spawn(Server::plain(router).run(listener, stop.clone()));
    }
    Ok(())
}

/// Serves webhooks. Returns the readiness checks of webhooks.
async fn webhooks(
    settings: &ProcessSettings,
    (client, stores): (&Client, &mut Stores),
    (slot, tls): (&Arc<CertificateSlot>, &Arc<ServerConfig>),
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<HealthChecks> {
    let webhook = &settings.file.webhook;
    // An address that cannot be bound is an error of the start, and not of a task later.
    let listener = listen::bind("webhooks", &webhook.host, webhook.port).await?;
    let cache = webhook_cache::start(stores, stop, tasks);
    let jobs = settings.job_webhooks(client, &cache);
    let router = webhooks::router(settings.rules(), jobs);
    tasks.spawn(Server::tls(router, tls.clone()).run(listener, stop.clone()));
    let ready = keep_certificate(settings, client, slot.clone(), stop, tasks);
    Ok(webhook_cache::add_check(ready, cache))
}

/// Metrics with authorization.
fn guarded(router: Router, client: Client) -> Router {
    router.layer(middleware::from_fn_with_state(client, metrics_access::check))
}

/// Kueue's metrics under the prefix `kueue`, all others under `sluice`.
fn registry(
    (metrics, measured): (&ClientMetrics, KueueMetrics),
    settings: &ProcessSettings,
) -> Registry {
    let mut registry = Registry::default();
    let kueue = registry.sub_registry_with_prefix("kueue");
    build_info::register(kueue);
    kueue.register_collector(Box::new(measured.clone()));
    registry.register_collector(Box::new(measured.multi_kueue()));
    let sluice = registry.sub_registry_with_prefix("sluice");
    sluice.register_collector(Box::new(measured.workers()));
    metrics.register(sluice);
    integrations::register(sluice, &settings.kinds);
    idle_settings::register(sluice, &settings.idle);
    registry
}

/// Starts to manage the certificate. Returns the readiness checks of the certificate.
fn keep_certificate(
    settings: &ProcessSettings,
    client: &Client,
    slot: Arc<CertificateSlot>,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> HealthChecks {
    let served = slot.clone();
    let checks = HealthChecks::default().with("certificate", move || served.is_loaded());
    match settings.certificates() {
        CertificateSource::Directory(dir) => {
            tasks.spawn(certificates::follow(dir, slot, stop.clone()));
            checks
        }
        CertificateSource::Managed { service, secret } => {
            let namespace = settings.file.namespace().to_owned();
            let host = &settings.file.webhook.host;
            let names = certificates::names(&service, &namespace, host);
            let secret = CertSecret { namespace, name: secret, names };
            let own = ManagedCertificate::new(client.clone(), secret, slot);
            let trusted = own.trusted();
            tasks.spawn(own.keep(stop.clone()));
            // The API server refuses the certificate until it has the CA, so all calls would fail.
            checks.with("ca-injection", move || trusted.load(Ordering::Relaxed))
        }
    }
}

#[cfg(test)]
mod tests {
    use config::{Configuration, JobKinds, gates::Gates};
    use jobs::Kinds;

    use super::*;

    #[test]
    fn the_build_is_a_metric() {
        let mut text = String::new();
        let settings = ProcessSettings {
            file: Configuration::default(),
            gates: Gates::default(),
            kinds: JobKinds::all(&Kinds::default()),
            idle: Vec::new(),
        };
        let measured = KueueMetrics::new(MetricsSettings::new(&settings.file, &settings.gates));
        let registry = registry((&ClientMetrics::default(), measured), &settings);
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains("kueue_build_info{git_version=\"v"), "{text}");
    }
}
