//! The front proxies that are trusted: those of the ConfigMap `kube-system/extension-apiserver-authentication`, as it is now.

use std::sync::Arc;

use anyhow::Context;
use crds::decode::Decode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::RwLock;
use runtime::{
    Stop,
    client_certificate::{ClientAuthorities, ClientSubject, PeerCertificates},
    watch::{Change, Config, Stores, Watch},
};
use visibility::front_proxy::FrontProxy;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// The present authorities. Cheap to clone; nothing is trusted before the ConfigMap is known.
#[derive(Clone, Default)]
pub(super) struct TrustedProxies(Arc<RwLock<Arc<TrustedAuthorities>>>);

/// What one version of the ConfigMap says.
#[derive(Debug, Default)]
pub(super) struct TrustedAuthorities {
    /// Which headers count.
    pub(super) front_proxy: FrontProxy,
    proxies: ClientAuthorities,
    users: ClientAuthorities,
}

impl TrustedAuthorities {
    fn read(object: &ConfigMap) -> anyhow::Result<Self> {
        let data = object.data.clone().unwrap_or_default();
        let front_proxy = FrontProxy::read(&data)?;
        let proxies = ClientAuthorities::from_pem(&front_proxy.proxy_authorities)
            .context("requestheader-client-ca-file")?;
        let users =
            ClientAuthorities::from_pem(&front_proxy.user_authorities).context("client-ca-file")?;
        Ok(Self { front_proxy, proxies, users })
    }

    /// Whether a client is a front proxy, whose headers count.
    pub(super) fn is_front_proxy(&self, peer: &PeerCertificates, now: Timestamp) -> bool {
        let subject = self.proxies.verify(peer, now);
        subject.is_some_and(|subject| self.front_proxy.allows(&subject.common_name))
    }

    /// The user that a client certificate names itself.
    pub(super) fn user(&self, peer: &PeerCertificates, now: Timestamp) -> Option<ClientSubject> {
        // A certificate without a name is that of no user.
        self.users.verify(peer, now).filter(|subject| !subject.common_name.is_empty())
    }
}

impl TrustedProxies {
    /// The present authorities.
    pub(super) fn current(&self) -> Arc<TrustedAuthorities> {
        self.0.read().clone()
    }

    /// Watches the ConfigMap until `stop`.
    pub(super) fn follow(
        &self,
        stores: &mut Stores,
        stop: Stop,
    ) -> impl Future<Output = ()> + Send + use<> {
        let name = format!("metadata.name={NAME}");
        let source = stores.source().in_namespace(NAMESPACE);
        let source = source.with_config(Config::default().fields(&name));
        let watch =
            Watch::typed("authentication", ConfigMap::decode_text, &source, stores.metrics());
        // Optional: without the right to read it, requests with a token are still served.
        let mut changes = stores.start(watch.optional()).subscribe();
        let this = self.clone();
        async move {
            while let Some(change) = stop.run_until_cancelled(changes.next()).await {
                this.handle(&change);
            }
        }
    }

    fn handle(&self, change: &Change<ConfigMap>) {
        let object = match change {
            Change::Apply(object) => Some(object),
            Change::Reset { objects, removed } if !objects.is_empty() || !removed.is_empty() => {
                objects.first()
            }
            // A list without a difference, and a watch that is interrupted, change nothing.
            Change::Reset { .. } => return,
            Change::Unavailable { reason, .. } => {
                tracing::warn!(
                    ?reason,
                    "cannot read {NAMESPACE}/{NAME}: no front proxy is trusted"
                );
                return;
            }
            Change::Delete(_) => None,
        };
        let read = object.map(|object| TrustedAuthorities::read(object)).transpose();
        match read {
            Ok(read) => *self.0.write() = Arc::new(read.unwrap_or_default()),
            // The last valid version stays: an API server that rotates its authorities writes a valid one again.
            Err(error) => tracing::warn!("cannot use {NAMESPACE}/{NAME}: {error:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn config_map(names: &str) -> Arc<ConfigMap> {
        let data = [
            ("requestheader-allowed-names", names),
            ("requestheader-username-headers", "[\"X-Remote-User\"]"),
        ];
        let data = data.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Arc::new(ConfigMap { data: Some(BTreeMap::from(data)), ..ConfigMap::default() })
    }

    #[test]
    fn the_last_valid_config_map_counts_until_it_is_deleted() {
        let trusted = TrustedProxies::default();
        let allows = |name: &str| trusted.current().front_proxy.allows(name);
        trusted.handle(&Change::Apply(config_map("[\"a\"]")));
        assert!(allows("a") && !allows("b"));
        trusted.handle(&Change::Apply(config_map("a list")));
        assert!(allows("a") && !allows("b"), "an invalid one is not used");
        let listed = Change::Reset { objects: Vec::new(), removed: Vec::new() };
        trusted.handle(&listed);
        assert!(!allows("b"), "nothing changed");
        let objects = vec![config_map("[\"b\"]")];
        trusted.handle(&Change::Reset { objects, removed: Vec::new() });
        assert!(allows("b") && !allows("a"));
        let key = runtime::watch::Key { namespace: None, name: NAME.into() };
        trusted.handle(&Change::Delete(key));
        assert_eq!(trusted.current().front_proxy, FrontProxy::default());
    }
}
