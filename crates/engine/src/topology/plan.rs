//! What a pod set's wish means in one tree: the level to start at, and the levels of its slices.
//!
//! Required and preferred name a level. A wish for slices alone starts at the top, everything else at the lowest level,
//! and both may spread at once. The first layer of slices is the whole of them; each further layer stands at a deeper level
//! and divides the one before. Source: docs/reference/kueue.md §4.11, request normalization.

use smallvec::SmallVec;

use crate::topology::tree::Tree;
use crate::topology::{Togetherness, TopologyReason, TopologyRequest};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Plan {
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

impl Plan {
    pub(super) fn new(tree: &Tree, wish: Option<&TopologyRequest>) -> Result<Self, TopologyReason> {
        let lowest = tree.lowest();
        let slices = wish.map(|wish| wish.slices.as_slice()).unwrap_or_default();
        let (slice_level, slice_size) = match slices.first() {
            Some((label, size)) => (tree.level_named(label).unwrap_or(lowest), (*size).max(1)),
            None => (lowest, 1),
        };
        let layers = SmallVec::new();
        let mut plan = Self { slice_level, slice_size, layers, ..Self::start(tree, wish) };
        if plan.level > slice_level {
            let (slice, whole) =
                (tree.levels[slice_level].clone(), tree.levels[plan.level].clone());
            return Err(TopologyReason::SliceAbove { slice, whole });
        }
        plan.add_layers(tree, slices.get(1..).unwrap_or_default())?;
        Ok(plan)
    }

    fn start(tree: &Tree, wish: Option<&TopologyRequest>) -> Self {
        let level = |label: &str| tree.level_named(label).unwrap_or(tree.lowest());
        let only_slices = wish.is_some_and(|wish| !wish.slices.is_empty());
        let (level, required, unconstrained) = match wish.and_then(|wish| wish.together.as_ref()) {
            Some(Togetherness::Required(label)) => (level(label), true, false),
            Some(Togetherness::Preferred(label)) => (level(label), false, false),
            Some(Togetherness::Unconstrained) | None if only_slices => (0, false, true),
            Some(Togetherness::Unconstrained) | None => (tree.lowest(), false, true),
        };
        let layers = SmallVec::new();
        Self { level, required, unconstrained, slice_size: 1, slice_level: 0, layers }
    }

    fn add_layers(
        &mut self,
        tree: &Tree,
        layers: &[(Box<str>, i64)],
    ) -> Result<(), TopologyReason> {
        let (mut above, mut whole) = (self.slice_level, self.slice_size);
        for (label, size) in layers {
            let (level, size) = (tree.level_named(label).unwrap_or(0), (*size).max(1));
            if level <= above {
                let above = tree.levels[above].clone();
                return Err(TopologyReason::LayerNotBelow { layer: label.clone(), above });
            }
            if whole % size != 0 {
                return Err(TopologyReason::LayerDoesNotDivide { size, whole });
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
