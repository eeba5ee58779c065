//! Nodes, as topologies see them. Source: docs/reference/kueue.md §4.11.

use std::collections::BTreeMap;

use crds::meta::Taint;
use engine::ids::ResourceId;
use engine::topology::TopologyNodeSpec;
use engine::{Amount, Event, Names};

use crate::selectors;

/// A Node, and what pods take of it for which no topology assignment accounts.
#[derive(Debug, Clone, Copy)]
pub struct NodeWithUsage<'a> {
    /// Labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Taints.
    pub taints: &'a [Taint],
    /// It is Ready and not cordoned.
    pub usable: bool,
    /// Allocatable resources.
    pub allocatable: &'a BTreeMap<String, Amount>,
    /// Usage of pods that no topology assignment accounts for.
    pub foreign: &'a BTreeMap<String, Amount>,
    /// The part of it that pods take that are about to leave.
    pub leaving: &'a BTreeMap<String, Amount>,
}

/// Enters a Node; `None` if it is gone.
pub(crate) fn node_event(names: &mut Names, name: &str, node: Option<&NodeWithUsage<'_>>) -> Event {
    let id = names.nodes.intern(name);
    let spec = node.map(|node| TopologyNodeSpec {
        name: name.into(),
        labels: selectors::pairs(node.labels),
        taints: selectors::taints(node.taints),
        usable: node.usable,
        allocatable: amounts(names, node.allocatable),
        foreign: amounts(names, node.foreign),
        leaving: amounts(names, node.leaving),
    });
    Event::Node(id, spec)
}

fn amounts(names: &mut Names, all: &BTreeMap<String, Amount>) -> Vec<(ResourceId, Amount)> {
    all.iter().map(|(name, amount)| (names.resources.intern(name), *amount)).collect()
}
