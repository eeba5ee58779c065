//! Flavor assignment: which flavor every resource of every pod set gets, and what stands in the way.
//!
//! [`assign`] walks the pod sets, resources in the order of [`walk`], [`scan`] tries the flavors of one resource group,
//! [`grade`] judges one (flavor, resource), [`matching`] knows taints and labels, [`partial`] looks for a smaller Workload
//! that fits, [`hope`] tells without all that who would be refused again. Source: docs/reference/kueue.md §4.4, §4.5.

pub(crate) mod assign;
pub(crate) mod grade;
pub(crate) mod hope;
pub mod matching;
pub(crate) mod partial;
pub(crate) mod scan;
pub(crate) mod walk;
