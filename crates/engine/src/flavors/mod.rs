//! Flavor assignment: which flavor every resource of every pod set gets, and what stands in the way.
//!
//! [`assign`] walks the pod sets, resources in the order of [`walk`], [`scan`] tries the flavors of one resource group,
//! [`grade`] judges one (flavor, resource), [`partial`] looks for a smaller Workload
//! that fits, [`hope`] tells without all that who would be refused again. Source: docs/reference/kueue.md §4.4, §4.5.

pub(crate) mod assign;
pub(crate) mod assignment;
pub(crate) mod attempt;
pub(crate) mod delayed_topology;
pub(crate) mod granular_mode;
pub(crate) mod podset_reducer;
pub(crate) mod reevaluation;
pub(crate) mod request_order;
pub(crate) mod resource_quota;
pub(crate) mod scan;
