//! Topology-aware scheduling: which machines, racks or blocks the pods of a pod set go to.
//!
//! [`tree`] is the tree of domains of one flavor, [`count`] says how many pods fit where, [`choose`] picks domains,
//! [`apply`] ties placements to assignments. Source: spec/kueue-core.md §4.11.

mod apply;
mod choose;
mod count;
pub(crate) mod tree;

pub(crate) use apply::{
    assign, assume, fits, forget, lost_its_place, place_anew, rebuild, reserve, still_fits,
};
pub(crate) use tree::Topologies;

use crate::amount::Amount;
use crate::flavors::matching::Taint;
use crate::ids::ResourceId;

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
    /// Slices of so many pods, each within one domain of this level.
    pub slice: Option<(Box<str>, i64)>,
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
            Self::TooFew { topology, fit, wanted, slices, leaves, excluded } => {
                let unit = if *slices { "slice" } else { "pod" };
                let main = if *fit == 0 {
                    format!("topology {topology:?} doesn't allow to fit any of {wanted} {unit}(s)")
                } else {
                    format!(
                        "topology {topology:?} allows to fit only {fit} out of {wanted} {unit}(s)"
                    )
                };
                if excluded.is_empty() {
                    return main;
                }
                let list: Vec<String> =
                    excluded.iter().map(|(words, count)| format!("{words}: {count}")).collect();
                format!("{main}. Total nodes: {leaves}; excluded: {}", list.join(", "))
            }
        }
    }
}
