//! Validation of ClusterQueues (docs/reference/kueue.md §1.3, §5.2).

use crds::{
    v1beta2::{ClusterQueue, ClusterQueueSpec, ConcurrentAdmissionPolicy},
    validation::{Errors, FieldError, immutable, selector},
};

use super::{
    Rules, Validate,
    resource_groups::{self, QuotaOwner},
};

const POLICY: &str = "spec.concurrentAdmissionPolicy";
const MAX_VARIANTS: usize = 16;

impl Validate for ClusterQueue {
    fn validate(&self, old: Option<&Self>, rules: &Rules) -> Errors {
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
        errors.extend(check_on_flavors(spec));
        if let Some(policy) =
            spec.concurrent_admission_policy.as_ref().filter(|_| rules.concurrent_admission)
        {
            errors.extend(check_concurrent_admission(spec, policy));
        }
        if old.is_some_and(|old| {
            old.spec.concurrent_admission_policy != spec.concurrent_admission_policy
        }) {
            errors.push(immutable(POLICY, &spec.concurrent_admission_policy));
        }
        errors
    }
}

/// An admission check may only be restricted to flavors of the ClusterQueue.
fn check_on_flavors(spec: &ClusterQueueSpec) -> Errors {
    let flavors = || {
        spec.resource_groups
            .iter()
            .flat_map(|group| &group.flavors)
            .map(|flavor| flavor.name.as_str())
    };
    let rules =
        spec.admission_checks_strategy.iter().flat_map(|strategy| &strategy.admission_checks);
    let mut errors = Errors::new();
    for (at, rule) in rules.enumerate() {
        for (on, name) in rule.on_flavors.iter().enumerate() {
            if !flavors().any(|flavor| flavor == name) {
                let field =
                    format!("spec.admissionChecksStrategy.admissionChecks[{at}].onFlavors[{on}]");
                errors.push(FieldError::not_supported(field, name, flavors()));
            }
        }
    }
    errors
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
