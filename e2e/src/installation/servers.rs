//! Clients of servers of a manager, which have certificates of their own.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    config::{AuthInfo, Kubeconfig},
};

use super::{Installation, NAMESPACE};

/// A client of the server on this port, with the CA of a Secret.
pub(super) async fn client(
    installation: &Installation<'_>,
    secret: &str,
    port: u16,
    user: AuthInfo,
) -> Result<Client> {
    let secrets: Api<Secret> = installation.hub.api(NAMESPACE);
    let secret = secrets.get(secret).await?;
    let ca = secret.data.as_ref().and_then(|data| data.get("ca.crt")).context("a CA")?;
    // Tests run side by side, and a file that another one is writing is no certificate.
    let thread = std::thread::current().name().unwrap_or_default().replace(':', "-");
    let path = installation.file(&format!("server-{port}-{thread}.crt"));
    std::fs::write(&path, &ca.0)?;
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.root_cert_file = Some(path);
    config.auth_info = user;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// The credentials of a kubeconfig.
///
/// # Errors
/// If it has none.
pub fn first_user(kubeconfig: Kubeconfig) -> Result<AuthInfo> {
    let user = kubeconfig.auth_infos.into_iter().next().context("a user")?;
    user.auth_info.context("credentials")
}
