//! The API of Ray clusters (docs/reference/ray.md §13): a proxy in front of the API server, and of the Services of Ray heads on the
//! clusters that run them.
//!
//! The component runs in a process of its own, with an account of its own: the webhooks leave out the writes of the manager's account,
//! and objects that come through this API are those of users. It watches nothing and leads nothing; any number of replicas answers.
//! The crate `ray_api` decides what a request means.
//!
//! | file | concept |
//! |---|---|
//! | `server` | the way of a request |
//! | `request_limits` | limits of requests in flight, all together and per head |
//! | `request_body` | bodies of requests, within a limit for all together |
//! | `templates` | compute templates |
//! | `service_place` | the cluster of a Service, and whether it is one of Ray |
//! | `json_objects` | reads of single fields of objects |
//! | `forward` | attempts to send a request |
//! | `open_upgrade`, `passed_bytes` | WebSockets to heads, while they are open |

mod forward;
mod open_upgrade;
mod passed_bytes;
mod request_body;
mod request_limits;
mod server;
mod service_place;
mod templates;

use std::sync::Arc;

use anyhow::Context;
use kube::Client;
use remote::WorkerClients;
use runtime::{
    Shutdown, Stop,
    cert_secret::CertSecret,
    health::HealthChecks,
    request_metrics::RequestMetrics,
    server::Server,
    tls::{self, CertificateSlot},
};
use tokio::task::JoinSet;

use self::server::RayApiServer;
use crate::{
    args::RayApiArgs,
    certificates::{self, ManagedCertificate},
    listen,
    settings::ProcessSettings,
};

/// The Service of the API.
const SERVICE: &str = "sluice-ray-api";

/// The Secret with the certificate, if it is not mounted.
const SECRET: &str = "sluice-ray-api-cert";

/// Fills the slot of the certificate. Returns the readiness check.
fn keep_certificate(
    (settings, args): (&ProcessSettings, &RayApiArgs),
    client: &Client,
    slot: &Arc<CertificateSlot>,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<HealthChecks> {
    let (slot, served) = (slot.clone(), slot.clone());
    match &args.ray_api_cert_dir {
        Some(dir) => {
            tasks.spawn(certificates::follow(dir.clone(), slot, stop.clone()));
        }
        None => {
            let namespace = settings.file.namespace().to_owned();
            let host = address(args)?.0;
            let names = certificates::names(SERVICE, &namespace, &host);
            let secret = CertSecret { namespace, name: SECRET.to_owned(), names };
            let own = ManagedCertificate::new(client.clone(), secret, slot, Vec::new());
            tasks.spawn(own.keep(stop.clone()));
        }
    }
    Ok(HealthChecks::default().with("certificate", move || served.is_loaded()))
}

/// Binds the port and starts to serve. Returns the readiness check of the certificate.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) async fn start(
    (settings, args): (&ProcessSettings, &RayApiArgs),
    (client, requests): (&Client, &RequestMetrics),
    slot: &Arc<CertificateSlot>,
    shutdown: &Shutdown,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<HealthChecks> {
    let ((host, port), stop) = (address(args)?, shutdown.serving());
    let ready = keep_certificate((settings, args), client, slot, stop, tasks)?;
    let listener = listen::bind("the Ray API", &host, port).await?;
    let files = settings.kubeconfig_files.clone();
    let namespace = settings.file.namespace();
    let workers = WorkerClients::new(client.clone(), namespace, files, requests.clone());
    let router = server::router(RayApiServer::new(client, workers, stop));
    let tls = tls::server_config(slot.clone(), &settings.tls()).context("tls")?;
    let server = Server::tls(router, tls).leaving_at(shutdown.leading().clone());
    tasks.spawn(server.run(listener, stop.clone()));
    Ok(ready)
}

fn address(args: &RayApiArgs) -> anyhow::Result<(String, u16)> {
    listen::parse(&args.ray_api_bind_address)?.context("--ray-api-bind-address is empty")
}
