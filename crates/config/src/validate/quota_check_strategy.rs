//! Settings that a strategy of the quota check leaves without effect (docs/reference/kueue.md §6.4).

use crds::validation::FieldError;

use super::InvalidField;
use crate::{
    Configuration, QuotaCheckStrategy,
    gates::{Gate, Gates},
};

/// Prefixes beside IgnoreUndeclared, which leaves out every resource without quota. Without the gate QuotaCheckStrategy the strategy
/// has no effect.
pub(crate) fn check(config: &Configuration, gates: &Gates) -> Option<InvalidField> {
    let resources = &config.resources;
    let ignores = gates.enabled(Gate::QuotaCheckStrategy)
        && resources.quota_check_strategy == QuotaCheckStrategy::IgnoreUndeclared;
    if !ignores || resources.exclude_resource_prefixes.is_empty() {
        return None;
    }
    let detail =
        "excludeResourcePrefixes is not allowed when quotaCheckStrategy is IgnoreUndeclared";
    Some(FieldError::invalid("resources.quotaCheckStrategy", "IgnoreUndeclared", detail).into())
}
