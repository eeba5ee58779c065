//! Quotas: who may use how much of what.
//!
//! [`tree`] holds the hierarchy and its numbers, [`available`] answers what is left, [`share`] says who uses more than
//! others. Source: docs/reference/kueue.md §4.3, §4.7.

pub(crate) mod available;
pub(crate) mod cell;
pub(crate) mod changes;
mod declared;
pub(crate) mod dominant_share;
pub(crate) mod journal;
pub(crate) mod node;
pub(crate) mod tree;
