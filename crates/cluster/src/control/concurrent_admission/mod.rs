//! Concurrent admission: the variants of Workloads, which compete for quota in their place (docs/reference/kueue.md §4.13).
//!
//! Inputs: changes of Workloads, and each evaluation of a parent or a variant. Outputs: variants that are made, changed and deleted;
//! transitions of variants; the next state of the parent, which goes out with its status. What follows is decided by the crate
//! `variants`. Nothing is remembered over a restart.
//!
//! | file | concept |
//! |---|---|
//! | `steps` | steps about variants as writes and transitions |

mod steps;

use std::sync::Arc;

use crds::v1beta2::Workload;
use runtime::{events::EventRecord, watch::Key};
use variants::{
    FamilyDecision, FamilyRules, ParentTransition, VariantAdmission, VariantFamily, decide,
};

use super::{
    core::Core,
    key_map::KeyMap,
    key_set::KeySet,
    outbox::Ticket,
    timers::{Agenda, Reevaluation},
    workloads::{EvictionRequest, Transition, WorkloadChange, WorkloadCommand},
};

/// The variants of each parent.
#[derive(Debug)]
pub(crate) struct ConcurrentAdmission {
    /// Gate ConcurrentAdmission.
    enabled: bool,
    /// Gate ShortWorkloadNames.
    short_names: bool,
    /// Variants by the parent that they name.
    variants: KeyMap<Key, KeySet<Key>>,
}

impl ConcurrentAdmission {
    pub(crate) fn new(enabled: bool, short_names: bool) -> Self {
        Self { enabled, short_names, variants: KeyMap::default() }
    }

    /// Takes a change of a Workload: its family is evaluated.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, agenda: &mut Agenda) {
        if !self.enabled {
            return;
        }
        let parent = |workload: &Option<Arc<Workload>>| parent_key(workload.as_deref()?);
        let (before, after) = (parent(&change.before), parent(&change.after));
        for former in before.iter().filter(|one| Some(*one) != after.as_ref()) {
            self.variants.remove_member(former, &change.key);
        }
        if let Some(parent) = &after {
            self.variants.entry(parent.clone()).or_default().insert(change.key.clone());
        }
        agenda.workloads(before.into_iter().chain(after));
        agenda.workloads(self.variants.get(&change.key).into_iter().flatten().cloned());
    }

    /// Takes the next steps of a parent. Returns the admission that it shows from now on, if that differs.
    pub(crate) fn evaluate(&self, key: &Key, core: &mut Core) -> Option<Box<VariantAdmission>> {
        let record = core.workloads.get(key).filter(|_| self.enabled)?;
        let workload = Arc::clone(record.object());
        if let Some(parent) = parent_key(&workload) {
            evaluate_variant(key, &workload, &parent, core);
            return None;
        }
        if core.scheduler.becomes_parent(&workload) {
            core.workloads.perform(key, &WorkloadCommand::MarkParent, None, &mut core.ctx);
            return None;
        }
        if !workload.has_variants() {
            return None;
        }
        let decision = self.decide(key, &workload, core);
        for step in decision.steps {
            steps::take(key, &workload, step, core);
        }
        if let Some(at) = decision.again_at {
            core.ctx.agenda.at(at, Reevaluation::Workload(key.clone()));
        }
        match decision.parent? {
            ParentTransition::Admit(variant) => Some(variant),
            ParentTransition::Evict { reason, message } => {
                evict(key, EvictionRequest::new(reason, message), core);
                None
            }
        }
    }

    fn decide(&self, key: &Key, parent: &Workload, core: &Core) -> FamilyDecision {
        let rules = core.scheduler.variant_rules(parent);
        let rules = rules.as_ref().map(|rules| FamilyRules {
            flavors: &rules.flavors,
            policy: &rules.policy,
            short_names: self.short_names,
        });
        let keys = self.variants.get(key).into_iter().flatten();
        let known = keys.filter_map(|key| core.workloads.get(key));
        let owned = known.map(|record| &**record.object()).filter(|one| is_of(one, parent));
        let family = VariantFamily::new(parent, owned, rules.as_ref());
        decide(&family, rules.as_ref(), core.ctx.now)
    }

    /// The Event of a variant that was created.
    pub(crate) fn creation(ticket: &Ticket, core: &Core) -> Option<EventRecord> {
        let Reevaluation::Workload(parent) = &ticket.waiter else { return None };
        let parent = core.workloads.get(parent)?;
        Some(steps::creation(parent.object(), &ticket.target.key))
    }
}

/// Evaluates the parent of a variant, which decides about it. Without a parent it is deleted: no job runs as it, and the garbage collector
/// may be late.
fn evaluate_variant(key: &Key, variant: &Workload, parent: &Key, core: &mut Core) {
    let known = core.workloads.get(parent);
    if known.is_some_and(|record| is_of(variant, record.object())) {
        core.ctx.agenda.now(Reevaluation::Workload(parent.clone()));
    } else {
        core.workloads.perform(key, &WorkloadCommand::Delete, None, &mut core.ctx);
    }
}

/// The parent is being evaluated, so that the eviction goes out with the status that follows.
fn evict(parent: &Key, request: EvictionRequest, core: &mut Core) {
    let known = core.workloads.get(parent).map(|record| record.transitions());
    if known.is_some_and(|transitions| transitions.eviction().is_none()) {
        core.workloads.propose_quietly(parent, Transition::Evict(request));
    }
}

/// Whether a Workload is a variant of this very object. The name alone may be that of an earlier one.
fn is_of(variant: &Workload, parent: &Workload) -> bool {
    variant.parent().is_some_and(|owner| parent.metadata.uid.as_ref() == Some(&owner.uid))
}

/// The Workload that a variant names as its parent.
pub(crate) fn parent_key(variant: &Workload) -> Option<Key> {
    let owner = variant.parent()?;
    Some(Key {
        namespace: variant.metadata.namespace.as_deref().map(Into::into),
        name: owner.name.as_str().into(),
    })
}
