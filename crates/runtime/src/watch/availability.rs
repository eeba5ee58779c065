//! Whether an optional kind is available in a cluster. Pure.

use kube::runtime::watcher;
use serde::Deserialize;

/// Why the objects of an optional kind cannot be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unavailable {
    /// The cluster does not serve the kind, for example because its CRD is not installed: a 404 that discovery confirms.
    NotServed,
    /// 403: the account may not list or watch the kind.
    Forbidden,
}

impl Unavailable {
    /// The reason that a failure of a list or a watch may have; `None` for a failure of another kind. A 404 may also come from a program
    /// between, so discovery decides about it.
    pub(super) fn of(error: &watcher::Error) -> Option<Self> {
        let code = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status) => status.code,
            _ => 0,
        };
        match code {
            404 => Some(Self::NotServed),
            403 => Some(Self::Forbidden),
            _ => None,
        }
    }
}

/// The resources of a group version, of which only the names are read.
#[derive(Deserialize)]
struct DiscoveredResources {
    kind: String,
    #[serde(rename = "groupVersion")]
    group_version: String,
    resources: Option<Vec<DiscoveredResource>>,
}

#[derive(Deserialize)]
struct DiscoveredResource {
    name: String,
}

/// The groups of an API server, with their versions.
#[derive(Deserialize)]
struct DiscoveredGroups {
    kind: String,
    groups: Vec<DiscoveredGroup>,
}

#[derive(Deserialize)]
struct DiscoveredGroup {
    name: String,
    versions: Vec<DiscoveredVersion>,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    version: String,
}

/// Whether this text is the list of the resources of this group version, and does not have this one.
pub(super) fn lacks_resource(text: &str, group_version: &str, plural: &str) -> bool {
    let Ok(list) = serde_json::from_str::<DiscoveredResources>(text) else { return false };
    list.kind == "APIResourceList"
        && list.group_version == group_version
        && list.resources.iter().flatten().all(|resource| resource.name != plural)
}

/// Whether this text is the list of the groups of an API server, and does not have this version. There is no API server without groups.
pub(super) fn lacks_version(text: &str, group: &str, version: &str) -> bool {
    let Ok(list) = serde_json::from_str::<DiscoveredGroups>(text) else { return false };
    let mut versions = list.groups.iter().filter(|it| it.name == group).flat_map(|it| &it.versions);
    list.kind == "APIGroupList"
        && !list.groups.is_empty()
        && versions.all(|it| it.version != version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_resources_lacks_those_that_it_does_not_name() {
        let list = |kind: &str, resources: &str| {
            format!(r#"{{"kind": "{kind}", "groupVersion": "batch/v1", "resources": {resources}}}"#)
        };
        let jobs = r#"[{"name": "jobs", "namespaced": true}, {"name": "jobs/status"}]"#;
        for (text, plural, expected) in [
            (list("APIResourceList", jobs), "jobs", false),
            (list("APIResourceList", jobs), "cronjobs", true),
            (list("APIResourceList", "null"), "jobs", true),
            (list("List", jobs), "cronjobs", false),
            (list("APIResourceList", "{}"), "cronjobs", false),
            ("<html></html>".to_owned(), "cronjobs", false),
        ] {
            assert_eq!(lacks_resource(&text, "batch/v1", plural), expected, "{text} {plural}");
        }
        let other = list("APIResourceList", jobs);
        assert!(!lacks_resource(&other, "batch/v2", "cronjobs"), "that of another version");
    }

    #[test]
    fn a_list_of_groups_lacks_the_versions_that_it_does_not_name() {
        let list =
            |kind: &str, groups: &str| format!(r#"{{"kind": "{kind}", "groups": {groups}}}"#);
        let batch =
            r#"[{"name": "batch", "versions": [{"groupVersion": "batch/v1", "version": "v1"}]}]"#;
        for (text, group, version, expected) in [
            (list("APIGroupList", batch), "batch", "v1", false),
            (list("APIGroupList", batch), "batch", "v2", true),
            (list("APIGroupList", batch), "apps", "v1", true),
            (list("APIGroupList", "[]"), "apps", "v1", false),
            (list("List", batch), "apps", "v1", false),
            ("default backend - 404".to_owned(), "apps", "v1", false),
        ] {
            assert_eq!(lacks_version(&text, group, version), expected, "{text} {group}/{version}");
        }
    }
}
