//! The conditions `Active` of workers, for each ClusterQueue that dispatches to them, as metrics show them
//! (docs/reference/multikueue.md §1.9).

use std::collections::BTreeMap;

use crds::{
    meta::find,
    names::{MULTI_KUEUE_CONTROLLER, conditions::ACTIVE},
    v1beta2::{ClusterQueueSpec, MultiKueueCluster},
};
use provisioning::active::parameters_name;

use super::FleetRegistry;
use crate::control::measurement::{Measurement, WorkerLabels};

/// What was measured last, by ClusterQueue and worker.
#[derive(Debug, Default)]
pub(super) struct WorkerStatuses {
    shown: StatusesByQueue,
    /// Something that they depend on has changed.
    changed: bool,
}

type StatusesByQueue = BTreeMap<Box<str>, BTreeMap<Box<str>, &'static str>>;

impl WorkerStatuses {
    pub(super) fn note_change(&mut self) {
        self.changed = true;
    }

    /// Takes over what is the case now. Returns what is different.
    fn update(&mut self, now: StatusesByQueue) -> Vec<Measurement> {
        let before = std::mem::replace(&mut self.shown, now);
        let gone = pairs(&before).filter(|(at, _)| status_of(&self.shown, *at).is_none());
        let gone = gone.map(|(at, _)| measured(at, None));
        let other = pairs(&self.shown)
            .filter(|(at, active)| status_of(&before, *at) != Some(*active))
            .map(|(at, active)| measured(at, Some(active)));
        gone.chain(other).collect()
    }
}

impl FleetRegistry {
    /// The spec of a ClusterQueue has changed, or the ClusterQueue is gone.
    pub(crate) fn cluster_queue_changed(&mut self) {
        self.statuses.note_change();
    }

    /// Measures the conditions of workers that are others than before.
    pub(crate) fn measure_statuses<'q>(
        &mut self,
        queues: impl Iterator<Item = (&'q str, &'q ClusterQueueSpec)>,
    ) -> Vec<Measurement> {
        if !std::mem::take(&mut self.statuses.changed) {
            return Vec::new();
        }
        let now = queues.map(|(name, spec)| (name.into(), self.statuses_for(spec))).collect();
        self.statuses.update(now)
    }

    /// The conditions of the workers that the checks of a ClusterQueue lead to, as far as their MultiKueueClusters exist.
    fn statuses_for(&self, spec: &ClusterQueueSpec) -> BTreeMap<Box<str>, &'static str> {
        let rules = spec.admission_checks_strategy.iter().flat_map(|one| &one.admission_checks);
        let checks =
            rules.filter_map(|rule| Some(&self.checks.get(rule.name.as_str())?.object().spec));
        let ours = checks.filter(|check| check.controller_name == MULTI_KUEUE_CONTROLLER);
        let configs = ours.filter_map(|check| {
            parameters_name(check.parameters.as_ref(), "MultiKueueConfig").ok()
        });
        let clusters = configs.flat_map(|config| self.fleet.clusters_of(config));
        let status = |name: &str| {
            let object = self.clusters.get(name)?.object();
            Some((name.into(), active_status(object)))
        };
        clusters.filter_map(status).collect()
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

fn pairs(all: &StatusesByQueue) -> impl Iterator<Item = ((&str, &str), &'static str)> {
    all.iter().flat_map(|(queue, clusters)| {
        clusters.iter().map(move |(cluster, active)| ((&**queue, &**cluster), *active))
    })
}

fn status_of(all: &StatusesByQueue, (queue, cluster): (&str, &str)) -> Option<&'static str> {
    all.get(queue)?.get(cluster).copied()
}

fn measured((queue, cluster): (&str, &str), active: Option<&'static str>) -> Measurement {
    let labels = WorkerLabels { cluster_queue: queue.to_owned(), cluster: cluster.to_owned() };
    Measurement::WorkerStatus { labels, active }
}
