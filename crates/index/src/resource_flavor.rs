//! ResourceFlavors and Topologies. Source: docs/reference/kueue.md §1.4, docs/reference/dispatch.md §3.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::annotations::CLUSTERS;
use crds::v1beta2::{ResourceFlavor, Topology};
use engine::ids::FlavorId;
use engine::spec::FlavorSpec;
use engine::topology::TopologyLevels;
use engine::{Event, Names};

use crate::indexed_objects::IndexedFlavor;
use crate::selectors;

/// ResourceFlavors and Topologies.
#[derive(Debug, Default)]
pub(crate) struct Flavors {
    flavors: BTreeMap<String, IndexedFlavor>,
    topologies: BTreeSet<String>,
    /// Names of the engine's ids, for calls during a cycle.
    names: BTreeMap<FlavorId, String>,
}

impl Flavors {
    pub(crate) fn get(&self, name: &str) -> Option<&IndexedFlavor> {
        self.flavors.get(name)
    }

    /// The name of a flavor that was entered once.
    pub(crate) fn name(&self, id: FlavorId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    pub(crate) fn has_topology(&self, name: &str) -> bool {
        self.topologies.contains(name)
    }

    /// Enters a ResourceFlavor, with or without its topology.
    pub(crate) fn resource_flavor(
        &mut self,
        names: &mut Names,
        (name, flavor): (&str, Option<&ResourceFlavor>),
        with_topology: bool,
    ) -> Event {
        let id = names.flavors.intern(name);
        self.names.entry(id).or_insert_with(|| name.to_owned());
        let Some(flavor) = flavor else {
            self.flavors.remove(name);
            return Event::Flavor(id, None);
        };
        let topology = flavor.spec.topology_name.as_deref().filter(|_| with_topology);
        let spec = FlavorSpec {
            labels: selectors::pairs(&flavor.spec.node_labels),
            taints: selectors::taints(&flavor.spec.node_taints),
            tolerations: selectors::tolerations(&flavor.spec.tolerations),
            topology: topology.map(|name| names.topologies.intern(name)),
        };
        let kept = IndexedFlavor {
            labels: flavor.spec.node_labels.clone(),
            tolerations: flavor.spec.tolerations.clone(),
            topology: topology.map(str::to_owned),
            clusters: bound_clusters(flavor),
        };
        self.flavors.insert(name.to_owned(), kept);
        Event::Flavor(id, Some(spec))
    }

    /// Enters a Topology.
    pub(crate) fn topology(
        &mut self,
        names: &mut Names,
        name: &str,
        topology: Option<&Topology>,
    ) -> Event {
        let id = names.topologies.intern(name);
        let Some(topology) = topology else {
            self.topologies.remove(name);
            return Event::Topology(id, None);
        };
        self.topologies.insert(name.to_owned());
        let levels = topology.spec.levels.iter().map(|level| level.node_label.as_str().into());
        Event::Topology(id, Some(TopologyLevels { levels: levels.collect() }))
    }
}

/// The MultiKueueClusters that a flavor is bound to; `None` without the annotation.
#[must_use]
pub fn bound_clusters(flavor: &ResourceFlavor) -> Option<Vec<String>> {
    let names = flavor.metadata.annotations.as_ref()?.get(CLUSTERS)?.split(',').map(str::trim);
    Some(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
