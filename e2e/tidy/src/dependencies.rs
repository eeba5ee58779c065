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
    ("jobs", &["crds"]),
    ("cluster", &["engine", "dispatch", "index", "jobs", "crds", "runtime"]),
    ("manager", &["engine", "dispatch", "index", "jobs", "crds", "runtime", "cluster"]),
    ("worker-agent", &["engine", "dispatch", "index", "jobs", "crds", "runtime", "cluster"]),
    ("cli", &["crds", "runtime", "engine"]),
];

/// Crates for tests: no crate of the product depends on them.
const TEST_ROOMS: &[&str] = &["e2e", "harness", "lab", "replay", "tidy"];

/// Crates without input and output.
const PURE: &[&str] = &["engine", "dispatch", "index", "jobs"];

/// Dependencies for input, output and clocks, which a pure crate cannot have.
const IMPURE: &[&str] = &["tokio", "kube", "hyper", "futures", "axum", "tower", "chrono"];

/// TLS providers other than ring; two in one graph fail at run time.
const OTHER_TLS: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls"];

/// Dependencies that the table does not allow.
#[must_use]
pub fn forbidden(metadata: &Metadata) -> Vec<String> {
    let members: BTreeSet<&str> =
        metadata.workspace_packages().iter().map(|p| p.name.as_str()).collect();
    metadata.workspace_packages().into_iter().flat_map(|package| check(package, &members)).collect()
}

fn check(package: &Package, members: &BTreeSet<&str>) -> Vec<String> {
    let name = package.name.as_str();
    let allowed = ROOMS.iter().find(|(room, _)| *room == name).map(|(_, allowed)| *allowed);
    let normal = package.dependencies.iter().filter(|dep| dep.kind != DependencyKind::Development);
    normal
        .filter_map(|dependency| {
            let other = dependency.name.as_str();
            let ours = members.contains(other);
            let wrong = (ours && allowed.is_some_and(|allowed| !allowed.contains(&other)))
                || (ours && TEST_ROOMS.contains(&other) && !TEST_ROOMS.contains(&name))
                || (PURE.contains(&name) && IMPURE.contains(&other));
            wrong.then(|| format!("{name} may not depend on {other}"))
        })
        .collect()
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
