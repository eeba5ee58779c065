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
use remote::WorkerClients;
use runtime::{
    cert_secret::CertSecret,
    health::HealthChecks,
    server::Server,
    tls::{self, CertificateSlot},
};

use self::server::RayApiServer;
use crate::{
    args::RayApiArgs,
    certificate_plan::{CertificateOrigin, CertificatePlan},
    certificates, listen,
    process_parts::ProcessParts,
    settings::ProcessSettings,
};

/// The Service of the API.
const SERVICE: &str = "sluice-ray-api";

/// The Secret with the certificate, if it is not mounted.
const SECRET: &str = "sluice-ray-api-cert";

/// The certificate of the API: mounted, or created. Readiness waits for it; the API server does not call the API and needs no CA.
fn certificate_plan(
    settings: &ProcessSettings,
    args: &RayApiArgs,
) -> anyhow::Result<CertificatePlan> {
    let origin = match &args.ray_api_cert_dir {
        Some(directory) => CertificateOrigin::Mounted(directory.clone()),
        None => {
            let namespace = settings.file.namespace().to_owned();
            let (host, _) = address(args)?;
            let names = certificates::names(SERVICE, &namespace, &host);
            let secret = CertSecret { namespace, name: SECRET.to_owned(), names };
            CertificateOrigin::Created { secret, targets: Vec::new() }
        }
    };
    Ok(CertificatePlan { origin, is_awaited: true })
}

/// Binds the port and starts to serve. Returns the readiness check of the certificate.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) async fn start(
    args: &RayApiArgs,
    slot: &Arc<CertificateSlot>,
    parts: &mut ProcessParts<'_>,
) -> anyhow::Result<HealthChecks> {
    let (settings, (host, port)) = (parts.settings, address(args)?);
    let ready = certificate_plan(settings, args)?.start(slot, parts);
    let listener = listen::bind("the Ray API", &host, port).await?;
    let ProcessParts { client, metrics, shutdown, tasks, .. } = parts;
    let stop = shutdown.serving();
    let (files, requests) = (settings.kubeconfig_files.clone(), metrics.clients.requests.clone());
    let workers = WorkerClients::new(client.clone(), settings.file.namespace(), files, requests);
    let router = server::router(RayApiServer::new(client, workers, stop));
    let tls = tls::server_config(slot.clone(), &settings.tls()).context("tls")?;
    let server = Server::tls(router, tls).leaving_at(shutdown.leading().clone());
    tasks.spawn(server.run(listener, stop.clone()));
    Ok(ready)
}

fn address(args: &RayApiArgs) -> anyhow::Result<(String, u16)> {
    listen::parse(&args.ray_api_bind_address)?.context("--ray-api-bind-address is empty")
}
