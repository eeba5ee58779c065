//! The condition Active of ClusterQueues and LocalQueues.
//!
//! The first broken rule gives the reason; the message lists all broken rules. Source: docs/reference/kueue.md §1.3,
//! §1.4, docs/reference/multikueue.md §1.4. The texts are Kueue's.

use crds::names::reasons;

use crate::admission_check::AdmissionChecks;
use crate::indexed_objects::{CheckBinding, CheckController, IndexedClusterQueue};
use crate::resource_flavor::Flavors;

/// The condition Active of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueActiveCondition {
    /// Whether Workloads can be submitted and admitted.
    pub active: bool,
    /// The reason.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}

impl QueueActiveCondition {
    pub(crate) fn active(message: &str) -> Self {
        Self { active: true, reason: reasons::READY, message: message.to_owned() }
    }

    pub(crate) fn inactive(reason: &'static str, message: impl Into<String>) -> Self {
        Self { active: false, reason, message: message.into() }
    }
}

/// A broken rule: reason and text.
type Broken = (&'static str, String);

/// The rules of one ClusterQueue, and what they are checked against.
#[derive(Clone, Copy)]
pub(crate) struct QueueRules<'a> {
    pub(crate) queue: &'a IndexedClusterQueue,
    pub(crate) flavors: &'a Flavors,
    pub(crate) checks: &'a AdmissionChecks,
}

impl QueueRules<'_> {
    /// The condition Active.
    ///
    /// A cycle of cohorts is not a rule: Kueue's condition does not report it either.
    pub(crate) fn active_condition(self) -> QueueActiveCondition {
        let Self { queue, .. } = self;
        // A deletion is reported alone: no other rule matters any more.
        if queue.terminating {
            let words = "Can't admit new workloads; clusterQueue is terminating";
            return QueueActiveCondition::inactive(reasons::TERMINATING, words);
        }
        let mut broken = Vec::new();
        if queue.spec.stopped {
            broken.push((reasons::STOPPED, "is stopped".to_owned()));
        }
        broken.extend(self.missing_flavors());
        broken.extend(self.broken_checks());
        // The order of the rules decides about the reason: the first one counts.
        broken.extend(self.missing_topologies());
        let Some(&(reason, _)) = broken.first() else {
            return QueueActiveCondition::active("Can admit new workloads");
        };
        let words: Vec<String> = broken.into_iter().map(|(_, words)| words).collect();
        QueueActiveCondition::inactive(
            reason,
            format!("Can't admit new workloads: {}.", words.join(", ")),
        )
    }

    /// The rules that the engine does not check: everything except stop policy, flavors and topologies.
    pub(crate) fn is_ready(self) -> bool {
        // Stop policy, flavors and topologies reach the engine as events of their own.
        !self.queue.terminating && self.broken_checks().is_empty()
    }

    fn missing_flavors(self) -> Option<Broken> {
        let missing = self.queue.flavors.iter().filter(|one| self.flavors.get(one).is_none());
        let names = listed(missing.map(String::as_str))?;
        let words = format!("references missing ResourceFlavor(s): {names}");
        Some((reasons::FLAVOR_NOT_FOUND, words))
    }

    fn missing_topologies(self) -> Vec<Broken> {
        let mut broken = Vec::new();
        for name in &self.queue.flavors {
            let topology = self.flavors.get(name).and_then(|flavor| flavor.topology.as_ref());
            if let Some(topology) = topology.filter(|one| !self.flavors.has_topology(one)) {
                let words = format!("there is no Topology {topology:?} for TAS flavor {name:?}");
                broken.push((reasons::TOPOLOGY_NOT_FOUND, words));
            }
        }
        broken
    }

    fn broken_checks(self) -> Vec<Broken> {
        let mut broken = Vec::new();
        if let Some(names) = named(self.queue, |rule| self.checks.get(&rule.check).is_none()) {
            let words = format!("references missing AdmissionCheck(s): {names}");
            broken.push((reasons::ADMISSION_CHECK_NOT_FOUND, words));
        }
        let inactive =
            |rule: &CheckBinding| self.checks.get(&rule.check).is_some_and(|one| !one.active);
        if let Some(names) = named(self.queue, inactive) {
            let words = format!("references inactive AdmissionCheck(s): {names}");
            broken.push((reasons::ADMISSION_CHECK_INACTIVE, words));
        }
        // Rules about MultiKueue apply only where such a check is used.
        if let Some(names) = named(self.queue, |rule| self.checks.is_multi_kueue(&rule.check)) {
            broken.extend(self.broken_dispatch(&names));
        }
        broken
    }

    /// A queue has at most one MultiKueue check, it applies to all flavors, and excludes ProvisioningRequest checks.
    fn broken_dispatch(self, dispatching: &str) -> Vec<Broken> {
        let multi_kueue = |rule: &&CheckBinding| self.checks.is_multi_kueue(&rule.check);
        let mut broken = Vec::new();
        if self.queue.check_bindings.iter().filter(multi_kueue).count() > 1 {
            let words = format!(
                "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {dispatching}"
            );
            broken.push((reasons::MULTIPLE_MULTI_KUEUE_ADMISSION_CHECKS, words));
        }
        if let Some(names) =
            named(self.queue, |rule| multi_kueue(&rule) && !rule.flavors.is_empty())
        {
            let words =
                format!("Cannot specify MultiKueue AdmissionCheck per flavor, found: {names}");
            broken.push((reasons::MULTI_KUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR, words));
        }
        let provisioning = |rule: &CheckBinding| {
            let check = self.checks.get(&rule.check);
            check.is_some_and(|one| one.controller == CheckController::Provisioning)
        };
        if let Some(names) = named(self.queue, provisioning) {
            let words = format!(
                "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: {dispatching}, \
                 {names}"
            );
            broken.push((reasons::MULTI_KUEUE_WITH_PROVISIONING_REQUEST, words));
        }
        broken
    }
}

/// Names of the checks that fulfil a condition, as one text.
fn named(queue: &IndexedClusterQueue, which: impl Fn(&CheckBinding) -> bool) -> Option<String> {
    listed(queue.check_bindings.iter().filter(|rule| which(rule)).map(|rule| rule.check.as_str()))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(","))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests;
