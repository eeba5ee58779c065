//! Queues, flavors and cohorts as they were observed, the status of queues, and the finalizers of queues and flavors.
//!
//! Inputs: observations, and Workload changes, which mark the ClusterQueues that count the Workload. Outputs: status
//! writes, and finalizers that are removed. The engine's view of the same objects belongs to the scheduler.
//!
//! | file | concept |
//! |---|---|
//! | `status` | pending and admitted counts and usage, written at most once per period |
//! | `cohorts` | the share of Cohorts |
//! | `managed_quota` | quota that follows workers |
//! | `finalizers` | `resource-in-use`, which keeps an object while something uses it |

mod cohorts;
mod finalizers;
mod managed_quota;
mod status;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crds::v1beta2::{
    AdmissionCheck, ClusterQueue, ClusterQueueSpec, Cohort, LocalQueue, ResourceFlavor, Topology,
    Workload,
};
use jiff::Timestamp;
use jobs::admitted_infos::FlavorsByName;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use runtime::{watch::Key, writer::WriteOutcome};

pub(crate) use self::managed_quota::{ManagedQuota, QuotaCondition};

use self::{finalizers::ProtectedObjects, status::StatusPass};
use super::{
    context::Context,
    measurement::{Measurement, QueuesOfWorkload},
    outbox::{Subject, Ticket, Tracked, after, upsert},
    quota_automation::HubQueue,
    scheduling::Scheduler,
    timers::{Agenda, NamesToEvaluate, Reevaluation},
    workloads::{StopPolicy, WorkloadChange},
};
use crate::control::{key_map::KeyMap, key_set::KeySet};

/// A queue, and when its status may be written again.
#[derive(Debug)]
pub(super) struct TrackedQueue<K> {
    tracked: Tracked<K>,
    not_before: Timestamp,
}

impl<K> TrackedQueue<K> {
    /// Until when its status is kept back; `None` if its period is over. A time that is further away than a period was set before the
    /// clock was set back.
    fn kept_back(&self, now: Timestamp, period: Duration) -> Option<Timestamp> {
        (now < self.not_before && self.not_before <= after(now, period)).then_some(self.not_before)
    }
}

impl<K: kube::Resource> From<Arc<K>> for TrackedQueue<K> {
    fn from(object: Arc<K>) -> Self {
        Self { tracked: Tracked::new(object), not_before: Timestamp::MIN }
    }
}

impl<K> AsMut<Tracked<K>> for TrackedQueue<K> {
    fn as_mut(&mut self) -> &mut Tracked<K> {
        &mut self.tracked
    }
}

/// The observed queues, flavors and cohorts, with their statuses.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// Specs of all flavors, for starting jobs.
    flavors: FlavorsByName,
    resource_flavors: KeyMap<Box<str>, Tracked<ResourceFlavor>>,
    cluster_queues: KeyMap<Box<str>, TrackedQueue<ClusterQueue>>,
    local_queues: KeyMap<Key, TrackedQueue<LocalQueue>>,
    cohorts: KeyMap<Box<str>, TrackedQueue<Cohort>>,
    checks: KeyMap<Box<str>, Tracked<AdmissionCheck>>,
    topologies: KeyMap<Box<str>, Tracked<Topology>>,
    /// LocalQueues by the ClusterQueue that they name.
    pointing: KeyMap<Box<str>, KeySet<Key>>,
    /// By ClusterQueue, if quotas follow workers.
    managed_quotas: KeyMap<Box<str>, ManagedQuota>,
    /// The least time between two writes of one queue's status.
    status_period: Duration,
}

impl Queues {
    /// Without objects. Of two writes of one queue's status the second waits at least for the period.
    pub(crate) fn new(status_period: Duration) -> Self {
        Self { status_period, ..Self::default() }
    }

    pub(crate) fn flavors(&self) -> &FlavorsByName {
        &self.flavors
    }

    /// Records a ResourceFlavor. Returns whether its spec changed, or it came or went.
    pub(crate) fn observe_flavor(
        &mut self,
        name: Box<str>,
        object: Option<Arc<ResourceFlavor>>,
    ) -> bool {
        let before = match &object {
            Some(object) => self.flavors.insert(name.to_string(), object.spec.clone()),
            None => self.flavors.remove(&*name),
        };
        let differs = before.as_ref() != object.as_deref().map(|object| &object.spec);
        upsert(&mut self.resource_flavors, name, object);
        differs
    }

    /// Whether a flavor is bound to other clusters than before. Asked before [`Self::observe_flavor`], which replaces what it
    /// compares with.
    pub(crate) fn is_rebound(&self, name: &str, object: Option<&ResourceFlavor>) -> bool {
        let before = self.resource_flavors.get(name).map(|known| &**known.object());
        let bound = |flavor: Option<&ResourceFlavor>| flavor.and_then(index::bound_clusters);
        bound(before) != bound(object)
    }

    /// Records a ClusterQueue. Returns whether its spec changed.
    pub(crate) fn observe_cluster_queue(
        &mut self,
        name: &str,
        object: Option<Arc<ClusterQueue>>,
        agenda: &mut Agenda,
    ) -> bool {
        // The generation counts changes of the spec. A status that the watch reports must not
        // evaluate every Workload.
        let known = self.cluster_queues.get(name);
        let before = known.map(|queue| spec_version(&**queue.tracked.object()));
        let after = object.as_deref().map(spec_version);
        if object.is_none() {
            self.managed_quotas.remove(name);
        }
        upsert(&mut self.cluster_queues, name.into(), object);
        agenda.now(Reevaluation::Queue(name.into()));
        before != after
    }

    /// Records a LocalQueue. Returns whether its spec changed.
    pub(crate) fn observe_local_queue(
        &mut self,
        key: &Key,
        object: Option<Arc<LocalQueue>>,
        agenda: &mut Agenda,
    ) -> bool {
        let known = self.local_queues.get(key);
        let before = known.map(|queue| spec_version(&**queue.tracked.object()));
        let after = object.as_deref().map(spec_version);
        // Before `upsert`: the ClusterQueue that it named is read from the known object.
        self.point(key, object.as_deref());
        match &object {
            Some(queue) if before == after => {
                agenda.now(Reevaluation::Queue(queue.spec.cluster_queue.as_str().into()));
            }
            // A LocalQueue that names another ClusterQueue counts in both.
            _ => agenda.now(Reevaluation::Queues),
        }
        upsert(&mut self.local_queues, key.clone(), object);
        before != after
    }

    /// Records a Cohort.
    pub(crate) fn observe_cohort(
        &mut self,
        name: &str,
        object: Option<Arc<Cohort>>,
        ctx: &mut Context,
    ) {
        let known = self.cohorts.get(name);
        let former = known.map(|known| known.tracked.object().spec.parent_name.clone());
        upsert(&mut self.cohorts, name.into(), object);
        // Without this the series of both would stay at their last values.
        let former = former.as_deref().filter(|parent| !parent.is_empty());
        for name in std::iter::once(name).chain(former) {
            if !cohorts::is_declared(name, &self.cohorts) {
                ctx.measurements.push(Measurement::CohortGone(name.to_owned()));
            }
        }
        ctx.agenda.now(Reevaluation::Cohorts);
    }

    /// Records an AdmissionCheck.
    pub(crate) fn observe_check(
        &mut self,
        name: &str,
        object: Option<Arc<AdmissionCheck>>,
        agenda: &mut Agenda,
    ) {
        // Most changes are statuses, and marking all queues counts every Workload again.
        if object.as_ref().is_some_and(|check| finalizers::concerns(&check.metadata)) {
            agenda.now(Reevaluation::Queues);
        }
        upsert(&mut self.checks, name.into(), object);
    }

    /// Records a Topology.
    pub(crate) fn observe_topology(
        &mut self,
        name: &str,
        object: Option<Arc<Topology>>,
        agenda: &mut Agenda,
    ) {
        if object.as_ref().is_some_and(|topology| finalizers::concerns(&topology.metadata)) {
            agenda.now(Reevaluation::Queues);
        }
        upsert(&mut self.topologies, name.into(), object);
    }

    /// Marks the queues that count a Workload, before and after the change.
    pub(crate) fn workload_changed(&self, change: &WorkloadChange, agenda: &mut Agenda) {
        for workload in change.before.iter().chain(&change.after) {
            self.mark(&change.key, workload, agenda);
        }
    }

    /// Marks the queues that count a Workload: the one where it is pending, and the one where it holds quota.
    pub(crate) fn mark(&self, key: &Key, workload: &Workload, agenda: &mut Agenda) {
        let queued = self.local_queue_of(key, workload).map(|queue| &queue.spec.cluster_queue);
        let admitted = workload.status.admission.as_ref().map(|one| &one.cluster_queue);
        let both = queued.into_iter().chain(admitted.filter(|one| Some(*one) != queued));
        both.for_each(|name| agenda.now(Reevaluation::Queue(name.as_str().into())));
    }

    /// The spec of a ClusterQueue.
    pub(crate) fn spec_of(&self, name: &str) -> Option<&ClusterQueueSpec> {
        self.cluster_queues.get(name).map(|queue| &queue.tracked.object().spec)
    }

    /// The ClusterQueues and their LocalQueues.
    pub(crate) fn hub_queues(&self) -> impl Iterator<Item = HubQueue<'_>> {
        self.cluster_queues.iter().map(|(name, queue)| {
            let local_queues = self.pointing.get(name).into_iter().flatten().collect();
            HubQueue { name, spec: &queue.tracked.object().spec, local_queues }
        })
    }

    /// Records what the quota of a ClusterQueue follows.
    pub(crate) fn set_managed_quota(
        &mut self,
        name: Box<str>,
        quota: ManagedQuota,
        agenda: &mut Agenda,
    ) {
        if self.managed_quotas.get(&name) != Some(&quota) {
            agenda.now(Reevaluation::Queue(name.clone()));
            self.managed_quotas.insert(name, quota);
        }
    }

    /// The queues that metrics count a Workload in.
    pub(crate) fn queues_of(&self, key: &Key, workload: &Workload) -> QueuesOfWorkload {
        let local_queue = self.local_queue_of(key, workload);
        let namespace = key.namespace.as_deref().unwrap_or_default();
        QueuesOfWorkload {
            cluster_queue: local_queue
                .map_or_else(String::new, |one| one.spec.cluster_queue.clone()),
            local_queue: (namespace.to_owned(), workload.spec.queue_name.clone()),
        }
    }

    /// The stop policy that counts for a Workload. One without quota counts with the queue that its LocalQueue names.
    pub(crate) fn stop_policy(&self, key: &Key, workload: &Workload) -> StopPolicy {
        let local_queue = self.local_queue_of(key, workload);
        let admitted = workload.status.admission.as_ref().map(|one| &one.cluster_queue);
        let name = admitted.or(local_queue.map(|queue| &queue.spec.cluster_queue));
        let cluster_queue = name.and_then(|name| self.cluster_queues.get(name.as_str()));
        let cluster_queue = cluster_queue.map(|queue| queue.tracked.object());
        // A queue that is being deleted waits for the end of its reservations.
        let stays = |queue: &ObjectMeta| queue.deletion_timestamp.is_none();
        let mut stop = StopPolicy::of(
            cluster_queue.and_then(|queue| queue.spec.stop_policy.as_deref()),
            local_queue.and_then(|queue| queue.spec.stop_policy.as_deref()),
        );
        if !cluster_queue.is_some_and(|queue| stays(&queue.metadata)) {
            stop = stop.without_cluster_queue();
        }
        if !local_queue.is_some_and(|queue| stays(&queue.metadata)) {
            stop = stop.without_local_queue();
        }
        stop
    }

    /// Writes the status of marked queues and of Cohorts, and the finalizers that follow.
    pub(crate) fn evaluate(&mut self, scheduler: &Scheduler, ctx: &mut Context) {
        let (marked, cohorts_changed) = (ctx.agenda.take_queues(), ctx.agenda.take_cohorts());
        if cohorts_changed || marked.is_some() {
            cohorts::write_status(&mut self.cohorts, scheduler, self.status_period, ctx);
        }
        let mut measured = BTreeSet::new();
        // The numbers of a Cohort without ClusterQueues change with configuration only.
        if cohorts_changed || marked.as_ref().is_some_and(|marked| marked.all) {
            measured.extend(self.cohorts.keys().map(ToString::to_string));
            measured.extend(cohorts::parents(&self.cohorts).map(str::to_owned));
        }
        if let Some(marked) = marked {
            self.evaluate_marked(marked, &mut measured, scheduler, ctx);
        }
        cohorts::measure(&measured, &self.cohorts, scheduler, ctx);
    }

    /// Adds to `measured` the Cohorts above the ClusterQueues that it counts.
    fn evaluate_marked(
        &mut self,
        marked: NamesToEvaluate,
        measured: &mut BTreeSet<String>,
        scheduler: &Scheduler,
        ctx: &mut Context,
    ) {
        let protected = ProtectedObjects {
            cluster_queues: &self.cluster_queues,
            flavors: &self.resource_flavors,
            checks: &self.checks,
            topologies: &self.topologies,
        };
        protected.evaluate(scheduler, ctx);
        // LocalQueues may name a ClusterQueue that does not exist; their status says so.
        let names = if marked.all {
            self.cluster_queues.keys().chain(self.pointing.keys()).cloned().collect()
        } else {
            marked.names
        };
        for name in names {
            let local_queues = self.pointing.get(&name);
            let quota = self.managed_quotas.get(&name);
            if let (Some(quota), Some(queue)) = (quota, self.cluster_queues.get(&name)) {
                quota.write(&name, queue, ctx);
            }
            let period = self.status_period;
            StatusPass { name: &name, scheduler, ctx, period, cohorts: measured, quota }.run(
                self.cluster_queues.get_mut(&name),
                local_queues.into_iter().flatten(),
                &mut self.local_queues,
            );
        }
    }

    /// Takes the answer to a write of a queue or flavor.
    pub(crate) fn answered(&mut self, ticket: &Ticket, answer: WriteOutcome) {
        let WriteOutcome::Done(value) = answer else {
            return;
        };
        let key = &ticket.target.key;
        match ticket.target.subject {
            Subject::ClusterQueue => {
                let queue = self.cluster_queues.get_mut(&*key.name);
                queue.is_some_and(|queue| queue.tracked.observe_answer(&value))
            }
            Subject::LocalQueue => {
                let queue = self.local_queues.get_mut(key);
                queue.is_some_and(|queue| queue.tracked.observe_answer(&value))
            }
            Subject::Cohort => {
                let cohort = self.cohorts.get_mut(&*key.name);
                cohort.is_some_and(|cohort| cohort.tracked.observe_answer(&value))
            }
            Subject::AdmissionCheck => {
                let check = self.checks.get_mut(&*key.name);
                check.is_some_and(|check| check.observe_answer(&value))
            }
            Subject::Topology => {
                let topology = self.topologies.get_mut(&*key.name);
                topology.is_some_and(|topology| topology.observe_answer(&value))
            }
            Subject::ResourceFlavor => {
                let flavor = self.resource_flavors.get_mut(&*key.name);
                flavor.is_some_and(|flavor| flavor.observe_answer(&value))
            }
            _ => false,
        };
    }

    fn local_queue_of(&self, key: &Key, workload: &Workload) -> Option<&LocalQueue> {
        let name = workload.spec.queue_name.as_str().into();
        let local = Key { namespace: key.namespace.clone(), name };
        self.local_queues.get(&local).map(|queue| &**queue.tracked.object())
    }

    /// Moves a LocalQueue to the ClusterQueue that it names.
    fn point(&mut self, key: &Key, object: Option<&LocalQueue>) {
        if let Some(queue) = self.local_queues.get(key) {
            let name = queue.tracked.object().spec.cluster_queue.as_str();
            // A name that no LocalQueue has any more would be evaluated for ever.
            self.pointing.remove_member(name, key);
        }
        if let Some(object) = object {
            let name = object.spec.cluster_queue.as_str().into();
            self.pointing.entry(name).or_default().insert(key.clone());
        }
    }
}

/// What changes with the spec of a queue. A queue that was made again between two lists starts with the same generation.
fn spec_version<K: kube::Resource>(queue: &K) -> (Option<String>, Option<i64>) {
    (queue.meta().uid.clone(), queue.meta().generation)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_the_spec_of_a_flavor_changes_it() {
        let mut queues = Queues::default();
        let mut observe = |flavor: Option<Value>| {
            let flavor = flavor.map(|one| serde_json::from_value(one).expect("a flavor decodes"));
            queues.observe_flavor("f".into(), flavor.map(Arc::new))
        };
        let flavor = |version: &str, labels: Value| {
            json!({
                "metadata": {"name": "f", "resourceVersion": version},
                "spec": {"nodeLabels": labels},
            })
        };
        assert!(observe(Some(flavor("1", json!({})))), "it came");
        assert!(
            !observe(Some(flavor("2", json!({})))),
            "its metadata changed, or it was listed again"
        );
        assert!(observe(Some(flavor("3", json!({"pool": "a"})))));
        assert!(observe(None), "it went");
        assert!(!observe(None));
    }
}
