//! ResourceFlavors and Topologies. Source: docs/reference/kueue.md §1.4, docs/reference/dispatch.md §3.

use crds::names::annotations::CLUSTERS;
use crds::v1beta2::{ResourceFlavor, Topology};
use engine::spec::FlavorSpec;
use engine::topology::TopologyLevels;
use engine::{Event, Names};

use crate::index::Index;
use crate::indexed_objects::IndexedFlavor;
use crate::selectors;

impl Index {
    /// Enters a ResourceFlavor.
    pub fn resource_flavor(
        &mut self,
        names: &mut Names,
        name: &str,
        flavor: Option<&ResourceFlavor>,
    ) -> Vec<Event> {
        let id = names.flavors.intern(name);
        self.flavor_names.entry(id).or_insert_with(|| name.to_owned());
        let Some(flavor) = flavor else {
            self.flavors.remove(name);
            return vec![Event::Flavor(id, None)];
        };
        let topology = flavor.spec.topology_name.as_deref();
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
        vec![Event::Flavor(id, Some(spec))]
    }

    /// Enters a Topology.
    pub fn topology(
        &mut self,
        names: &mut Names,
        name: &str,
        topology: Option<&Topology>,
    ) -> Vec<Event> {
        let id = names.topologies.intern(name);
        let Some(topology) = topology else {
            self.topologies.remove(name);
            return vec![Event::Topology(id, None)];
        };
        self.topologies.insert(name.to_owned());
        let levels = topology.spec.levels.iter().map(|level| level.node_label.as_str().into());
        vec![Event::Topology(id, Some(TopologyLevels { levels: levels.collect() }))]
    }
}

/// The MultiKueueClusters that a flavor is bound to; `None` without the annotation.
#[must_use]
pub fn bound_clusters(flavor: &ResourceFlavor) -> Option<Vec<String>> {
    let names = flavor.metadata.annotations.as_ref()?.get(CLUSTERS)?.split(',').map(str::trim);
    Some(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
