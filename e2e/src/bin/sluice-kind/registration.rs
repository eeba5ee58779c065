//! A worker of the manager, as config/README.md registers one by hand: a token of the account `sluice-hub`, a kubeconfig with it
//! in a Secret, and a MultiKueueCluster.

use anyhow::{Context, Result};
use e2e::installation::{NAMESPACE, registration};
use kube::config::Kubeconfig;
use lab::kubeconfig::{at_server, with_token};

/// The account that the manager uses on a worker.
pub(crate) const ACCOUNT: &str = "sluice-hub";

/// What the README recommends. A second registration replaces the token.
const LIFETIME: &str = "--duration=720h";

/// The command that makes a token on the worker.
pub(crate) fn token_command() -> [&'static str; 6] {
    ["create", "token", ACCOUNT, "-n", NAMESPACE, LIFETIME]
}

/// The objects of the worker `name` on the manager, out of the administrator's kubeconfig and the address that pods of the manager reach.
pub(crate) fn objects(
    name: &str,
    (kubeconfig, server): (&str, &str),
    token: &str,
) -> Result<String> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)
        .with_context(|| format!("reading the kubeconfig of {name}"))?;
    let kubeconfig = with_token(at_server(kubeconfig, server), token.trim());
    registration(name, &kubeconfig)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    const INTERNAL: &str = "
apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: 'https://sluice-worker-1-control-plane:6443', certificate-authority-data: QQ==}}
users:
- {name: admin, user: {client-certificate-data: QQ==, client-key-data: Qg==}}
contexts:
- {name: c, context: {cluster: c, user: admin}}
current-context: c
";

    #[test]
    fn the_secret_has_the_address_and_the_token_and_nothing_of_the_administrator() {
        let text = objects("worker-1", (INTERNAL, "https://172.18.0.3:6443"), "abc\n").unwrap();
        let secret = text.split("\n---\n").next().unwrap();
        let secret: serde_json::Value = serde_json::from_str(secret).unwrap();
        let kubeconfig = secret["data"]["kubeconfig"].clone();
        let kubeconfig: ByteString = serde_json::from_value(kubeconfig).unwrap();
        let kubeconfig = String::from_utf8(kubeconfig.0).unwrap();
        assert!(kubeconfig.contains("\"https://172.18.0.3:6443\""), "{kubeconfig}");
        assert!(kubeconfig.contains("\"token\":\"abc\""), "{kubeconfig}");
        assert!(!kubeconfig.contains("client-"), "{kubeconfig}");
    }

    #[test]
    fn what_is_no_kubeconfig_is_named() {
        let said = objects("worker-1", ("clusters: 7", ""), "abc").unwrap_err().to_string();
        assert_eq!(said, "reading the kubeconfig of worker-1");
    }
}
