//! Topology-aware scheduling: which machines, racks or blocks the pods of a pod set go to.
//!
//! [`tree`] is the tree of domains of one flavor, [`topologies`] all of them with what is used. A search ([`find`]) reads
//! the wish ([`plan`]), counts how many pods fit where ([`count`]), asks which machines are preferred ([`preferred`]) and
//! picks domains ([`choose`], or [`balance`]). [`apply`] ties places to assignments, [`elastic`] keeps those of an older
//! slice, [`replace`] finds new ones for pods whose machine failed; [`ground`] and [`shortfall`] tell whoever asks what is
//! missing. Source: docs/reference/kueue.md §4.11.

mod apply;
mod balance;
mod choose;
mod count;
mod elastic;
mod exclude;
mod find;
mod ground;
mod holders;
mod lack;
mod layers;
mod line;
mod plan;
mod preferred;
mod replace;
mod scarce;
mod shortfall;
mod subset;
mod table;
pub(crate) mod topologies;
mod tree;

pub(crate) use apply::{
    assign, assume, finds_topology_assignment, fits, forget, only_flavor, place_anew, rebuild,
    reserve, still_fits,
};
pub use exclude::Unfit;
pub(crate) use ground::{Ground, Refusal};
pub use holders::Holder;
pub use lack::{Fit, Lack, PlaceCure, Scarce};
pub use preferred::PreferredTerm;
pub(crate) use replace::{Moved, replace, stands_on};
pub(crate) use topologies::Topologies;

use crate::amount::Amount;
use crate::ids::ResourceId;
use crate::node_selection::Taint;

/// The node label of the lowest level when leaves are single machines.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// How pods must stand together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Togetherness {
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
    pub together: Option<Togetherness>,
    /// Slices of so many pods, each within one domain of this level; then further layers, each at a deeper level and of a
    /// size that divides the one before.
    pub slices: Vec<(Box<str>, i64)>,
    /// Pod sets with the same group stand in the same domain.
    pub group: Option<Box<str>>,
}

/// Pods in one lowest domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedDomain {
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
pub struct HostSpec {
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
pub enum TopologyReason {
    /// Slices would have to be larger than the domain of the whole.
    SliceAbove {
        /// Level of the slices.
        slice: Box<str>,
        /// Level of the pod set.
        whole: Box<str>,
    },
    /// A layer of slices is not below the one before.
    LayerNotBelow {
        /// Its level.
        layer: Box<str>,
        /// The level of the one before.
        above: Box<str>,
    },
    /// Slices of a layer do not fill those of the one before.
    LayerDoesNotDivide {
        /// Its size.
        size: i64,
        /// The size of the one before.
        whole: i64,
    },
    /// A machine cannot be replaced, because a place of those who stay is gone too.
    Stale {
        /// The machine that is gone.
        domain: Box<str>,
    },
    /// No machine has a place in the topology.
    NoDomains {
        /// The level that was looked at.
        level: Box<str>,
    },
    /// Too few slices fit, of one layer or several.
    Layers {
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
    TooFew {
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

impl TopologyReason {
    /// In upstream's words.
    pub fn in_words(&self) -> String {
        match self {
            Self::SliceAbove { slice, whole } => {
                format!("podset slice topology {slice} is above the podset topology {whole}")
            }
            Self::LayerNotBelow { layer, above } => format!(
                "additional slice layer topology {layer} must be at a lower level than {above}"
            ),
            Self::LayerDoesNotDivide { size, whole } => format!(
                "additional slice layer size {size} must evenly divide parent layer size {whole}"
            ),
            Self::Stale { domain } => format!(
                "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the \
                 stale domain {domain}"
            ),
            Self::NoDomains { level } => format!("no topology domains at level: {level}"),
            Self::Layers { topology, fits, leaves, excluded } => {
                let layers = fits.iter().map(|(level, fit, wanted)| {
                    format!("; {fit}/{wanted} slice(s) fit on level {level}")
                });
                let layers: String = layers.collect();
                let main = format!("topology {topology:?} doesn't allow to fit{layers}");
                with_excluded(main, *leaves, excluded)
            }
            Self::TooFew { topology, fit, wanted, slices, leaves, excluded } => {
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
