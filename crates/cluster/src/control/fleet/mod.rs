//! Registered worker clusters, sets of them, and the policies of dispatch to them.
//!
//! Inputs: MultiKueueClusters, MultiKueueConfigs, DispatchPolicies, AdmissionChecks; identities of clusters; connections and
//! reports by way of the dispatch machine. Outputs: clusters and policies of the [`Fleet`] that scheduling places on and the
//! composition owns, the connections that are wanted, conditions `Active`, and the note of a cluster's identity.
//!
//! | file | concept |
//! |---|---|
//! | `policy` | DispatchPolicies as the fleet reads them |
//! | `connections` | which connections are wanted |
//! | `claims` | which MultiKueueCluster may use a cluster |
//! | `fences` | the record about a worker that its leases depend on |
//! | `exactly_once_workloads` | Workloads that ask for ExactlyOnce themselves |
//! | `credentials` | when credentials of kubeconfigs expire |
//! | `drains` | drains by annotations of MultiKueueClusters |
//! | `conditions` | conditions of MultiKueueClusters and AdmissionChecks |
//! | `worker_statuses` | the conditions of workers per ClusterQueue, as metrics show them |

mod claims;
mod conditions;
mod connections;
mod credentials;
mod drains;
mod exactly_once_workloads;
mod fences;
mod policy;
mod worker_statuses;

use std::{sync::Arc, time::Duration};

use crds::{
    meta::is_true,
    names::{
        MULTI_KUEUE_CONTROLLER,
        annotations::{CLEANUP, CLUSTER_UID, POLICY},
        conditions::ACTIVE,
    },
    v1alpha1::DispatchPolicy,
    v1beta2::{AdmissionCheck, ClusterQueueSpec, MultiKueueCluster, MultiKueueConfig},
};
use dispatch::{AssignedWorkload, DispatchedEntry, FenceRecord, Fleet, PlacementConfig};
use engine::CycleEntry;
use index::{Index, run_time_group};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use runtime::{credential_expiry::CredentialExpiry, writer::WriteOutcome};

pub(crate) use self::conditions::ActiveCondition;
pub use self::connections::{
    ClaimAnswer, ClaimResult, ConnectionPlan, ConnectionPlans, WorkerRegistration,
};
#[cfg(test)]
pub(crate) use self::worker_statuses::StatusScope;

use self::{
    connections::{Connections, WorkerNames},
    credentials::CredentialExpiries,
    drains::WorkerDrains,
    exactly_once_workloads::ExactlyOnceWorkloads,
    policy::{default_policy, read_policy},
    worker_statuses::WorkerStatuses,
};
use super::{
    context::Context,
    elastic_slices::extending,
    outbox::{Purpose, Subject, Ticket, Tracked, upsert},
    timers::{Agenda, Reevaluation},
    workloads::{WorkloadChange, Workloads},
};
use crate::control::{
    key_map::KeyMap,
    measurement::{Measurement, WorkerMeasurement},
};

/// Why an identity could not be noted.
const CHANGED: &str = "it has just changed";

/// `quotaManagement` of a MultiKueueConfig by which quotas follow workers.
const AUTOMATED: &str = "Automated";

/// What the MultiKueueConfig of a ClusterQueue asks for its quota.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuotaRequest<'a> {
    /// The ClusterQueue has no MultiKueue check.
    NoCheck,
    /// The quota is the administrator's.
    NotRequested,
    /// The MultiKueueConfig of the check does not exist.
    NoConfig,
    /// The quota is the sum of that of the clusters.
    Requested {
        /// The name of the MultiKueueConfig.
        config: &'a str,
        /// The names of the clusters.
        clusters: Vec<&'a str>,
    },
}

/// The registered worker clusters with their configurations and policies.
#[derive(Debug, Default)]
pub(crate) struct FleetRegistry {
    clusters: KeyMap<Box<str>, Tracked<MultiKueueCluster>>,
    configs: KeyMap<Box<str>, Arc<MultiKueueConfig>>,
    policies: KeyMap<Box<str>, Arc<DispatchPolicy>>,
    checks: KeyMap<Box<str>, Tracked<AdmissionCheck>>,
    connections: Connections,
    credentials: CredentialExpiries,
    drains: WorkerDrains,
    exactly_once_workloads: ExactlyOnceWorkloads,
    /// The last record about each worker, which outlives its MultiKueueCluster.
    records: KeyMap<Box<str>, FenceRecord>,
    /// A MultiKueueConfig has other clusters, or a check names another one, since this was last taken.
    configs_changed: bool,
    statuses: WorkerStatuses,
}

impl FleetRegistry {
    /// Records whether a Workload asks for ExactlyOnce itself.
    pub(crate) fn observe_guarantee(&mut self, change: &WorkloadChange, fleet: &mut Fleet) {
        if self.exactly_once_workloads.observe(change) {
            fleet.set_wants_leases(self.exactly_once_workloads.any());
        }
    }

    /// Records a MultiKueueCluster. `usable` says whether its worker takes work once it is registered. Returns whether the choice of
    /// clusters may differ: the registration or its labels changed. Its conditions decide about no Workload.
    pub(crate) fn observe_cluster(
        &mut self,
        name: &str,
        object: Option<Arc<MultiKueueCluster>>,
        usable: bool,
        (fleet, ctx): (&mut Fleet, &mut Context),
    ) -> bool {
        let (was_known, was_registered) =
            (self.clusters.get(name).is_some(), self.is_registered(name));
        // A deleted MultiKueueCluster keeps its claim as long as its connection is kept.
        if let Some(object) = &object {
            self.connections.registration_observed(name, object);
        }
        let id = fleet.intern_cluster(name);
        let labels = object.as_ref().and_then(|object| object.metadata.labels.clone());
        let labels = labels.unwrap_or_default().into_iter();
        let labels = labels.map(|(key, value)| (key.into(), value.into())).collect();
        // Those that the fleet has, not those of the last object: an answer to a write may have brought new ones.
        let relabelled = fleet.set_labels(id, labels);
        ctx.measurements.push(measured(name, object.as_deref()));
        self.note_record(name, object.as_deref());
        self.drains.observe(name, object.as_ref(), ctx);
        let status = self.active_status_of(name);
        upsert(&mut self.clusters, name.into(), object);
        self.note_status(name, status);
        let registered = self.is_registered(name);
        // The time for which the connection is kept begins once, not with each later event.
        if registered != was_registered {
            self.connections.set_registered(name, registered, ctx.now);
        }
        // Whether it takes work follows from the registration as well.
        self.set_usable(name, usable, fleet);
        let is_known = self.clusters.get(name).is_some();
        let changed = relabelled || (was_known, was_registered) != (is_known, registered);
        match changed {
            true => self.configure(fleet, &mut ctx.agenda),
            // Another client may have written the condition.
            false => ctx.agenda.now(Reevaluation::Cluster(name.into())),
        }
        changed
    }

    /// A connection reports the uid of its cluster.
    pub(crate) fn identity_reported(
        &mut self,
        name: &str,
        identity: (u64, Box<str>),
        workloads: &Workloads,
        agenda: &mut Agenda,
    ) {
        self.connections.identity_reported(name, identity, || records_work(workloads, name));
        agenda.now(Reevaluation::Cluster(name.into()));
    }

    /// The kubeconfig of a worker was loaded.
    pub(crate) fn credential_observed(
        &mut self,
        name: &str,
        expiry: Option<CredentialExpiry>,
        ctx: &mut Context,
    ) {
        self.credentials.observe(name, expiry, (ctx.now, &mut ctx.agenda));
    }

    /// The clock jumped: what lasts goes on.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        self.connections.clock_jumped(by);
    }

    /// The connection to a worker ended.
    pub(crate) fn connection_given_up(&mut self, name: &str) {
        // A worker that is registered again is connected again.
        if !self.is_registered(name) {
            self.connections.given_up(name);
        }
    }

    /// Whether a worker was registered that is not now.
    pub(crate) fn has_unregistered(&self) -> bool {
        self.connections.has_unregistered()
    }

    /// The connections that are wanted. Unregistered workers that are not `clean` keep theirs while Workloads are recorded
    /// there, and then for `keep_for`.
    pub(crate) fn plan_connections(
        &mut self,
        clean: &WorkerNames,
        keep_for: Duration,
        workloads: &Workloads,
        ctx: &mut Context,
    ) -> Arc<ConnectionPlans> {
        let registered = self.clusters.iter().filter_map(|(name, tracked)| {
            let object = tracked.object();
            let uid = object.metadata.uid.as_deref().map(Into::into);
            let source = object.spec.cluster_source.clone();
            let registered = object.metadata.deletion_timestamp.is_none();
            registered.then(|| (name.clone(), WorkerRegistration { source, uid }))
        });
        let runs_work = |name: &str| records_work(workloads, name);
        self.connections.plan(registered, (clean, keep_for), runs_work, ctx)
    }

    /// Records a MultiKueueConfig.
    pub(crate) fn observe_config(
        &mut self,
        name: Box<str>,
        object: Option<Arc<MultiKueueConfig>>,
        (fleet, agenda): (&mut Fleet, &mut Agenda),
    ) {
        match object {
            Some(object) => {
                self.configs.insert(name, object);
            }
            None => {
                self.configs.remove(&name);
                fleet.set_config(&name, None);
                self.statuses.note_config(&name);
            }
        }
        self.configure(fleet, agenda);
    }

    /// Records a DispatchPolicy.
    pub(crate) fn observe_policy(
        &mut self,
        name: Box<str>,
        object: Option<Arc<DispatchPolicy>>,
        (fleet, agenda): (&mut Fleet, &mut Agenda),
    ) {
        match object {
            Some(object) => self.policies.insert(name, object),
            None => self.policies.remove(&name),
        };
        self.configure(fleet, agenda);
    }

    /// Records an AdmissionCheck. Returns the newest known one: the answer to a write may be ahead of the watch.
    pub(crate) fn observe_check(
        &mut self,
        name: &str,
        object: Option<Arc<AdmissionCheck>>,
        agenda: &mut Agenda,
    ) -> Option<Arc<AdmissionCheck>> {
        let parameters = |object: &AdmissionCheck| object.spec.parameters.clone();
        let before = self.checks.get(name).map(|tracked| parameters(tracked.object()));
        self.configs_changed |= before != object.as_deref().map(parameters);
        let config = self.config_of_check(name).map(Box::from);
        upsert(&mut self.checks, name.into(), object);
        self.note_check(name, config.as_deref());
        agenda.now(Reevaluation::Clusters);
        self.checks.get(name).map(|tracked| Arc::clone(tracked.object()))
    }

    /// A worker takes work, or not. Without its MultiKueueCluster it gets nothing new.
    pub(crate) fn set_usable(&self, name: &str, usable: bool, fleet: &mut Fleet) {
        // A cluster that was neither registered nor connected takes no work in any case.
        if let Some(id) = fleet.find(name) {
            fleet.set_connected(id, usable && self.is_registered(name));
        }
    }

    /// Whether there is a MultiKueueCluster of this name that is not being deleted.
    pub(crate) fn is_registered(&self, name: &str) -> bool {
        self.registered(name).is_some()
    }

    /// Names of all MultiKueueClusters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.clusters.keys().map(|name| &**name)
    }

    /// Whether the MultiKueueCluster has the confirmation of a user that copies of unknown Workloads may be deleted.
    pub(crate) fn is_cleanup_confirmed(&self, name: &str) -> bool {
        let annotations =
            self.clusters.get(name).and_then(|one| one.object().metadata.annotations.as_ref());
        annotations.and_then(|all| all.get(CLEANUP)).is_some_and(|value| value == "confirmed")
    }

    /// Since when the condition of a MultiKueueCluster says that its worker is not reached.
    pub(crate) fn not_active_since(&self, name: &str) -> Option<Timestamp> {
        let conditions = &self.registered(name)?.status.conditions;
        let active = conditions.iter().find(|one| one.r#type == ACTIVE && one.status == "False");
        active?.transitioned_at()
    }

    /// An owner reference to a MultiKueueCluster, for objects that are deleted with it.
    pub(crate) fn owner_reference(&self, name: &str) -> Option<OwnerReference> {
        self.registered(name)?.owner_ref(&())
    }

    /// Writes conditions that differ. `active` has the connection of a worker, with whether its cleanup is confirmed; `None` for one that
    /// was never tried. `ends_confirmation` says of which workers the confirmation is removed.
    pub(crate) fn write_conditions(
        &mut self,
        active: impl Fn(&str, Timestamp, bool) -> Option<ActiveCondition>,
        ends_confirmation: impl Fn(&str) -> bool,
        ctx: &mut Context,
    ) {
        let Some(evaluated) = ctx.agenda.take_clusters() else {
            return;
        };
        for (name, uid) in self.connections.to_note() {
            match self.clusters.get(&name) {
                Some(tracked) => conditions::note_identity(&name, &uid, tracked, ctx),
                // The MultiKueueCluster was deleted between the report of the identity and this decision.
                None => self.connections.not_noted(&name, CHANGED.to_owned()),
            }
        }
        for (name, tracked) in self.clusters.iter().filter(|(name, _)| evaluated.includes(name)) {
            let annotated = self.is_cleanup_confirmed(name);
            if annotated && ends_confirmation(name) {
                conditions::remove_confirmation(name, tracked, ctx);
            }
            if let Some(active) = active(name, ctx.now, annotated) {
                let reports = (&self.credentials, &self.drains);
                conditions::write_cluster(name, tracked, (&active, reports), ctx);
            }
        }
        for (name, tracked) in &self.checks {
            conditions::write_check(name, tracked, (&self.configs, &self.clusters), ctx);
        }
    }

    /// What the MultiKueue check of a ClusterQueue asks for its quota. Clusters that are not registered are left out.
    pub(crate) fn quota_request<'a>(
        &'a self,
        spec: &ClusterQueueSpec,
        fleet: &'a Fleet,
    ) -> QuotaRequest<'a> {
        let rules = spec.admission_checks_strategy.iter().flat_map(|one| &one.admission_checks);
        let checks =
            rules.filter_map(|rule| Some(&self.checks.get(rule.name.as_str())?.object().spec));
        let mut ours = checks.filter(|check| check.controller_name == MULTI_KUEUE_CONTROLLER);
        let Some(check) = ours.next() else {
            return QuotaRequest::NoCheck;
        };
        let name = check.parameters.as_ref().map_or("", |parameters| &parameters.name);
        match self.configs.get_key_value(name) {
            Some((config, object))
                if object.spec.quota_management.as_deref() == Some(AUTOMATED) =>
            {
                let clusters = fleet.clusters_of(config);
                let clusters = clusters.filter(|name| self.is_registered(name)).collect();
                QuotaRequest::Requested { config, clusters }
            }
            Some(_) => QuotaRequest::NotRequested,
            None => QuotaRequest::NoConfig,
        }
    }

    /// Takes the answer to a write of a MultiKueueCluster.
    pub(crate) fn cluster_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        debug_assert_eq!(ticket.target.subject, Subject::MultiKueueCluster);
        let name = &*ticket.target.key.name;
        if ticket.purpose == Purpose::ClusterUid {
            self.identity_answered(name, &answer);
        }
        let status = self.active_status_of(name);
        if let (Some(tracked), WriteOutcome::Done(value)) = (self.clusters.get_mut(name), answer) {
            tracked.observe_answer(&value);
            self.connections.registration_observed(name, tracked.object());
            let object = Arc::clone(tracked.object());
            self.note_record(name, Some(&object));
            self.note_status(name, status);
        }
    }

    /// Takes the answer to a write of an AdmissionCheck. Returns the check as it is now.
    pub(crate) fn check_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
    ) -> Option<Arc<AdmissionCheck>> {
        let name = &*ticket.target.key.name;
        let config = self.config_of_check(name).map(Box::from);
        let tracked = self.checks.get_mut(name)?;
        if let WriteOutcome::Done(value) = answer {
            tracked.observe_answer(&value);
        }
        let newest = Arc::clone(tracked.object());
        self.note_check(name, config.as_deref());
        Some(newest)
    }

    fn identity_answered(&mut self, name: &str, answer: &WriteOutcome) {
        match answer {
            WriteOutcome::Done(object) => {
                let object = object.tree();
                let uid = object["metadata"]["annotations"][CLUSTER_UID].as_str();
                self.connections.noted(name, uid.unwrap_or_default());
            }
            // It is noted on the newer version.
            WriteOutcome::Stale => {}
            WriteOutcome::Exists | WriteOutcome::Gone => {
                self.connections.not_noted(name, CHANGED.to_owned());
            }
            // An unanswered note may be written; then the next report of this identity finds it.
            WriteOutcome::Refused { message, .. }
            | WriteOutcome::Unknown(message)
            | WriteOutcome::UnnamedNotFound(message) => {
                self.connections.not_noted(name, message.clone());
            }
        }
    }

    fn registered(&self, name: &str) -> Option<&MultiKueueCluster> {
        let object = self.clusters.get(name)?.object();
        object.metadata.deletion_timestamp.is_none().then_some(object)
    }

    /// Whether nominated clusters may have left the MultiKueueConfig of their Workload since the last call, or others may race beside them.
    pub(crate) fn take_configs_changed(&mut self) -> bool {
        std::mem::take(&mut self.configs_changed)
    }

    /// Begins and ends drains by annotations. Returns whether any did, or has another deadline.
    pub(crate) fn advance_drains(
        &mut self,
        now: Timestamp,
        (fleet, agenda): (&mut Fleet, &mut Agenda),
    ) -> bool {
        let changed = self.drains.advance(now, agenda);
        if changed {
            self.configure(fleet, agenda);
        }
        changed
    }

    /// Sets every MultiKueueConfig of the fleet: the clusters that it lists, those that its policy selects, and the policy.
    fn configure(&mut self, fleet: &mut Fleet, agenda: &mut Agenda) {
        let Self { clusters, configs, policies, drains, configs_changed, statuses, .. } = self;
        for (name, config) in &*configs {
            let policy = policy_of(config, policies);
            let selector = policy.and_then(|policy| policy.spec.cluster_selector.as_ref());
            let listed = config.spec.clusters.iter().map(String::as_str);
            let mut ids: Vec<_> = listed.map(|name| fleet.intern_cluster(name)).collect();
            for (name, tracked) in &*clusters {
                let labels = tracked.object().metadata.labels.clone().unwrap_or_default();
                let Some(id) = fleet.find(name) else {
                    continue;
                };
                let selected = selector.is_some_and(|selector| index::selects(selector, &labels));
                // A selected cluster that is listed keeps its place: the order breaks ties
                // (docs/reference/dispatch.md §3).
                if selected && !ids.contains(&id) {
                    ids.push(id);
                }
            }
            let policy = policy.map(|policy| read_policy(policy, fleet));
            let mut policy = policy.unwrap_or_else(default_policy);
            drains.apply(&mut policy, fleet);
            let differs = !fleet.clusters_of(name).eq(ids.iter().map(|id| fleet.name(*id)));
            // One that is made again may have fewer than before.
            *configs_changed |= differs || !fleet.has_config(name);
            if differs {
                statuses.note_config(name);
            }
            fleet.set_config(name, Some(PlacementConfig { clusters: ids, policy }));
        }
        agenda.now(Reevaluation::Clusters);
    }
}

/// What metrics show of a MultiKueueCluster.
fn measured(name: &str, object: Option<&MultiKueueCluster>) -> Measurement {
    let cluster = name.to_owned();
    object.map_or_else(
        || Measurement::Worker(WorkerMeasurement::Gone(name.to_owned())),
        |one| {
            Measurement::Worker(WorkerMeasurement::Active {
                cluster,
                active: is_true(&one.status.conditions, ACTIVE),
            })
        },
    )
}

/// What an entry of a cycle asks of the fleet. `None` if it is not dispatched by room.
pub(crate) fn work_of(
    index: &Index,
    workloads: &Workloads,
    entry: &CycleEntry,
) -> Option<DispatchedEntry> {
    let (config, request, assigned) = index.dispatch_request(entry)?;
    let undeclared = workloads.by_id(entry.workload).filter(|_| request.max_run_time.is_none());
    let whole = Arc::new(AssignedWorkload::new(Arc::clone(request), assigned));
    let (work, extends) = match workloads.by_id(entry.workload) {
        Some((_, record)) => extending(record.object(), whole, workloads),
        None => (whole, None),
    };
    Some(DispatchedEntry {
        config: config.to_owned(),
        work,
        order: index.queue_order(entry.workload),
        group: undeclared.map(|(_, record)| run_time_group(record.object())),
        extends,
    })
}

/// Whether a Workload with quota names a worker.
pub(crate) fn records_work(workloads: &Workloads, cluster: &str) -> bool {
    let holding = workloads.iter().filter(|(_, record)| record.phase().holds_quota());
    let mut statuses = holding.map(|(_, record)| &record.object().status);
    statuses.any(|status| {
        let mut names = status.cluster_name.iter().chain(&status.nominated_cluster_names);
        names.any(|one| one == cluster)
    })
}

fn policy_of<'a>(
    config: &MultiKueueConfig,
    policies: &'a KeyMap<Box<str>, Arc<DispatchPolicy>>,
) -> Option<&'a DispatchPolicy> {
    let annotations = config.metadata.annotations.as_ref()?;
    policies.get(annotations.get(POLICY)?.as_str()).map(|policy| &**policy)
}
