//! Admission checks: which of them a Workload needs for the flavors it got, and what their states mean for it.
//!
//! A rule of a ClusterQueue names a check and the flavors that need it; a rule without flavors holds for all. A queue is
//! inactive while one of its checks is missing or not active. A head with a check that asks to start over, or that is
//! rejected, is not evaluated. A check that provides machines puts off the search for places in topologies to the
//! second pass. Source: docs/reference/kueue.md §2.3, §3.7, §4.2.
//!
//! Cost: a look at the rules of the queue per assignment; nothing where there are none.

use crate::apply::put;
use crate::engine::Engine;
use crate::flavors::assign::Assignment;
use crate::ids::{CheckId, FlavorId, QueueId, WorkloadId};
use crate::spec::{AdmissionCheckRule, CheckSpec, CheckState, TopologyTiming};
use crate::state::{ClusterQueueRecord, State};
use crate::workload::{Admission, Workload};

impl Engine {
    /// Checks that a Workload of a queue needs whatever flavors it gets, by name: those that bind every flavor.
    pub fn checks_for_every_flavor(&self, queue: QueueId) -> Vec<CheckId> {
        let groups = self.state.queue(queue).groups.iter();
        let flavors: Vec<FlavorId> = groups.flat_map(|group| group.flavors.clone()).collect();
        self.checks_where(queue, |rule| flavors.iter().all(|&flavor| applies(rule, flavor)))
    }

    /// Checks that a Workload needs for the flavors it holds, by name; none if it holds nothing.
    pub fn required_checks(&self, workload: WorkloadId) -> Vec<CheckId> {
        let workload = self.state.workloads.get(workload);
        let Some(admission) = workload.and_then(|one| one.admission.as_deref()) else {
            return Vec::new();
        };
        self.checks_where(admission.queue, |rule| binds(rule, admission))
    }

    /// Whether a Workload is admitted with the quota it holds: it passed every check it needs, and no second pass has
    /// to find places for it.
    pub fn is_admitted(&self, id: WorkloadId) -> bool {
        self.state.workloads.get(id).is_some() && is_admitted(&self.state, id)
    }

    fn checks_where(
        &self,
        queue: QueueId,
        needs: impl Fn(&AdmissionCheckRule) -> bool,
    ) -> Vec<CheckId> {
        let rules = rules(self.state.queue(queue)).iter().filter(|rule| needs(rule));
        let mut checks: Vec<CheckId> = rules.map(|rule| rule.check).collect();
        let names = &self.state.names.checks;
        checks.sort_by(|&left, &right| names.name(left).cmp(names.name(right)));
        checks.dedup();
        checks
    }
}

fn rules(queue: &ClusterQueueRecord) -> &[AdmissionCheckRule] {
    queue.spec.as_ref().map_or(&[], |spec| &spec.checks)
}

fn applies(rule: &AdmissionCheckRule, flavor: FlavorId) -> bool {
    rule.flavors.is_empty() || rule.flavors.contains(&flavor)
}

fn binds(rule: &AdmissionCheckRule, admission: &Admission) -> bool {
    let mut resources = admission.pod_sets.iter().flat_map(|one| &one.resources);
    rule.flavors.is_empty() || resources.any(|&(_, flavor, _)| applies(rule, flavor))
}

/// See [`Engine::is_admitted`].
pub(crate) fn is_admitted(state: &State, id: WorkloadId) -> bool {
    let workload = state.workloads.at(id);
    let Some(admission) = workload.admission.as_deref() else {
        return false;
    };
    let waits =
        |rule: &AdmissionCheckRule| !workload.checks.contains(&(rule.check, CheckState::Ready));
    let mut rules = rules(state.queue(admission.queue)).iter();
    !rules.any(|rule| binds(rule, admission) && waits(rule)) && !state.second_passes.awaits(id)
}

fn spec(state: &State, check: CheckId) -> Option<CheckSpec> {
    state.checks.get(check.index()).copied().flatten()
}

/// A check is new, changed, or gone: the queues that use it may become active, and those who wait there are woken.
pub(crate) fn tell(state: &mut State, id: CheckId, check: Option<CheckSpec>) {
    if spec(state, id) == check {
        return;
    }
    put(&mut state.checks, id.index(), check);
    state.tree_changed = true;
    for index in 0..state.queues.len() {
        let queue = state.queues[index].as_ref();
        if queue.is_some_and(|queue| rules(queue).iter().any(|rule| rule.check == id)) {
            state.wake(QueueId::from(index));
        }
    }
}

/// A check of a queue that does not exist, or whose controller does not run.
pub(crate) fn inactive(state: &State, queue: &ClusterQueueRecord) -> Option<CheckId> {
    let active = |check| spec(state, check).is_some_and(|check| check.active);
    rules(queue).iter().map(|rule| rule.check).find(|&check| !active(check))
}

/// The check that sends a Workload back, or away.
pub(crate) fn failed(workload: &Workload) -> Option<CheckId> {
    let failed = |state| matches!(state, CheckState::Retry | CheckState::Rejected);
    workload.checks.iter().find(|(_, state)| failed(*state)).map(|(check, _)| *check)
}

/// When places for what gets this flavor are looked for: as late as the latest of its checks says.
pub(crate) fn places(state: &State, queue: QueueId, flavor: FlavorId) -> TopologyTiming {
    let rules = rules(state.queue(queue)).iter().filter(|rule| applies(rule, flavor));
    let places = rules.filter_map(|rule| spec(state, rule.check)).map(|check| check.places);
    places.max().unwrap_or_default()
}

/// Marks the pod sets for which no places are looked for together with the quota.
pub(crate) fn put_off_places(state: &State, queue: QueueId, assignment: &mut Assignment) {
    if rules(state.queue(queue)).is_empty() {
        return;
    }
    for one in &mut assignment.pod_sets {
        let mut flavors = one.flavor_assignments.iter().map(|choice| choice.flavor);
        one.delayed_topology = flavors.any(|flavor| {
            state.topologies.tree(flavor).is_some()
                && places(state, queue, flavor) > TopologyTiming::WithQuota
        });
    }
}
