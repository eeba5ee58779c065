//! AdmissionChecks: the checks that a Workload needs, and their effect on its queue.
//!
//! Source: docs/reference/kueue.md §2.3, docs/reference/multikueue.md §1.4.

use std::collections::{BTreeMap, BTreeSet};

use crds::meta::is_true;
use crds::names::{MULTI_KUEUE_CONTROLLER, PROVISIONING_CONTROLLER, conditions::ACTIVE};
use crds::v1beta2::{AdmissionCheck, ClusterQueueSpec, Workload};
use engine::ids::CheckId;
use engine::spec::{AdmissionCheckRule, CheckSpec, CheckState, TopologyTiming};
use engine::{Event, Names};

use crate::indexed_objects::{CheckBinding, CheckController, IndexedCheck, IndexedClusterQueue};

/// Checks of a queue, by name.
pub(crate) fn check_bindings(spec: &ClusterQueueSpec) -> Vec<CheckBinding> {
    let strategy = spec.admission_checks_strategy.as_ref();
    let all = strategy.into_iter().flat_map(|one| &one.admission_checks);
    let one = |check: &crds::v1beta2::AdmissionCheckStrategyRule| CheckBinding {
        check: check.name.clone(),
        flavors: check.on_flavors.iter().cloned().collect(),
    };
    let mut rules: Vec<CheckBinding> = all.map(one).collect();
    // By name, so that messages list checks in a stable order.
    rules.sort_by(|left, right| left.check.cmp(&right.check));
    rules
}

/// Checks of a queue in the engine's terms.
pub(crate) fn check_rules(names: &mut Names, rules: &[CheckBinding]) -> Vec<AdmissionCheckRule> {
    let one = |rule: &CheckBinding| AdmissionCheckRule {
        check: names.checks.intern(&rule.check),
        flavors: rule.flavors.iter().map(|flavor| names.flavors.intern(flavor)).collect(),
    };
    rules.iter().map(one).collect()
}

/// Check states of a Workload; pending checks are left out.
pub(crate) fn states(names: &mut Names, workload: &Workload) -> Vec<(CheckId, CheckState)> {
    let decided = workload.status.admission_checks.iter().filter_map(|one| {
        let state = match one.state.as_str() {
            "Ready" => CheckState::Ready,
            "Retry" => CheckState::Retry,
            "Rejected" => CheckState::Rejected,
            // The engine takes a check without a state as pending.
            _ => return None,
        };
        Some((names.checks.intern(&one.name), state))
    });
    decided.collect()
}

/// AdmissionChecks.
#[derive(Debug, Default)]
pub(crate) struct AdmissionChecks(BTreeMap<String, IndexedCheck>);

impl AdmissionChecks {
    /// Enters an AdmissionCheck. Returns the event if the engine sees another check, and whether the controller is another one.
    pub(crate) fn enter(
        &mut self,
        names: &mut Names,
        name: &str,
        check: Option<&AdmissionCheck>,
    ) -> (Option<Event>, bool) {
        let before = self.spec(name);
        let controller = self.controller(name);
        match check {
            None => self.0.remove(name),
            Some(check) => self.0.insert(name.to_owned(), read(check)),
        };
        let now = self.spec(name);
        let news = (before != now).then(|| Event::Check(names.checks.intern(name), now));
        (news, controller != self.controller(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&IndexedCheck> {
        self.0.get(name)
    }

    /// The check in the engine's terms. One that provides nodes delays topology assignments (docs/reference/kueue.md §3.7).
    fn spec(&self, name: &str) -> Option<CheckSpec> {
        let check = self.0.get(name)?;
        let (active, generation) = (check.active, check.generation);
        let topology = match check.controller {
            CheckController::MultiKueue => TopologyTiming::OnWorker,
            CheckController::Provisioning => TopologyTiming::AfterChecks,
            CheckController::Other => TopologyTiming::WithQuota,
        };
        Some(CheckSpec { active, generation, topology })
    }

    fn controller(&self, name: &str) -> Option<CheckController> {
        self.0.get(name).map(|known| known.controller)
    }

    /// Whether a check is a MultiKueue check.
    pub(crate) fn is_multi_kueue(&self, name: &str) -> bool {
        self.controller(name) == Some(CheckController::MultiKueue)
    }

    /// The MultiKueue check of a ClusterQueue.
    pub(crate) fn multi_kueue_of<'q>(&self, queue: &'q IndexedClusterQueue) -> Option<&'q str> {
        let mut checks = queue.check_bindings.iter().map(|rule| rule.check.as_str());
        checks.find(|check| self.is_multi_kueue(check))
    }
}

impl IndexedClusterQueue {
    /// Whether a check is bound to the queue.
    pub(crate) fn uses(&self, check: &str) -> bool {
        self.check_bindings.iter().any(|rule| rule.check == check)
    }

    /// Checks that a Workload needs whatever its flavors: those that apply to every flavor.
    pub(crate) fn checks_for_all_flavors(&self) -> Vec<String> {
        // A rule for every flavor by name binds like one without flavors (§2.3).
        let all = |rule: &CheckBinding| self.flavors.iter().all(|one| rule.flavors.contains(one));
        let binding =
            self.check_bindings.iter().filter(|rule| rule.flavors.is_empty() || all(rule));
        binding.map(|rule| rule.check.clone()).collect()
    }

    /// Checks that a Workload with these flavors needs, sorted.
    pub(crate) fn checks_for_flavors<'a>(
        &self,
        flavors: impl IntoIterator<Item = &'a str>,
    ) -> Vec<String> {
        let used: BTreeSet<&str> = flavors.into_iter().collect();
        let meets = |rule: &&CheckBinding| {
            rule.flavors.is_empty() || rule.flavors.iter().any(|one| used.contains(one.as_str()))
        };
        self.check_bindings.iter().filter(meets).map(|rule| rule.check.clone()).collect()
    }
}

fn read(check: &AdmissionCheck) -> IndexedCheck {
    let controller = match check.spec.controller_name.as_str() {
        MULTI_KUEUE_CONTROLLER => CheckController::MultiKueue,
        PROVISIONING_CONTROLLER => CheckController::Provisioning,
        _ => CheckController::Other,
    };
    IndexedCheck {
        controller,
        parameters: check.spec.parameters.as_ref().map(|one| one.name.clone()),
        active: is_true(&check.status.conditions, ACTIVE),
        generation: check.metadata.generation.unwrap_or_default(),
    }
}
