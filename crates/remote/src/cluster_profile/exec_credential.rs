//! The protocol of credential plugins (`client.authentication.k8s.io`): what a plugin is given, and what its output says. Pure.
//!
//! Invariant: no error contains a part of the output, which has the credential.

use base64::{Engine, engine::general_purpose::STANDARD};
use config::AccessProvider;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster_profile::ProfileAccess;

/// The variable that has what the plugin is given.
pub(crate) const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";

/// The extension of a cluster that is meant for the plugin.
const PLUGIN_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// The name of cluster, user and context in the kubeconfig of a profile.
const ENTRY: &str = "profile";

/// Why the output of a plugin is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CredentialRefused {
    /// The output is no ExecCredential.
    #[error("its output is no ExecCredential")]
    Unreadable,
    /// The version is not the configured one.
    #[error("its output has another apiVersion than the configured one")]
    OtherVersion,
    /// There is no credential.
    #[error("its output has neither a token nor a client certificate with its key")]
    NoCredential,
    /// The expiry is no time.
    #[error("its output has an expirationTimestamp that is no time")]
    NoTime,
}

/// What a plugin gave.
pub(crate) struct PluginCredential {
    user: Value,
    /// From then on the credential is of no use; unknown for most tokens.
    pub(crate) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    kind: String,
    #[serde(default)]
    status: ExecCredentialStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExecCredentialStatus {
    expiration_timestamp: Option<String>,
    token: String,
    client_certificate_data: String,
    client_key_data: String,
}

/// What the plugin is given in [`EXEC_INFO`].
pub(crate) fn request(access: &ProfileAccess<'_>) -> String {
    let AccessProvider { exec_config, .. } = access.provider;
    let mut spec = json!({ "interactive": false });
    if exec_config.provide_cluster_info {
        let mut cluster = without_extensions(access.cluster);
        if let Some(config) = plugin_extension(access.cluster) {
            cluster["config"] = config.clone();
        }
        spec["cluster"] = cluster;
    }
    json!({ "kind": "ExecCredential", "apiVersion": exec_config.api_version, "spec": spec })
        .to_string()
}

/// Reads the output of the plugin.
///
/// # Errors
/// If it has no credential.
pub(crate) fn read(
    output: &[u8],
    provider: &AccessProvider,
) -> Result<PluginCredential, CredentialRefused> {
    let answer: ExecCredential =
        serde_json::from_slice(output).map_err(|_| CredentialRefused::Unreadable)?;
    if answer.kind != "ExecCredential" {
        return Err(CredentialRefused::Unreadable);
    }
    if answer.api_version != provider.exec_config.api_version {
        return Err(CredentialRefused::OtherVersion);
    }
    let status = answer.status;
    let certificate = !status.client_certificate_data.is_empty();
    // A certificate or a key alone proves nothing.
    if certificate == status.client_key_data.is_empty() || (!certificate && status.token.is_empty())
    {
        return Err(CredentialRefused::NoCredential);
    }
    let expires = status.expiration_timestamp.filter(|text| !text.is_empty());
    let expires = expires.map(|text| text.parse()).transpose();
    let mut user = json!({ "token": status.token });
    if certificate {
        user["client-certificate-data"] = STANDARD.encode(status.client_certificate_data).into();
        user["client-key-data"] = STANDARD.encode(status.client_key_data).into();
    }
    Ok(PluginCredential { user, expires: expires.map_err(|_| CredentialRefused::NoTime)? })
}

impl PluginCredential {
    /// The kubeconfig of the profile's cluster with this credential.
    pub(crate) fn kubeconfig(&self, access: &ProfileAccess<'_>) -> String {
        json!({
            "current-context": ENTRY,
            "contexts": [{ "name": ENTRY, "context": { "cluster": ENTRY, "user": ENTRY } }],
            "clusters": [{ "name": ENTRY, "cluster": without_extensions(access.cluster) }],
            "users": [{ "name": ENTRY, "user": self.user }],
        })
        .to_string()
    }
}

fn without_extensions(cluster: &Value) -> Value {
    let mut cluster = cluster.clone();
    if let Some(fields) = cluster.as_object_mut() {
        fields.remove("extensions");
    }
    cluster
}

fn plugin_extension(cluster: &Value) -> Option<&Value> {
    let extensions = cluster.get("extensions")?.as_array()?;
    extensions.iter().find(|one| one["name"] == PLUGIN_EXTENSION)?.get("extension")
}

#[cfg(test)]
mod tests {
    use config::ExecConfig;

    use super::*;
    use crate::kubeconfig::Kubeconfig;

    const VERSION: &str = "client.authentication.k8s.io/v1";

    fn provider(provide_cluster_info: bool) -> AccessProvider {
        let api_version = VERSION.to_owned();
        let exec_config = ExecConfig { api_version, provide_cluster_info, ..ExecConfig::default() };
        AccessProvider { name: "a".to_owned(), exec_config }
    }

    fn cluster() -> Value {
        json!({
            "server": "https://east:6443",
            "extensions": [
                { "name": "other", "extension": { "x": 1 } },
                { "name": "client.authentication.k8s.io/exec", "extension": { "clusterName": "east" } },
            ],
        })
    }

    #[test]
    fn a_plugin_is_given_the_cluster_only_if_it_is_configured_so() {
        let cluster = cluster();
        let given = |provider: &AccessProvider| -> Value {
            let text = request(&ProfileAccess { provider, cluster: &cluster });
            serde_json::from_str(&text).expect("JSON")
        };
        let bare = json!({ "kind": "ExecCredential", "apiVersion": VERSION, "spec": { "interactive": false } });
        assert_eq!(given(&provider(false)), bare);
        let full = json!({ "server": "https://east:6443", "config": { "clusterName": "east" } });
        assert_eq!(given(&provider(true))["spec"]["cluster"], full);
    }

    fn answer(status: &Value) -> Vec<u8> {
        json!({ "kind": "ExecCredential", "apiVersion": VERSION, "status": status })
            .to_string()
            .into_bytes()
    }

    #[test]
    fn a_token_makes_the_kubeconfig_of_the_cluster() {
        let (provider, cluster) = (provider(true), cluster());
        let status = json!({ "token": "hush", "expirationTimestamp": "2026-11-27T10:00:00Z" });
        let credential = read(&answer(&status), &provider).expect("a credential");
        assert_eq!(credential.expires, Some("2026-11-27T10:00:00Z".parse().expect("a time")));
        let text = credential.kubeconfig(&ProfileAccess { provider: &provider, cluster: &cluster });
        let kubeconfig = Kubeconfig::read(text.as_bytes()).expect("a kubeconfig");
        assert_eq!(kubeconfig.server.to_string(), "https://east:6443/");
        assert_eq!(kubeconfig.token.expect("a token").reveal(), "hush");
    }

    #[test]
    fn an_output_without_a_credential_is_refused_without_a_part_of_it() {
        let refused =
            |output: &[u8]| read(output, &provider(true)).map(|_| ()).expect_err("refused");
        let status = |status: Value| refused(&answer(&status));
        assert_eq!(refused(b"hush"), CredentialRefused::Unreadable);
        assert_eq!(
            refused(br#"{"kind":"Secret","apiVersion":"v1"}"#),
            CredentialRefused::Unreadable
        );
        let old =
            br#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}"#;
        assert_eq!(refused(old), CredentialRefused::OtherVersion);
        for nothing in [
            json!({}),
            json!({ "token": "" }),
            json!({ "clientCertificateData": "c" }),
            json!({ "token": "hush", "clientKeyData": "k" }),
        ] {
            assert_eq!(status(nothing), CredentialRefused::NoCredential);
        }
        let no_time = json!({ "token": "hush", "expirationTimestamp": "soon" });
        assert_eq!(status(no_time), CredentialRefused::NoTime);
    }

    #[test]
    fn a_profile_cannot_switch_verification_off() {
        let (provider, cluster) =
            (provider(true), json!({ "server": "https://east", "insecure-skip-tls-verify": true }));
        let credential =
            read(&answer(&json!({ "token": "hush" })), &provider).expect("a credential");
        let text = credential.kubeconfig(&ProfileAccess { provider: &provider, cluster: &cluster });
        let refused = Kubeconfig::read(text.as_bytes()).expect_err("insecure").to_string();
        assert_eq!(refused, "insecure TLS verification is not allowed for cluster profile");
    }
}
