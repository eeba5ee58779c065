//! Validation of the quota of a ClusterQueue or Cohort.

use std::collections::BTreeSet;

use crds::{
    quantity::Quantity,
    v1beta2::{FairSharing, FlavorQuotas, ResourceGroup, ResourceQuota},
    validation::{Errors, FieldError, labels, negative},
};

const FIELD: &str = "spec.resourceGroups";
/// Flavors, and resources, of all resource groups together (docs/reference/kueue.md §1.3).
const MAX_IN_TOTAL: usize = 256;
/// Pairs of a flavor and a resource in one resource group.
const MAX_PAIRS: usize = 512;

/// The owner of a quota.
#[derive(Clone, Copy)]
pub(super) struct QuotaOwner {
    /// The parent of the owner, as error messages name it.
    pub(super) parent: &'static str,
    /// Whether the owner has a parent.
    pub(super) has_parent: bool,
    /// Whether a lending limit above the nominal quota is an error.
    pub(super) lends_what_it_has: bool,
}

/// Errors of resource groups.
pub(super) fn check(groups: &[ResourceGroup], owner: QuotaOwner) -> Errors {
    let mut errors = Errors::new();
    let mut resources = BTreeSet::new();
    let mut flavors = BTreeSet::new();
    for (at, group) in groups.iter().enumerate() {
        let field = format!("{FIELD}[{at}]");
        for (at, name) in group.covered_resources.iter().enumerate() {
            let field = format!("{field}.coveredResources[{at}]");
            errors.extend(labels::check_key(&field, name));
            // A resource, and a flavor, is in one resource group only (docs/reference/kueue.md
            // §1.3).
            if !resources.insert(name) {
                errors.push(FieldError::duplicate(&field, name, ""));
            }
        }
        for (at, flavor) in group.flavors.iter().enumerate() {
            let field = format!("{field}.flavors[{at}]");
            errors.extend(check_flavor(&field, flavor, group, owner));
            if !flavors.insert(&flavor.name) {
                errors.push(FieldError::duplicate(format!("{field}.name"), &flavor.name, ""));
            }
        }
    }
    errors
}

/// Errors of the numbers of flavors, resources and pairs, which a ClusterQueue limits.
pub(super) fn check_totals(groups: &[ResourceGroup]) -> Errors {
    let mut errors = Errors::new();
    let mut at_most = |field: String, what: &str, most: usize, count: usize| {
        if count > most {
            let detail = format!("{what} must be ≤ {most}, got {count}");
            errors.push(FieldError::invalid(field, count, detail));
        }
    };
    let flavors = groups.iter().map(|group| group.flavors.len()).sum();
    let resources = groups.iter().map(|group| group.covered_resources.len()).sum();
    at_most(
        FIELD.into(),
        "total number of flavors across all resourceGroups",
        MAX_IN_TOTAL,
        flavors,
    );
    at_most(
        FIELD.into(),
        "total number of covered resources across all resourceGroups",
        MAX_IN_TOTAL,
        resources,
    );
    for (at, group) in groups.iter().enumerate() {
        let pairs = group.flavors.len() * group.covered_resources.len();
        at_most(
            format!("{FIELD}[{at}]"),
            "number of flavor-resource combinations in a resourceGroup",
            MAX_PAIRS,
            pairs,
        );
    }
    errors
}

fn check_flavor(
    field: &str,
    flavor: &FlavorQuotas,
    group: &ResourceGroup,
    owner: QuotaOwner,
) -> Errors {
    let mut errors = Errors::new();
    for (at, quota) in flavor.resources.iter().enumerate() {
        let field = format!("{field}.resources[{at}]");
        // The schema validates the number of resources.
        if group.covered_resources.get(at).is_some_and(|covered| *covered != quota.name) {
            let detail = "must match the name in coveredResources";
            errors.push(FieldError::invalid(format!("{field}.name"), &quota.name, detail));
        }
        errors.extend(check_quota(&field, quota, owner));
    }
    errors
}

fn check_quota(field: &str, quota: &ResourceQuota, owner: QuotaOwner) -> Errors {
    let mut errors = Errors::new();
    errors.extend(below_zero(&format!("{field}.nominalQuota"), &quota.nominal_quota));
    if let Some(limit) = &quota.borrowing_limit {
        let field = format!("{field}.borrowingLimit");
        // Of the other limit upstream reports these in the other order.
        errors.extend(without_parent(&field, limit, owner));
        errors.extend(below_zero(&field, limit));
    }
    if let Some(limit) = &quota.lending_limit {
        let field = format!("{field}.lendingLimit");
        errors.extend(below_zero(&field, limit));
        errors.extend(without_parent(&field, limit, owner));
        // A Cohort may lend more than its own quota: that of its members too.
        if owner.lends_what_it_has && *limit > quota.nominal_quota {
            errors.push(FieldError::invalid(
                &field,
                limit,
                "must be less than or equal to the nominalQuota",
            ));
        }
    }
    errors
}

fn below_zero(field: &str, limit: &Quantity) -> Option<FieldError> {
    limit.is_negative().then(|| negative(field, limit))
}

/// Without a parent there is nothing to borrow from or lend to.
fn without_parent(field: &str, limit: &Quantity, owner: QuotaOwner) -> Option<FieldError> {
    let detail = || format!("must be nil when {} is empty", owner.parent);
    (!owner.has_parent).then(|| FieldError::invalid(field, limit, detail()))
}

/// Errors of a fair-sharing weight. It must be zero or greater than 1e-9.
pub(super) fn check_fair_sharing(fair_sharing: Option<&FairSharing>) -> Errors {
    let Some(weight) = fair_sharing.and_then(|sharing| sharing.weight.as_ref()) else {
        return vec![];
    };
    match weight.nanos() {
        nanos if nanos < 0 => vec![negative("spec.fairSharing", weight)],
        1 => vec![FieldError::invalid(
            "spec.fairSharing",
            weight,
            "When not 0, weight must be > 10e-9",
        )],
        _ => vec![],
    }
}
