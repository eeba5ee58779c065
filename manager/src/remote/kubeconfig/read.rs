//! The shape of a kubeconfig, as far as it matters here.
//!
//! Fields that are only ever refused are not read but noticed: see [`Set`]. What does not decode is told by its place, as
//! a decoder's own words may quote the text.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Refused;

/// The file.
#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default, rename = "current-context")]
    current_context: Option<String>,
    #[serde(default)]
    contexts: Option<Vec<Named<Context>>>,
    #[serde(default)]
    clusters: Option<Vec<Named<Cluster>>>,
    #[serde(default)]
    users: Option<Vec<Named<User>>>,
}

/// An entry of a list.
#[derive(Deserialize)]
struct Named<T> {
    #[serde(default)]
    name: String,
    #[serde(default, alias = "context", alias = "cluster", alias = "user")]
    value: Option<T>,
}

/// Which user at which cluster.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
    pub(super) namespace: Option<String>,
}

/// Where the cluster is.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: Option<String>,
    pub(super) tls_server_name: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) insecure_skip_tls_verify: Set,
    pub(super) certificate_authority: Set,
    pub(super) proxy_url: Set,
}

/// Who we are there.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) token: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key_data: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Set,
    pub(super) client_certificate: Set,
    pub(super) client_key: Set,
    pub(super) username: Set,
    pub(super) password: Set,
    pub(super) exec: Set,
    pub(super) auth_provider: Set,
    #[serde(rename = "as")]
    pub(super) as_name: Set,
    pub(super) as_uid: Set,
    pub(super) as_groups: Set,
    pub(super) as_user_extra: Set,
}

/// Whether a field says anything: null, false and what is empty do not. An object does, even an empty one.
#[derive(Clone, Copy, Default)]
pub(super) struct Set(pub(super) bool);

impl<'de> Deserialize<'de> for Set {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Null => false,
            Value::Bool(yes) => yes,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Number(_) | Value::Object(_) => true,
        }))
    }
}

impl File {
    pub(super) fn read(text: &[u8]) -> Result<Self, Refused> {
        let text =
            std::str::from_utf8(text).map_err(|_| Refused::Unreadable { line: 0, column: 0 })?;
        serde_saphyr::from_str(text).map_err(|error| {
            let location = error.without_snippet().location();
            Refused::Unreadable {
                line: location.map_or(0, |at| at.line()),
                column: location.map_or(0, |at| at.column()),
            }
        })
    }

    pub(super) fn users(&self) -> impl Iterator<Item = (&str, &User)> {
        entries(self.users.as_deref())
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = (&str, &Cluster)> {
        entries(self.clusters.as_deref())
    }

    /// The current context.
    pub(super) fn context(&self) -> Result<&Context, Refused> {
        let name = self.current_context.as_deref().unwrap_or_default();
        find("context", entries(self.contexts.as_deref()), name).map(|(_, context)| context)
    }

    pub(super) fn cluster(&self, name: &str) -> Result<(&str, &Cluster), Refused> {
        find("cluster", self.clusters(), name)
    }

    pub(super) fn user(&self, name: &str) -> Result<(&str, &User), Refused> {
        find("user", self.users(), name)
    }
}

fn entries<T>(list: Option<&[Named<T>]>) -> impl Iterator<Item = (&str, &T)> {
    list.unwrap_or_default().iter().filter_map(|one| Some((one.name.as_str(), one.value.as_ref()?)))
}

fn find<'a, T>(
    what: &'static str,
    mut entries: impl Iterator<Item = (&'a str, &'a T)>,
    name: &str,
) -> Result<(&'a str, &'a T), Refused> {
    entries
        .find(|(candidate, _)| *candidate == name)
        .ok_or_else(|| Refused::Missing { what, name: name.into() })
}
