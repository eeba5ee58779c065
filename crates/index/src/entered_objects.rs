//! Objects that are entered into the index, one method per kind; Workloads apart ([`crate::workload`]).

use std::collections::BTreeMap;

use crds::v1beta2::{AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology};
use engine::{Amount, Event, Names};
use k8s_openapi::api::{core::v1::LimitRange, node::v1::RuntimeClass};

use crate::agent_mode_queue::agent_mode_quota;
use crate::index::Index;
use crate::indexed_objects::IndexedClusterQueue;
use crate::namespace::AffectedWorkloads;
use crate::node::{NodeWithUsage, node_event};
use crate::resource_groups::cohort_event;
use crate::selectors;

impl Index {
    /// Enters a namespace.
    pub fn namespace(
        &mut self,
        names: &mut Names,
        name: &str,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Vec<Event> {
        vec![Event::Namespace(names.namespaces.intern(name), labels.map(selectors::pairs))]
    }

    /// Enters a LimitRange.
    pub fn limit_range(
        &mut self,
        namespace: &str,
        name: &str,
        range: Option<&LimitRange>,
    ) -> AffectedWorkloads {
        self.pod_defaults.limit_range(namespace, name, range)
    }

    /// Enters a RuntimeClass.
    pub fn runtime_class(&mut self, name: &str, class: Option<&RuntimeClass>) -> AffectedWorkloads {
        self.pod_defaults.runtime_class(name, class)
    }

    /// Enters a ResourceFlavor.
    pub fn resource_flavor(
        &mut self,
        names: &mut Names,
        name: &str,
        flavor: Option<&ResourceFlavor>,
    ) -> Vec<Event> {
        let with_topology = self.config.topology_aware_scheduling;
        vec![self.flavors.resource_flavor(names, (name, flavor), with_topology)]
    }

    /// Enters a Topology.
    pub fn topology(
        &mut self,
        names: &mut Names,
        name: &str,
        topology: Option<&Topology>,
    ) -> Vec<Event> {
        vec![self.flavors.topology(names, name, topology)]
    }

    /// Enters a Cohort.
    pub fn cohort(&mut self, names: &mut Names, name: &str, cohort: Option<&Cohort>) -> Vec<Event> {
        vec![cohort_event(names, name, cohort)]
    }

    /// Enters a ClusterQueue.
    pub fn cluster_queue(
        &mut self,
        names: &mut Names,
        name: &str,
        queue: Option<&ClusterQueue>,
    ) -> Vec<Event> {
        let (id, old) = self.queues.enter(names, name, queue);
        let Some(now) = self.queues.get(name) else {
            return vec![Event::ClusterQueue(id, None)];
        };
        // Uncovered resources do not count, so its pending Workloads have other requests now.
        let covers_others = old.as_ref().is_none_or(|old| old.covered != now.covered);
        // Its pending Workloads leave their queue for variants now.
        let has_policy = |queue: &IndexedClusterQueue| queue.concurrent_admission.is_some();
        let makes_variants = has_policy(now) && !old.as_ref().is_some_and(has_policy);
        if covers_others && self.config.ignore_uncovered_resources
            || makes_variants && self.config.concurrent_admission
        {
            self.reenter.insert(name.to_owned());
        }
        // Read after the ClusterQueue is stored, because readiness depends on its bindings.
        let ready = self.is_ready(name);
        self.queues.set_ready(name, ready);
        let spec = self.queues.get(name).map(|queue| Box::new(queue.spec.clone()));
        vec![Event::ClusterQueue(id, spec)]
    }

    /// Enters a LocalQueue. One that is being deleted takes no Workload any more.
    pub fn local_queue(
        &mut self,
        names: &mut Names,
        namespace: &str,
        name: &str,
        queue: Option<&LocalQueue>,
    ) -> Vec<Event> {
        let (event, moved) = self.local_queues.enter(names, (namespace, name), queue);
        // Another ClusterQueue covers other resources, so the requests of its Workloads change. In a ClusterQueue with variants they
        // leave their queue.
        let differs = self.config.ignore_uncovered_resources || self.config.concurrent_admission;
        if moved && differs {
            self.reenter.extend(queue.map(|queue| queue.spec.cluster_queue.clone()));
        }
        vec![event]
    }

    /// Enters an AdmissionCheck. Returns events for the check and for each ClusterQueue that becomes ready or unready by it.
    pub fn admission_check(
        &mut self,
        names: &mut Names,
        name: &str,
        check: Option<&AdmissionCheck>,
    ) -> Vec<Event> {
        let (news, other_controller) = self.checks.enter(names, name, check);
        let using = self.queues.using(name);
        // Whether a queue dispatches to workers, and so makes no variants, depends on the controllers of its checks.
        let makes_variants = |queue: &&String| {
            let queue = self.queues.get(queue);
            queue.is_some_and(|queue| queue.concurrent_admission.is_some())
        };
        if other_controller {
            self.reenter.extend(using.iter().filter(makes_variants).cloned());
        }
        // Readiness also depends on controllers, which the engine does not see.
        let queues = using.iter().filter_map(|queue| {
            let ready = self.is_ready(queue);
            let spec = self.queues.set_ready(queue, ready)?;
            Some(Event::ClusterQueue(names.queues.intern(queue), Some(Box::new(spec.clone()))))
        });
        news.into_iter().chain(queues).collect()
    }

    /// Enters a Node; `None` if it is gone.
    pub fn node(
        &self,
        names: &mut Names,
        name: &str,
        node: Option<&NodeWithUsage<'_>>,
    ) -> Vec<Event> {
        vec![node_event(names, name, node)]
    }

    /// Sets the nominal quota of the internal queue: one amount per resource of the cluster.
    pub fn agent_mode_quota(&mut self, names: &mut Names, totals: &[(&str, Amount)]) -> Vec<Event> {
        agent_mode_quota(names, totals)
    }
}
