//! Worlds to measure: queues of one cohort or of none, and as many Workloads as wanted. Nothing is random; names, uids
//! and times look like those of a real cluster.

use engine::flavors::matching::Selection;
use engine::ids::{LocalQueueId, NamespaceId, ResourceId, WorkloadId};
use engine::spec::{
    ClusterQueueSpec, CohortSpec, FlavorQuotas, FlavorSpec, Fungibility, Hold, LocalQueueSpec,
    NamespaceSelector, PodSetSpec, Preemption, PreemptionPolicy, ResourceGroup, ResourceQuota,
    Strategy, Weight, WorkloadSpec,
};
use engine::{Amount, Engine, Event, Settings, Time};

/// What all queues of a world have in common.
#[derive(Debug, Clone)]
pub(crate) struct House {
    pub(crate) settings: Settings,
    pub(crate) queues: usize,
    /// Quota of each queue.
    pub(crate) nominal: i64,
    /// Bound on what each may borrow and lend.
    pub(crate) shared: Option<i64>,
    /// Quota of the cohort that all are in, if they are in one.
    pub(crate) cohort: Option<i64>,
    pub(crate) within: PreemptionPolicy,
}

/// A world and the ids that are needed to go on with it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    lines: Vec<LocalQueueId>,
    namespace: NamespaceId,
    resource: ResourceId,
    submitted: u64,
}

impl House {
    pub(crate) fn build(&self) -> World {
        let mut engine = Engine::new(self.settings.clone());
        let namespace = engine.names_mut().namespaces.intern("team");
        engine.apply(Event::Namespace(namespace, Some(Vec::new())));
        let flavor = engine.names_mut().flavors.intern("default");
        engine.apply(Event::Flavor(flavor, Some(FlavorSpec::default())));
        let resource = engine.names_mut().resources.intern("cpu");
        let limit = self.shared.map(Amount);
        let group = |nominal: i64, limit: Option<Amount>| ResourceGroup {
            resources: vec![resource],
            flavors: vec![FlavorQuotas {
                flavor,
                resources: vec![ResourceQuota {
                    resource,
                    nominal: Amount(nominal),
                    borrowing_limit: limit,
                    lending_limit: limit,
                }],
            }],
        };
        let cohort = self.cohort.map(|quota| {
            let id = engine.names_mut().cohorts.intern("all");
            let spec = CohortSpec { groups: vec![group(quota, None)], ..CohortSpec::default() };
            engine.apply(Event::Cohort(id, Some(spec)));
            id
        });
        let lines = (0..self.queues).map(|index| {
            let name = format!("queue-{index}");
            let spec = ClusterQueueSpec {
                cohort,
                groups: vec![group(self.nominal, limit)],
                strategy: Strategy::BestEffortFifo,
                preemption: Preemption { within_queue: self.within, ..Preemption::default() },
                fungibility: Fungibility::default(),
                weight: Weight::default(),
                stopped: false,
                ready: true,
                namespaces: NamespaceSelector::All(Vec::new()),
                checks: Vec::new(),
                generation: 0,
                last_acceptable_flavor: None,
                usage_based: false,
            };
            let queue = engine.names_mut().queues.intern(&name);
            engine.apply(Event::ClusterQueue(queue, Some(Box::new(spec))));
            let line = engine.names_mut().local_queues.intern(&name);
            let weight = Weight::default();
            let local = LocalQueueSpec { queue, stopped: false, weight };
            engine.apply(Event::LocalQueue(line, Some(local)));
            line
        });
        let lines = lines.collect();
        World { engine, lines, namespace, resource, submitted: 0 }
    }
}

impl World {
    /// A new Workload of one pod, younger than all before.
    pub(crate) fn submit(&mut self, queue: usize, request: i64, priority: i64) -> WorkloadId {
        self.submitted += 1;
        let number = self.submitted;
        let spec = WorkloadSpec {
            namespace: self.namespace,
            local_queue: Some(self.lines[queue]),
            uid: uid(number).into(),
            priority,
            queued_at: Time(i64::try_from(number).unwrap_or_default()),
            pod_sets: vec![PodSetSpec {
                name: "main".into(),
                count: 1,
                min_count: None,
                requests: vec![(self.resource, Amount(request))],
                selection: Selection::default(),
                preferred: Box::default(),
                topology: None,
                template: 0,
            }],
            hold: Hold::None,
            invalid: None,
            gated: false,
            priority_of_class: false,
            allowed_flavors: None,
            variant_of: None,
            replaces: None,
            checks: Vec::new(),
            admission: None,
        };
        let id = self.engine.names_mut().workloads.intern(&format!("team/job-train-{number:07}"));
        self.engine.apply(Event::Workload(id, Box::new(spec)));
        id
    }
}

/// An uid as an API server makes them: 36 letters without order.
fn uid(number: u64) -> String {
    let mixed = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let text = format!("{mixed:032x}");
    let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    parts.join("-")
}
