//! The front proxy: how the API server passes on the user of an aggregated request.
//!
//! The API server authenticates itself with a client certificate and writes the user into headers. The ConfigMap
//! `kube-system/extension-apiserver-authentication` says which certificate authority signs that certificate, which common names it may
//! have, and which headers count. Without a valid client certificate the headers count for nothing.

use std::collections::BTreeMap;

use access::RequestUser;
use http::HeaderMap;
use percent_encoding::percent_decode_str;

/// A field of the ConfigMap is no list of texts.
#[derive(Debug, thiserror::Error)]
#[error("{field} is no list of texts: {source}")]
pub struct InvalidAuthentication {
    field: &'static str,
    source: serde_json::Error,
}

/// What the ConfigMap says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// The certificate authorities of front proxies, PEM; empty if there are none.
    pub proxy_authorities: String,
    /// The certificate authorities of the cluster's users, PEM; empty if there are none.
    pub user_authorities: String,
    allowed_names: Vec<String>,
    user_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// Reads the data of the ConfigMap.
    ///
    /// # Errors
    /// If a list cannot be read: an empty list of allowed names would allow every name.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Self, InvalidAuthentication> {
        let text = |field: &str| data.get(field).cloned().unwrap_or_default();
        let list = |field: &'static str| match data.get(field) {
            None => Ok(Vec::new()),
            Some(text) => {
                serde_json::from_str(text).map_err(|source| InvalidAuthentication { field, source })
            }
        };
        Ok(Self {
            proxy_authorities: text("requestheader-client-ca-file"),
            user_authorities: text("client-ca-file"),
            allowed_names: list("requestheader-allowed-names")?,
            user_headers: list("requestheader-username-headers")?,
            uid_headers: list("requestheader-uid-headers")?,
            group_headers: list("requestheader-group-headers")?,
            extra_prefixes: list("requestheader-extra-headers-prefix")?,
        })
    }

    /// Whether the certificate of a front proxy may have this common name. An empty list allows every name.
    #[must_use]
    pub fn allows(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }

    /// The user that the headers name. The caller has verified the certificate of the front proxy.
    #[must_use]
    pub fn user(&self, headers: &HeaderMap) -> Option<RequestUser> {
        let user = RequestUser {
            name: first(headers, &self.user_headers)?,
            uid: first(headers, &self.uid_headers),
            groups: self.group_headers.iter().flat_map(|name| values(headers, name)).collect(),
            extra: self.extra(headers),
        };
        Some(user.authenticated())
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            let prefix = prefix.to_ascii_lowercase();
            for name in headers.keys() {
                let Some(key) = name.as_str().strip_prefix(&prefix) else { continue };
                let key = percent_decode_str(key).decode_utf8_lossy().to_lowercase();
                extra.entry(key).or_default().extend(values(headers, name.as_str()));
            }
        }
        extra
    }
}

/// The first value of the first header that has one.
fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    names.iter().find_map(|name| values(headers, name).next())
}

/// The values of a header that are texts and not empty.
fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let all = headers.get_all(name).into_iter();
    let texts = all.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    texts.filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn front_proxy(names: &str) -> FrontProxy {
        let data = [
            ("client-ca-file", "users"),
            ("requestheader-client-ca-file", "proxies"),
            ("requestheader-allowed-names", names),
            ("requestheader-username-headers", "[\"X-Remote-User\", \"X-Other-User\"]"),
            ("requestheader-uid-headers", "[\"X-Remote-Uid\"]"),
            ("requestheader-group-headers", "[\"X-Remote-Group\"]"),
            ("requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]"),
        ];
        let data = data.map(|(name, value)| (name.to_owned(), value.to_owned()));
        FrontProxy::read(&data.into_iter().collect()).expect("valid")
    }

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let one = |&(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, value.parse().expect("a value"))
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn a_user_is_read_from_the_headers_that_are_named() {
        let all = headers(&[
            ("X-Remote-User", "jane"),
            ("X-Remote-Uid", "7"),
            ("X-Remote-Group", "a"),
            ("X-Remote-Group", "b"),
            ("X-Remote-Extra-Acme%2fScope", "x"),
            ("X-Unrelated", "y"),
        ]);
        let user = front_proxy("[]").user(&all).expect("a user");
        assert_eq!((&*user.name, user.uid.as_deref()), ("jane", Some("7")));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
        let extra: Vec<_> = user.extra.into_iter().collect();
        assert_eq!(extra, [("acme/scope".to_owned(), vec!["x".to_owned()])]);
    }

    #[test]
    fn the_first_header_with_a_value_names_the_user() {
        let proxy = front_proxy("[]");
        let all = headers(&[("X-Remote-User", ""), ("X-Other-User", "joe")]);
        assert_eq!(proxy.user(&all).map(|user| user.name).as_deref(), Some("joe"));
        assert_eq!(proxy.user(&headers(&[("X-Remote-Group", "a")])), None);
        assert_eq!(FrontProxy::default().user(&all), None, "no headers are named");
    }

    #[test]
    fn names_are_restricted_by_a_list_that_is_not_empty() {
        assert!(front_proxy("[]").allows("any"));
        assert!(front_proxy("[\"front-proxy\"]").allows("front-proxy"));
        assert!(!front_proxy("[\"front-proxy\"]").allows("other"));
        let broken =
            BTreeMap::from([("requestheader-allowed-names".to_owned(), "front".to_owned())]);
        let error = FrontProxy::read(&broken).expect_err("no list").to_string();
        assert!(error.starts_with("requestheader-allowed-names is no list"), "{error}");
    }
}
