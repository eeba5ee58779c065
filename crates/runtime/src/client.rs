//! The client of the process's own cluster.

use std::{path::Path, time::Duration};

use http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{request_metrics::RequestCounter, transport};

/// Why no client could be created.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be read or used.
    #[error("cannot load the kubeconfig {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong.
        source: kube::config::KubeconfigError,
    },
    /// There is neither a kubeconfig nor a service account.
    #[error("cannot find the cluster's configuration: {0}")]
    Infer(#[from] kube::config::InferConfigError),
    /// The configuration is invalid.
    #[error("cannot make a client: {0}")]
    Client(#[source] kube::Error),
    /// The user agent is not a valid header value.
    #[error("cannot use {0:?} as user agent")]
    UserAgent(String),
}

/// A client from the kubeconfig at `path`, or from the environment.
///
/// The client does not retry requests: retries are the caller's decision. Each request is counted.
///
/// # Errors
/// If there is no configuration, or it is invalid.
pub async fn connect(
    path: Option<&Path>,
    user_agent: &str,
    count: &RequestCounter,
) -> Result<Client, ClientError> {
    let mut config = match path {
        Some(path) => from_file(path).await?,
        None => Config::infer().await?,
    };
    let value = HeaderValue::from_str(user_agent)
        .map_err(|_| ClientError::UserAgent(user_agent.to_owned()))?;
    config.headers.push((USER_AGENT, value));
    // Writer, watches and elector retry with deadlines of their own.
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    let builder = transport::builder(&config).map_err(ClientError::Client)?;
    Ok(builder.with_layer(count).build())
}

async fn from_file(path: &Path) -> Result<Config, ClientError> {
    let failed = |source| ClientError::Kubeconfig { path: path.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)
}
