//! Flavor assignment: the flavor of every resource of every pod set, and why there is none.
//!
//! [`assign`] loops over pod sets, with resources in the order of [`request_order`]; [`scan`] tries the flavors of
//! one resource group; [`resource_quota`] fits one (flavor, resource); [`empty_pod_sets`] prefers flavors that could hold pods
//! of pod sets without any; [`podset_reducer`] looks for a smaller Workload that fits; [`reevaluation`] predicts repeated
//! refusals; [`topology_timing`] marks pod sets that get their domains later. Source: docs/reference/kueue.md §4.4, §4.5.

pub(crate) mod assign;
pub(crate) mod assignment;
pub(crate) mod attempt;
pub(crate) mod empty_pod_sets;
pub(crate) mod granular_mode;
pub(crate) mod podset_reducer;
pub(crate) mod reevaluation;
pub(crate) mod request_order;
pub(crate) mod resource_quota;
pub(crate) mod scan;
pub(crate) mod topology_timing;
