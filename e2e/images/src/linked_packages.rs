//! The packages inside of a program.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use cargo_metadata::{DependencyKind, Metadata, Node, NodeDep, Package, PackageId};

/// The packages inside of a program, and which of them uses which.
#[derive(Debug)]
pub struct LinkedPackages<'a> {
    /// The package of the program.
    pub program: &'a Package,
    /// All packages inside of it, its own too.
    pub packages: BTreeMap<&'a PackageId, &'a Package>,
    /// The packages that a package uses.
    pub uses: BTreeMap<&'a PackageId, BTreeSet<&'a PackageId>>,
}

/// Follows the dependencies from the package of a program. Those for builds and tests are no part of the program, nor are
/// packages that were not compiled: cargo resolves features for the whole workspace, and so names packages that only other
/// members use.
///
/// # Errors
/// If the metadata lacks the package, or the graph.
pub fn linked<'a>(
    metadata: &'a Metadata,
    package: &str,
    compiled: &BTreeSet<PackageId>,
) -> anyhow::Result<LinkedPackages<'a>> {
    let members = metadata.workspace_packages();
    let program = members.into_iter().find(|member| member.name.as_str() == package);
    let program = program.with_context(|| format!("the workspace has no package {package}"))?;
    let resolve = metadata.resolve.as_ref().context("cargo metadata has no graph")?;
    let nodes: BTreeMap<&PackageId, &Node> =
        resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut uses = BTreeMap::new();
    let mut open = vec![&program.id];
    while let Some(id) = open.pop() {
        if uses.contains_key(id) {
            continue;
        }
        let node = nodes.get(id).with_context(|| format!("the graph has no package {id}"))?;
        let normal = node.deps.iter().filter(|dependency| is_normal(dependency));
        let used: BTreeSet<&PackageId> =
            normal.map(|dependency| &dependency.pkg).filter(|id| compiled.contains(*id)).collect();
        open.extend(used.iter().copied());
        uses.insert(id, used);
    }
    let packages = metadata.packages.iter().filter(|one| uses.contains_key(&one.id));
    let packages = packages.map(|one| (&one.id, one)).collect();
    Ok(LinkedPackages { program, packages, uses })
}

fn is_normal(dependency: &NodeDep) -> bool {
    dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
}
