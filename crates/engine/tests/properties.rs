//! What holds whatever happens: usage is the sum of what is held, nobody is lost or in two places, the same events give
//! the same decisions.

use std::collections::BTreeMap;

use engine::flavors::matching::Selection;
use engine::ids::{FlavorId, QueueId, ResourceId, WorkloadId};
use engine::spec::{
    ClusterQueueSpec, FlavorQuotas, FlavorSpec, Fungibility, Hold, LocalQueueSpec,
    NamespaceSelector, PodSetSpec, Preemption, PreemptionPolicy, ResourceGroup, ResourceQuota,
    Strategy as Queueing, Weight, WorkloadSpec,
};
use engine::{Amount, Anywhere, Engine, Event, Outcome, Settings, Time};
use proptest::prelude::*;

const QUEUES: usize = 3;
const WORKLOADS: usize = 12;

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Submit { workload: usize, queue: usize, amount: i64, priority: i64 },
    Finish { workload: usize },
    Release,
    Cycle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..WORKLOADS, 0..QUEUES, 1..6_i64, 0..3_i64).prop_map(
            |(workload, queue, amount, priority)| Step::Submit {
                workload,
                queue,
                amount,
                priority
            }
        ),
        (0..WORKLOADS).prop_map(|workload| Step::Finish { workload }),
        Just(Step::Release),
        Just(Step::Cycle),
    ]
}

/// An engine and what a caller knows about it.
struct World {
    engine: Engine,
    known: BTreeMap<usize, usize>,
    clock: i64,
    log: Vec<String>,
}

impl World {
    fn new() -> Self {
        let mut engine = Engine::new(Settings::default());
        let namespace = engine.names_mut().namespaces.intern("ns");
        let flavor = engine.names_mut().flavors.intern("spot");
        engine.apply(Event::Namespace(namespace, Some(Vec::new())));
        engine.apply(Event::Flavor(flavor, Some(FlavorSpec::default())));
        for index in 0..QUEUES {
            let name = format!("queue-{index}");
            let spec = queue(&mut engine, flavor, index);
            let id = engine.names_mut().queues.intern(&name);
            engine.apply(Event::ClusterQueue(id, Some(Box::new(spec))));
            let local = engine.names_mut().local_queues.intern(&name);
            let spec = LocalQueueSpec { queue: id, stopped: false };
            engine.apply(Event::LocalQueue(local, Some(spec)));
        }
        Self { engine, known: BTreeMap::new(), clock: 0, log: Vec::new() }
    }

    fn id(&mut self, workload: usize) -> WorkloadId {
        self.engine.names_mut().workloads.intern(&format!("workload-{workload}"))
    }

    fn play(&mut self, step: &Step) {
        self.clock += 1;
        match *step {
            Step::Submit { workload, queue, amount, priority } => {
                if self.known.contains_key(&workload) {
                    return;
                }
                self.known.insert(workload, queue);
                let id = self.id(workload);
                let spec = self.workload(workload, queue, amount, priority);
                self.engine.apply(Event::Workload(id, Box::new(spec)));
            }
            Step::Finish { workload } => {
                if self.known.remove(&workload).is_some() {
                    let id = self.id(workload);
                    self.engine.apply(Event::WorkloadGone(id));
                }
            }
            Step::Release => {
                for workload in self.known.clone().into_keys() {
                    let id = self.id(workload);
                    if self.engine.is_evicted(id) {
                        let queued_at = Time(self.clock);
                        let hold = Hold::None;
                        self.engine.apply(Event::Released { workload: id, hold, queued_at });
                    }
                }
            }
            Step::Cycle => {
                let entries = self.engine.cycle(Time(self.clock), &mut Anywhere).to_vec();
                for entry in entries {
                    let name = self.engine.names().workloads.name(entry.workload);
                    self.log.push(format!("{name} {:?} {:?}", entry.outcome, entry.targets));
                    assert_ne!(entry.outcome, Outcome::Open, "every head is processed");
                }
            }
        }
    }

    fn workload(&mut self, index: usize, queue: usize, amount: i64, priority: i64) -> WorkloadSpec {
        let names = self.engine.names_mut();
        let resource = names.resources.intern("gpu");
        WorkloadSpec {
            namespace: names.namespaces.intern("ns"),
            local_queue: Some(names.local_queues.intern(&format!("queue-{queue}"))),
            uid: format!("uid-{index}").into(),
            priority,
            queued_at: Time(self.clock),
            pod_sets: vec![PodSetSpec {
                name: "main".into(),
                count: 1,
                min_count: None,
                requests: vec![(resource, Amount(amount))],
                selection: Selection::default(),
                topology: None,
                template: 0,
            }],
            hold: Hold::None,
            invalid: None,
            admission: None,
        }
    }

    fn queues(&self) -> Vec<QueueId> {
        let names = &self.engine.names().queues;
        (0..QUEUES).filter_map(|index| names.get(&format!("queue-{index}"))).collect()
    }

    /// Usage is the sum of what is held; everybody known is in exactly one place.
    fn check(&self) {
        let mut places: BTreeMap<WorkloadId, usize> = BTreeMap::new();
        for queue in self.queues() {
            let mut held: BTreeMap<(FlavorId, ResourceId), Amount> = BTreeMap::new();
            for workload in self.engine.holding(queue) {
                let pod_sets = self.engine.admission(workload).expect("holders hold");
                for &(resource, flavor, amount) in pod_sets.iter().flat_map(|one| &one.resources) {
                    *held.entry((flavor, resource)).or_default() += amount;
                }
                *places.entry(workload).or_default() += 1;
            }
            let usage = self.engine.queue_usage(queue);
            let usage =
                usage.into_iter().map(|(flavor, resource, amount)| ((flavor, resource), amount));
            assert_eq!(usage.collect::<BTreeMap<_, _>>(), held);
            for waiting in [self.engine.active(queue), self.engine.inadmissible(queue)] {
                for workload in waiting {
                    *places.entry(workload).or_default() += 1;
                }
            }
        }
        assert_eq!(places.len(), self.known.len());
        assert!(places.values().all(|&count| count == 1));
    }
}

fn queue(engine: &mut Engine, flavor: FlavorId, index: usize) -> ClusterQueueSpec {
    let names = engine.names_mut();
    let resource = names.resources.intern("gpu");
    let quota = ResourceQuota {
        resource,
        nominal: Amount(4),
        borrowing_limit: (index == 0).then_some(Amount(2)),
        lending_limit: (index == 1).then_some(Amount(1)),
    };
    ClusterQueueSpec {
        cohort: Some(names.cohorts.intern("all")),
        groups: vec![ResourceGroup {
            resources: vec![resource],
            flavors: vec![FlavorQuotas { flavor, resources: vec![quota] }],
        }],
        strategy: if index == 2 { Queueing::StrictFifo } else { Queueing::BestEffortFifo },
        preemption: Preemption {
            within_queue: PreemptionPolicy::LowerPriority,
            reclaim: PreemptionPolicy::Any,
            borrow: None,
        },
        fungibility: Fungibility::default(),
        weight: Weight::default(),
        stopped: false,
        ready: true,
        namespaces: NamespaceSelector::All(Vec::new()),
    }
}

proptest! {
    #[test]
    fn the_books_balance_after_every_step(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
            world.check();
        }
    }

    #[test]
    fn the_same_events_give_the_same_decisions(steps in prop::collection::vec(step(), 1..80)) {
        let (mut one, mut other) = (World::new(), World::new());
        for step in &steps {
            one.play(step);
            other.play(step);
        }
        prop_assert_eq!(one.log, other.log);
    }
}
