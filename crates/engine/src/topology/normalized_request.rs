//! What a pod set's wish means in one tree: the level to start at, and the levels of its slices.
//!
//! Required and preferred name a level. A wish for slices alone starts at the top, everything else at the lowest level,
//! and both may spread at once. The first layer of slices is the whole of them; each further layer stands at a deeper level
//! and divides the one before. Source: docs/reference/kueue.md §4.11, request normalization.

use smallvec::SmallVec;

use crate::topology::domain_tree::DomainTree;
use crate::topology::{PlacementFailure, TopologyMode, TopologyRequest};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct NormalizedRequest {
    /// Where to look first.
    pub(super) level: usize,
    /// Only within one domain of that level.
    pub(super) required: bool,
    /// Anywhere, so that no higher level is tried.
    pub(super) unconstrained: bool,
    /// Pods of a slice; 1 without a wish for slices.
    pub(super) slice_size: i64,
    /// A slice stands within one domain of this level.
    pub(super) slice_level: usize,
    /// Sizes of further layers, for the levels from below the slices down to the deepest layer.
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
            Some((label, size)) => (tree.level_named(label).unwrap_or(lowest), (*size).max(1)),
            None => (lowest, 1),
        };
        let layers = SmallVec::new();
        let mut request =
            Self { slice_level, slice_size, layers, ..Self::start(tree, topology_request) };
        if request.level > slice_level {
            let (slice, whole) =
                (tree.levels[slice_level].clone(), tree.levels[request.level].clone());
            return Err(PlacementFailure::SliceLevelAbovePodSet { slice, whole });
        }
        request.add_layers(tree, slices.get(1..).unwrap_or_default())?;
        Ok(request)
    }

    fn start(tree: &DomainTree, topology_request: Option<&TopologyRequest>) -> Self {
        let level = |label: &str| tree.level_named(label).unwrap_or(tree.lowest());
        let only_slices =
            topology_request.is_some_and(|topology_request| !topology_request.slices.is_empty());
        let (level, required, unconstrained) =
            match topology_request.and_then(|topology_request| topology_request.mode.as_ref()) {
                Some(TopologyMode::Required(label)) => (level(label), true, false),
                Some(TopologyMode::Preferred(label)) => (level(label), false, false),
                Some(TopologyMode::Unconstrained) | None if only_slices => (0, false, true),
                Some(TopologyMode::Unconstrained) | None => (tree.lowest(), false, true),
            };
        let layers = SmallVec::new();
        Self { level, required, unconstrained, slice_size: 1, slice_level: 0, layers }
    }

    fn add_layers(
        &mut self,
        tree: &DomainTree,
        layers: &[(Box<str>, i64)],
    ) -> Result<(), PlacementFailure> {
        let (mut above, mut whole) = (self.slice_level, self.slice_size);
        for (label, size) in layers {
            let (level, size) = (tree.level_named(label).unwrap_or(0), (*size).max(1));
            if level <= above {
                let above = tree.levels[above].clone();
                return Err(PlacementFailure::SliceLayerNotBelow { layer: label.clone(), above });
            }
            if whole % size != 0 {
                return Err(PlacementFailure::SliceLayerSizeMismatch { size, whole });
            }
            self.layers.resize(level - self.slice_level, size);
            (above, whole) = (level, size);
        }
        Ok(())
    }

    /// In units of how many pods domains of `level` are given theirs, if in more than single ones.
    pub(super) fn layer(&self, level: usize) -> Option<i64> {
        let below = level.checked_sub(self.slice_level + 1)?;
        self.layers.get(below).copied()
    }

    /// How many slices `pods` make. The last may be smaller; room is found for a whole one.
    pub(super) fn slices(&self, pods: i64) -> i64 {
        units(pods, self.slice_size)
    }
}

/// How many units of `size` hold `pods`.
pub(super) fn units(pods: i64, size: i64) -> i64 {
    pods / size + i64::from(pods % size > 0)
}
