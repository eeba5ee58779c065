//! Asks the discovery of an API server whether it serves a kind.
//!
//! A 404 of a list or a watch does not show it: it may be the page of a program between, such as a load balancer or the default backend
//! of an ingress. While an API server starts, it answers 503 for paths that it does not know yet, those of discovery included.

use std::time::Duration;

use http::Request;
use kube::{Client, core::ApiResource};
use tokio::time;

use super::availability::{lacks_resource, lacks_version};

/// How long the answers may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// The discovery of one kind.
pub(super) struct KindDiscovery {
    client: Client,
    resource: ApiResource,
}

/// The answer to one request.
enum DiscoveryAnswer {
    /// 200, with this text.
    Text(String),
    /// 404.
    NotFound,
    /// Anything else.
    None,
}

impl KindDiscovery {
    pub(super) fn new(client: Client, resource: ApiResource) -> Self {
        Self { client, resource }
    }

    /// Whether the API server says that it does not serve the kind. False if it says nothing usable, or not in time.
    pub(super) async fn is_absent(&self) -> bool {
        time::timeout(ANSWERS_WITHIN, self.read()).await.unwrap_or(false)
    }

    async fn read(&self) -> bool {
        let ApiResource { group, version, api_version, plural, .. } = &self.resource;
        let is_core = group.is_empty();
        let root = if is_core { "/api" } else { "/apis" };
        match self.get(&format!("{root}/{api_version}")).await {
            DiscoveryAnswer::Text(text) => lacks_resource(&text, api_version, plural),
            // The API server answers so for a version that it does not serve, and a program between for every path.
            DiscoveryAnswer::NotFound if !is_core => {
                let groups = self.get(root).await;
                matches!(groups, DiscoveryAnswer::Text(text) if lacks_version(&text, group, version))
            }
            // Every API server serves the version of the core group.
            DiscoveryAnswer::NotFound | DiscoveryAnswer::None => false,
        }
    }

    async fn get(&self, path: &str) -> DiscoveryAnswer {
        let Ok(request) = Request::get(path).body(Vec::new()) else {
            return DiscoveryAnswer::None;
        };
        match self.client.request_text(request).await {
            Ok(text) => DiscoveryAnswer::Text(text),
            Err(kube::Error::Api(status)) if status.code == 404 => DiscoveryAnswer::NotFound,
            Err(_) => DiscoveryAnswer::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use kube::{client::Body, core::GroupVersionKind};

    use super::*;

    const HTML: &str = "<html>404</html>";
    const TRIALS: &str = r#"{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [{"name": "trials"}]}"#;
    const OTHERS: &str = r#"{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [{"name": "others"}]}"#;
    const WITH_VERSION: &str = r#"{"kind": "APIGroupList", "groups": [{"name": "example.com", "versions": [{"version": "v1"}]}]}"#;
    const OTHER_VERSION: &str = r#"{"kind": "APIGroupList", "groups": [{"name": "example.com", "versions": [{"version": "v2"}]}]}"#;

    /// What an API server says about `trials` of `group` whose discovery answers this for the version and for the list of groups.
    async fn is_absent(
        group: &str,
        version: (u16, &'static str),
        groups: (u16, &'static str),
    ) -> bool {
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let (code, text) = match request.uri().path() {
                "/apis/example.com/v1" | "/api/v1" => version,
                "/apis" => groups,
                path => panic!("{path}"),
            };
            if code == 0 {
                std::future::pending::<()>().await;
            }
            let response =
                Response::builder().status(code).body(Body::from(text.as_bytes().to_vec()));
            Ok::<_, Infallible>(response.expect("a response"))
        });
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, "v1", "Trial"),
            "trials",
        );
        KindDiscovery::new(Client::new(service, "here"), resource).is_absent().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_absent_only_by_the_word_of_discovery() {
        let silent = (0, "");
        for (version, groups, expected) in [
            ((200, OTHERS), silent, true),
            ((200, TRIALS), silent, false),
            ((200, HTML), silent, false),
            ((404, HTML), (200, OTHER_VERSION), true),
            ((404, HTML), (200, WITH_VERSION), false),
            ((404, HTML), (200, HTML), false),
            ((404, HTML), (404, HTML), false),
            ((404, HTML), silent, false),
            ((403, HTML), (200, OTHER_VERSION), false),
            ((503, HTML), (200, OTHER_VERSION), false),
            (silent, (200, OTHER_VERSION), false),
        ] {
            assert_eq!(
                is_absent("example.com", version, groups).await,
                expected,
                "{version:?} {groups:?}"
            );
        }
        assert!(
            !is_absent("", (404, HTML), (200, OTHER_VERSION)).await,
            "the core group is served"
        );
    }
}
