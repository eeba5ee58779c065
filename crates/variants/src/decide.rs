//! Everything that follows for a family: steps about its variants, and the next state of the parent (docs/reference/kueue.md §4.13).
//!
//! ```text
//! no variant admitted --one is admitted--> the parent is admitted with its quota --finished--> all variants are finished
//!        ^                                          |
//!        |                     that variant is evicted: preempted, a better flavor is free, a limit
//!        |                                          v
//!        +-- the variant releases its quota <-- the parent is evicted, its job stops, it releases its quota
//! ```
//! A step is repeated until the objects show it, so that an interrupted one is continued by any process.

use crds::{
    meta::{find, is_deleting},
    names::{conditions::FINISHED, reasons},
    v1beta2::{Admission, AdmissionCheckState, Workload},
};
use jiff::Timestamp;
use jobs::construct_workload::WorkloadPriority;

use crate::{
    activation,
    family::{FamilyRules, Variant, VariantFamily, may_run, name_of},
    membership::{self, differs},
    preemption_gate::{self, NextGate},
};

/// What is to be done about a variant, by name. A note is that of the Event that says so.
#[derive(Debug, Clone, PartialEq)]
pub enum VariantStep {
    /// Creates it.
    Create(Box<Workload>),
    /// Deletes it. The Event is about the parent.
    Delete {
        /// The variant.
        variant: String,
        /// The Event.
        note: String,
    },
    /// It competes again.
    Activate {
        /// The variant.
        variant: String,
        /// The Event.
        note: String,
    },
    /// It competes no longer.
    Deactivate {
        /// The variant.
        variant: String,
        /// The Event.
        note: String,
    },
    /// It gets the priority of its parent.
    SetPriority(String, WorkloadPriority),
    /// Releases its quota: no pod uses it.
    Release(String),
    /// It may preempt.
    OpenGate(String),
    /// It is over, as its parent is.
    Finish {
        /// The variant.
        variant: String,
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// Sets `spec.active` of the parent to false: every variant was given up.
    DeactivateParent,
}

/// What the parent shows of an admitted variant.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantAdmission {
    /// The name of the variant.
    pub variant: String,
    /// Its admission.
    pub admission: Admission,
    /// Its checks, with what they add to the pods.
    pub checks: Vec<AdmissionCheckState>,
}

/// The next state of a parent.
#[derive(Debug, Clone, PartialEq)]
pub enum ParentTransition {
    /// It is admitted as this variant.
    Admit(Box<VariantAdmission>),
    /// It is evicted.
    Evict {
        /// Reason of the condition.
        reason: &'static str,
        /// Message of the condition.
        message: &'static str,
    },
}

/// What follows for a family.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FamilyDecision {
    /// Steps about variants.
    pub steps: Vec<VariantStep>,
    /// The next state of the parent, if that differs.
    pub parent: Option<ParentTransition>,
    /// When something follows from the time alone.
    pub again_at: Option<Timestamp>,
}

/// The next steps of a family, and the next state of its parent. Without rules no variant is made or activated, and what exists goes on.
#[must_use]
pub fn decide(
    family: &VariantFamily<'_>,
    rules: Option<&FamilyRules<'_>>,
    now: Timestamp,
) -> FamilyDecision {
    if family.parent.is_finished() {
        return FamilyDecision { steps: finish(family), ..FamilyDecision::default() };
    }
    // Kubernetes deletes the variants after it.
    if is_deleting(&family.parent.metadata) {
        return FamilyDecision::default();
    }
    let mut decision =
        FamilyDecision { steps: releases(family), parent: eviction(family), again_at: None };
    // Until its pods are gone nothing else may start.
    if family.parent.has_quota_reservation()
        && (family.parent.is_evicted() || decision.parent.is_some())
    {
        return decision;
    }
    if let Some(rules) = rules {
        decision.steps.extend(membership::steps(family, rules));
        decision.steps.extend(activation::steps(family, rules));
        match preemption_gate::next_gate(family, now) {
            NextGate::Nothing => {}
            NextGate::Open(variant) => {
                decision.steps.push(VariantStep::OpenGate(name_of(variant.workload).to_owned()));
            }
            NextGate::Wait(until) => decision.again_at = Some(until),
        }
    }
    decision.parent = admission(family);
    decision
}

/// Evicted variants without pods: none ran, or all are gone.
fn releases(family: &VariantFamily<'_>) -> Vec<VariantStep> {
    let leaving = family.variants.iter().filter(|one| {
        one.workload.is_evicted() && one.workload.has_quota_reservation() && !family.runs_as(**one)
    });
    leaving.map(|one| VariantStep::Release(name_of(one.workload).to_owned())).collect()
}

/// The eviction of the parent: the variant that it runs as is evicted, or holds quota no more.
fn eviction(family: &VariantFamily<'_>) -> Option<ParentTransition> {
    if !family.parent.has_quota_reservation() || family.parent.is_evicted() {
        return None;
    }
    let mut own = family.variants.iter().filter(|one| family.runs_as(**one));
    let (reason, message) = match own.find(|one| one.workload.has_quota_reservation()) {
        None => (reasons::CONCURRENT_ADMISSION, "No variant is running"),
        Some(one) if one.workload.is_evicted() => {
            (reasons::VARIANT_EVICTED, "Admitted variant was evicted")
        }
        Some(_) => return None,
    };
    Some(ParentTransition::Evict { reason, message })
}

/// The admission of the parent, if it differs from that of the admitted variant.
fn admission(family: &VariantFamily<'_>) -> Option<ParentTransition> {
    let parent = family.parent;
    let variant = family.admitted().filter(|_| may_run(parent))?;
    let shown = &parent.status;
    let Variant { workload, .. } = variant;
    let same = shown.admission == workload.status.admission;
    let stays = match parent.has_quota_reservation() {
        // With the quota of another variant it goes on until that is evicted.
        true => same || !family.runs_as(variant),
        // The job was changed meanwhile: the variant is made again.
        false => differs(workload, parent),
    };
    if stays {
        return None;
    }
    Some(ParentTransition::Admit(Box::new(VariantAdmission {
        variant: name_of(workload).to_owned(),
        admission: workload.status.admission.clone()?,
        checks: workload.status.admission_checks.clone(),
    })))
}

/// The end of all variants: that of the parent.
fn finish(family: &VariantFamily<'_>) -> Vec<VariantStep> {
    let end = find(&family.parent.status.conditions, FINISHED);
    let (reason, message) =
        end.map(|one| (one.reason.clone(), one.message.clone())).unwrap_or_default();
    let open = family.variants.iter().filter(|one| !one.workload.is_finished());
    open.map(|one| VariantStep::Finish {
        variant: name_of(one.workload).to_owned(),
        reason: reason.clone(),
        message: message.clone(),
    })
    .collect()
}
