//! Which crate may depend on which (ARCHITECTURE.md, "Rooms"), and which dependencies no crate may have.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, Package};

/// A crate of the workspace and the ones it may depend on. A crate without a row may depend on all.
const ROOMS: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("crds", &[]),
    ("runtime", &[]),
    ("dispatch", &["engine"]),
    ("index", &["engine", "dispatch", "crds"]),
    ("jobs", &["crds", "appwrapper"]),
    ("ray", &["crds"]),
    ("appwrapper", &["crds"]),
    ("provisioning", &["crds", "jobs"]),
    ("variants", &["crds", "jobs"]),
    ("config", &["crds", "jobs"]),
    ("access", &[]),
    ("ray-api", &["access"]),
    ("visibility", &["access", "index", "crds", "jobs"]),
    ("webhooks", &["config", "crds", "jobs", "ray", "runtime"]),
    (
        "cluster",
        &[
            "engine",
            "dispatch",
            "index",
            "jobs",
            "ray",
            "appwrapper",
            "provisioning",
            "variants",
            "crds",
            "runtime",
            "config",
        ],
    ),
    ("leader", &["cluster", "crds", "jobs", "provisioning", "runtime"]),
    ("remote", &["cluster", "crds", "jobs", "leader", "runtime", "config"]),
    ("manager", LIBRARIES),
    ("worker-agent", LIBRARIES),
    ("cli", &["crds", "runtime", "engine", "index", "jobs", "config", "remote"]),
];

/// All libraries of the product.
const LIBRARIES: &[&str] = &[
    "access",
    "ray-api",
    "engine",
    "dispatch",
    "index",
    "jobs",
    "ray",
    "appwrapper",
    "provisioning",
    "variants",
    "crds",
    "runtime",
    "config",
    "visibility",
    "webhooks",
    "cluster",
    "leader",
    "remote",
];

/// Crates for tests: no crate of the product depends on them.
const TEST_ROOMS: &[&str] =
    &["cache", "chart", "e2e", "harness", "images", "lab", "operator-replay", "replay", "tidy"];

/// Crates without input and output.
const PURE: &[&str] = &[
    "access",
    "ray-api",
    "engine",
    "dispatch",
    "index",
    "jobs",
    "ray",
    "appwrapper",
    "provisioning",
    "variants",
    "visibility",
];

/// Dependencies for input, output and clocks, which a pure crate cannot have.
const IMPURE: &[&str] = &["tokio", "kube", "hyper", "futures", "axum", "tower", "chrono"];

/// TLS providers other than ring; two in one graph fail at run time.
const OTHER_TLS: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls"];

/// Dependencies that the table does not allow.
#[must_use]
pub fn forbidden(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    packages.into_iter().flat_map(|package| check(package, &members)).collect()
}

fn check(package: &Package, members: &BTreeSet<&str>) -> Vec<String> {
    let name = package.name.as_str();
    let normal = package.dependencies.iter().filter(|dep| dep.kind != DependencyKind::Development);
    let others = normal.map(|dependency| dependency.name.as_str());
    let wrong = others.filter(|other| !is_allowed(name, other, members.contains(other)));
    wrong.map(|other| format!("{name} may not depend on {other}")).collect()
}

/// Whether a crate may depend on another one, which is `ours` if it is of the workspace.
fn is_allowed(name: &str, other: &str, ours: bool) -> bool {
    let row = ROOMS.iter().find(|(room, _)| *room == name);
    let in_table = !ours || row.is_none_or(|(_, allowed)| allowed.contains(&other));
    let test_only = ours && TEST_ROOMS.contains(&other) && !TEST_ROOMS.contains(&name);
    let impure = PURE.contains(&name) && IMPURE.contains(&other);
    in_table && !test_only && !impure
}

/// Crates that are in neither list. A new crate needs a row.
#[must_use]
pub fn unplaced(metadata: &Metadata) -> Vec<String> {
    let known =
        |name: &str| ROOMS.iter().any(|(room, _)| *room == name) || TEST_ROOMS.contains(&name);
    let packages = metadata.workspace_packages();
    packages.iter().map(|p| p.name.to_string()).filter(|name| !known(name)).collect()
}

/// TLS providers other than ring in the dependency graph.
#[must_use]
pub fn other_tls(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.packages.iter().map(|package| package.name.to_string());
    packages.filter(|name| OTHER_TLS.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn a_dependency_that_the_table_does_not_name_is_forbidden() {
        assert!(is_allowed("dispatch", "engine", true));
        assert!(!is_allowed("engine", "dispatch", true));
        assert!(!is_allowed("manager", "worker-agent", true));
    }

    #[test]
    fn a_product_crate_does_not_depend_on_a_test_crate() {
        assert!(is_allowed("e2e", "harness", true));
        assert!(!is_allowed("manager", "harness", true));
    }

    #[test]
    fn a_pure_crate_has_no_input_and_output() {
        assert!(is_allowed("runtime", "tokio", false));
        assert!(!is_allowed("engine", "tokio", false));
    }
}
