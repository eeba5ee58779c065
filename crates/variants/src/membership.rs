//! Variants that are missing, and those without a use (docs/reference/kueue.md §4.13).

use crds::{
    meta::is_deleting,
    names::{
        annotations::{ADMISSION_GATED_BY, ALLOWED_RESOURCE_FLAVORS},
        gates::CONCURRENT_ADMISSION,
        labels::CONCURRENT_ADMISSION_PARENT,
    },
    v1beta2::{PreemptionGate, Workload, WorkloadSpec},
};
use jobs::{construct_workload::WorkloadPriority, workload_name::variant_name};
use k8s_openapi::{
    Resource,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use crate::{
    decide::VariantStep,
    family::{FamilyRules, Variant, VariantFamily, is_given_up, may_run, name_of, quoted},
};

/// The steps that give each flavor one variant that is like its parent.
#[must_use]
pub fn steps(family: &VariantFamily<'_>, rules: &FamilyRules<'_>) -> Vec<VariantStep> {
    let kept = family.variants.iter().map(|one| (*one, update(*one, family.parent)));
    let kept: Vec<_> = kept.collect();
    let next = next_flavor(&kept, rules).filter(|_| may_run(family.parent));
    let created =
        next.map(|flavor| VariantStep::Create(Box::new(new_variant(family.parent, flavor, rules))));
    created.into_iter().chain(kept.into_iter().filter_map(|(_, step)| step)).collect()
}

/// The next flavor that gets a variant, given the steps of those that exist. A variant competes as soon as it is observed, so it is
/// made after those with better flavors, and after their successors when the parent has changed.
fn next_flavor<'a>(
    kept: &[(Variant<'_>, Option<VariantStep>)],
    rules: &FamilyRules<'a>,
) -> Option<&'a str> {
    let variant_of = |flavor: &str| kept.iter().find(|(one, _)| one.flavor == flavor);
    let is_missing = |flavor: &str| {
        variant_of(flavor).is_none_or(|(one, step)| {
            is_deleting(&one.workload.metadata) || matches!(step, Some(VariantStep::Delete { .. }))
        })
    };
    let next = rules.flavors.iter().find(|flavor| is_missing(flavor))?;
    variant_of(next).is_none().then_some(next.as_str())
}

/// A variant of a parent for a flavor.
#[must_use]
pub fn new_variant(parent: &Workload, flavor: &str, rules: &FamilyRules<'_>) -> Workload {
    let uid = parent.metadata.uid.as_deref().unwrap_or_default();
    let mut labels = parent.metadata.labels.clone().unwrap_or_default();
    labels.remove(CONCURRENT_ADMISSION_PARENT);
    let mut annotations = parent.metadata.annotations.clone().unwrap_or_default();
    annotations.insert(ALLOWED_RESOURCE_FLAVORS.to_owned(), flavor.to_owned());
    Workload {
        metadata: ObjectMeta {
            name: Some(variant_name(name_of(parent), uid, flavor, rules.short_names)),
            namespace: parent.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![OwnerReference {
                api_version: Workload::API_VERSION.to_owned(),
                kind: Workload::KIND.to_owned(),
                name: name_of(parent).to_owned(),
                uid: uid.to_owned(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: variant_spec(&parent.spec),
        ..Workload::default()
    }
}

fn variant_spec(parent: &WorkloadSpec) -> WorkloadSpec {
    let mut spec = parent.clone();
    if !spec.preemption_gates.iter().any(|gate| gate.name == CONCURRENT_ADMISSION) {
        spec.preemption_gates.push(PreemptionGate { name: CONCURRENT_ADMISSION.to_owned() });
    }
    // The limit is that of the job, over all variants: it ends the parent.
    spec.maximum_execution_time_seconds = None;
    spec
}

/// The step for an existing variant.
fn update(variant: Variant<'_>, parent: &Workload) -> Option<VariantStep> {
    let workload = variant.workload;
    if is_deleting(&workload.metadata) || workload.is_finished() {
        return None;
    }
    // What the job runs with is given back by an eviction, after the pods are gone.
    if workload.has_quota_reservation() && parent.has_quota_reservation() {
        return set_priority(workload, parent);
    }
    let of = quoted(workload);
    let note = if variant.rank.is_none() {
        let flavor = variant.flavor;
        format!("Variant Workload {of} deleted; flavor \"{flavor}\" no longer in ClusterQueue")
    } else if differs(workload, parent) {
        format!("Variant Workload {of} deleted; its parent has changed")
    } else if is_given_up(workload) && !parent.is_active() {
        // An activation of the parent gives every flavor another chance.
        format!("Variant Workload {of} deleted; its parent is not active")
    } else {
        return set_priority(workload, parent);
    };
    Some(VariantStep::Delete { variant: name_of(workload).to_owned(), note })
}

/// The priority of the parent, which may change at any time.
fn set_priority(variant: &Workload, parent: &Workload) -> Option<VariantStep> {
    let priority = |one: &Workload| WorkloadPriority {
        value: one.spec.priority.unwrap_or_default(),
        class: one.spec.priority_class_ref.clone(),
    };
    let wanted = priority(parent);
    let same = priority(variant) == wanted;
    (!same).then(|| VariantStep::SetPriority(name_of(variant).to_owned(), wanted))
}

/// Whether a variant asks for something else than its parent.
pub(crate) fn differs(variant: &Workload, parent: &Workload) -> bool {
    let (asked, wanted) = (&variant.spec, &parent.spec);
    asked.pod_sets != wanted.pod_sets
        || asked.queue_name != wanted.queue_name
        || admission_gates(variant) != admission_gates(parent)
}

fn admission_gates(workload: &Workload) -> Option<&String> {
    workload.metadata.annotations.as_ref()?.get(ADMISSION_GATED_BY)
}
