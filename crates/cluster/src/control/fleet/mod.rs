//! The fleet: registered worker clusters, sets of them, and the room that each has left.
//!
//! Inputs: MultiKueueClusters, MultiKueueConfigs, DispatchPolicies, AdmissionChecks; connections and reports by way of the
//! dispatch machine. Outputs: the [`Fleet`] that scheduling places on, and conditions `Active`.
//!
//! | file | concept |
//! |---|---|
//! | `policy` | DispatchPolicies as the fleet reads them |
//! | `conditions` | conditions of MultiKueueClusters and AdmissionChecks |

mod conditions;
mod policy;

use std::{collections::BTreeMap, sync::Arc};

use crds::{
    names::annotations::{CLEANUP, POLICY},
    v1alpha1::DispatchPolicy,
    v1beta2::{AdmissionCheck, MultiKueueCluster, MultiKueueConfig},
};
use dispatch::{AssignedWorkload, Fleet, PlacementConfig};
use engine::CycleEntry;
use index::Index;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use runtime::writer::WriteOutcome;

pub(crate) use self::conditions::ActiveCondition;

use self::policy::{default_policy, read_policy};
use super::{
    context::Context,
    outbox::{Subject, Ticket, Tracked, upsert},
    timers::{Agenda, Reevaluation},
    workloads::Workloads,
};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FleetRegistry {
    fleet: Fleet,
    clusters: BTreeMap<Box<str>, Tracked<MultiKueueCluster>>,
    configs: BTreeMap<Box<str>, MultiKueueConfig>,
    policies: BTreeMap<Box<str>, DispatchPolicy>,
    checks: BTreeMap<Box<str>, Tracked<AdmissionCheck>>,
}

impl FleetRegistry {
    pub(crate) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    pub(crate) fn fleet_mut(&mut self) -> &mut Fleet {
        &mut self.fleet
    }

    /// Records a MultiKueueCluster. `connected` says whether its worker is connected.
    pub(crate) fn observe_cluster(
        &mut self,
        name: &str,
        object: Option<MultiKueueCluster>,
        connected: bool,
        agenda: &mut Agenda,
    ) {
        let id = self.fleet.cluster(name);
        let labels = object.as_ref().and_then(|object| object.metadata.labels.clone());
        let labels = labels.unwrap_or_default().into_iter();
        self.fleet.set_labels(id, labels.map(|(key, value)| (key.into(), value.into())).collect());
        upsert(&mut self.clusters, name.into(), object);
        self.set_connected(name, connected);
        self.configure(agenda);
    }

    /// Records a MultiKueueConfig.
    pub(crate) fn observe_config(
        &mut self,
        name: Box<str>,
        object: Option<MultiKueueConfig>,
        agenda: &mut Agenda,
    ) {
        match object {
            Some(object) => {
                self.configs.insert(name, object);
            }
            None => {
                self.configs.remove(&name);
                self.fleet.set_config(&name, None);
            }
        }
        self.configure(agenda);
    }

    /// Records a DispatchPolicy.
    pub(crate) fn observe_policy(
        &mut self,
        name: Box<str>,
        object: Option<DispatchPolicy>,
        agenda: &mut Agenda,
    ) {
        match object {
            Some(object) => self.policies.insert(name, object),
            None => self.policies.remove(&name),
        };
        self.configure(agenda);
    }

    /// Records an AdmissionCheck.
    pub(crate) fn observe_check(
        &mut self,
        name: &str,
        object: Option<AdmissionCheck>,
        agenda: &mut Agenda,
    ) {
        upsert(&mut self.checks, name.into(), object);
        agenda.now(Reevaluation::Clusters);
    }

    /// A worker is connected or not. Without its MultiKueueCluster it gets nothing new.
    pub(crate) fn set_connected(&mut self, name: &str, connected: bool) {
        let id = self.fleet.cluster(name);
        let takes_work = connected && self.is_registered(name);
        self.fleet.set_connected(id, takes_work);
    }

    /// Whether there is a MultiKueueCluster of this name that is not being deleted.
    pub(crate) fn is_registered(&self, name: &str) -> bool {
        self.registered(name).is_some()
    }

    /// Names of all MultiKueueClusters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.clusters.keys().map(|name| &**name)
    }

    /// Whether a user has confirmed that copies of unknown Workloads on this worker may be deleted.
    pub(crate) fn is_cleanup_confirmed(&self, name: &str) -> bool {
        let annotations =
            self.clusters.get(name).and_then(|one| one.object().metadata.annotations.as_ref());
        annotations.and_then(|all| all.get(CLEANUP)).is_some_and(|value| value == "confirmed")
    }

    /// An owner reference to a MultiKueueCluster, for objects that are deleted with it.
    pub(crate) fn owner_reference(&self, name: &str) -> Option<OwnerReference> {
        self.registered(name)?.owner_ref(&())
    }

    /// Writes conditions that differ. `active` has the connection of a worker; `None` for one that was never tried.
    pub(crate) fn write_conditions(
        &self,
        active: impl Fn(&str) -> Option<ActiveCondition>,
        ctx: &mut Context,
    ) {
        if !ctx.agenda.take_clusters() {
            return;
        }
        for (name, tracked) in &self.clusters {
            if let Some(active) = active(name) {
                conditions::write_cluster(name, tracked, &active, ctx);
            }
        }
        for (name, tracked) in &self.checks {
            conditions::write_check(name, tracked, (&self.configs, &self.clusters), ctx);
        }
    }

    /// Takes the answer to a write of a MultiKueueCluster.
    pub(crate) fn cluster_answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        debug_assert_eq!(ticket.target.subject, Subject::MultiKueueCluster);
        if let (Some(tracked), WriteOutcome::Done(value)) =
            (self.clusters.get_mut(&ticket.target.key.name), answer)
        {
            tracked.observe_answer(value);
        }
    }

    /// Takes the answer to a write of an AdmissionCheck. Returns the check as it is now.
    pub(crate) fn check_answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
    ) -> Option<Arc<AdmissionCheck>> {
        let tracked = self.checks.get_mut(&ticket.target.key.name)?;
        if let WriteOutcome::Done(value) = answer {
            tracked.observe_answer(value);
        }
        Some(Arc::clone(tracked.object()))
    }

    fn registered(&self, name: &str) -> Option<&MultiKueueCluster> {
        let object = self.clusters.get(name)?.object();
        object.metadata.deletion_timestamp.is_none().then_some(object)
    }

    /// Sets every MultiKueueConfig of the fleet: the clusters that it lists, those that its policy selects, and the policy.
    fn configure(&mut self, agenda: &mut Agenda) {
        let Self { clusters, fleet, configs, policies, .. } = self;
        for (name, config) in &*configs {
            let policy = policy_of(config, policies);
            let selector = policy.and_then(|policy| policy.spec.cluster_selector.as_ref());
            let listed = config.spec.clusters.iter().map(String::as_str);
            let mut ids: Vec<_> = listed.map(|name| fleet.cluster(name)).collect();
            for (name, tracked) in &*clusters {
                let labels = tracked.object().metadata.labels.clone().unwrap_or_default();
                let id = fleet.cluster(name);
                let selected = selector.is_some_and(|selector| index::selects(selector, &labels));
                if selected && !ids.contains(&id) {
                    ids.push(id);
                }
            }
            let policy = policy.map(|policy| read_policy(policy, fleet));
            let policy = policy.unwrap_or_else(default_policy);
            fleet.set_config(name, Some(PlacementConfig { clusters: ids, policy }));
        }
        agenda.now(Reevaluation::Clusters);
    }
}

/// What an entry of a cycle asks of the fleet: its MultiKueueConfig and pods. `None` if it is not dispatched by room.
pub(crate) fn work_of<'a>(
    index: &'a Index,
    _: &'a Workloads,
    entry: &CycleEntry,
) -> Option<(&'a str, Arc<AssignedWorkload>)> {
    let (config, request, assigned) = index.dispatch_request(entry)?;
    Some((config, Arc::new(AssignedWorkload { request: Arc::clone(request), assigned })))
}

fn policy_of<'a>(
    config: &MultiKueueConfig,
    policies: &'a BTreeMap<Box<str>, DispatchPolicy>,
) -> Option<&'a DispatchPolicy> {
    let annotations = config.metadata.annotations.as_ref()?;
    policies.get(annotations.get(POLICY)?.as_str())
}
