//! The tasks of the process, and how they end.

use std::sync::{Arc, atomic::Ordering};

use anyhow::Context;
use axum::{Router, middleware};
use kube::Client;
use prometheus_client::registry::Registry;
use runtime::{
    Stop,
    cert_secret::CertSecret,
    client, health,
    health::Checks,
    metrics,
    server::Server,
    tls::{self, Slot},
    watch::WatchMetrics,
};
use tokio::task::JoinSet;

use crate::{
    args::Args,
    build_info,
    certificates::{self, Own, Source},
    facts, listen, metrics_access,
    settings::Settings,
};

/// Runs until `stop`, or until a task gives up.
pub(crate) async fn run(args: &Args, settings: &Settings, stop: Stop) -> anyhow::Result<()> {
    let client = client::connect(args.kubeconfig.as_deref(), build_info::USER_AGENT).await?;
    let slot = Slot::new();
    let tls = tls::server_config(slot.clone(), settings.min_tls())?;
    let mut tasks = JoinSet::new();

    let webhook = &settings.file.webhook;
    let listener = listen::bind("webhooks", &webhook.host, webhook.port).await?;
    let watches = WatchMetrics::default();
    let known = facts::begin(&client, &watches, &stop, &mut tasks);
    let jobs = settings.job_webhooks(&client, &known);
    let router = cluster::webhooks::router(settings.rules(), jobs);
    tasks.spawn(Server::tls(router, tls.clone()).run(listener, stop.clone()));

    let ready = keep_certificate(settings, &client, slot, &stop, &mut tasks);
    let ready = facts::check(ready, known);
    if let Some((host, port)) = listen::parse(&settings.file.health.health_probe_bind_address)? {
        let health = &settings.file.health;
        let alive = Checks::default().with("ping", || true);
        let router = health::router(
            (&health.liveness_endpoint_name, alive),
            (&health.readiness_endpoint_name, ready),
        );
        let listener = listen::bind("health probes", &host, port).await?;
        tasks.spawn(Server::plain(router).run(listener, stop.clone()));
    }
    if let Some((host, port)) = listen::parse(&settings.file.metrics.bind_address)? {
        let router = metrics::router(Arc::new(registry(&watches)));
        let server = if args.metrics_plain {
            Server::plain(router)
        } else {
            Server::tls(guarded(router, client), tls)
        };
        let listener = listen::bind("metrics", &host, port).await?;
        tasks.spawn(server.run(listener, stop.clone()));
    }
    supervise(tasks, stop).await
}

/// Metrics for those who may read them.
fn guarded(router: Router, client: Client) -> Router {
    router.layer(middleware::from_fn_with_state(client, metrics_access::check))
}

/// Upstream's metrics under its prefix, those that only we have under ours.
fn registry(watches: &WatchMetrics) -> Registry {
    let mut registry = Registry::default();
    build_info::register(registry.sub_registry_with_prefix("kueue"));
    watches.register(registry.sub_registry_with_prefix("sluice"));
    registry
}

/// Starts to keep the certificate; the answer says when the webhooks can be called.
fn keep_certificate(
    settings: &Settings,
    client: &Client,
    slot: Arc<Slot>,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> Checks {
    let shown = slot.clone();
    let checks = Checks::default().with("certificate", move || shown.is_loaded());
    match settings.certificates() {
        Source::Directory(dir) => {
            tasks.spawn(certificates::follow(dir, slot, stop.clone()));
            checks
        }
        Source::Own { service, secret } => {
            let namespace = settings.file.namespace().to_owned();
            let host = &settings.file.webhook.host;
            let names = certificates::names(&service, &namespace, host);
            let secret = CertSecret { namespace, name: secret, names };
            let own = Own::new(client.clone(), secret, slot);
            let trusted = own.trusted();
            tasks.spawn(own.keep(stop.clone()));
            checks.with("ca-injection", move || trusted.load(Ordering::Relaxed))
        }
    }
}

/// Waits for all tasks. The first to end takes the others with it; that is an error unless it was told to.
async fn supervise(mut tasks: JoinSet<()>, stop: Stop) -> anyhow::Result<()> {
    let mut outcome = Ok(());
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            outcome = Err(error).context("a task failed");
        } else if !stop.is_cancelled() {
            outcome = Err(anyhow::anyhow!("a task ended early"));
        }
        stop.cancel();
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_early_ends_the_process() {
        let stop = Stop::new();
        let mut tasks = JoinSet::new();
        let token = stop.clone();
        tasks.spawn(async move { token.cancelled().await });
        tasks.spawn(async {});
        let error = supervise(tasks, stop.clone()).await.expect_err("early").to_string();
        assert_eq!(error, "a task ended early");
        assert!(stop.is_cancelled());
    }

    #[tokio::test]
    async fn being_told_to_stop_is_no_error() {
        let stop = Stop::new();
        let mut tasks = JoinSet::new();
        let token = stop.clone();
        tasks.spawn(async move { token.cancelled().await });
        stop.cancel();
        assert!(supervise(tasks, stop).await.is_ok());
    }

    #[test]
    fn the_build_is_a_metric() {
        let mut text = String::new();
        let registry = registry(&WatchMetrics::default());
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains("kueue_build_info{git_version=\"v"), "{text}");
    }
}
