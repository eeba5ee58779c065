//! The visibility API: an aggregated API server that lists pending Workloads (docs/reference/kueue.md §6.1), and shows pods and logs of
//! Workloads (docs/reference/dispatch.md §12).
//!
//! Every replica serves it, whether or not it leads, from objects that it watches anyway. The crate `visibility` decides what a
//! request means and what the response is; here are the server, and the questions that it asks the API server.
//!
//! | file | concept |
//! |---|---|
//! | `observed_queues` | the state of the crate, fed by the stores of the process |
//! | `explained_events` | the explanations of the replica that leads |
//! | `server` | requests in flight, and the way of a request |
//! | [`pods`] | pods of Workloads and their logs |
//! | `authentication`, `trusted_proxies` | the user of a request: front proxy, client certificate or token |

mod authentication;
mod explained_events;
mod observed_queues;
mod pods;
mod server;
mod trusted_proxies;

use std::sync::Arc;

use cluster::control::{index_settings, usage_weights};
use remote::WorkerClients;
use runtime::{health::HealthChecks, server::Server};
use rustls::ServerConfig;
use visibility::PendingWorkloads;

pub(crate) use self::pods::PodsMetrics;
use self::{
    authentication::Authenticator, observed_queues::ObservedQueues, pods::WorkloadPodsApi,
    server::VisibilityApi, trusted_proxies::TrustedProxies,
};
use crate::{
    access::Authorizer, first_lists::synced_or_timed_out, listen, process_parts::ProcessParts,
};

/// The Service that the API server calls.
pub(crate) fn service(name_prefix: &str) -> String {
    format!("{name_prefix}-visibility-server")
}

/// Where certificates of the server are mounted if the manager does not create them.
pub(crate) const CERT_DIR: &str = "/visibility";

/// Binds the port and starts to serve. Adds the check `pending-workloads`: they are listed, or the time for it has passed. A client
/// such as kubectl-kueue fails at a replica that has not listed them.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) async fn start(
    ready: HealthChecks,
    tls: Arc<ServerConfig>,
    parts: &mut ProcessParts<'_>,
) -> anyhow::Result<HealthChecks> {
    let ProcessParts { settings, client, stores, shutdown, tasks, .. } = parts;
    let (wanted, stop) = (&settings.file.visibility_server, shutdown.serving());
    let listener = listen::bind("visibility", &wanted.bind_address, wanted.bind_port).await?;
    let (file, gates) = (&settings.file, &settings.gates);
    let pending = PendingWorkloads::new(index_settings(file, gates));
    let pending = pending.weighing_usage(usage_weights(file, gates));
    let queues = ObservedQueues::new(pending, parts.explanations.clone());
    tasks.spawn(queues.follow(stores, stop.clone()));
    tasks.spawn(queues.follow_events(stores, stop.clone()));
    let listed = queues.clone();
    let ready = ready.with("pending-workloads", synced_or_timed_out(move || listed.is_listed()));
    let proxies = TrustedProxies::default();
    tasks.spawn(proxies.follow(stores, stop.clone()));
    let files = settings.kubeconfig_files.clone();
    let requests = parts.metrics.clients.requests.clone();
    let workers = WorkerClients::new(client.clone(), settings.file.namespace(), files, requests);
    let origin = &settings.file.multi_kueue.origin;
    let api = VisibilityApi {
        pods: WorkloadPodsApi::new(
            client,
            workers,
            origin,
            parts.metrics.pods.clone(),
            stop.clone(),
        ),
        queues,
        authenticator: Authenticator::new(client.clone(), proxies),
        authorizer: Authorizer::new(client.clone()),
    };
    let server = Server::tls(server::router(api), tls).leaving_at(shutdown.leading().clone());
    tasks.spawn(server.run(listener, stop.clone()));
    Ok(ready)
}
