//! The address, authority and server name by which the manager reaches a worker. Pure.
//!
//! They come from the caller's kubeconfig. The manager takes https addresses and inline authorities only
//! (docs/reference/multikueue.md §2.9), so whatever it would refuse is refused here, before anything is made.

use std::net::IpAddr;

use kube::config::{Cluster, Kubeconfig};

/// What the manager's kubeconfig says about the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinEndpoint {
    /// An https URL.
    pub server: String,
    /// PEM certificates in base64; the system's authorities count without them.
    pub authority: Option<String>,
    /// The name in the server's certificate, if it is not the host.
    pub tls_server_name: Option<String>,
}

/// What the command line says about the server.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointOptions {
    /// An address instead of the kubeconfig's.
    pub(super) server: Option<String>,
    /// PEM certificates in base64 instead of the kubeconfig's.
    pub(super) authority: Option<String>,
    /// Whether a loopback address is accepted.
    pub(super) allow_loopback: bool,
}

/// Why the manager cannot use an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointRefused {
    /// The kubeconfig has no cluster for the context.
    #[error("context {0:?} of the worker's kubeconfig names no cluster with a server")]
    NoServer(String),
    /// Not https.
    #[error("{0:?} is no https URL of a host: the manager connects by https only")]
    NotHttps(String),
    /// The address leads to the machine that uses it.
    #[error(
        "{0:?} is an address of this machine, which leads the manager to itself: name one that the manager reaches with --server, or add --allow-loopback if both run on this machine"
    )]
    Loopback(String),
    /// Certificates are not verified.
    #[error(
        "context {0:?} turns certificate verification off, which the manager refuses: name the authority of the server with --certificate-authority"
    )]
    Insecure(String),
    /// The server is reached by a proxy.
    #[error(
        "context {0:?} reaches the server by a proxy, which the manager refuses: name an address without a proxy with --server"
    )]
    Proxy(String),
}

/// Chooses the endpoint for a context. `file_authority` is the content of the kubeconfig's authority file in base64.
///
/// # Errors
/// If the manager would refuse the address or could not verify it.
pub(super) fn choose(
    kubeconfig: &Kubeconfig,
    context: &str,
    options: &EndpointOptions,
    file_authority: Option<String>,
) -> Result<JoinEndpoint, EndpointRefused> {
    let named = || context.to_owned();
    let cluster =
        cluster_of(kubeconfig, context).ok_or_else(|| EndpointRefused::NoServer(named()))?;
    let moved = options.server.is_some();
    let server = options.server.clone().or_else(|| cluster.server.clone());
    let server = server.filter(|server| !server.is_empty());
    let server = server.ok_or_else(|| EndpointRefused::NoServer(named()))?;
    let host = https_host(&server).ok_or_else(|| EndpointRefused::NotHttps(server.clone()))?;
    if is_own_machine(host) && !options.allow_loopback {
        return Err(EndpointRefused::Loopback(server));
    }
    if cluster.insecure_skip_tls_verify == Some(true) && options.authority.is_none() {
        return Err(EndpointRefused::Insecure(named()));
    }
    if filled(cluster.proxy_url.as_ref()).is_some() && !moved {
        return Err(EndpointRefused::Proxy(named()));
    }
    let own = filled(cluster.certificate_authority_data.as_ref()).or(file_authority);
    // Another address has another name in its certificate.
    let name = filled(cluster.tls_server_name.as_ref()).filter(|_| !moved);
    let authority = options.authority.clone().or(own);
    Ok(JoinEndpoint { server, authority, tls_server_name: name })
}

/// The cluster of a context.
pub(super) fn cluster_of<'a>(kubeconfig: &'a Kubeconfig, context: &str) -> Option<&'a Cluster> {
    let context = kubeconfig.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    kubeconfig.clusters.iter().find(|one| one.name == context.cluster)?.cluster.as_ref()
}

fn filled(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// The host of an https URL without credentials, query and fragment.
fn https_host(server: &str) -> Option<&str> {
    let rest = server.strip_prefix("https://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    if rest.contains(['?', '#', '@', ' ']) {
        return None;
    }
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split_once(']').map(|(address, _)| address)?,
        None => authority.split(':').next().unwrap_or_default(),
    };
    (!host.is_empty()).then_some(host)
}

/// Loopback, unspecified and link-local addresses, and the names of the machine itself.
fn is_own_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback() || address.is_unspecified() || address.is_link_local()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local()
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str) -> Kubeconfig {
        let text = format!(
            "clusters: [{{name: c, cluster: {{{cluster}}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
        );
        Kubeconfig::from_yaml(&text).expect("a kubeconfig")
    }

    fn chosen(cluster: &str, options: &EndpointOptions) -> Result<JoinEndpoint, EndpointRefused> {
        choose(&kubeconfig(cluster), "x", options, None)
    }

    const WORKER: &str = "server: 'https://worker:6443', certificate-authority-data: Q0E=";

    #[test]
    fn the_endpoint_is_that_of_the_kubeconfig() {
        let expected = JoinEndpoint {
            server: "https://worker:6443".to_owned(),
            authority: Some("Q0E=".to_owned()),
            tls_server_name: None,
        };
        assert_eq!(chosen(WORKER, &EndpointOptions::default()), Ok(expected));
    }

    #[test]
    fn addresses_of_this_machine_are_refused_unless_they_are_allowed() {
        for host in [
            "127.0.0.1:6443",
            "127.8.9.1",
            "localhost:1",
            "LOCALHOST.",
            "api.localhost",
            "[::1]:6443",
            "0.0.0.0:6443",
            "[::]",
            "[::ffff:127.0.0.1]:1",
            "169.254.1.1",
            "[fe80::1]",
        ] {
            let server = format!("https://{host}");
            let cluster = format!("server: '{server}'");
            let refused = chosen(&cluster, &EndpointOptions::default());
            assert_eq!(refused, Err(EndpointRefused::Loopback(server)), "{host}");
            let options = EndpointOptions { allow_loopback: true, ..EndpointOptions::default() };
            assert!(chosen(&cluster, &options).is_ok(), "{host}");
        }
        for host in ["10.0.0.1:6443", "[2001:db8::1]:6443", "localhost.example.com", "worker/path"]
        {
            let cluster = format!("server: 'https://{host}'");
            assert!(chosen(&cluster, &EndpointOptions::default()).is_ok(), "{host}");
        }
    }

    #[test]
    fn what_the_manager_refuses_is_refused() {
        let options = EndpointOptions::default();
        for server in
            ["http://worker", "worker:6443", "https://", "https://u:p@worker", "https://w?x=1"]
        {
            let refused = chosen(&format!("server: '{server}'"), &options);
            assert_eq!(refused, Err(EndpointRefused::NotHttps(server.to_owned())));
        }
        let refused = chosen(&format!("{WORKER}, insecure-skip-tls-verify: true"), &options);
        assert_eq!(refused, Err(EndpointRefused::Insecure("x".to_owned())));
        let refused = chosen(&format!("{WORKER}, proxy-url: 'http://proxy'"), &options);
        assert_eq!(refused, Err(EndpointRefused::Proxy("x".to_owned())));
        let refused = chosen("certificate-authority-data: Q0E=", &options);
        assert_eq!(refused, Err(EndpointRefused::NoServer("x".to_owned())));
        assert!(choose(&kubeconfig(WORKER), "y", &options, None).is_err());
    }

    #[test]
    fn an_address_of_the_command_line_takes_neither_proxy_nor_server_name() {
        let cluster = format!("{WORKER}, proxy-url: 'http://proxy', tls-server-name: inner");
        let server = Some("https://outer:6443".to_owned());
        let options =
            EndpointOptions { server, authority: Some("T1U=".to_owned()), allow_loopback: false };
        let endpoint = chosen(&cluster, &options).expect("an endpoint");
        assert_eq!(endpoint.server, "https://outer:6443");
        assert_eq!(endpoint.authority.as_deref(), Some("T1U="));
        assert_eq!(endpoint.tls_server_name, None);
    }
}
