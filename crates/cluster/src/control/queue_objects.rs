//! Queues and what they refer to: each object goes to the machine of queues and to the index of the scheduler.

use std::sync::Arc;

use crds::v1beta2::{AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology};
use k8s_openapi::api::core::v1::Namespace;
use runtime::watch::Key;

use super::{core::Core, queues::Queues, timers::Reevaluation};

/// The machines that observed objects of queues go to. `None` in place of an object means that it is gone.
pub(super) struct QueueObjects<'a> {
    pub(super) queues: &'a mut Queues,
    pub(super) core: &'a mut Core,
}

impl QueueObjects<'_> {
    /// Records the labels of a Namespace, which ClusterQueues select.
    pub(super) fn namespace(&mut self, key: &Key, object: Option<&Namespace>) {
        let labels = object.map(|one| one.metadata.labels.clone().unwrap_or_default());
        self.core.scheduler.update(&mut self.core.ctx.agenda, |index, names| {
            index.namespace(names, &key.name, labels.as_ref())
        });
    }

    /// Records an AdmissionCheck as ClusterQueues read it. [`Queues::observe_check`] takes the object itself.
    pub(super) fn admission_check(&mut self, key: &Key, newest: Option<&AdmissionCheck>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core
            .scheduler
            .update(agenda, |index, names| index.admission_check(names, &key.name, newest));
        self.core.evaluate_all_workloads();
    }

    /// Returns whether the spec of the flavor changed, or it came or went.
    pub(super) fn resource_flavor(
        &mut self,
        key: &Key,
        object: Option<Arc<ResourceFlavor>>,
    ) -> bool {
        let agenda = &mut self.core.ctx.agenda;
        self.core.scheduler.update(agenda, |index, names| {
            index.resource_flavor(names, &key.name, object.as_deref())
        });
        // A ClusterQueue may have waited for the flavor, and a deleted flavor may wait for its finalizer.
        agenda.now(Reevaluation::Queues);
        // Workers report their nodes by the labels that flavors name (docs/reference/dispatch.md §2).
        agenda.now(Reevaluation::LabelKeys);
        // A race may lose clusters, and get others.
        if self.queues.is_rebound(&key.name, object.as_deref()) {
            self.core.evaluate_undecided_workloads();
        }
        let differs = self.queues.observe_flavor((*key.name).into(), object);
        self.core.evaluate_all_jobs();
        differs
    }

    pub(super) fn cohort(&mut self, key: &Key, object: Option<Arc<Cohort>>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core
            .scheduler
            .update(agenda, |index, names| index.cohort(names, &key.name, object.as_deref()));
        self.queues.observe_cohort(&key.name, object, &mut self.core.ctx);
    }

    pub(super) fn topology(&mut self, key: &Key, object: Option<Arc<Topology>>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core
            .scheduler
            .update(agenda, |index, names| index.topology(names, &key.name, object.as_deref()));
        self.queues.observe_topology(&key.name, object, agenda);
    }

    /// Records a ClusterQueue.
    pub(super) fn cluster_queue(&mut self, key: &Key, object: Option<Arc<ClusterQueue>>) {
        let agenda = &mut self.core.ctx.agenda;
        self.core.scheduler.update(agenda, |index, names| {
            index.cluster_queue(names, &key.name, object.as_deref())
        });
        if self.queues.observe_cluster_queue(&key.name, object, agenda) {
            self.core.scheduler.sample_usage();
            self.core.evaluate_all_workloads();
        }
    }

    pub(super) fn local_queue(&mut self, key: &Key, object: Option<Arc<LocalQueue>>) {
        let agenda = &mut self.core.ctx.agenda;
        let namespace = key.namespace.clone().unwrap_or_default();
        // One list may show the new object, and none that there was no object in between.
        let gone = self.core.scheduler.is_another_queue(key, object.as_deref()).then_some(None);
        for queue in gone.into_iter().chain([object.as_deref()]) {
            self.core.scheduler.update(agenda, |index, names| {
                index.local_queue(names, &namespace, &key.name, queue)
            });
        }
        self.core.scheduler.observe_usage(key, object.as_deref(), agenda);
        if self.queues.observe_local_queue(key, object, agenda) {
            self.core.scheduler.sample_usage();
            self.core.evaluate_all_workloads();
        }
    }
}
