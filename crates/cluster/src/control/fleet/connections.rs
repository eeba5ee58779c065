//! Which connections to workers are wanted, and which of them may use the cluster that it leads to. Pure.
//!
//! A registered worker is connected. After its MultiKueueCluster was deleted it keeps its connection until no copy is left there,
//! for a limited time. A connection reports the identity of its cluster before it uses the cluster; the answer is a
//! [`ClaimResult`], after the identity was noted on the MultiKueueCluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crds::v1beta2::{ClusterSource, MultiKueueCluster};
use jiff::{SignedDuration, Timestamp};

use super::claims::{ClaimDecision, Claims};
use crate::control::{
    context::Context, key_map::KeyMap, outbox::after, time::moved, timers::Reevaluation,
};

/// Names of worker clusters.
pub(crate) type WorkerNames = BTreeSet<Box<str>>;

/// What is wanted of the connection to a worker. Without a plan its connection ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionPlan {
    /// Where to connect to; `None` to keep the connection as it is, if there is one.
    pub target: Option<WorkerRegistration>,
    /// The answer to the last identity that was reported.
    pub claim: Option<ClaimAnswer>,
}

/// A MultiKueueCluster as far as it says where to connect to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerRegistration {
    /// Where the kubeconfig is.
    pub source: ClusterSource,
    /// The uid of the MultiKueueCluster.
    pub uid: Option<Box<str>>,
}

/// The answer to a [`WorkerInput::Identity`](crate::control::WorkerInput::Identity).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimAnswer {
    /// The number of the request.
    pub request: u64,
    /// Whether the cluster may be used.
    pub result: ClaimResult,
}

/// Whether a connection may use the cluster that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimResult {
    /// It may, and the identity of the cluster is noted.
    Granted,
    /// The cluster belongs to this MultiKueueCluster.
    TakenBy(Box<str>),
    /// Work is recorded on another cluster.
    Changed {
        /// The uid of that cluster.
        known: Box<str>,
        /// The uid of the cluster that answers.
        found: Box<str>,
    },
    /// The identity could not be noted, for this reason.
    Refused(String),
}

/// Plans by worker.
pub type ConnectionPlans = BTreeMap<Box<str>, ConnectionPlan>;

/// The wanted connections to workers, and their state.
#[derive(Debug, Default)]
pub(super) struct Connections {
    claims: Claims,
    requests: KeyMap<Box<str>, ClaimRequest>,
    /// Workers that were registered, and since when they are not.
    unregistered: KeyMap<Box<str>, Timestamp>,
    /// The plans, until something changes that they follow from. There is one for each worker, and few decisions change any.
    planned: Option<Arc<ConnectionPlans>>,
}

/// A reported identity.
#[derive(Debug)]
struct ClaimRequest {
    number: u64,
    uid: Box<str>,
    /// `None` until the identity is noted.
    result: Option<ClaimResult>,
}

impl Connections {
    /// A MultiKueueCluster is new or changed.
    pub(super) fn registration_observed(&mut self, name: &str, object: &MultiKueueCluster) {
        self.planned = None;
        self.claims.update(name, object);
    }

    /// Whether a worker is registered has changed.
    pub(super) fn set_registered(&mut self, name: &str, registered: bool, now: Timestamp) {
        self.planned = None;
        if registered {
            self.unregistered.remove(name);
        } else {
            self.unregistered.insert(name.into(), now);
        }
    }

    /// The clock jumped: a worker that is not registered keeps its connection for as long as it would have.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.unregistered.for_each_mut(|_, since| *since = moved(*since, by));
    }

    /// The connection to a worker ended.
    pub(super) fn given_up(&mut self, name: &str) {
        self.planned = None;
        self.unregistered.remove(name);
        self.requests.remove(name);
    }

    /// A connection reports the uid of its cluster, and waits for the answer.
    pub(super) fn identity_reported(
        &mut self,
        name: &str,
        (number, uid): (u64, Box<str>),
        work_is_recorded: impl FnOnce() -> bool,
    ) {
        self.planned = None;
        let open = self.requests.get(name);
        let open = open.is_some_and(|request| request.uid == uid && request.result.is_none());
        let result = match self.claims.claim(name, &uid, work_is_recorded) {
            // The claim of an earlier request is not noted yet.
            ClaimDecision::Valid if open => None,
            ClaimDecision::Valid => Some(ClaimResult::Granted),
            ClaimDecision::TakenBy(other) => Some(ClaimResult::TakenBy(other)),
            ClaimDecision::Changed(known) => {
                Some(ClaimResult::Changed { known, found: uid.clone() })
            }
            ClaimDecision::Note => None,
        };
        self.requests.insert(name.into(), ClaimRequest { number, uid, result });
    }

    /// Identities that are to be noted: worker and uid.
    pub(super) fn to_note(&self) -> Vec<(Box<str>, Box<str>)> {
        let open = self.requests.iter().filter(|(_, request)| request.result.is_none());
        open.map(|(name, request)| (name.clone(), request.uid.clone())).collect()
    }

    /// The uid of a worker's cluster was noted.
    pub(super) fn noted(&mut self, name: &str, uid: &str) {
        self.planned = None;
        // The connection may lead to another cluster by now.
        if let Some(request) = self.requests.get_mut(name).filter(|one| *one.uid == *uid) {
            // An answer that was decided meanwhile stays, e.g. that the cluster belongs to another MultiKueueCluster.
            request.result.get_or_insert(ClaimResult::Granted);
        }
    }

    /// The identity of a worker could not be noted. The claim is withdrawn.
    pub(super) fn not_noted(&mut self, name: &str, cause: String) {
        self.planned = None;
        // A claim that is not written must not keep the cluster from another MultiKueueCluster.
        self.claims.withdraw(name);
        if let Some(request) = self.requests.get_mut(name) {
            request.result.get_or_insert(ClaimResult::Refused(cause));
        }
    }

    /// The plans. `clean` workers have nothing of ours; others keep their connection while they run work of ours, and then for
    /// `keep_for`.
    pub(super) fn plan(
        &mut self,
        registered: impl Iterator<Item = (Box<str>, WorkerRegistration)>,
        (clean, keep_for): (&WorkerNames, Duration),
        runs_work: impl Fn(&str) -> bool,
        ctx: &mut Context,
    ) -> Arc<ConnectionPlans> {
        // Time, and the copies on it, decide about a worker that is not registered.
        let known = self.planned.take().filter(|_| !self.has_unregistered());
        let plans = known.unwrap_or_else(|| {
            Arc::new(self.plan_all(registered, (clean, keep_for), runs_work, ctx))
        });
        self.planned = Some(Arc::clone(&plans));
        plans
    }

    /// Whether a worker was registered that is not now.
    pub(super) fn has_unregistered(&self) -> bool {
        !self.unregistered.is_empty()
    }

    fn plan_all(
        &mut self,
        registered: impl Iterator<Item = (Box<str>, WorkerRegistration)>,
        (clean, keep_for): (&WorkerNames, Duration),
        runs_work: impl Fn(&str) -> bool,
        ctx: &mut Context,
    ) -> ConnectionPlans {
        let plan = |name: &str, target| {
            let request = self.requests.get(name);
            let claim = request.and_then(|request| {
                Some(ClaimAnswer { request: request.number, result: request.result.clone()? })
            });
            ConnectionPlan { target, claim }
        };
        let mut plans: ConnectionPlans = registered
            .map(|(name, registration)| {
                let plan = plan(&name, Some(registration));
                (name, plan)
            })
            .collect();
        let now = ctx.now;
        let mut busy = WorkerNames::new();
        self.unregistered.for_each_mut(|name, since| {
            // Its work would run on unseen, and be started elsewhere as well. Its end is an input of its own.
            if runs_work(name) {
                *since = now;
                busy.insert(name.clone());
            }
        });
        // After this time its copies are left behind (docs/reference/dispatch.md §9).
        self.unregistered.retain(|_, since| after(*since, keep_for) > now);
        for (name, since) in &self.unregistered {
            if !busy.contains(name) {
                ctx.agenda.at(after(*since, keep_for), Reevaluation::Clusters);
            }
            if !clean.contains(name) {
                plans.insert(name.clone(), plan(name, None));
            }
        }
        // A connection that is kept still uses its cluster.
        self.claims.retain(|name| plans.contains_key(name) || self.unregistered.contains_key(name));
        plans
    }
}
