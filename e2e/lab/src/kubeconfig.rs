//! Kubeconfigs with inline data, so that they can be moved, or stored in a Secret.

use std::time::Duration;

use k8s_openapi::ByteString;
use kube::Config;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
    NamedCluster, NamedContext,
};

use crate::certs::Certs;

/// Why a kubeconfig could not be written or used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigFailure {
    /// It could not be rendered.
    #[error("render the kubeconfig: {0}")]
    Render(String),
    /// The kubeconfig cannot be read or is invalid.
    #[error("use the kubeconfig: {0}")]
    Use(#[from] KubeconfigError),
    /// The client could not be created.
    #[error("make a client: {0}")]
    Client(#[from] kube::Error),
}

/// The administrator's kubeconfig for the cluster `name` at `server`.
pub fn admin(name: &str, server: &str, certs: &Certs) -> Kubeconfig {
    Kubeconfig {
        clusters: vec![NamedCluster {
            name: name.to_owned(),
            cluster: Some(Cluster {
                server: Some(server.to_owned()),
                certificate_authority_data: Some(base64(certs.ca.certificate.as_bytes())),
                ..Cluster::default()
            }),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: "admin".to_owned(),
            auth_info: Some(AuthInfo {
                client_certificate_data: Some(base64(certs.admin.certificate.as_bytes())),
                client_key_data: Some(base64(certs.admin.key.as_bytes()).into()),
                ..AuthInfo::default()
            }),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: name.to_owned(),
            context: Some(Context {
                cluster: name.to_owned(),
                user: Some("admin".to_owned()),
                ..Context::default()
            }),
            ..NamedContext::default()
        }],
        current_context: Some(name.to_owned()),
        ..Kubeconfig::default()
    }
}

/// A kubeconfig for another address, such as that of a proxy in front of the server.
pub fn at_server(mut kubeconfig: Kubeconfig, server: &str) -> Kubeconfig {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(server.to_owned());
    }
    kubeconfig
}

/// A kubeconfig for a holder of `token` instead of the administrator.
pub fn with_token(mut kubeconfig: Kubeconfig, token: &str) -> Kubeconfig {
    for user in &mut kubeconfig.auth_infos {
        user.auth_info =
            Some(AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() });
    }
    kubeconfig
}

/// As text.
pub fn render(kubeconfig: &Kubeconfig) -> Result<String, KubeconfigFailure> {
    // JSON is valid YAML.
    serde_json::to_string_pretty(kubeconfig)
        .map_err(|error| KubeconfigFailure::Render(error.to_string()))
}

/// The connection settings out of a kubeconfig. kube's own retries are off: a test wants to see the first answer.
pub async fn config(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigFailure> {
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    // A paused server never responds; a watch has an event, or ends, much earlier.
    config.read_timeout = Some(Duration::from_secs(120));
    Ok(config)
}

/// A client out of a kubeconfig.
pub async fn client(kubeconfig: Kubeconfig) -> Result<kube::Client, KubeconfigFailure> {
    Ok(kube::Client::try_from(config(kubeconfig).await?)?)
}

/// Bytes as the API encodes them.
fn base64(data: &[u8]) -> String {
    let value = serde_json::to_value(ByteString(data.to_vec()));
    value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_to_four() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn a_kubeconfig_has_no_file_paths_and_round_trips() {
        let certs = Certs::make().unwrap();
        let kubeconfig = admin("worker-1", "https://127.0.0.1:1", &certs);
        let text = render(&at_server(kubeconfig, "https://127.0.0.1:2")).unwrap();
        assert!(!text.contains("\"certificate-authority\""), "{text}");
        let read = Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("worker-1"));
        let cluster = read.clusters[0].cluster.clone().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:2"));
    }
}
