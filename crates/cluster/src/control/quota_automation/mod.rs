//! The quota of ClusterQueues that follows their workers (docs/reference/multikueue.md §2.14).
//!
//! Inputs: the queues of workers, which are watched for this only, and at each evaluation the hub's queues, checks and
//! connections. Output: per ClusterQueue a [`ManagedQuota`], which the machine of queues writes.
//!
//! A worker that is not reached counts with what it had until it is lost, because its Workloads stay admitted until then. After a restart
//! nothing is known of such a worker; if Workloads hold quota there, the quota stays as it is.

mod worker_queues;

use std::{sync::Arc, time::Duration};

use crds::{
    names::reasons::{NOT_REQUESTED, QUOTA_AUTOMATED, UNSUPPORTED_CONFIGURATION},
    v1alpha1::ClusterCapacity,
    v1beta2::{ClusterQueue, ClusterQueueSpec, LocalQueue},
};
use dispatch::Fleet;
use index::{UnsupportedQuota, WorkerQuota, manager_quota, node_totals, only_flavor};
use jiff::{SignedDuration, Timestamp};
use jobs::admitted_infos::FlavorsByName;
use runtime::watch::{Change, Key};

use self::worker_queues::WorkerQueues;
use super::{
    context::Context,
    fleet::{FleetRegistry, QuotaRequest},
    outbox::after,
    queues::{ManagedQuota, QuotaCondition},
    timers::Reevaluation,
};
use crate::control::{key_map::KeyMap, time::moved};

// Messages of the condition, as Kueue's.
const AUTOMATED: &str = "ClusterQueue quota is automatically managed based on MultiKueue workers.";
const NOT_REQUESTED_TEXT: &str = "MultiKueue manager quota automation has not been requested.";
const NO_CONFIG: &str = "The referenced MultiKueueConfig was not found.";

/// The least time between two evaluations: a report of a worker changes with every pod.
const PERIOD: Duration = Duration::from_secs(1);

/// What is known of the connection to a worker.
#[derive(Debug)]
pub(crate) enum WorkerPresence {
    /// It was not tried yet, or what it reports was not listed yet.
    Starting,
    /// It is connected, with its report if it has an agent.
    Connected(Option<Arc<ClusterCapacity>>),
    /// It is not reached. From this time on its Workloads are lost.
    Away(Timestamp),
}

/// What the hub knows of workers.
///
/// Contract: `presence` is asked with the MultiKueueConfig and the worker; `has_work` says whether Workloads hold quota on a worker, and
/// walks over all of them, so it is asked only where that decides.
pub(crate) struct KnownWorkers<'a> {
    pub(crate) presence: &'a dyn Fn(&str, &str) -> WorkerPresence,
    pub(crate) has_work: &'a mut dyn FnMut(&str) -> bool,
}

/// A ClusterQueue of the hub and its LocalQueues.
pub(crate) struct HubQueue<'a> {
    pub(crate) name: &'a str,
    pub(crate) spec: &'a ClusterQueueSpec,
    pub(crate) local_queues: Vec<&'a Key>,
}

/// The queues of the workers that quotas follow.
#[derive(Debug, Default)]
pub(crate) struct QuotaAutomation {
    workers: KeyMap<Box<str>, WorkerQueues>,
    not_before: Option<Timestamp>,
    /// An evaluation at `not_before` is on the agenda.
    awaited: bool,
}

impl QuotaAutomation {
    /// Records the ClusterQueues of a worker.
    pub(crate) fn observe_cluster_queues(&mut self, worker: &str, change: Change<ClusterQueue>) {
        self.workers.entry(worker.into()).or_default().observe_cluster_queues(change);
    }

    /// Records the LocalQueues of a worker.
    pub(crate) fn observe_local_queues(&mut self, worker: &str, change: Change<LocalQueue>) {
        self.workers.entry(worker.into()).or_default().observe_local_queues(change);
    }

    /// A worker was connected or disconnected.
    pub(crate) fn connection_changed(&mut self, worker: &str) {
        self.workers.entry(worker.into()).or_default().connection_changed();
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { workers: _, not_before, awaited: _ } = self;
        *not_before = not_before.map(|at| moved(at, by));
    }

    /// Whether it is time for an evaluation. If not, the agenda wakes control when it is: whatever has changed now counts then.
    pub(crate) fn begin(&mut self, ctx: &mut Context) -> bool {
        match self.not_before.filter(|at| *at > ctx.now) {
            Some(later) => {
                if !std::mem::replace(&mut self.awaited, true) {
                    ctx.agenda.at(later, Reevaluation::ManagerQuota);
                }
                false
            }
            None => {
                self.not_before = Some(after(ctx.now, PERIOD));
                self.awaited = false;
                true
            }
        }
    }

    /// The quota of one ClusterQueue.
    pub(crate) fn evaluate(
        &mut self,
        queue: &HubQueue<'_>,
        (registry, fleet, flavors): (&FleetRegistry, &Fleet, &FlavorsByName),
        known: &mut KnownWorkers<'_>,
        ctx: &mut Context,
    ) -> ManagedQuota {
        let (config, clusters) = match registry.quota_request(queue.spec, fleet) {
            QuotaRequest::NoCheck => return ManagedQuota::Unrelated,
            QuotaRequest::NotRequested => return kept(NOT_REQUESTED, NOT_REQUESTED_TEXT),
            QuotaRequest::NoConfig => return kept(UNSUPPORTED_CONFIGURATION, NO_CONFIG),
            QuotaRequest::Requested { config, clusters } => (config, clusters),
        };
        // The shape says so whatever is known of the workers.
        let Some(flavor) = only_flavor(queue.spec) else {
            return kept(UNSUPPORTED_CONFIGURATION, UnsupportedQuota::Shape.to_string());
        };
        let labels =
            flavors.get(flavor).map(|flavor| flavor.node_labels.clone()).unwrap_or_default();
        let mut counted = Vec::new();
        for name in clusters {
            let worker = self.workers.entry(name.into()).or_default();
            let counts = match (known.presence)(config, name) {
                WorkerPresence::Starting => return ManagedQuota::Unknown,
                WorkerPresence::Connected(report) => {
                    if !worker.observe_connected(report) {
                        return ManagedQuota::Unknown;
                    }
                    true
                }
                WorkerPresence::Away(lost_at) if lost_at <= ctx.now => false,
                WorkerPresence::Away(lost_at) => {
                    ctx.agenda.at(lost_at, Reevaluation::ManagerQuota);
                    if !worker.is_known() && (known.has_work)(name) {
                        return ManagedQuota::Unknown;
                    }
                    worker.is_known()
                }
            };
            if counts {
                let quota = match worker.report() {
                    Some(report) => {
                        WorkerQuota::Nodes(node_totals(&report.status.node_classes, &labels))
                    }
                    None => WorkerQuota::Queues(worker.totals(queue.local_queues.iter().copied())),
                };
                counted.push(quota);
            }
        }
        match manager_quota(queue.spec, &counted) {
            Ok(groups) => {
                let condition = QuotaCondition::new(true, QUOTA_AUTOMATED, AUTOMATED.to_owned());
                ManagedQuota::Automated(groups, condition)
            }
            Err(unsupported) => kept(UNSUPPORTED_CONFIGURATION, unsupported.to_string()),
        }
    }
}

/// The quota stays as it is, for this reason.
fn kept(reason: &'static str, message: impl Into<String>) -> ManagedQuota {
    ManagedQuota::Kept(QuotaCondition::new(false, reason, message.into()))
}
