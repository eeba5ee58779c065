//! Builds the client of a worker from a validated kubeconfig.
//!
//! The configuration contains nothing from the environment, files or plugins, and no proxy. The client does not retry. The
//! size and the duration of responses are limited.

use std::time::Duration;

use crds::{
    names::{
        annotations::CLUSTER_UID,
        reasons::{CLUSTER_ALREADY_REGISTERED, CLUSTER_CHANGED},
    },
    v1beta2::Workload,
};
use http::{HeaderValue, header::USER_AGENT};
use kube::{Api, Client, Config, api::ListParams, client::ClientBuilder, config::AuthInfo};

use runtime::{error_chain, request_metrics::RequestCounter, transport};

use crate::{
    kubeconfig::Kubeconfig, response_deadline::ResponseDeadline, response_limit::ResponseLimit,
};

/// The user agent, visible in the audit logs of workers: the program is the manager.
const AGENT: &str = concat!("sluice-manager/", env!("CARGO_PKG_VERSION"));

/// Timeout of a TCP connection with its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout while a request is being sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of an error text in characters. A server may send any text.
const MAX_ERROR: usize = 512;

/// Why a worker cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreachable {
    /// The kubeconfig does not make a client.
    #[error("cannot make a client: {0}")]
    Build(String),
    /// The request was refused or failed.
    #[error("{0}")]
    Failed(String),
    /// The cluster belongs to another MultiKueueCluster.
    #[error("this cluster is registered as {0:?} already")]
    TakenBy(Box<str>),
    /// Work is recorded on another cluster.
    #[error(
        "another cluster answers: its namespace kube-system has the uid {found:?}, that of the cluster with the recorded work {known:?}; to confirm the change, set the annotation {CLUSTER_UID} to {found:?}"
    )]
    Changed {
        /// The uid of the cluster with the work.
        known: Box<str>,
        /// The uid of the cluster that answers.
        found: Box<str>,
    },
    /// No response in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
    /// This process could not note the identity of the cluster.
    #[error("cannot write down which cluster this is: {0}")]
    NotNoted(String),
}

impl Unreachable {
    /// The reason of the condition `Active`, if the server answers and the cluster behind it is not taken.
    pub(super) fn refusal_reason(&self) -> Option<&'static str> {
        match self {
            Self::TakenBy(_) => Some(CLUSTER_ALREADY_REGISTERED),
            Self::Changed { .. } => Some(CLUSTER_CHANGED),
            Self::Build(_) | Self::Failed(_) | Self::Silent(_) | Self::NotNoted(_) => None,
        }
    }
}

/// The client for the server of the kubeconfig. Requests are counted. Nothing is sent yet.
///
/// # Errors
/// If the certificates do not match.
pub(super) fn build(
    kubeconfig: &Kubeconfig,
    count: &RequestCounter,
) -> Result<Client, Unreachable> {
    let failed = |error: kube::Error| Unreachable::Build(describe(&error));
    let builder = transport::builder(&config(kubeconfig)).map_err(failed)?;
    let builder = builder.with_layer(&ResponseDeadline).with_layer(&ResponseLimit);
    Ok(builder.with_layer(count).build())
}

/// A client of any server that gives up requests without an answer, for callers without deadlines of their own.
///
/// # Errors
/// If the certificates do not match.
pub fn with_deadlines(config: Config) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&ResponseDeadline).build())
}

fn config(kubeconfig: &Kubeconfig) -> Config {
    let mut config = Config::new(kubeconfig.server.clone());
    if let Some(namespace) = &kubeconfig.namespace {
        config.default_namespace.clone_from(namespace);
    }
    // Without roots the client uses those of the system.
    config.root_cert.clone_from(&kubeconfig.roots);
    config.tls_server_name.clone_from(&kubeconfig.tls_server_name);
    config.auth_info = credentials(kubeconfig);
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(SEND_TIMEOUT);
    // The writer and the watches retry with their own backoff; a second one would multiply the
    // requests.
    config.default_retry = false;
    config.headers = vec![(USER_AGENT, HeaderValue::from_static(AGENT))];
    config
}

fn credentials(kubeconfig: &Kubeconfig) -> AuthInfo {
    // All other fields stay unset: they could run programs or read files.
    let identity = kubeconfig.identity.as_ref();
    AuthInfo {
        token: kubeconfig.token.as_ref().map(|token| token.reveal().into()),
        client_certificate_data: identity.map(|one| one.certificate.reveal().to_owned()),
        client_key_data: identity.map(|one| one.key.reveal().into()),
        ..AuthInfo::default()
    }
}

/// Checks that the server responds and accepts the credentials. 429 (too many requests) counts as a response.
///
/// # Errors
/// If there is no response before the deadline, or a refusal.
pub(super) async fn probe(client: &Client, deadline: Duration) -> Result<(), Unreachable> {
    match tokio::time::timeout(deadline, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(()),
        // An API server that limits requests is reachable.
        Ok(Err(kube::Error::Api(status))) if status.code == 429 => Ok(()),
        Ok(Err(error)) => Err(Unreachable::Failed(describe(&error))),
        Err(_) => Err(Unreachable::Silent(deadline)),
    }
}

/// Checks that the server reads its store: `/version` is answered without it. An account that may not list Workloads is refused
/// before the store is read, which counts as a response.
///
/// # Errors
/// If there is no response before the deadline, or the server fails.
pub(super) async fn probe_store(client: &Client, deadline: Duration) -> Result<(), Unreachable> {
    let workloads = Api::<Workload>::all(client.clone());
    let one = ListParams::default().limit(1);
    match tokio::time::timeout(deadline, workloads.list_metadata(&one)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
        Ok(Err(error)) => Err(Unreachable::Failed(describe(&error))),
        Err(_) => Err(Unreachable::Silent(deadline)),
    }
}

/// An error with its causes, truncated to fit into a condition.
pub(super) fn describe(error: &kube::Error) -> String {
    let mut text = error_chain::describe(error);
    // A condition has a bounded message, and a broken server may answer with a page.
    if let Some((end, _)) = text.char_indices().nth(MAX_ERROR) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use runtime::request_metrics::RequestMetrics;

    use super::*;
    use crate::kubeconfig::sample;

    #[tokio::test]
    async fn a_token_or_a_client_certificate_makes_a_client() {
        let (token, certificate) = (sample(false), sample(true));
        assert!(token.token.is_some() && certificate.identity.is_some());
        let count = RequestMetrics::default().of("east");
        assert!(build(&token, &count).is_ok() && build(&certificate, &count).is_ok());
    }

    #[test]
    fn a_cluster_that_is_not_taken_has_a_reason_of_its_own() {
        let changed = Unreachable::Changed { known: "one".into(), found: "two".into() };
        assert_eq!(changed.refusal_reason(), Some("ClusterChanged"));
        let taken = Unreachable::TakenBy("west".into());
        assert_eq!(taken.refusal_reason(), Some("ClusterAlreadyRegistered"));
        for failed in [Unreachable::Failed(String::new()), Unreachable::NotNoted(String::new())] {
            assert_eq!(failed.refusal_reason(), None, "{failed:?}");
        }
    }

    #[test]
    fn the_client_is_configured_by_the_kubeconfig_only() {
        let config = config(&sample(false));
        assert!(!config.default_retry && !config.accept_invalid_certs);
        assert!(config.proxy_url.is_none() && config.root_cert_file.is_none());
        let auth_info = &config.auth_info;
        assert!(
            auth_info.token.is_some() && auth_info.exec.is_none() && auth_info.token_file.is_none()
        );
    }

    #[test]
    fn an_error_is_truncated_to_fit_into_a_condition() {
        let error = kube::Error::Service("ä".repeat(MAX_ERROR * 2).into());
        assert_eq!(describe(&error).chars().count(), MAX_ERROR + 1);
    }
}
