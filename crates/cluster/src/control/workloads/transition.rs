//! Transitions of a Workload that were decided and are not visible in its status yet.

use crds::{
    names::reasons,
    v1beta2::{Admission, TopologyAssignment},
};
use dispatch::RunTime;
use engine::PreemptionReason;
use index::status::PodSetTopology;
use jiff::{SignedDuration, Timestamp};
use runtime::events::Regarding;

use super::phase::WorkloadPhase;
use crate::control::time::moved;

/// One transition. At most one of each kind is pending.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transition {
    /// The Workload is over.
    Finish {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// Quota is reserved in the engine.
    Reserve(Box<ReservedQuota>),
    /// Its pods have these topologies from now on, by pod set.
    AssignTopology(Vec<PodSetTopology>),
    /// It gets no quota for now.
    Wait(PendingMessage),
    /// It must give its quota back.
    Evict(EvictionRequest),
    /// Its pods are gone: an evicted Workload releases its quota.
    Release,
    /// Its job is on hold, without pods: it releases its quota and leaves its queue. With the message of the condition.
    Hold(String),
    /// Its job is on hold no longer: it goes back into its queue.
    EndHold,
    /// Its reservation ends without an eviction, since nothing of it ran. With the message of the condition.
    Unreserve(String),
    /// The preemption gate of a variant is opened.
    OpenGate,
    /// These worker clusters are nominated: every other check has become Ready.
    Nominate(NominationChange),
    /// This worker cluster has admitted it: the MultiKueue check becomes Ready.
    CheckReady(Box<str>),
    /// The MultiKueue check stays Ready and gets this message.
    CheckMessage(String),
    /// The MultiKueue check stays Pending and gets this message.
    PendingMessage(String),
    /// The MultiKueue check becomes Retry.
    CheckRetry(CheckRetry),
    /// The MultiKueue check becomes Rejected, with this message.
    CheckRejected(String),
}

impl Transition {
    /// The end of a Workload without its job.
    pub(crate) fn owner_not_found() -> Self {
        Self::Finish {
            reason: reasons::OWNER_NOT_FOUND.to_owned(),
            message: "The workload's owner no longer exists".to_owned(),
        }
    }
}

/// A MultiKueue check that becomes Retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckRetry {
    /// Message of the check.
    pub(crate) message: String,
    /// The worker cluster that evicted the Workload, and the reason of the eviction there.
    pub(crate) evicted: Option<(Box<str>, String)>,
}

/// A reservation that the engine made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReservedQuota {
    pub(crate) admission: Admission,
    /// Names of the admission checks.
    pub(crate) checks: Vec<String>,
    /// The nominated worker cluster, under the capacity dispatcher.
    pub(crate) cluster: Option<Box<str>>,
    /// The run time that was assumed when the cluster was chosen, if one is known.
    pub(crate) run_time: Option<RunTime>,
    /// Flavors that were looked at and do not simply fit, as the Event shows them; may be empty.
    pub(crate) considered: String,
}

/// The worker clusters that are nominated from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NominationChange {
    pub(crate) clusters: Vec<Box<str>>,
    /// Nominated clusters that have left the MultiKueueConfig.
    pub(crate) dropped: Vec<Box<str>>,
}

impl NominationChange {
    /// One that drops no cluster.
    pub(crate) fn of(clusters: impl IntoIterator<Item = Box<str>>) -> Self {
        Self { clusters: clusters.into_iter().collect(), dropped: Vec::new() }
    }

    /// Whether the change was decided with this cluster in view.
    pub(crate) fn knows(&self, cluster: &str) -> bool {
        self.clusters.iter().chain(&self.dropped).any(|name| **name == *cluster)
    }
}

/// Why a Workload is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingMessage {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// It would have to preempt, and a preemption gate is closed.
    pub(crate) gated: bool,
    /// A cycle has evaluated the Workload; otherwise no cycle does.
    pub(crate) by_cycle: bool,
    /// Not written before this time: most Workloads are pending for a moment only.
    pub(crate) not_before: Timestamp,
}

/// Why a Workload is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvictionRequest {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Set if it is a preemption.
    pub(crate) preemption: Option<Box<Preemption>>,
}

/// What is reported of a preemption beside its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preemption {
    /// The reason of the condition `Preempted`.
    pub(crate) reason: PreemptionReason,
    /// The Workload that preempts.
    pub(crate) preemptor: Regarding,
    /// The ClusterQueue of the preemptor.
    pub(crate) queue: String,
    /// Priorities of both, as Events show them.
    pub(crate) priorities: String,
}

impl EvictionRequest {
    /// An eviction that is not a preemption.
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), preemption: None }
    }
}

/// The pending transitions of one Workload, without room for more. Nearly every Workload of a queue has one, its reason to wait: large
/// variants are boxed, so that it is small.
#[derive(Debug, Default)]
pub(crate) struct PendingTransitions(Vec<Transition>);

impl PendingTransitions {
    /// Adds a transition in place of a pending one of its kind.
    pub(crate) fn propose(&mut self, transition: Transition) {
        // A reservation answers why the Workload was pending.
        // So does a hold.
        if matches!(transition, Transition::Reserve(_) | Transition::Hold(_)) {
            self.0.retain(|one| !matches!(one, Transition::Wait(_)));
        }
        self.remove_kind(&transition);
        self.add(transition);
    }

    /// Adds a transition unless one of its kind is pending: the first reason to evict or to finish counts.
    pub(crate) fn propose_once(&mut self, transition: Transition) {
        if !self.has_kind(&transition) {
            self.add(transition);
        }
    }

    fn add(&mut self, transition: Transition) {
        // The first item would get the room of four.
        self.0.reserve_exact(1);
        self.0.push(transition);
    }

    pub(crate) fn contains(&self, transition: &Transition) -> bool {
        self.0.contains(transition)
    }

    pub(crate) fn reservation(&self) -> Option<&ReservedQuota> {
        self.find(|one| match one {
            Transition::Reserve(reservation) => Some(&**reservation),
            _ => None,
        })
    }

    /// New topologies of a Workload with quota.
    pub(crate) fn topology(&self) -> Option<&[PodSetTopology]> {
        self.find(|one| match one {
            Transition::AssignTopology(topologies) => Some(topologies.as_slice()),
            _ => None,
        })
    }

    /// Removes new topology assignments: they are visible, or those of another writer are.
    pub(crate) fn end_topology(&mut self) {
        self.withdraw(|one| matches!(one, Transition::AssignTopology(_)));
    }

    pub(crate) fn pending_message(&self) -> Option<&PendingMessage> {
        self.find(|one| match one {
            Transition::Wait(pending) => Some(pending),
            _ => None,
        })
    }

    /// The clock jumped: a reason is written when it would have been.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        for one in &mut self.0 {
            if let Transition::Wait(pending) = one {
                pending.not_before = moved(pending.not_before, by);
            }
        }
    }

    pub(crate) fn eviction(&self) -> Option<&EvictionRequest> {
        self.find(|one| match one {
            Transition::Evict(eviction) => Some(eviction),
            _ => None,
        })
    }

    /// Reason and message of the end.
    pub(crate) fn finish(&self) -> Option<(&str, &str)> {
        self.find(|one| match one {
            Transition::Finish { reason, message } => Some((reason.as_str(), message.as_str())),
            _ => None,
        })
    }

    /// The message of an end of the reservation without an eviction.
    pub(crate) fn unreserve(&self) -> Option<&str> {
        self.find(|one| match one {
            Transition::Unreserve(message) => Some(message.as_str()),
            _ => None,
        })
    }

    /// The message of a hold.
    pub(crate) fn hold(&self) -> Option<&str> {
        self.find(|one| match one {
            Transition::Hold(message) => Some(message.as_str()),
            _ => None,
        })
    }

    pub(crate) fn ends_hold(&self) -> bool {
        self.0.contains(&Transition::EndHold)
    }

    pub(crate) fn opens_gate(&self) -> bool {
        self.0.contains(&Transition::OpenGate)
    }

    /// The preemption gate is open.
    pub(crate) fn end_opening(&mut self) {
        self.withdraw(|one| matches!(one, Transition::OpenGate));
    }

    pub(crate) fn releases(&self) -> bool {
        self.0.contains(&Transition::Release)
    }

    /// The next state of the MultiKueue check: Rejected before Retry before Ready.
    pub(crate) fn check(&self) -> Option<&Transition> {
        let rank = |one: &&Transition| match one {
            Transition::CheckRejected(_) => Some(0),
            Transition::CheckRetry(_) => Some(1),
            Transition::CheckReady(_) => Some(2),
            Transition::CheckMessage(_) | Transition::PendingMessage(_) => Some(3),
            _ => None,
        };
        let checks = self.0.iter().filter(|one| rank(one).is_some());
        checks.min_by_key(rank)
    }

    /// The worker clusters to be nominated.
    pub(crate) fn nomination(&self) -> Option<&NominationChange> {
        self.find(|one| match one {
            Transition::Nominate(change) => Some(change),
            _ => None,
        })
    }

    pub(crate) fn retries_check(&self) -> bool {
        self.check_retry().is_some()
    }

    /// The check that becomes Retry.
    pub(crate) fn check_retry(&self) -> Option<&CheckRetry> {
        self.find(|one| match one {
            Transition::CheckRetry(retry) => Some(retry),
            _ => None,
        })
    }

    /// Removes the nominated cluster of the reservation.
    pub(crate) fn clear_nomination(&mut self) {
        for one in &mut self.0 {
            if let Transition::Reserve(reservation) = one {
                reservation.cluster = None;
            }
        }
    }

    /// Assigns nodes to the pods of the reservation, by pod set.
    pub(crate) fn assign_nodes(&mut self, nodes: &[Option<TopologyAssignment>]) {
        for one in &mut self.0 {
            if let Transition::Reserve(reservation) = one {
                let sets = &mut reservation.admission.pod_set_assignments;
                for (set, nodes) in sets.iter_mut().zip(nodes) {
                    set.topology_assignment.clone_from(nodes);
                }
            }
        }
    }

    /// Adds a check to the reservation.
    pub(crate) fn require_check(&mut self, check: &str) {
        for one in &mut self.0 {
            if let Transition::Reserve(reservation) = one {
                reservation.checks.push(check.to_owned());
            }
        }
    }

    /// Withdraws the reservation, with what was decided about it. Returns whether there was one.
    pub(crate) fn withdraw_reservation(&mut self) -> bool {
        let withdrawn = self.withdraw(|one| matches!(one, Transition::Reserve(_)));
        if withdrawn {
            // The next reservation is another one: neither its preemption nor its nodes were decided.
            self.withdraw(|one| {
                matches!(one, Transition::Evict(_) | Transition::AssignTopology(_))
            });
        }
        withdrawn
    }

    /// Withdraws the readiness of the MultiKueue check, which was that of an earlier epoch.
    pub(crate) fn withdraw_check_ready(&mut self) {
        self.withdraw(|one| matches!(one, Transition::CheckReady(_)));
    }

    /// Removes what a status shows by now, and what it makes impossible.
    pub(crate) fn settle(
        &mut self,
        phase: WorkloadPhase,
        cluster_name: Option<&str>,
        all_checks_ready: bool,
    ) {
        // The engine may evict a Workload, or find its nodes, while its reservation is being written.
        let reserving = self.reservation().is_some() && !phase.holds_quota();
        let keeps_quota = phase.keeps_quota() || reserving;
        self.0.retain(|one| match (phase, one) {
            (WorkloadPhase::Finished, _) => false,
            // Every change of the Workload evaluates its job and its copies, which ask again.
            (_, Transition::Hold(_) | Transition::EndHold) => false,
            (_, Transition::CheckMessage(_) | Transition::PendingMessage(_)) => false,
            // Only Finished shows the end of a job: a write that was refused is decided again.
            (_, Transition::Finish { .. }) => true,
            // With quota it need not preempt any more.
            (_, Transition::OpenGate) => !phase.holds_quota(),
            // Until the quota is visible the engine counts it by assumption alone, so the reservation is written until
            // then.
            (_, Transition::Reserve(_) | Transition::Wait(_)) => !phase.holds_quota(),
            (_, Transition::AssignTopology(_) | Transition::Evict(_)) => keeps_quota,
            // The eviction resets the checks. A Retry that is decided late must not evict the next reservation.
            (_, Transition::CheckRetry(_)) => phase.keeps_quota(),
            // A check may be another one than when the cluster was recorded.
            (_, Transition::CheckReady(cluster)) => {
                let is_shown = all_checks_ready && cluster_name == Some(&**cluster);
                phase.keeps_quota() && !is_shown
            }
            // The API server refuses a nomination beside a cluster name (docs/reference/multikueue.md §1.5).
            (_, Transition::Nominate(_)) => phase.keeps_quota() && cluster_name.is_none(),
            // Without quota there is nothing left to release, and a Rejected check deactivates nothing.
            (_, Transition::Release | Transition::Unreserve(_) | Transition::CheckRejected(_)) => {
                phase.holds_quota()
            }
        });
    }

    fn find<'a, T: 'a>(&'a self, read: impl Fn(&'a Transition) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(read)
    }

    fn has_kind(&self, transition: &Transition) -> bool {
        let kind = std::mem::discriminant(transition);
        self.0.iter().any(|one| std::mem::discriminant(one) == kind)
    }

    fn remove_kind(&mut self, transition: &Transition) {
        let kind = std::mem::discriminant(transition);
        self.0.retain(|one| std::mem::discriminant(one) != kind);
    }

    fn withdraw(&mut self, concerns: impl Fn(&Transition) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|one| !concerns(one));
        self.0.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(message: &str) -> Transition {
        Transition::Wait(PendingMessage {
            reason: "Pending".to_owned(),
            message: message.to_owned(),
            gated: false,
            by_cycle: true,
            not_before: Timestamp::UNIX_EPOCH,
        })
    }

    fn reserve() -> Transition {
        let admission = Admission::default();
        let (checks, considered) = (Vec::new(), String::new());
        Transition::Reserve(Box::new(ReservedQuota {
            admission,
            checks,
            cluster: None,
            run_time: None,
            considered,
        }))
    }

    #[test]
    fn a_workload_that_waits_has_room_for_its_reason_only() {
        let mut pending = PendingTransitions::default();
        pending.propose(wait("a"));
        pending.propose(wait("b"));
        assert_eq!(pending.0.capacity(), 1);
        assert!(size_of::<Transition>() <= 72, "{} bytes", size_of::<Transition>());
    }

    #[test]
    fn a_transition_replaces_one_of_its_kind_and_a_reservation_the_reason_to_wait() {
        let mut pending = PendingTransitions::default();
        pending.propose(wait("a"));
        pending.propose(wait("b"));
        assert_eq!(pending.pending_message().map(|one| &*one.message), Some("b"));
        pending.propose(reserve());
        assert!(pending.pending_message().is_none() && pending.reservation().is_some());
    }

    #[test]
    fn the_first_reason_to_evict_counts() {
        let mut pending = PendingTransitions::default();
        pending.propose_once(Transition::Evict(EvictionRequest::new("Preempted", "first")));
        pending.propose_once(Transition::Evict(EvictionRequest::new("Preempted", "second")));
        assert_eq!(pending.eviction().map(|one| &*one.message), Some("first"));
    }

    #[test]
    fn a_rejected_check_counts_before_a_retry_and_that_before_readiness() {
        let mut pending = PendingTransitions::default();
        pending.propose(Transition::CheckReady("east".into()));
        assert_eq!(pending.check(), Some(&Transition::CheckReady("east".into())));
        let retry =
            || Transition::CheckRetry(CheckRetry { message: "again".to_owned(), evicted: None });
        pending.propose(retry());
        assert_eq!(pending.check(), Some(&retry()));
        pending.propose(Transition::CheckRejected("never".to_owned()));
        assert_eq!(pending.check(), Some(&Transition::CheckRejected("never".to_owned())));
    }

    #[test]
    fn a_transition_stays_until_the_status_shows_it_or_rules_it_out() {
        let all = || {
            let mut pending = PendingTransitions::default();
            for one in [
                reserve(),
                wait("a"),
                Transition::Evict(EvictionRequest::new("Preempted", "")),
                Transition::Release,
                Transition::CheckReady("east".into()),
            ] {
                pending.propose(one);
            }
            pending
        };
        let left = |phase, cluster| {
            let mut pending = all();
            pending.settle(phase, cluster, true);
            (
                pending.reservation().is_some(),
                pending.pending_message().is_some(),
                pending.eviction().is_some(),
                pending.releases(),
                pending.check().is_some(),
            )
        };
        assert_eq!(left(WorkloadPhase::Pending, None), (true, true, true, false, false));
        assert_eq!(left(WorkloadPhase::QuotaReserved, None), (false, false, true, true, true));
        assert_eq!(left(WorkloadPhase::Admitted, Some("east")), (false, false, true, true, false));
        assert_eq!(left(WorkloadPhase::Evicting, None), (false, false, false, true, false));
        assert_eq!(left(WorkloadPhase::Finished, None), (false, false, false, false, false));
    }

    #[test]
    fn what_was_decided_about_a_reservation_ends_with_it() {
        let mut pending = PendingTransitions::default();
        pending.propose(reserve());
        pending.propose(Transition::Evict(EvictionRequest::new("Preempted", "")));
        pending.propose(Transition::AssignTopology(vec![]));
        pending.settle(WorkloadPhase::Pending, None, true);
        assert!(
            pending.eviction().is_some() && pending.topology().is_some(),
            "it is being written"
        );
        assert!(pending.withdraw_reservation());
        assert!(pending.eviction().is_none() && pending.topology().is_none());
    }
}
