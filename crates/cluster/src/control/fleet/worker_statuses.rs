//! The conditions `Active` of workers, for each ClusterQueue that dispatches to them, as metrics show them
//! (docs/reference/multikueue.md §1.9).
//!
//! | change | what is measured again |
//! |---|---|
//! | the checks of a ClusterQueue | its workers |
//! | what a check names, or the workers of a MultiKueueConfig | the workers of the ClusterQueues that it is for |
//! | the condition of a worker | that worker, for these ClusterQueues |

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    meta::find,
    names::{MULTI_KUEUE_CONTROLLER, conditions::ACTIVE},
    v1beta2::{ClusterQueueSpec, MultiKueueCluster},
};
use dispatch::Fleet;
use provisioning::active::parameters_name;

use super::FleetRegistry;
use crate::control::{
    key_map::KeyMap,
    measurement::{Measurement, WorkerLabels, WorkerMeasurement},
};

/// What was measured last, and what has changed since then.
#[derive(Debug, Default)]
pub(super) struct WorkerStatuses {
    /// The checks of the ClusterQueues that have any.
    checks: KeyMap<Box<str>, Vec<Box<str>>>,
    shown: KeyMap<Box<str>, StatusesOfQueue>,
    changes: StatusChanges,
}

/// By worker.
type StatusesOfQueue = BTreeMap<Box<str>, &'static str>;

/// What the statuses depend on, as far as it has changed.
#[derive(Debug, Default)]
struct StatusChanges {
    queues: BTreeSet<Box<str>>,
    checks: BTreeSet<Box<str>>,
    configs: BTreeSet<Box<str>>,
    clusters: BTreeSet<Box<str>>,
}

/// Which workers of a ClusterQueue are measured again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StatusScope {
    All,
    Of(Vec<Box<str>>),
}

impl WorkerStatuses {
    /// The workers of a MultiKueueConfig are others.
    pub(super) fn note_config(&mut self, config: &str) {
        self.changes.configs.insert(config.into());
    }

    /// Takes over the present status of a worker; `None` without one. Returns it if it is different.
    fn show(
        &mut self,
        queue: &str,
        cluster: &str,
        now: Option<&'static str>,
    ) -> Option<Measurement> {
        if now.is_some() && self.shown.get(queue).is_none() {
            self.shown.insert(queue.into(), StatusesOfQueue::new());
        }
        let workers = self.shown.get_mut(queue)?;
        let before = match now {
            Some(active) => workers.insert(cluster.into(), active),
            None => workers.remove(cluster),
        };
        if workers.is_empty() {
            self.shown.remove(queue);
        }
        (before != now).then(|| measured(queue, cluster, now))
    }

    /// The workers that were measured for a ClusterQueue and are not any more.
    fn gone(&self, queue: &str, now: &StatusesOfQueue) -> Vec<Box<str>> {
        let shown = self.shown.get(queue).into_iter().flat_map(BTreeMap::keys);
        shown.filter(|cluster| !now.contains_key(*cluster)).cloned().collect()
    }
}

impl FleetRegistry {
    /// Records the checks of a ClusterQueue; `None` if it is gone.
    pub(crate) fn observe_checks_of(&mut self, queue: &str, spec: Option<&ClusterQueueSpec>) {
        let strategy = spec.and_then(|spec| spec.admission_checks_strategy.as_ref());
        let rules = strategy.into_iter().flat_map(|one| &one.admission_checks);
        let names = rules.map(|rule| &*rule.name);
        let statuses = &mut self.statuses;
        let known = statuses.checks.get(queue).into_iter().flatten().map(|name| &**name);
        if known.eq(names.clone()) {
            return;
        }
        let names: Vec<Box<str>> = names.map(Into::into).collect();
        if names.is_empty() {
            statuses.checks.remove(queue)
        } else {
            statuses.checks.insert(queue.into(), names)
        };
        statuses.changes.queues.insert(queue.into());
    }

    /// The MultiKueueConfig that a check names, if it is a check of MultiKueue.
    pub(super) fn config_of_check(&self, check: &str) -> Option<&str> {
        let spec = &self.checks.get(check)?.object().spec;
        let is_ours = spec.controller_name == MULTI_KUEUE_CONTROLLER;
        let name = parameters_name(spec.parameters.as_ref(), "MultiKueueConfig").ok();
        name.filter(|_| is_ours)
    }

    /// A check was observed which named `before`.
    pub(super) fn note_check(&mut self, check: &str, before: Option<&str>) {
        if self.config_of_check(check) != before {
            self.statuses.changes.checks.insert(check.into());
        }
    }

    /// The condition of a worker; `None` without a MultiKueueCluster.
    pub(super) fn active_status_of(&self, cluster: &str) -> Option<&'static str> {
        self.clusters.get(cluster).map(|one| active_status(one.object()))
    }

    /// A MultiKueueCluster was observed which had this condition before.
    pub(super) fn note_status(&mut self, cluster: &str, before: Option<&'static str>) {
        if self.active_status_of(cluster) != before {
            self.statuses.changes.clusters.insert(cluster.into());
        }
    }

    /// Measures the conditions of workers that are others than before.
    pub(crate) fn measure_statuses(&mut self, fleet: &Fleet) -> Vec<Measurement> {
        let due = self.due_statuses(fleet);
        self.statuses.changes = StatusChanges::default();
        let mut measured = Vec::new();
        for (queue, scope) in due {
            let with_status = |name: Box<str>| {
                let status = self.active_status_of(&name);
                (name, status)
            };
            let now = match scope {
                StatusScope::All => self.statuses_for(&queue, fleet),
                StatusScope::Of(clusters) => clusters.into_iter().map(with_status).collect(),
            };
            let shown =
                |(cluster, status): (Box<str>, _)| self.statuses.show(&queue, &cluster, status);
            measured.extend(now.into_iter().filter_map(shown));
        }
        measured
    }

    /// What the changes since the last measurement concern, by ClusterQueue.
    pub(crate) fn due_statuses(&self, fleet: &Fleet) -> Vec<(Box<str>, StatusScope)> {
        let WorkerStatuses { checks, changes, .. } = &self.statuses;
        let all = changes.queues.iter().map(|queue| (queue.clone(), StatusScope::All));
        let mut due: Vec<_> = all.collect();
        // A ClusterQueue of its own does not concern the others.
        if changes.checks.is_empty() && changes.configs.is_empty() && changes.clusters.is_empty() {
            return due;
        }
        let leading: Vec<(&str, BTreeSet<&str>)> =
            changes.clusters.iter().map(|one| (&**one, self.configs_with(one, fleet))).collect();
        let others = checks.iter().filter(|(queue, _)| !changes.queues.contains(*queue));
        due.extend(others.filter_map(|(queue, checks)| {
            Some((queue.clone(), self.changed_scope(checks, &leading)?))
        }));
        due
    }

    /// What has changed for a ClusterQueue with these checks. `leading` has the MultiKueueConfigs of the workers that have changed.
    fn changed_scope(
        &self,
        checks: &[Box<str>],
        leading: &[(&str, BTreeSet<&str>)],
    ) -> Option<StatusScope> {
        let changes = &self.statuses.changes;
        let configs: Vec<&str> =
            checks.iter().filter_map(|check| self.config_of_check(check)).collect();
        let is_changed = checks.iter().any(|check| changes.checks.contains(check))
            || configs.iter().any(|config| changes.configs.contains(*config));
        if is_changed {
            return Some(StatusScope::All);
        }
        let leads = |to: &BTreeSet<&str>| configs.iter().any(|config| to.contains(config));
        let some = leading.iter().filter(|(_, to)| leads(to)).map(|(one, _)| (*one).into());
        let some: Vec<Box<str>> = some.collect();
        (!some.is_empty()).then_some(StatusScope::Of(some))
    }

    fn configs_with(&self, cluster: &str, fleet: &Fleet) -> BTreeSet<&str> {
        let id = fleet.find(cluster);
        let has = |config: &&str| id.is_some_and(|id| fleet.is_configured(config, id));
        self.configs.keys().map(|config| &**config).filter(has).collect()
    }

    /// The conditions of the workers that the checks of a ClusterQueue lead to, as far as their MultiKueueClusters exist; `None` for those
    /// that they led to before.
    fn statuses_for(&self, queue: &str, fleet: &Fleet) -> Vec<(Box<str>, Option<&'static str>)> {
        let checks = self.statuses.checks.get(queue).into_iter().flatten();
        let configs = checks.filter_map(|check| self.config_of_check(check));
        let clusters = configs.flat_map(|config| fleet.clusters_of(config));
        let status = |name: &str| Some((name.into(), self.active_status_of(name)?));
        let now: StatusesOfQueue = clusters.filter_map(status).collect();
        let gone = self.statuses.gone(queue, &now).into_iter().map(|name| (name, None));
        gone.chain(now.into_iter().map(|(name, active)| (name, Some(active)))).collect()
    }
}

/// `Unknown` without the condition.
fn active_status(cluster: &MultiKueueCluster) -> &'static str {
    match find(&cluster.status.conditions, ACTIVE).map(|one| one.status.as_str()) {
        Some("True") => "True",
        Some("False") => "False",
        _ => "Unknown",
    }
}

fn measured(queue: &str, cluster: &str, active: Option<&'static str>) -> Measurement {
    let labels = WorkerLabels { cluster_queue: queue.to_owned(), cluster: cluster.to_owned() };
    Measurement::Worker(WorkerMeasurement::Status { labels, active })
}
