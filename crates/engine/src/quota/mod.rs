//! Quota: the cohort tree with quotas and usage.
//!
//! [`layer`] owns the data; [`tree`] has the hierarchy and its cells, [`available`] what can still be used, [`dominant_share`]
//! the shares of fair sharing. Source: docs/reference/kueue.md §4.3, §4.7.

pub(crate) mod available;
pub(crate) mod cell;
pub(crate) mod changes;
mod declared;
pub(crate) mod dominant_share;
pub(crate) mod journal;
pub(crate) mod layer;
mod node;
pub(crate) mod subtree_usage;
pub(crate) mod tree;
