//! A client for a worker, from a kubeconfig that was judged.
//!
//! The configuration is made by hand: nothing is taken from the environment, from files or from plugins, and no proxy is
//! used. Requests are not repeated by the client. What is answered is bounded; how long it takes is for the caller to
//! bound.

use std::time::Duration;

use http::{HeaderValue, header::USER_AGENT};
use kube::{Client, Config, client::ClientBuilder, config::AuthInfo};

use runtime::requests::RequestCounter;

use super::{kubeconfig::Kubeconfig, limit::Limit};
use crate::{build_info, chain};

/// How long a TCP connection with its TLS handshake may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a request may be stuck while it is sent.
const SEND: Duration = Duration::from_secs(10);

/// The longest text of an error that is told; a server may answer with anything.
const LONGEST: usize = 512;

/// Why a worker does not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreachable {
    /// The kubeconfig does not make a client.
    #[error("cannot make a client: {0}")]
    Build(String),
    /// It refused, or failed.
    #[error("{0}")]
    Failed(String),
    /// It answers, and is somebody else's.
    #[error("this cluster is registered as {0:?} already")]
    Another(Box<str>),
    /// It did not answer in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

/// A client for the server that the kubeconfig names, whose requests are counted. Nothing is sent yet.
///
/// # Errors
/// If the certificates do not fit together.
pub(super) fn build(
    kubeconfig: &Kubeconfig,
    count: &RequestCounter,
) -> Result<Client, Unreachable> {
    let failed = |error: kube::Error| Unreachable::Build(tell(&error));
    let builder = ClientBuilder::try_from(config(kubeconfig)).map_err(failed)?;
    Ok(builder.with_layer(&Limit).with_layer(count).build())
}

fn config(kubeconfig: &Kubeconfig) -> Config {
    let mut config = Config::new(kubeconfig.server.clone());
    if let Some(namespace) = &kubeconfig.namespace {
        config.default_namespace.clone_from(namespace);
    }
    config.root_cert.clone_from(&kubeconfig.roots);
    config.tls_server_name.clone_from(&kubeconfig.tls_server_name);
    config.auth_info = credentials(kubeconfig);
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(SEND);
    config.default_retry = false;
    config.headers = vec![(USER_AGENT, HeaderValue::from_static(build_info::USER_AGENT))];
    config
}

fn credentials(kubeconfig: &Kubeconfig) -> AuthInfo {
    let identity = kubeconfig.identity.as_ref();
    AuthInfo {
        token: kubeconfig.token.as_ref().map(|token| token.reveal().into()),
        client_certificate_data: identity.map(|one| one.certificate.reveal().to_owned()),
        client_key_data: identity.map(|one| one.key.reveal().into()),
        ..AuthInfo::default()
    }
}

/// Asks whether the server answers and knows us. A server that is too busy to say is there.
///
/// # Errors
/// If it does not answer before the deadline, or refuses.
pub(super) async fn probe(client: &Client, deadline: Duration) -> Result<(), Unreachable> {
    match tokio::time::timeout(deadline, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 429 => Ok(()),
        Ok(Err(error)) => Err(Unreachable::Failed(tell(&error))),
        Err(_) => Err(Unreachable::Silent(deadline)),
    }
}

/// An error with its causes, cut to a length that fits into a condition.
pub(super) fn tell(error: &kube::Error) -> String {
    let mut text = chain::describe(error);
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use runtime::requests::RequestMetrics;

    use super::*;
    use crate::remote::kubeconfig::sample;

    #[tokio::test]
    async fn a_token_and_a_certificate_of_its_own_make_a_client() {
        let (token, certificate) = (sample(false), sample(true));
        assert!(token.token.is_some() && certificate.identity.is_some());
        let count = RequestMetrics::default().of("east");
        assert!(build(&token, &count).is_ok() && build(&certificate, &count).is_ok());
    }

    #[test]
    fn nothing_but_the_kubeconfig_decides_how_a_worker_is_reached() {
        let config = config(&sample(false));
        assert!(!config.default_retry && !config.accept_invalid_certs);
        assert!(config.proxy_url.is_none() && config.root_cert_file.is_none());
        let who = &config.auth_info;
        assert!(who.token.is_some() && who.exec.is_none() && who.token_file.is_none());
    }

    #[test]
    fn an_error_is_cut_to_what_fits_into_a_condition() {
        let error = kube::Error::Service("ä".repeat(LONGEST * 2).into());
        assert_eq!(tell(&error).chars().count(), LONGEST + 1);
    }
}
