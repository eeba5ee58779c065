//! What is authorized about a request: a verb on a resource or on a path, with the rules by which an API server reads its requests.

use http::Method;
use percent_encoding::percent_decode_str;

/// A request in the terms of authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedRequest {
    /// `get`, `list`, …
    pub verb: String,
    /// What the verb is applied to.
    pub target: ReviewedTarget,
}

/// A resource or a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewedTarget {
    /// A path that names no resource.
    Path(String),
    /// A resource of a group.
    Resource(ReviewedResource),
}

/// A resource. Parts that the path does not have are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewedResource {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace.
    pub namespace: String,
    /// The plural name.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The name of the object.
    pub name: String,
}

impl ReviewedResource {
    /// Resource and subresource, as messages have them.
    #[must_use]
    pub fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            return self.resource.clone();
        }
        format!("{}/{}", self.resource, self.subresource)
    }
}

impl ReviewedRequest {
    /// Reads a request.
    #[must_use]
    pub fn of(method: &Method, path: &str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let ["apis", group, version, rest @ ..] = parts.as_slice() else {
            return Self::of_path(method, path);
        };
        // Verbs that older clients write into the path, before the resource.
        let (special, rest) = match rest {
            [verb @ ("watch" | "proxy"), rest @ ..] => (Some(*verb), rest),
            rest => (None, rest),
        };
        if rest.is_empty() {
            return Self::of_path(method, path);
        }
        let mut resource = ReviewedResource {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            ..ReviewedResource::default()
        };
        let rest = resource.take_namespace(rest);
        let part = |at: usize| rest.get(at).map(|part| (*part).to_owned()).unwrap_or_default();
        (resource.resource, resource.name, resource.subresource) = (part(0), part(1), part(2));
        let verb = special.unwrap_or_else(|| verb(method, resource.name.is_empty()));
        Self { verb: verb.to_owned(), target: ReviewedTarget::Resource(resource) }
    }

    /// Reads a request with a query that may ask for a watch: a watch of a list has a verb of its own.
    #[must_use]
    pub fn of_query(method: &Method, path: &str, query: &str) -> Self {
        let this = Self::of(method, path);
        if this.verb == "list" && asks_for_watch(query) {
            Self { verb: "watch".to_owned(), ..this }
        } else {
            this
        }
    }

    fn of_path(method: &Method, path: &str) -> Self {
        let verb = method.as_str().to_ascii_lowercase();
        Self { verb, target: ReviewedTarget::Path(path.to_owned()) }
    }
}

impl ReviewedResource {
    /// Takes `namespaces/{name}` from the beginning, if a resource of the namespace follows.
    fn take_namespace<'a, 'b>(&mut self, rest: &'b [&'a str]) -> &'b [&'a str] {
        let ["namespaces", namespace, below @ ..] = rest else { return rest };
        (*namespace).clone_into(&mut self.namespace);
        match below {
            [] | ["status" | "finalize", ..] => rest,
            below => below,
        }
    }
}

/// Whether a query asks for a watch. As for an API server, the first value counts, and all but `false` and `0` mean true.
#[must_use]
pub fn asks_for_watch(query: &str) -> bool {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut values =
        pairs.filter(|(key, _)| decoded(key) == "watch").map(|(_, value)| decoded(value));
    values.next().is_some_and(|value| !["false", "0"].contains(&&*value.to_ascii_lowercase()))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn verb(method: &Method, unnamed: bool) -> &'static str {
    match (method.as_str(), unnamed) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("GET" | "HEAD", false) => "get",
        ("GET" | "HEAD", true) => "list",
        ("DELETE", false) => "delete",
        ("DELETE", true) => "deletecollection",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line: verb, and path or the parts of the resource.
    fn line(method: &Method, path: &str) -> String {
        let ReviewedRequest { verb, target } = ReviewedRequest::of(method, path);
        match target {
            ReviewedTarget::Path(path) => format!("{verb} {path}"),
            ReviewedTarget::Resource(one) => {
                let resource = one.full_resource();
                format!(
                    "{verb} {}/{} {} {resource} {}",
                    one.group, one.version, one.namespace, one.name
                )
            }
        }
    }

    #[test]
    fn a_query_makes_a_list_a_watch() {
        let path = "/apis/g/v/namespaces/n/jobs";
        for (query, verb) in [
            ("", "list"),
            ("limit=1", "list"),
            ("watch=true", "watch"),
            ("limit=1&watch=1", "watch"),
            ("watch", "watch"),
            ("w%61tch=yes", "watch"),
            ("watch=false&watch=true", "list"),
            ("watch=False", "list"),
            ("watch=0", "list"),
        ] {
            assert_eq!(ReviewedRequest::of_query(&Method::GET, path, query).verb, verb, "{query}");
        }
        let named = format!("{path}/j");
        assert_eq!(ReviewedRequest::of_query(&Method::GET, &named, "watch=true").verb, "get");
    }

    #[test]
    fn a_path_is_read_as_by_an_api_server() {
        for (method, path, expected) in [
            (
                Method::GET,
                "/apis/g/v/clusterqueues/q/pendingworkloads",
                "get g/v  clusterqueues/pendingworkloads q",
            ),
            (
                Method::GET,
                "/apis/g/v/namespaces/n/localqueues/q/pendingworkloads",
                "get g/v n localqueues/pendingworkloads q",
            ),
            (Method::POST, "/apis/g/v/namespaces/n/localqueues", "create g/v n localqueues "),
            (Method::GET, "/apis/g/v/clusterqueues", "list g/v  clusterqueues "),
            (Method::DELETE, "/apis/g/v/clusterqueues", "deletecollection g/v  clusterqueues "),
            (Method::DELETE, "/apis/g/v/clusterqueues/q", "delete g/v  clusterqueues q"),
            (Method::GET, "/apis/g/v/watch/clusterqueues", "watch g/v  clusterqueues "),
            (Method::GET, "/apis/g/v/namespaces/n", "get g/v n namespaces n"),
            (Method::PUT, "/apis/g/v/namespaces/n/status", "update g/v n namespaces/status n"),
            (Method::GET, "/apis/g/v", "get /apis/g/v"),
            (Method::GET, "/apis", "get /apis"),
            (Method::POST, "/openapi/v2", "post /openapi/v2"),
        ] {
            assert_eq!(line(&method, path), expected, "{method} {path}");
        }
    }
}
