//! Which objects of a kind a watch covers.

use kube::{Api, Client, core::ApiResource, runtime::watcher::Config};

use super::discovery::KindDiscovery;
use crate::api_object::ApiObject;

/// The objects of a watch: the cluster, all namespaces or one, and selectors.
#[derive(Clone)]
pub struct WatchSource {
    client: Client,
    namespace: Option<Box<str>>,
    pub(super) config: Config,
}

impl WatchSource {
    /// All objects of the cluster of `client`.
    #[must_use]
    pub fn all(client: Client) -> Self {
        Self { client, namespace: None, config: Config::default() }
    }

    /// Only the objects of one namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Only the objects that `config` selects, with its page size and timeout.
    ///
    /// A dead connection is detected after the timeout of `config` (five minutes by default); set a shorter one for remote
    /// clusters.
    #[must_use]
    pub fn with_config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Of the selected objects only those that this label selector matches, too.
    #[must_use]
    pub fn selecting(mut self, labels: &str) -> Self {
        self.config.label_selector = Some(match self.config.label_selector.take() {
            Some(selector) => format!("{selector},{labels}"),
            None => labels.to_owned(),
        });
        self
    }

    /// The objects of this kind.
    pub(super) fn api(&self, resource: &ApiResource) -> Api<ApiObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// The discovery of this kind by the same API server.
    pub(super) fn discovery(&self, resource: &ApiResource) -> KindDiscovery {
        KindDiscovery::new(self.client.clone(), resource.clone())
    }
}
