//! AdmissionChecks: the checks that a Workload needs, and their effect on its queue.
//!
//! Source: docs/reference/kueue.md §2.3, docs/reference/multikueue.md §1.4.

use std::collections::BTreeSet;

use crds::meta::is_true;
use crds::names::{
    MULTI_KUEUE_CONTROLLER, PROVISIONING_CONTROLLER,
    conditions::{ACTIVE, QUOTA_RESERVED},
};
use crds::v1beta2::{AdmissionCheck, ClusterQueueSpec, Workload};
use engine::ids::CheckId;
use engine::spec::{AdmissionCheckRule, CheckSpec, CheckState, TopologyTiming};
use engine::{Event, Names};

use crate::index::Index;
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

impl Index {
    /// Enters an AdmissionCheck. Returns events for the check and for ClusterQueues whose readiness changes.
    pub fn admission_check(
        &mut self,
        names: &mut Names,
        name: &str,
        check: Option<&AdmissionCheck>,
    ) -> Vec<Event> {
        let before = self.check_spec(name);
        let controller = self.checks.get(name).map(|known| known.controller);
        match check {
            None => self.checks.remove(name),
            Some(check) => self.checks.insert(name.to_owned(), read(check)),
        };
        let now = self.check_spec(name);
        let news = (before != now).then(|| Event::Check(names.checks.intern(name), now));
        let uses = |queue: &IndexedClusterQueue| {
            queue.check_bindings.iter().any(|rule| rule.check == name)
        };
        let using: Vec<String> = self
            .queues
            .iter()
            .filter(|(_, queue)| uses(queue))
            .map(|(queue, _)| queue.clone())
            .collect();
        // Whether a queue dispatches to workers, and so makes no variants, depends on the controllers of its checks.
        let makes_variants = |queue: &&String| {
            let queue = self.queues.get(*queue);
            queue.is_some_and(|queue| queue.concurrent_admission.is_some())
        };
        if controller != self.checks.get(name).map(|known| known.controller) {
            self.reenter.extend(using.iter().filter(makes_variants).cloned());
        }
        // Readiness also depends on controllers, which the engine does not see.
        let queues = using.iter().filter_map(|queue| self.readiness_event(names, queue));
        news.into_iter().chain(queues).collect()
    }

    /// The check in the engine's terms. One that provides nodes delays topology assignments (docs/reference/kueue.md §3.7).
    fn check_spec(&self, name: &str) -> Option<CheckSpec> {
        let check = self.checks.get(name)?;
        let (active, generation) = (check.active, check.generation);
        let topology = match check.controller {
            CheckController::MultiKueue => TopologyTiming::OnWorker,
            CheckController::Provisioning => TopologyTiming::AfterChecks,
            CheckController::Other => TopologyTiming::WithQuota,
        };
        Some(CheckSpec { active, generation, topology })
    }

    /// Checks that a Workload needs whatever its flavors: those that apply to every flavor.
    #[must_use]
    pub fn checks_for_all_flavors(&self, cluster_queue: &str) -> Vec<String> {
        let Some(queue) = self.queues.get(cluster_queue) else {
            return Vec::new();
        };
        // A rule for every flavor by name binds like one without flavors (§2.3).
        let all = |rule: &CheckBinding| queue.flavors.iter().all(|one| rule.flavors.contains(one));
        let binding =
            queue.check_bindings.iter().filter(|rule| rule.flavors.is_empty() || all(rule));
        binding.map(|rule| rule.check.clone()).collect()
    }

    /// Checks that a Workload with these flavors needs, sorted.
    #[must_use]
    pub fn checks_for_flavors<'a>(
        &self,
        cluster_queue: &str,
        flavors: impl IntoIterator<Item = &'a str>,
    ) -> Vec<String> {
        let used: BTreeSet<&str> = flavors.into_iter().collect();
        let rules = self.queues.get(cluster_queue).map_or(&[][..], |queue| &queue.check_bindings);
        let meets = |rule: &&CheckBinding| {
            rule.flavors.is_empty() || rule.flavors.iter().any(|one| used.contains(one.as_str()))
        };
        rules.iter().filter(meets).map(|rule| rule.check.clone()).collect()
    }

    /// Checks that a Workload needs now: with quota those of its flavors, without quota those of every flavor. `None` if
    /// its ClusterQueue is not known.
    #[must_use]
    pub fn required_checks(&self, workload: &Workload) -> Option<Vec<String>> {
        let holds = is_true(&workload.status.conditions, QUOTA_RESERVED);
        if let Some(admission) = workload.status.admission.as_ref().filter(|_| holds) {
            self.queues.get(&admission.cluster_queue)?;
            let assigned = admission.pod_set_assignments.iter();
            let flavors = assigned.flat_map(|one| one.flavors.values()).map(String::as_str);
            return Some(self.checks_for_flavors(&admission.cluster_queue, flavors));
        }
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let queue = self.cluster_queue_of(namespace, &workload.spec.queue_name)?;
        self.queues.contains_key(queue).then(|| self.checks_for_all_flavors(queue))
    }

    /// Whether a check is a MultiKueue check.
    pub(crate) fn is_multi_kueue(&self, check: &str) -> bool {
        self.checks.get(check).is_some_and(|one| one.controller == CheckController::MultiKueue)
    }

    /// The MultiKueue check of a ClusterQueue.
    #[must_use]
    pub fn multi_kueue_check(&self, cluster_queue: &str) -> Option<&str> {
        let rules = &self.queues.get(cluster_queue)?.check_bindings;
        rules.iter().map(|rule| rule.check.as_str()).find(|check| self.is_multi_kueue(check))
    }

    /// The MultiKueueConfig of a ClusterQueue.
    #[must_use]
    pub fn multi_kueue_config(&self, cluster_queue: &str) -> Option<&str> {
        let check = self.multi_kueue_check(cluster_queue)?;
        self.checks.get(check)?.parameters.as_deref()
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
