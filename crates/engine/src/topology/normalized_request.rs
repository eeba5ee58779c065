//! Normalizes a topology request for one tree: the level to search first, and the levels of its slices.
//!
//! Required and preferred requests name a level. A request for slices alone starts at the top level, any other
//! unconstrained request at the lowest; both may spread at once. The first slice layer defines the slices; each
//! further layer is at a deeper level, and its size divides the one before it.
//! Source: docs/reference/kueue.md §4.11, request normalization.

use smallvec::SmallVec;

use crate::topology::domain_tree::DomainTree;
use crate::topology::{NO_SLICE_SIZE, PlacementFailure, TopologyMode, TopologyRequest};

/// A topology request in terms of one tree's level numbers.
#[derive(Debug, Clone)]
pub(super) struct NormalizedRequest {
    /// The level to search first.
    pub(super) level: usize,
    /// All pods go to one domain of that level.
    pub(super) required: bool,
    /// Pods may spread, so no higher level is tried.
    pub(super) unconstrained: bool,
    /// Pods per slice; 1 if no slices are requested.
    pub(super) slice_size: i64,
    /// Each slice stays within one domain of this level.
    pub(super) slice_level: usize,
    /// Sizes of the additional layers, for the levels from below the slice level down to the deepest layer.
    pub(super) layers: SmallVec<[i64; 4]>,
}

impl NormalizedRequest {
    pub(super) fn new(
        tree: &DomainTree,
        topology_request: Option<&TopologyRequest>,
    ) -> Result<Self, PlacementFailure> {
        let lowest = tree.lowest();
        let slices = topology_request
            .map(|topology_request| topology_request.slices.as_slice())
            .unwrap_or_default();
        let (slice_level, slice_size) = match slices.first() {
            Some((_, NO_SLICE_SIZE)) => return Err(PlacementFailure::NoSliceSize),
            Some((label, size)) => (level(tree, label, true)?, (*size).max(1)),
            None => (lowest, 1),
        };
        let layers = SmallVec::new();
        let mut request =
            Self { slice_level, slice_size, layers, ..Self::start(tree, topology_request)? };
        // A slice lies within the domain of its pod set, so its level may not be higher (§4.11).
        if request.level > slice_level {
            let (slice, pod_set) =
                (tree.levels[slice_level].clone(), tree.levels[request.level].clone());
            return Err(PlacementFailure::SliceLevelAbovePodSet { slice, pod_set });
        }
        request.add_layers(tree, slices.get(1..).unwrap_or_default())?;
        Ok(request)
    }

    fn start(
        tree: &DomainTree,
        topology_request: Option<&TopologyRequest>,
    ) -> Result<Self, PlacementFailure> {
        let only_slices =
            topology_request.is_some_and(|topology_request| !topology_request.slices.is_empty());
        let (level, required, unconstrained) =
            match topology_request.and_then(|topology_request| topology_request.mode.as_ref()) {
                Some(TopologyMode::Required(label)) => (level(tree, label, false)?, true, false),
                Some(TopologyMode::Preferred(label)) => (level(tree, label, false)?, false, false),
                // Slices may spread over the whole tree, so the search starts at the top (§4.11).
                Some(TopologyMode::Unconstrained) | None if only_slices => (0, false, true),
                Some(TopologyMode::Unconstrained) | None => (tree.lowest(), false, true),
            };
        let layers = SmallVec::new();
        Ok(Self { level, required, unconstrained, slice_size: 1, slice_level: 0, layers })
    }

    fn add_layers(
        &mut self,
        tree: &DomainTree,
        layers: &[(Box<str>, i64)],
    ) -> Result<(), PlacementFailure> {
        let (mut level_above, mut size_above) = (self.slice_level, self.slice_size);
        for (label, size) in layers {
            let (level, size) = (level(tree, label, true)?, (*size).max(1));
            if level <= level_above {
                let level_above = tree.levels[level_above].clone();
                return Err(PlacementFailure::SliceLayerNotBelow {
                    layer: label.clone(),
                    above: level_above,
                });
            }
            if size_above % size != 0 {
                return Err(PlacementFailure::SliceLayerSizeMismatch { size, size_above });
            }
            // Levels between two layers take the size of the lower layer.
            self.layers.resize(level - self.slice_level, size);
            (level_above, size_above) = (level, size);
        }
        Ok(())
    }

    /// The slice size in which domains of `level` get their pods, if the level belongs to an additional layer.
    pub(super) fn layer(&self, level: usize) -> Option<i64> {
        let below = level.checked_sub(self.slice_level + 1)?;
        self.layers.get(below).copied()
    }

    /// Number of slices for `pods`. The last slice may be smaller, but capacity for a whole one is required.
    pub(super) fn slices(&self, pods: i64) -> i64 {
        units(pods, self.slice_size)
    }
}

/// The number of a requested level. Heads have been checked for it, but a Workload that has its flavor already may request a level
/// that the topology has no more; at any other level its pods might be placed against a required topology.
fn level(tree: &DomainTree, label: &str, of_slices: bool) -> Result<usize, PlacementFailure> {
    let no_level = || PlacementFailure::NoLevel { level: label.into(), of_slices };
    tree.level_named(label).ok_or_else(no_level)
}

/// Number of units of `size` needed for `pods`.
pub(super) fn units(pods: i64, size: i64) -> i64 {
    pods / size + i64::from(pods % size > 0)
}
