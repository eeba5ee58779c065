//! Workers as they are registered: sets of them for the fleet, and the conditions of workers and checks.

use std::collections::{BTreeMap, BTreeSet};

use ::dispatch::{
    CheckStatus, ClusterAvailability, ClusterPreference, DispatchConfig, GangReservationPolicy,
    JobGvk, PlacementPolicy, PlacementStrategy, bad_config, check_status,
};
use crds::{
    meta::Condition,
    names::{
        MULTI_KUEUE_CONTROLLER,
        annotations::{CLEANUP, POLICY},
        conditions::ACTIVE,
    },
    v1alpha1::DispatchPolicy,
    v1beta2::{
        AdmissionCheck, AdmissionCheckStatus, MultiKueueCluster, MultiKueueClusterStatus,
        MultiKueueConfig,
    },
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::{
    Control, Order, Purpose, Role, Subject, Ticket,
    due::What,
    held::{Held, keep},
};

/// How room is kept for the oldest blocked gang, unless a policy says otherwise.
const KEEPING: GangReservationPolicy = GangReservationPolicy { after: 30 * SECOND, max_share: 100 };

/// In nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Registered workers and sets of them.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    clusters: BTreeMap<Box<str>, Held<MultiKueueCluster>>,
    configs: BTreeMap<Box<str>, MultiKueueConfig>,
    policies: BTreeMap<Box<str>, DispatchPolicy>,
    /// Workers that are not registered any more, and of which people were told.
    left_behind: BTreeSet<Box<str>>,
}

impl Control {
    pub(super) fn multi_kueue_clusters(&mut self, change: Change<MultiKueueCluster>) {
        self.take(change, |this, key, object| {
            let id = this.fleet.cluster(&key.name);
            let labels = object.as_ref().and_then(|object| object.metadata.labels.clone());
            let labels = labels.unwrap_or_default().into_iter();
            let labels = labels.map(|(key, value)| (key.into(), value.into())).collect();
            this.fleet.set_labels(id, labels);
            keep(&mut this.clusters.clusters, key.name.clone(), object);
            this.clusters.left_behind.remove(&key.name);
            // One that is not registered any more is connected until it is clean, and gets nothing new.
            let active = this.remotes.get(&key.name).is_some_and(|remote| remote.link.active);
            this.fleet.set_connected(id, active && this.clusters.is_registered(&key.name));
            this.configure_fleet();
            this.left_behind_due();
            this.all_orphans_due();
        });
    }

    pub(super) fn multi_kueue_configs(&mut self, change: Change<MultiKueueConfig>) {
        self.take(change, |this, key, object| {
            match object {
                Some(object) => {
                    this.clusters.configs.insert(key.name, object);
                }
                None => {
                    this.clusters.configs.remove(&key.name);
                    this.fleet.set_config(&key.name, None);
                }
            }
            this.configure_fleet();
        });
    }

    pub(super) fn dispatch_policies(&mut self, change: Change<DispatchPolicy>) {
        self.take(change, |this, key, object| {
            match object {
                Some(object) => this.clusters.policies.insert(key.name, object),
                None => this.clusters.policies.remove(&key.name),
            };
            this.configure_fleet();
        });
    }

    /// Tells the fleet every set of workers anew.
    fn configure_fleet(&mut self) {
        let Self { clusters, fleet, due, schedule, .. } = self;
        for (name, config) in &clusters.configs {
            let policy = clusters.policy_of(config);
            let selected = policy.and_then(|policy| policy.spec.cluster_selector.as_ref());
            let listed = config.spec.clusters.iter().map(String::as_str);
            let mut ids: Vec<_> = listed.map(|name| fleet.cluster(name)).collect();
            for (name, held) in &clusters.clusters {
                let labels = held.object.metadata.labels.clone().unwrap_or_default();
                let id = fleet.cluster(name);
                let wanted = selected.is_some_and(|selector| index::selects(selector, &labels));
                if wanted && !ids.contains(&id) {
                    ids.push(id);
                }
            }
            let policy = policy.map(|policy| read_policy(policy, fleet));
            let unnamed = || PlacementPolicy {
                gang_reservation: Some(KEEPING),
                ..PlacementPolicy::default()
            };
            let policy = policy.unwrap_or_else(unnamed);
            fleet.set_config(name, Some(DispatchConfig { clusters: ids, policy }));
        }
        due.now(What::Clusters);
        *schedule = true;
    }

    /// Conditions of workers and checks that differ from what is written.
    pub(super) fn decide_clusters(&mut self, now: Timestamp) {
        if !std::mem::take(&mut self.due.clusters)
            || self.settings.role != (Role::Manager { dispatches: true })
        {
            return;
        }
        self.decide_cluster_conditions(now);
        self.decide_check_conditions(now);
    }

    fn decide_cluster_conditions(&mut self, now: Timestamp) {
        for (name, held) in &mut self.clusters.clusters {
            let Some(remote) = self.remotes.get(name).filter(|one| !one.link.reason.is_empty())
            else {
                continue;
            };
            if !held.is_free(now) {
                held.later().into_iter().for_each(|at| self.due.at(at, What::Clusters));
                continue;
            }
            let before = &held.object.status;
            let message = remote.said(is_confirmed(&held.object));
            let conditions = with_active(
                &before.conditions,
                (remote.link.active, remote.link.reason, &message),
                held.object.metadata.generation,
                now,
            );
            let after = MultiKueueClusterStatus { conditions };
            let key = Key { namespace: None, name: name.clone() };
            let ticket = Ticket::home(Subject::MultiKueueCluster, &key, Purpose::ClusterCondition);
            if let Some(order) = Order::status::<MultiKueueCluster, _>(ticket, before, &after) {
                held.sent();
                self.orders.push(order);
            }
        }
    }

    fn decide_check_conditions(&mut self, now: Timestamp) {
        for (name, held) in &mut self.queues.checks {
            if held.object.spec.controller_name != MULTI_KUEUE_CONTROLLER {
                continue;
            }
            if !held.is_free(now) {
                held.later().into_iter().for_each(|at| self.due.at(at, What::Clusters));
                continue;
            }
            let said = self.clusters.said_of(&held.object);
            let before = &held.object.status;
            let status = said.status;
            let conditions = with_active(
                &before.conditions,
                (status, said.reason, &said.message),
                held.object.metadata.generation,
                now,
            );
            let after = AdmissionCheckStatus { conditions };
            let key = Key { namespace: None, name: name.clone() };
            let ticket = Ticket::home(Subject::AdmissionCheck, &key, Purpose::CheckCondition);
            if let Some(order) = Order::status::<AdmissionCheck, _>(ticket, before, &after) {
                held.sent();
                self.orders.push(order);
            }
        }
    }

    /// What came of writing the status of a queue, a worker or a check.
    pub(super) fn condition_answer(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        now: Timestamp,
    ) {
        let name = &ticket.key.name;
        match ticket.subject {
            Subject::MultiKueueCluster => {
                if let Some(held) = self.clusters.clusters.get_mut(name) {
                    held.answered(answer, now);
                }
                self.due.now(What::Clusters);
            }
            Subject::AdmissionCheck => {
                if let Some(held) = self.queues.checks.get_mut(name) {
                    held.answered(answer, now);
                    let check = held.object.clone();
                    let names = self.engine.names_mut();
                    let events = self.index.admission_check(names, name, Some(&check));
                    self.tell(events);
                }
                self.due.now(What::Clusters);
            }
            Subject::ClusterQueue => {
                if let Some(queue) = self.queues.cluster_queues.get_mut(name) {
                    queue.held.answered(answer, now);
                }
                self.due.now(What::Queue(name.clone()));
            }
            Subject::ResourceFlavor => {
                if let Some(held) = self.queues.resource_flavors.get_mut(name) {
                    held.answered(answer, now);
                }
                self.due.now(What::Queues);
            }
            Subject::LocalQueue => {
                if let Some(queue) = self.queues.local_queues.get_mut(&ticket.key) {
                    queue.held.answered(answer, now);
                    let counted = queue.held.object.spec.cluster_queue.as_str().into();
                    self.due.now(What::Queue(counted));
                }
            }
            Subject::Workload | Subject::Job | Subject::Capacity => {}
        }
    }
}

impl Clusters {
    /// Whether there is a worker of this name, which is to stay.
    pub(super) fn is_registered(&self, name: &str) -> bool {
        self.registered(name).is_some()
    }

    fn registered(&self, name: &str) -> Option<&MultiKueueCluster> {
        let object = &*self.clusters.get(name)?.object;
        object.metadata.deletion_timestamp.is_none().then_some(object)
    }

    /// Notes that people are told of a worker that is left behind; whether they were not before.
    pub(super) fn note_left_behind(&mut self, name: &str) -> bool {
        self.left_behind.insert(name.into())
    }

    /// Of all that are registered.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.clusters.keys().map(|name| &**name)
    }

    /// Whether a person said that what a worker has and the hub does not know may go.
    pub(super) fn cleanup_confirmed(&self, name: &str) -> bool {
        self.clusters.get(name).is_some_and(|held| is_confirmed(&held.object))
    }

    /// A reference to a MultiKueueCluster, for what goes with it; none if it does not exist.
    pub(super) fn as_owner(&self, name: &str) -> Option<OwnerReference> {
        self.registered(name)?.owner_ref(&())
    }

    fn policy_of(&self, config: &MultiKueueConfig) -> Option<&DispatchPolicy> {
        let annotations = config.metadata.annotations.as_ref()?;
        self.policies.get(annotations.get(POLICY)?.as_str())
    }

    fn said_of(&self, check: &AdmissionCheck) -> CheckStatus {
        let Some(parameters) = &check.spec.parameters else {
            return bad_config("missing parameters reference");
        };
        if parameters.kind != "MultiKueueConfig" {
            return bad_config(&format!("wrong kind \"{}\"", parameters.kind));
        }
        let Some(config) = self.configs.get(parameters.name.as_str()) else {
            let name = &parameters.name;
            return bad_config(&format!("multikueueconfigs.kueue.x-k8s.io \"{name}\" not found"));
        };
        check_status(config.spec.clusters.iter().map(|name| (name.as_str(), self.presence(name))))
    }

    fn presence(&self, name: &str) -> ClusterAvailability {
        match self.clusters.get(name) {
            None => ClusterAvailability::Missing,
            Some(held) if crds::meta::is_true(&held.object.status.conditions, ACTIVE) => {
                ClusterAvailability::Active
            }
            Some(_) => ClusterAvailability::Inactive,
        }
    }
}

/// Whether a person said that what this worker has and the hub does not know may go.
fn is_confirmed(cluster: &MultiKueueCluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(CLEANUP)).is_some_and(|value| value == "confirmed")
}

fn with_active(
    before: &[Condition],
    (status, reason, message): (bool, &str, &str),
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = before.to_vec();
    let at = index::status::StatusStamp { now, generation: generation.unwrap_or_default() };
    index::status::set(&mut conditions, ACTIVE, status, reason, message, at);
    conditions
}

fn read_keeping(reservation: &crds::v1alpha1::GangReservation) -> GangReservationPolicy {
    let after = reservation.after_seconds.map(|seconds| i64::from(seconds.max(0)) * SECOND);
    let share = reservation.max_share.and_then(|percent| u8::try_from(percent).ok());
    GangReservationPolicy {
        after: after.unwrap_or(KEEPING.after),
        max_share: share.unwrap_or(KEEPING.max_share),
    }
}

fn read_policy(policy: &DispatchPolicy, fleet: &mut ::dispatch::Fleet) -> PlacementPolicy {
    let spec = &policy.spec;
    let strategy = match spec.strategy.as_str() {
        "BinPack" => PlacementStrategy::BinPack,
        "Ordered" => PlacementStrategy::Ordered,
        _ => PlacementStrategy::Spread,
    };
    let clusters = spec.clusters.iter().map(|one| ClusterPreference {
        cluster: fleet.cluster(&one.name),
        weight: one.weight.unwrap_or(0),
        draining: one.drain.is_some(),
    });
    let kinds = spec.kinds.as_ref().map(|list| {
        let kind = |one: &crds::v1alpha1::JobKind| JobGvk {
            group: one.group.as_str().into(),
            version: one.version.as_str().into(),
            kind: one.kind.as_str().into(),
        };
        list.allow.iter().map(kind).collect()
    });
    let namespaces = spec.namespaces.as_ref();
    PlacementPolicy {
        strategy,
        clusters: clusters.collect(),
        gang_reservation: Some(spec.reservation.as_ref().map_or(KEEPING, read_keeping)),
        namespaces: namespaces
            .map(|list| list.allow.iter().map(|one| one.as_str().into()).collect()),
        kinds,
    }
}
