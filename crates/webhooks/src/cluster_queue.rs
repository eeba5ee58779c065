//! Validation of ClusterQueues (docs/reference/kueue.md §1.3, §5.2).

use std::collections::BTreeSet;

use crds::{
    meta::is_deleting,
    v1beta2::{
        AdmissionCheckStrategyRule, ClusterQueue, ClusterQueueSpec, ConcurrentAdmissionPolicy,
    },
    validation::{Errors, FieldError, immutable, selector},
};

use super::{
    Validate, WebhookGates,
    resource_groups::{self, QuotaOwner},
};

const POLICY: &str = "spec.concurrentAdmissionPolicy";
/// Flavors of a ClusterQueue with variants: each flavor has one (docs/reference/kueue.md §1.3, §4.13).
const MAX_VARIANTS: usize = 16;

impl Validate for ClusterQueue {
    fn validate(&self, old: Option<&Self>, gates: &WebhookGates) -> Errors {
        let spec = &self.spec;
        let owner = QuotaOwner {
            parent: "cohort",
            has_parent: !spec.cohort_name.is_empty(),
            lends_what_it_has: true,
        };
        let mut errors = resource_groups::check(&spec.resource_groups, owner);
        if let Some(namespaces) = &spec.namespace_selector {
            errors.extend(selector::check("spec.namespaceSelector", namespaces));
        }
        errors.extend(resource_groups::check_fair_sharing(spec.fair_sharing.as_ref()));
        errors.extend(resource_groups::check_totals(&spec.resource_groups));
        // A ClusterQueue that is being deleted only loses its finalizers.
        if !is_deleting(&self.metadata) {
            let old = old.filter(|_| !gates.reject_invalid_on_flavors);
            errors.extend(check_on_flavors(spec, old.map(|old| &old.spec)));
        }
        // Without the gate the policy has no effect, so a wrong one harms nothing.
        if let Some(policy) =
            spec.concurrent_admission_policy.as_ref().filter(|_| gates.concurrent_admission)
        {
            errors.extend(check_concurrent_admission(spec, policy));
        }
        // Variants that exist were made under the old policy.
        if old.is_some_and(|old| {
            old.spec.concurrent_admission_policy != spec.concurrent_admission_policy
        }) {
            errors.push(immutable(POLICY, &spec.concurrent_admission_policy));
        }
        errors
    }
}

/// An admission check may only be restricted to flavors of the ClusterQueue. A restriction that was wrong already may stay while
/// neither it nor the flavors change: older releases did not check it.
fn check_on_flavors(spec: &ClusterQueueSpec, old: Option<&ClusterQueueSpec>) -> Errors {
    let all = |spec| flavors(spec).collect::<BTreeSet<_>>();
    let old = old.filter(|old| all(old) == all(spec));
    let mut errors = Errors::new();
    for (at, rule) in check_rules(spec).enumerate() {
        if old.is_some_and(|old| is_unchanged(rule, old)) {
            continue;
        }
        for (on, name) in rule.on_flavors.iter().enumerate() {
            if !flavors(spec).any(|flavor| flavor == name) {
                let field =
                    format!("spec.admissionChecksStrategy.admissionChecks[{at}].onFlavors[{on}]");
                errors.push(FieldError::not_supported(field, name, flavors(spec)));
            }
        }
    }
    errors
}

/// Whether the restriction of a check does not change.
fn is_unchanged(rule: &AdmissionCheckStrategyRule, old: &ClusterQueueSpec) -> bool {
    let stored = check_rules(old).find(|stored| stored.name == rule.name);
    stored.is_some_and(|stored| restriction(stored) == restriction(rule))
}

fn restriction(rule: &AdmissionCheckStrategyRule) -> BTreeSet<&String> {
    rule.on_flavors.iter().collect()
}

fn flavors(spec: &ClusterQueueSpec) -> impl Iterator<Item = &str> {
    let flavors = spec.resource_groups.iter().flat_map(|group| &group.flavors);
    flavors.map(|flavor| flavor.name.as_str())
}

fn check_rules(spec: &ClusterQueueSpec) -> impl Iterator<Item = &AdmissionCheckStrategyRule> {
    spec.admission_checks_strategy.iter().flat_map(|strategy| &strategy.admission_checks)
}

fn check_concurrent_admission(
    spec: &ClusterQueueSpec,
    policy: &ConcurrentAdmissionPolicy,
) -> Errors {
    let mut errors = Errors::new();
    match spec.resource_groups.as_slice() {
        [group] if group.flavors.len() > MAX_VARIANTS => errors.push(FieldError::invalid(
            "spec.resourceGroups[0].flavors",
            group.flavors.len(),
            format!("cannot have more than {MAX_VARIANTS} resource flavors in the ResourceGroup when ConcurrentAdmissionPolicy is defined"),
        )),
        [_] => {}
        groups => errors.push(FieldError::invalid(
            "spec.resourceGroups",
            groups.len(),
            "must have exactly one ResourceGroup when ConcurrentAdmissionPolicy is defined",
        )),
    }
    errors.extend(check_constraints(spec, policy));
    // A head that does not fit blocks a StrictFIFO queue, so one variant would block the others.
    if spec.queueing_strategy == "StrictFIFO" {
        errors.push(FieldError::invalid(
            "spec.queueingStrategy",
            &spec.queueing_strategy,
            "StrictFIFO queueing strategy cannot be used when ConcurrentAdmissionPolicy is defined",
        ));
    }
    errors
}

fn check_constraints(
    spec: &ClusterQueueSpec,
    policy: &ConcurrentAdmissionPolicy,
) -> Option<FieldError> {
    let mode = &policy.migration.mode;
    let constraints = policy.migration.constraints.as_ref()?;
    let field = format!("{POLICY}.migration.constraints");
    if mode != "TryPreferredFlavors" {
        let detail = format!(
            "may only be set when migration.mode is \"TryPreferredFlavors\" (got {mode:?})"
        );
        return Some(FieldError::forbidden(field, detail));
    }
    let name = constraints.last_acceptable_flavor_name.as_ref()?;
    let flavors: Vec<&str> = spec
        .resource_groups
        .iter()
        .flat_map(|group| &group.flavors)
        .map(|flavor| flavor.name.as_str())
        .collect();
    let detail =
        format!("must be one of the flavors defined in the ClusterQueue: [{}]", flavors.join(" "));
    let known = flavors.contains(&name.as_str());
    (!known).then(|| FieldError::invalid(format!("{field}.lastAcceptableFlavorName"), name, detail))
}
