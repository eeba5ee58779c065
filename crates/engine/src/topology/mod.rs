//! Topology-aware scheduling (TAS): assigns the pods of a pod set to domains (nodes, racks, blocks) of a flavor's
//! topology.
//!
//! * Data: [`domain_tree`] is the tree of domains of one flavor, [`aggregated_nodes`] the nodes of leaves that are
//!   none; [`topologies`] holds all trees, the nodes and their usage.
//! * Search: [`assignment_search`] reads a request ([`normalized_request`]), counts the pods that fit into each
//!   domain ([`fill_in_counts`], from [`leaf_counts`] or [`node_counts`]), scores preferred nodes ([`affinity_score`]) and picks domains
//!   ([`domain_selection`] or [`balanced_placement`]).
//! * Use: [`flavor_assigner`] adds topology assignments to flavor assignments, [`elastic_assignment`] keeps the
//!   leaves of a replaced slice, [`node_replacement`] moves pods off a failed node, [`refused_request`] names
//!   requests that are not searched for.
//! * Explanation: [`placement_probe`] searches without changing anything, [`shortfall_analysis`] says what is
//!   missing.
//!
//! Invariant: a search only reads the trees; usage changes through [`layer::TopologyLayer`]. Source: docs/reference/kueue.md
//! §4.11.

mod affinity_score;
mod aggregated_nodes;
pub(crate) mod assignment_search;
mod balanced_placement;
mod domain_selection;
mod domain_set_selector;
mod domain_tree;
mod elastic_assignment;
mod exclusion_stats;
mod fill_in_counts;
mod flavor_assigner;
pub(crate) mod layer;
mod leaf_counts;
mod limiting_resource;
mod needed_capacity;
mod node_counts;
pub(crate) mod node_failures;
mod node_replacement;
mod normalized_request;
mod placement_probe;
mod placement_shortfall;
mod planned_usage;
mod refused_request;
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
    only_flavor, reserve, still_fits,
};
pub(crate) use node_replacement::{
    ReplacementAssignments, find_replacement_assignment, is_assigned_to,
};
pub(crate) use placement_probe::{PlacementProbe, ProbeFailure};
pub use placement_shortfall::{
    FittingCount, LimitingResource, PlacementRemedy, PlacementShortfall,
};
pub(crate) use refused_request::refusal;
pub use topology_usage::TopologyUsage;

use crate::amount::Amount;
use crate::ids::ResourceId;
use crate::node_selection::NodeTaint;

/// Node label of the lowest level of a topology whose leaves are single nodes.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// Topology constraint on a whole pod set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopologyMode {
    /// All pods in one domain of this level (a node label).
    Required(Box<str>),
    /// All pods in one domain of this level if possible, otherwise of a higher level, otherwise spread.
    Preferred(Box<str>),
    /// Any leaves of the topology.
    Unconstrained,
}

/// In place of the size of slices that were requested without one: such a pod set is not placed.
pub const NO_SLICE_SIZE: i64 = 0;

/// Topology request of a pod set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopologyRequest {
    /// Constraint on the whole pod set; `None` if only slices are requested.
    pub mode: Option<TopologyMode>,
    /// Slice layers, outermost first: level and pods per slice. Each slice stays within one domain of its level. A
    /// further layer is at a deeper level, and its size divides the size of the layer before it.
    pub slices: Vec<(Box<str>, i64)>,
    /// Pod set group: pod sets of one group are assigned to the same domain.
    pub group: Option<Box<str>>,
}

/// Pods assigned to one leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainAssignment {
    /// Label values from the top level down.
    pub values: std::sync::Arc<[Box<str>]>,
    /// Number of pods.
    pub count: i64,
}

/// A Topology: the node labels of its levels, from the top down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyLevels {
    /// Node labels.
    pub levels: Vec<Box<str>>,
}

/// A Kubernetes node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyNodeSpec {
    /// Its name.
    pub name: Box<str>,
    /// Labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints.
    pub taints: Vec<NodeTaint>,
    /// Ready and schedulable.
    pub usable: bool,
    /// Allocatable resources.
    pub allocatable: Vec<(ResourceId, Amount)>,
    /// Usage of pods that no topology assignment accounts for. Subtracted from the allocatable resources.
    pub foreign: Vec<(ResourceId, Amount)>,
    /// The part of it that pods take that are about to leave: they are being deleted, or their Workload is evicted.
    pub leaving: Vec<(ResourceId, Amount)>,
}

/// Reason why no topology assignment exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementFailure {
    /// The topology has no level of this name: it was made again after the pod set got its flavor.
    NoLevel {
        /// Requested level.
        level: Box<str>,
        /// It is that of slices.
        of_slices: bool,
    },
    /// Slices are requested, and not how many pods each of them has.
    NoSliceSize,
    /// The slice level is above the level requested for the pod set.
    SliceLevelAbovePodSet {
        /// Slice level.
        slice: Box<str>,
        /// Level requested for the pod set.
        pod_set: Box<str>,
    },
    /// A slice layer is not below the layer before it.
    SliceLayerNotBelow {
        /// Level of the layer.
        layer: Box<str>,
        /// Level of the layer before it.
        above: Box<str>,
    },
    /// The size of a slice layer does not divide the size of the layer before it.
    SliceLayerSizeMismatch {
        /// Pods per slice of the layer.
        size: i64,
        /// Pods per slice of the layer before it.
        size_above: i64,
    },
    /// A failed node cannot be replaced because another domain of the assignment no longer exists.
    StaleDomain {
        /// Name of the stale domain.
        domain: Box<str>,
    },
    /// No node belongs to the topology.
    NoDomainsAtLevel {
        /// Requested level.
        level: Box<str>,
    },
    /// Not enough slices fit; at least two slice layers are requested.
    SliceLayersNotFit {
        /// Name of the topology.
        topology: Box<str>,
        /// Per layer: level, slices that fit, slices requested.
        fits: Vec<(Box<str>, i64, i64)>,
        /// Number of leaves in the tree.
        leaves: usize,
        /// Reasons for excluded leaves: text and number of leaves, sorted by text.
        excluded: Vec<(String, usize)>,
    },
    /// Not enough pods or slices fit.
    NotFit {
        /// Name of the topology.
        topology: Box<str>,
        /// Units that fit.
        fit: i64,
        /// Units requested.
        requested: i64,
        /// The unit is the slice; otherwise the pod.
        slices: bool,
        /// Number of leaves in the tree.
        leaves: usize,
        /// Reasons for excluded leaves: text and number of leaves, sorted by text.
        excluded: Vec<(String, usize)>,
    },
}

impl PlacementFailure {
    /// The message of Kueue's TAS snapshot for the same failure.
    pub fn message(&self) -> String {
        match self {
            Self::NoLevel { level, of_slices: false } => {
                format!("no requested topology level: {level}")
            }
            Self::NoLevel { level, of_slices: true } => {
                format!("no requested topology level for slices: {level}")
            }
            Self::NoSliceSize => "slice topology requested, but slice size not provided".to_owned(),
            Self::SliceLevelAbovePodSet { slice, pod_set } => {
                format!("podset slice topology {slice} is above the podset topology {pod_set}")
            }
            Self::SliceLayerNotBelow { layer, above } => format!(
                "additional slice layer topology {layer} must be at a lower level than {above}"
            ),
            Self::SliceLayerSizeMismatch { size, size_above } => format!(
                "additional slice layer size {size} must evenly divide parent layer size {size_above}"
            ),
            Self::StaleDomain { domain } => format!(
                "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the \
                 stale domain {domain}"
            ),
            Self::NoDomainsAtLevel { level } => format!("no topology domains at level: {level}"),
            Self::SliceLayersNotFit { topology, fits, leaves, excluded } => {
                let layers = fits.iter().map(|(level, fit, requested)| {
                    format!("; {fit}/{requested} slice(s) fit on level {level}")
                });
                let layers: String = layers.collect();
                let main = format!("topology {topology:?} doesn't allow to fit{layers}");
                with_excluded(main, *leaves, excluded)
            }
            Self::NotFit { topology, fit, requested, slices, leaves, excluded } => {
                let unit = if *slices { "slice" } else { "pod" };
                let main = if *fit == 0 {
                    format!(
                        "topology {topology:?} doesn't allow to fit any of {requested} {unit}(s)"
                    )
                } else {
                    format!(
                        "topology {topology:?} allows to fit only {fit} out of {requested} {unit}(s)"
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
