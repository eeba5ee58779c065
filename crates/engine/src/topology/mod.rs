//! Topology-aware scheduling: which machines, racks or blocks the pods of a pod set go to.
//!
//! [`domain_tree`] is the tree of domains of one flavor, [`topologies`] all of them with what is used. A search ([`assignment_search`]) reads
//! the wish ([`normalized_request`]), counts how many pods fit where ([`fill_in_counts`]), asks which machines are preferred ([`affinity_score`]) and
//! picks domains ([`domain_selection`], or [`balanced_placement`]). [`flavor_assigner`] ties places to assignments, [`elastic_assignment`] keeps those of an older
//! slice, [`node_replacement`] finds new ones for pods whose machine failed; [`placement_probe`] and [`shortfall_analysis`] tell whoever asks what is
//! missing. Source: docs/reference/kueue.md §4.11.

mod affinity_score;
mod assignment_search;
mod balanced_placement;
mod domain_selection;
mod domain_set_selector;
mod domain_tree;
mod elastic_assignment;
mod exclusion_stats;
mod fill_in_counts;
mod flavor_assigner;
mod limiting_resource;
mod node_replacement;
mod normalized_request;
mod placement_probe;
mod placement_shortfall;
mod resource_table;
mod shortfall_analysis;
mod slice_layers;
mod sorted_domains;
pub(crate) mod topologies;
mod topology_usage;

pub use affinity_score::PreferredTerm;
pub use exclusion_stats::NodeMismatch;
pub(crate) use flavor_assigner::{
    assign, assign_assuming_preemption, assume, finds_topology_assignment, fits, forget,
    only_flavor, rebuild, reserve, still_fits,
};
pub(crate) use node_replacement::{
    ReplacementAssignments, find_replacement_assignment, is_assigned_to,
};
pub(crate) use placement_probe::{PlacementProbe, ProbeFailure};
pub use placement_shortfall::{
    FittingCount, LimitingResource, PlacementRemedy, PlacementShortfall,
};
pub(crate) use topologies::Topologies;
pub use topology_usage::TopologyUsage;

use crate::amount::Amount;
use crate::ids::ResourceId;
use crate::node_selection::Taint;

/// The node label of the lowest level when leaves are single machines.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// How pods must stand together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopologyMode {
    /// Within one domain of this level (a node label).
    Required(Box<str>),
    /// Within one domain of this level if possible.
    Preferred(Box<str>),
    /// Anywhere in the topology.
    Unconstrained,
}

/// What a pod set asks of a topology.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopologyRequest {
    /// For the whole pod set; absent if only slices are asked for.
    pub mode: Option<TopologyMode>,
    /// Slices of so many pods, each within one domain of this level; then further layers, each at a deeper level and of a
    /// size that divides the one before.
    pub slices: Vec<(Box<str>, i64)>,
    /// Pod sets with the same group stand in the same domain.
    pub group: Option<Box<str>>,
}

/// Pods in one lowest domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainAssignment {
    /// Label values from the top level down.
    pub values: std::sync::Arc<[Box<str>]>,
    /// How many pods.
    pub count: i64,
}

/// A Topology: the node labels of its levels, from the top down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologySpec {
    /// Node labels.
    pub levels: Vec<Box<str>>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyNodeSpec {
    /// Its name.
    pub name: Box<str>,
    /// Labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Ready and schedulable.
    pub usable: bool,
    /// What it offers.
    pub allocatable: Vec<(ResourceId, Amount)>,
    /// What pods use that are none of the engine's business.
    pub foreign: Vec<(ResourceId, Amount)>,
}

/// Why pods cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementFailure {
    /// Slices would have to be larger than the domain of the whole.
    SliceLevelAbovePodSet {
        /// Level of the slices.
        slice: Box<str>,
        /// Level of the pod set.
        whole: Box<str>,
    },
    /// A layer of slices is not below the one before.
    SliceLayerNotBelow {
        /// Its level.
        layer: Box<str>,
        /// The level of the one before.
        above: Box<str>,
    },
    /// Slices of a layer do not fill those of the one before.
    SliceLayerSizeMismatch {
        /// Its size.
        size: i64,
        /// The size of the one before.
        whole: i64,
    },
    /// A machine cannot be replaced, because a place of those who stay is gone too.
    StaleDomain {
        /// The machine that is gone.
        domain: Box<str>,
    },
    /// No machine has a place in the topology.
    NoDomainsAtLevel {
        /// The level that was looked at.
        level: Box<str>,
    },
    /// Too few slices fit, of one layer or several.
    SliceLayersNotFit {
        /// Name of the topology.
        topology: Box<str>,
        /// Per layer: its level, how many slices fit, how many should.
        fits: Vec<(Box<str>, i64, i64)>,
        /// Leaves of the tree.
        leaves: usize,
        /// Why leaves took nobody: words and how many, sorted by words.
        excluded: Vec<(String, usize)>,
    },
    /// Too few fit.
    NotFit {
        /// Name of the topology.
        topology: Box<str>,
        /// How many fit.
        fit: i64,
        /// How many should.
        wanted: i64,
        /// They are counted in slices.
        slices: bool,
        /// Leaves of the tree.
        leaves: usize,
        /// Why leaves took nobody: words and how many, sorted by words.
        excluded: Vec<(String, usize)>,
    },
}

impl PlacementFailure {
    /// In upstream's words.
    pub fn message(&self) -> String {
        match self {
            Self::SliceLevelAbovePodSet { slice, whole } => {
                format!("podset slice topology {slice} is above the podset topology {whole}")
            }
            Self::SliceLayerNotBelow { layer, above } => format!(
                "additional slice layer topology {layer} must be at a lower level than {above}"
            ),
            Self::SliceLayerSizeMismatch { size, whole } => format!(
                "additional slice layer size {size} must evenly divide parent layer size {whole}"
            ),
            Self::StaleDomain { domain } => format!(
                "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the \
                 stale domain {domain}"
            ),
            Self::NoDomainsAtLevel { level } => format!("no topology domains at level: {level}"),
            Self::SliceLayersNotFit { topology, fits, leaves, excluded } => {
                let layers = fits.iter().map(|(level, fit, wanted)| {
                    format!("; {fit}/{wanted} slice(s) fit on level {level}")
                });
                let layers: String = layers.collect();
                let main = format!("topology {topology:?} doesn't allow to fit{layers}");
                with_excluded(main, *leaves, excluded)
            }
            Self::NotFit { topology, fit, wanted, slices, leaves, excluded } => {
                let unit = if *slices { "slice" } else { "pod" };
                let main = if *fit == 0 {
                    format!("topology {topology:?} doesn't allow to fit any of {wanted} {unit}(s)")
                } else {
                    format!(
                        "topology {topology:?} allows to fit only {fit} out of {wanted} {unit}(s)"
                    )
                };
                with_excluded(main, *leaves, excluded)
            }
        }
    }
}

fn with_excluded(main: String, leaves: usize, excluded: &[(String, usize)]) -> String {
    if excluded.is_empty() {
        return main;
    }
    let list: Vec<String> =
        excluded.iter().map(|(words, count)| format!("{words}: {count}")).collect();
    format!("{main}. Total nodes: {leaves}; excluded: {}", list.join(", "))
}
