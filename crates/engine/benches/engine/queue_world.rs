//! Worlds to measure: queues with or without a cohort, and Workloads. Nothing is random; names, uids and times look
//! like those of a real cluster.

use engine::ids::{CohortId, FlavorId, LocalQueueId, NamespaceId, QueueId, ResourceId, WorkloadId};
use engine::node_selection::NodeSelection;
use engine::spec::{
    ClusterQueueInfo, CohortInfo, FairSharingWeight, FlavorQuotaSpec, FlavorSpec, FungibilitySpec,
    LocalQueueInfo, NamespaceSelector, PodSetSpec, PreemptionPolicy, PreemptionSpec,
    QueueEligibility, QueueingStrategy, QuotaSpec, ResourceGroupSpec, WorkloadInfo,
};
use engine::{Amount, Engine, EngineSettings, Event, Time};

/// Properties of all queues of a world.
#[derive(Debug, Clone)]
pub(crate) struct House {
    pub(crate) settings: EngineSettings,
    pub(crate) queues: usize,
    /// Quota of each queue.
    pub(crate) nominal: i64,
    /// Bound on what each may borrow and lend.
    pub(crate) shared: Option<i64>,
    /// Quota of the cohort that all are in, if they are in one.
    pub(crate) cohort: Option<i64>,
    /// Levels of cohorts, each with [`FAN_OUT`] below; the quota is that of the topmost.
    pub(crate) levels: u32,
    pub(crate) within: PreemptionPolicy,
}

/// Children of a cohort that has cohorts below.
pub(crate) const FAN_OUT: usize = 10;

/// A world and the ids that are needed to go on with it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    house: House,
    queues: Vec<QueueId>,
    lines: Vec<LocalQueueId>,
    /// The lowest cohorts.
    cohorts: Vec<CohortId>,
    namespace: NamespaceId,
    resource: ResourceId,
    flavor: FlavorId,
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
        let mut world = World {
            engine,
            house: self.clone(),
            queues: Vec::new(),
            lines: Vec::new(),
            cohorts: Vec::new(),
            namespace,
            resource,
            flavor,
            submitted: 0,
        };
        if let Some(quota) = self.cohort {
            world.add_cohorts(quota);
        }
        (0..self.queues).for_each(|index| world.add_queue(index));
        world
    }
}

impl World {
    fn add_cohorts(&mut self, quota: i64) {
        for level in 0..self.house.levels {
            let parents = std::mem::take(&mut self.cohorts);
            for index in 0..FAN_OUT.pow(level) {
                let id = self.engine.names_mut().cohorts.intern(&format!("cohort-{level}-{index}"));
                let parent = parents.get(index / FAN_OUT).copied();
                let quota = if parent.is_some() { 0 } else { quota };
                let groups = vec![self.group(quota, None)];
                let spec = CohortInfo { parent, groups, ..CohortInfo::default() };
                self.engine.apply(Event::Cohort(id, Some(spec)));
                self.cohorts.push(id);
            }
        }
    }

    fn add_queue(&mut self, index: usize) {
        let name = format!("queue-{index}");
        let queue = self.engine.names_mut().queues.intern(&name);
        self.queues.push(queue);
        self.set_quota(index, self.house.nominal);
        let line = self.engine.names_mut().local_queues.intern(&name);
        let local = LocalQueueInfo { queue, stopped: false, weight: FairSharingWeight::default() };
        self.engine.apply(Event::LocalQueue(line, Some(local)));
        self.lines.push(line);
    }

    /// Replaces a queue's quota.
    pub(crate) fn set_quota(&mut self, index: usize, nominal: i64) {
        let per_cohort = self.house.queues.div_ceil(self.cohorts.len().max(1));
        let spec = ClusterQueueInfo {
            cohort: self.cohorts.get(index / per_cohort).copied(),
            groups: vec![self.group(nominal, self.house.shared.map(Amount))],
            strategy: QueueingStrategy::BestEffortFifo,
            preemption: PreemptionSpec {
                within_cluster_queue: self.house.within,
                ..PreemptionSpec::default()
            },
            flavor_fungibility: FungibilitySpec::default(),
            weight: FairSharingWeight::default(),
            stopped: false,
            ready: true,
            namespaces: NamespaceSelector::All(Vec::new()),
            checks: Vec::new(),
            generation: 0,
            last_acceptable_flavor: None,
            admission_fair_sharing: false,
        };
        self.engine.apply(Event::ClusterQueue(self.queues[index], Some(Box::new(spec))));
    }

    fn group(&self, nominal: i64, limit: Option<Amount>) -> ResourceGroupSpec {
        let quota = QuotaSpec {
            resource: self.resource,
            nominal: Amount(nominal),
            borrowing_limit: limit,
            lending_limit: limit,
        };
        let flavors = vec![FlavorQuotaSpec { flavor: self.flavor, resources: vec![quota] }];
        ResourceGroupSpec { resources: vec![self.resource], flavors }
    }

    /// A new Workload of one pod, younger than all before.
    pub(crate) fn submit(&mut self, queue: usize, request: i64, priority: i64) -> WorkloadId {
        self.submitted += 1;
        let number = self.submitted;
        let spec = WorkloadInfo {
            namespace: self.namespace,
            local_queue: Some(self.lines[queue]),
            uid: uid(number).into(),
            priority,
            queued_at: Time(i64::try_from(number).unwrap_or_default()),
            pod_sets: vec![PodSetSpec {
                name: "main".into(),
                count: 1,
                reclaimed: 0,
                min_count: None,
                requests: vec![(self.resource, Amount(request))],
                on_node: None,
                selection: NodeSelection::default(),
                preferred: Box::default(),
                topology: None,
                template: 0,
            }],
            eligibility: QueueEligibility::Eligible,
            invalid: None,
            preemption_gated: false,
            has_priority_class: false,
            allowed_flavors: None,
            variant_of: None,
            replaced_slice: None,
            elastic: false,
            checks: Vec::new(),
            admission: None,
        };
        let id = self.engine.names_mut().workloads.intern(&format!("team/job-train-{number:07}"));
        self.engine.apply(Event::Workload(id, Box::new(spec)));
        id
    }
}

/// A uid like those of an API server: 36 characters in no order.
fn uid(number: u64) -> String {
    let mixed = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let text = format!("{mixed:032x}");
    let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    parts.join("-")
}
