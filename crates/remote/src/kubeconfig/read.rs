//! The fields of a kubeconfig that matter here.
//!
//! Fields that are always refused are only checked for presence, see [`Presence`]. An error of the decoder is reported by
//! position, because its text may quote the input.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::KubeconfigRefused;

/// Parts of a text that may stand for others by alias. Nested aliases grow without end, and a kubeconfig needs none.
const MAX_REPLAYED: usize = 10_000;

/// The file.
#[derive(Deserialize)]
pub(super) struct KubeconfigFile {
    #[serde(default, rename = "current-context")]
    current_context: Option<String>,
    #[serde(default)]
    contexts: Option<Vec<NamedEntry<KubeconfigContext>>>,
    #[serde(default)]
    clusters: Option<Vec<NamedEntry<KubeconfigCluster>>>,
    #[serde(default)]
    users: Option<Vec<NamedEntry<KubeconfigUser>>>,
}

/// An entry of a list.
#[derive(Deserialize)]
struct NamedEntry<T> {
    #[serde(default)]
    name: String,
    #[serde(default, alias = "context", alias = "cluster", alias = "user")]
    value: Option<T>,
}

/// A context: a user at a cluster.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct KubeconfigContext {
    pub(super) cluster: String,
    pub(super) user: String,
    pub(super) namespace: Option<String>,
}

/// The address of a cluster.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct KubeconfigCluster {
    pub(super) server: Option<String>,
    pub(super) tls_server_name: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) insecure_skip_tls_verify: Presence,
    pub(super) certificate_authority: Presence,
    pub(super) proxy_url: Presence,
}

/// The credentials of a user.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct KubeconfigUser {
    pub(super) token: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key_data: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Presence,
    pub(super) client_certificate: Presence,
    pub(super) client_key: Presence,
    pub(super) username: Presence,
    pub(super) password: Presence,
    pub(super) exec: Presence,
    pub(super) auth_provider: Presence,
    #[serde(rename = "as")]
    pub(super) as_name: Presence,
    pub(super) as_uid: Presence,
    pub(super) as_groups: Presence,
    pub(super) as_user_extra: Presence,
}

/// Whether a field is present. Null, false and empty values count as absent; an object counts as present even if empty.
#[derive(Clone, Copy, Default)]
pub(super) struct Presence(pub(super) bool);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Null => false,
            // `insecure-skip-tls-verify: false` states the default and is allowed.
            Value::Bool(yes) => yes,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            // `exec: {}` configures a plugin, if only an invalid one.
            Value::Number(_) | Value::Object(_) => true,
        }))
    }
}

impl KubeconfigFile {
    pub(super) fn read(text: &[u8]) -> Result<Self, KubeconfigRefused> {
        let text = std::str::from_utf8(text)
            .map_err(|_| KubeconfigRefused::Unreadable { line: 0, column: 0 })?;
        let options = serde_saphyr::options! {
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let location = error.without_snippet().location();
            KubeconfigRefused::Unreadable {
                line: location.map_or(0, |at| at.line()),
                column: location.map_or(0, |at| at.column()),
            }
        })
    }

    pub(super) fn users(&self) -> impl Iterator<Item = (&str, &KubeconfigUser)> {
        entries(self.users.as_deref())
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = (&str, &KubeconfigCluster)> {
        entries(self.clusters.as_deref())
    }

    /// The current context.
    pub(super) fn context(&self) -> Result<&KubeconfigContext, KubeconfigRefused> {
        let name = self.current_context.as_deref().unwrap_or_default();
        find("context", entries(self.contexts.as_deref()), name).map(|(_, context)| context)
    }

    pub(super) fn cluster(
        &self,
        name: &str,
    ) -> Result<(&str, &KubeconfigCluster), KubeconfigRefused> {
        find("cluster", self.clusters(), name)
    }

    pub(super) fn user(&self, name: &str) -> Result<(&str, &KubeconfigUser), KubeconfigRefused> {
        find("user", self.users(), name)
    }
}

fn entries<T>(list: Option<&[NamedEntry<T>]>) -> impl Iterator<Item = (&str, &T)> {
    list.unwrap_or_default().iter().filter_map(|one| Some((one.name.as_str(), one.value.as_ref()?)))
}

fn find<'a, T>(
    what: &'static str,
    mut entries: impl Iterator<Item = (&'a str, &'a T)>,
    name: &str,
) -> Result<(&'a str, &'a T), KubeconfigRefused> {
    entries
        .find(|(candidate, _)| *candidate == name)
        .ok_or_else(|| KubeconfigRefused::Missing { what, name: name.into() })
}
