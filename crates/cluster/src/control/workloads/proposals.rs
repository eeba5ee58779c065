//! Transitions of Workloads that other machines propose.

use crds::v1beta2::TopologyAssignment;
use engine::ids::WorkloadId;
use runtime::watch::Key;

use super::{
    Workloads,
    transition::{EvictionRequest, PendingMessage, Transition},
};
use crate::control::{context::Context, timers::Reevaluation};

impl Workloads {
    /// Proposes a transition and evaluates the Workload, unless this very transition is pending already.
    pub(crate) fn propose(&mut self, key: &Key, transition: Transition, ctx: &mut Context) {
        if let Some(record) = self.records.get_mut(key)
            // The proposer repeats its step until the status shows it. An equal one must not cause the next evaluation.
            && !record.transitions().contains(&transition)
        {
            record.propose(transition);
            ctx.agenda.now(Reevaluation::Workload(key.clone()));
        }
    }

    /// Proposes a transition without an evaluation: the Workload is being evaluated.
    pub(crate) fn propose_quietly(&mut self, key: &Key, transition: Transition) {
        if let Some(record) = self.records.get_mut(key) {
            record.propose(transition);
        }
    }

    /// Proposes an eviction unless one is pending already.
    pub(crate) fn evict(&mut self, id: WorkloadId, eviction: EvictionRequest, ctx: &mut Context) {
        let Some(key) = self.by_id.get(&id) else {
            return;
        };
        if let Some(record) = self.records.get_mut(key) {
            record.transitions_mut().propose_once(Transition::Evict(eviction));
            ctx.agenda.now(Reevaluation::Workload(key.clone()));
        }
    }

    /// Proposes the end of a Workload unless one is pending already.
    pub(crate) fn finish_once(&mut self, key: &Key, reason: &str, message: String) {
        if let Some(record) = self.records.get_mut(key) {
            let reason = reason.to_owned();
            record.transitions_mut().propose_once(Transition::Finish { reason, message });
        }
    }

    /// Keeps the reason why a Workload is pending. A changed reason does not put off the time at which it is written.
    pub(crate) fn explain(&mut self, key: &Key, pending: PendingMessage) {
        if let Some(record) = self.records.get_mut(key) {
            record.explain(pending);
        }
    }

    /// The reservation of a worker that did not take the Workload: it ends, and no readiness counts any more.
    pub(crate) fn unreserve(&mut self, key: &Key, message: String) {
        if let Some(record) = self.records.get_mut(key) {
            record.propose(Transition::Unreserve(message));
            record.transitions_mut().withdraw_check_ready();
        }
    }

    /// Removes the nominated cluster of a pending reservation.
    pub(crate) fn clear_nomination(&mut self, key: &Key) {
        if let Some(record) = self.records.get_mut(key) {
            record.transitions_mut().clear_nomination();
        }
    }

    /// Assigns nodes to the pods of the reservation, by pod set.
    pub(crate) fn assign_nodes(&mut self, key: &Key, nodes: &[Option<TopologyAssignment>]) {
        if let Some(record) = self.records.get_mut(key) {
            record.transitions_mut().assign_nodes(nodes);
        }
    }

    /// Adds a check to the pending reservation.
    pub(crate) fn require_check(&mut self, key: &Key, check: &str) {
        if let Some(record) = self.records.get_mut(key) {
            record.transitions_mut().require_check(check);
        }
    }
}
