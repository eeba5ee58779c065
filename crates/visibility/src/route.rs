//! What the path of a request stands for.

use crds::names::{SLUICE_VISIBILITY_GROUP, VISIBILITY_GROUP};

use crate::{
    api::{VisibilityVersion, WORKLOAD_PODS_VERSION},
    pending_workloads::QueueReference,
};

/// A document or a list of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VisibilityRoute<'a> {
    /// The version of the program.
    ProgramVersion,
    /// The groups of the server.
    Groups,
    /// The group with its versions.
    Group,
    /// The resources of a version.
    Resources(VisibilityVersion),
    /// The group of the pods of Workloads, with its version.
    SluiceGroup,
    /// The resources of that version.
    SluiceResources,
    /// The OpenAPI v2 document.
    OpenApiV2,
    /// The index of OpenAPI v3 documents.
    OpenApiV3,
    /// The OpenAPI v3 document of a version.
    OpenApiV3Of(VisibilityVersion),
    /// Pending Workloads.
    Pending(VisibilityVersion, QueueReference<'a>),
}

/// Whether a path is a probe, which needs no authorization.
#[must_use]
pub fn is_probe(path: &str) -> bool {
    matches!(path.trim_matches('/'), "healthz" | "livez" | "readyz")
}

impl<'a> VisibilityRoute<'a> {
    /// The meaning of a path; `None` if it has none. A slash at the end does not count.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match *parts.as_slice() {
            ["version"] => Some(Self::ProgramVersion),
            ["apis"] => Some(Self::Groups),
            ["apis", group] if group == VISIBILITY_GROUP => Some(Self::Group),
            ["apis", group] if group == SLUICE_VISIBILITY_GROUP => Some(Self::SluiceGroup),
            ["apis", group, WORKLOAD_PODS_VERSION] if group == SLUICE_VISIBILITY_GROUP => {
                Some(Self::SluiceResources)
            }
            ["openapi", "v2"] => Some(Self::OpenApiV2),
            ["openapi", "v3"] => Some(Self::OpenApiV3),
            ["openapi", "v3", "apis", group, version] if group == VISIBILITY_GROUP => {
                Some(Self::OpenApiV3Of(version_of(version)?))
            }
            ["apis", group, version, ref rest @ ..] if group == VISIBILITY_GROUP => {
                let version = version_of(version)?;
                match *rest {
                    [] => Some(Self::Resources(version)),
                    _ => Some(Self::Pending(version, queue(rest)?)),
                }
            }
            _ => None,
        }
    }
}

fn version_of(name: &str) -> Option<VisibilityVersion> {
    VisibilityVersion::ALL.into_iter().find(|version| version.name() == name)
}

fn queue<'a>(parts: &[&'a str]) -> Option<QueueReference<'a>> {
    match *parts {
        ["clusterqueues", name, "pendingworkloads"] => Some(QueueReference::ClusterQueue(name)),
        ["namespaces", namespace, "localqueues", name, "pendingworkloads"] => {
            Some(QueueReference::LocalQueue(namespace, name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_one_meaning() {
        use VisibilityRoute as Route;
        use VisibilityVersion::{V1beta1, V1beta2};
        let base = "/apis/visibility.kueue.x-k8s.io";
        for (path, expected) in [
            ("/readyz".to_owned(), None),
            ("/version".to_owned(), Some(Route::ProgramVersion)),
            ("/apis/".to_owned(), Some(Route::Groups)),
            (base.to_owned(), Some(Route::Group)),
            (format!("{base}/v1beta1"), Some(Route::Resources(V1beta1))),
            (format!("{base}/v1"), None),
            ("/openapi/v2".to_owned(), Some(Route::OpenApiV2)),
            ("/openapi/v3".to_owned(), Some(Route::OpenApiV3)),
            (format!("/openapi/v3{base}/v1beta2"), Some(Route::OpenApiV3Of(V1beta2))),
            (
                format!("{base}/v1beta2/clusterqueues/q/pendingworkloads"),
                Some(Route::Pending(V1beta2, QueueReference::ClusterQueue("q"))),
            ),
            (
                format!("{base}/v1beta1/namespaces/n/localqueues/q/pendingworkloads"),
                Some(Route::Pending(V1beta1, QueueReference::LocalQueue("n", "q"))),
            ),
            (format!("{base}/v1beta2/clusterqueues"), None),
            (format!("{base}/v1beta2/clusterqueues/q"), None),
            (format!("{base}/v1beta2/clusterqueues/q/pendingworkloads/x"), None),
            (format!("{base}/v1beta2/localqueues/q/pendingworkloads"), None),
            (format!("/{base}//v1beta2"), None),
            ("/apis/visibility.sluice.dev".to_owned(), Some(Route::SluiceGroup)),
            ("/apis/visibility.sluice.dev/v1alpha1".to_owned(), Some(Route::SluiceResources)),
            ("/apis/visibility.sluice.dev/v1".to_owned(), None),
            ("/apis/kueue.x-k8s.io".to_owned(), None),
            ("/".to_owned(), None),
        ] {
            assert_eq!(Route::of(&path), expected, "{path}");
        }
    }
}
