//! The scenario language, one object or event per line:
//!
//! ```text
//! settings fair=final,initial no-partial       (first line only; see `settings`)
//! flavor spot label=zone:a taint=key:value[:effect] tolerate=key[:value] topology=racks
//! topology racks levels=rack,node
//! node h1 rack=r1 gpu=4 used/gpu=1 leaving/gpu=1 down   (numbers are amounts, other values labels)
//! namespace lab team=a                         (`ns` exists from the start)
//! cohort ml parent=all weight=0.5 cpu/spot=4,borrow:2,lend:1
//! cq team-a cohort=ml gpu/h100=4 + cpu/spot=9  (`+` begins another resource group; `unlimited` is an amount)
//!    borrow=2 lend=1 strict stopped not-ready weight=2 select=team:a select-nothing
//!    within=lower reclaim=any borrow-within-cohort[=PRIORITY]   (policies: lower, newer, any)
//!    borrow-next preempt-stops prefer-preempting generation=2
//! lq line cq=team-a stopped                    (every cq has one of its own name)
//! wl one q=team-a ns=lab prio=3 t=1 gpu=6 pods=2 min=1 + gpu=1   (`+` begins another pod set)
//!    on=zone:a in=zone:a|b,metadata.name:h1 prefers=5:zone:a|b tolerate=key:value
//!    node/cpu=2 (request of a pod on its node, if it differs from the quota request)
//!    required=rack preferred=rack unconstrained slice=rack:2
//!    class (its priority is that of a WorkloadPriorityClass)
//!    gated (a preemption gate is closed) replaces=OTHER (the workload slice that it replaces) elastic (a first one)
//!    family=NAME allowed=FLAVOR,FLAVOR (a variant and its allowed flavors; a cq says last=FLAVOR)
//!    group=g hold=requeue hold=out invalid uid=u template=1 check=NAME:STATE
//! finish one, evict one, withdraw one, release one t=9 hold=requeue, reclaim one 2
//! unhealthy one h1 h2                          (its failed nodes)
//! delete KIND NAME
//! check nodes inactive topology=after-checks   (or topology=on-worker; a cq says check=NAME[:FLAVOR,FLAVOR])
//! admission-fair-sharing half-life=10 interval=2 gpu=2   (seconds; resource weights; cq: usage-based, lq: weight=2)
//! consumed lq gpu=5, sample, admitted one      (earlier consumption of a LocalQueue; events with a time)
//! usage lq ...                                 (prints consumption of LocalQueues, and shares in thousandths)
//! wait 5                                       (seconds pass)
//! second-pass                                  (runs second passes whose time has come)
//! capacity h100=3                              (cluster capacity of the placer in a flavor)
//! show NAME ...
//! explain one                                  (why it is pending)
//! advise one                                   (what would make it admissible)
//! messages                                     (from here on, decisions with condition messages, and reservations with
//!                                              the flavors that did not simply fit)
//! cycle [COUNT]
//! abort-after PARTS                            (a cycle that is aborted after this many parts)
//! ```
//!
//! Repeating an object replaces it. Quotas create their flavors. In a queue preemption does not end the flavor scan
//! unless `preempt-stops` is given. Without a `cycle` line, cycles run until no queue has a head.
//!
//! The trace has one line per head: the cycle, then
//!
//! ```text
//! reserve WORKLOAD QUEUE RESOURCE=FLAVOR:AMOUNT … (borrows, height 1) at DOMAIN:PODS
//! replace-node WORKLOAD QUEUE …                (as `reserve`: a failed node was replaced)
//! evict WORKLOAD QUEUE OUTCOME
//! preempt for WORKLOAD QUEUE: TARGET REASON, …
//! migrate to WORKLOAD QUEUE: VARIANT           (the other variant is evicted first)
//! no capacity for WORKLOAD QUEUE in FLAVOR, …
//! requeue | inadmissible | inadmissible-class WORKLOAD QUEUE OUTCOME   (the class: all of its equivalence class)
//! ```

mod objects;
mod settings;
mod trace;
mod words;

use std::collections::BTreeMap;

use engine::ids::{ClusterId, FlavorId};
use engine::{CycleEntry, CycleOutcome, Engine, EngineSettings, Event, Placer, RequeueKey, Time};

use crate::play::words::Words;

/// Seconds in the unit of `Time`.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// Plays lines on an engine and writes the trace.
pub(crate) struct Player {
    pub(crate) engine: Engine,
    /// Trace of decisions and `show` lines.
    pub(crate) trace: String,
    /// The latest event of every existing object, by kind and name.
    pub(crate) known: BTreeMap<(&'static str, String), Event>,
    cycles: usize,
    /// Seconds that passed besides cycles; a cycle takes one unit of time.
    seconds: i64,
    pub(crate) capacities: CapacityByFlavor,
    /// Number of heads per part of a cycle.
    pub(crate) part: usize,
    /// Print condition messages with decisions.
    with_messages: bool,
}

/// Cluster capacity per flavor; a flavor without an entry is unlimited.
#[derive(Debug, Default, Clone)]
pub(crate) struct CapacityByFlavor(BTreeMap<FlavorId, i64>);

impl Placer for CapacityByFlavor {
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        let flavor_assignments =
            || entry.assignment.pod_sets.iter().flat_map(|one| &one.flavor_assignments);
        let mut left = self.0.clone();
        for choice in flavor_assignments() {
            if let Some(capacity) = left.get_mut(&choice.flavor) {
                *capacity -= choice.amount.0;
                if *capacity < 0 {
                    return Err(RequeueKey(choice.flavor.0.into()));
                }
            }
        }
        let limited = flavor_assignments().any(|choice| self.0.contains_key(&choice.flavor));
        self.0 = left;
        Ok(limited.then_some(ClusterId(0)))
    }
}

impl Player {
    /// A player that knows only the namespace `ns`.
    pub(crate) fn new() -> Self {
        let mut player = Self {
            engine: Engine::new(EngineSettings::default()),
            trace: String::new(),
            known: BTreeMap::new(),
            cycles: 0,
            seconds: 0,
            capacities: CapacityByFlavor::default(),
            part: usize::MAX,
            with_messages: false,
        };
        player.line("namespace ns");
        player
    }

    /// Plays one line.
    pub(crate) fn line(&mut self, line: &str) {
        let words = Words::of(line);
        let name = words.name();
        match words.kind() {
            "settings" => {
                self.engine = Engine::new(settings::settings(&words));
                self.line("namespace ns");
            }
            "cycle" => {
                for _ in 0..name.parse().unwrap_or(1) {
                    self.cycle();
                }
            }
            "abort-after" => {
                self.cycle_of(name.parse().expect("a number of parts"));
            }
            "flavor" | "topology" | "node" | "namespace" | "cohort" | "cq" | "lq" | "wl"
            | "check" => self.object(&words),
            "wait" => self.seconds += name.parse::<i64>().expect("seconds"),
            "second-pass" => self.second_pass(),
            "explain" => self.why(name),
            "advise" => self.advise(name),
            "admission-fair-sharing" => self.sharing(&words),
            "consumed" => self.consumed(&words),
            "sample" => self.engine.apply(Event::SampleUsage(self.now())),
            "usage" => self.usages(&words),
            "admitted" => {
                let id = self.engine.names_mut().workloads.intern(name);
                self.engine.apply(Event::Admitted(id, self.now()));
            }
            "written" => {
                let id = self.engine.names_mut().workloads.intern(name);
                self.engine.apply(Event::Written(id));
            }
            "delete" => self.delete(name, words.at(2)),
            "finish" => self.delete("wl", name),
            "evict" => {
                let id = self.engine.names_mut().workloads.intern(name);
                self.engine.apply(Event::Evicting(id));
            }
            "withdraw" => self.withdraw(name),
            "unhealthy" => {
                let names = self.engine.names_mut();
                let hosts = words.rest().iter().map(|host| names.nodes.intern(host)).collect();
                let event = Event::UnhealthyNodes(names.workloads.intern(name), hosts);
                self.engine.apply(event);
            }
            "release" => self.release(&words),
            "reclaim" => self.reclaim(name, words.at(2).parse().expect("a number of pods")),
            "capacity" => self.capacity(&words),
            "show" => self.show(&words),
            "messages" => self.with_messages = true,
            other => unreachable!("unknown word {other}"),
        }
    }

    /// Runs one cycle. Returns its entries.
    pub(crate) fn cycle(&mut self) -> Vec<CycleEntry> {
        self.cycle_of(usize::MAX)
    }

    /// Runs at most `parts` parts of a cycle.
    fn cycle_of(&mut self, parts: usize) -> Vec<CycleEntry> {
        self.cycles += 1;
        let mut ongoing = self.engine.begin(self.now());
        for _ in 0..parts {
            if ongoing.advance(&mut self.capacities, self.part) {
                break;
            }
        }
        drop(ongoing);
        let mut entries = self.engine.entries().to_vec();
        entries.retain(|entry| entry.outcome != CycleOutcome::Nominated);
        for entry in &entries {
            let line = self.describe(entry);
            self.trace.push_str(&format!("{}  {line}\n", self.cycles));
        }
        entries
    }

    pub(crate) fn now(&self) -> Time {
        Time(self.seconds * SECOND + i64::try_from(self.cycles).expect("few cycles"))
    }

    fn second_pass(&mut self) {
        for pass in self.engine.second_pass(self.now()) {
            let line = self.describe_second(&pass);
            self.trace.push_str(&format!("=  {line}\n"));
        }
    }

    fn release(&mut self, words: &Words<'_>) {
        let workload = self.engine.names_mut().workloads.intern(words.name());
        let queued_at = Time(words.number("t").unwrap_or(0));
        let eligibility = words.eligibility();
        if let Some(Event::Workload(_, spec)) = self.known.get_mut(&("wl", words.name().into()))
            && self.engine.admission(workload).is_some()
        {
            (spec.eligibility, spec.queued_at) = (eligibility, queued_at);
        }
        self.engine.apply(Event::Released { workload, eligibility, queued_at });
    }

    fn withdraw(&mut self, name: &str) {
        let workload = self.engine.names_mut().workloads.intern(name);
        self.engine.apply(Event::ReservationWithdrawn(workload));
    }

    /// Makes pods of the first pod set reclaimable.
    fn reclaim(&mut self, name: &str, pods: i64) {
        let Some(Event::Workload(id, spec)) = self.known.get(&("wl", name.to_owned())) else {
            return;
        };
        let mut spec = spec.clone();
        spec.pod_sets[0].count -= pods;
        spec.pod_sets[0].reclaimed += pods;
        spec.admission = self.engine.admission_spec(*id);
        if let Some(admission) = &mut spec.admission {
            admission.pod_sets[0].reclaimed += pods;
        }
        let event = Event::Workload(*id, spec);
        self.apply_object("wl", name, event);
    }

    fn capacity(&mut self, words: &Words<'_>) {
        let (flavor, capacity) = words.name().split_once('=').expect("flavor=room");
        let flavor = self.engine.names_mut().flavors.intern(flavor);
        self.capacities.0.insert(flavor, capacity.parse().expect("a number"));
        self.engine.apply(Event::ClusterCapacity(RequeueKey(flavor.0.into())));
    }

    /// Applies an object's event and remembers it.
    fn apply_object(&mut self, kind: &'static str, name: &str, event: Event) {
        self.known.insert((kind, name.to_owned()), event.clone());
        self.engine.apply(event);
    }

    fn delete(&mut self, kind: &str, name: &str) {
        let names = self.engine.names_mut();
        let event = match kind {
            "check" => Event::Check(names.checks.intern(name), None),
            "flavor" => Event::Flavor(names.flavors.intern(name), None),
            "topology" => Event::Topology(names.topologies.intern(name), None),
            "node" => Event::Node(names.nodes.intern(name), None),
            "namespace" => Event::Namespace(names.namespaces.intern(name), None),
            "cohort" => Event::Cohort(names.cohorts.intern(name), None),
            "cq" => Event::ClusterQueue(names.queues.intern(name), None),
            "lq" => Event::LocalQueue(names.local_queues.intern(name), None),
            "wl" => match names.workloads.get(name) {
                Some(id) => Event::WorkloadGone(id),
                None => return,
            },
            other => unreachable!("unknown kind {other}"),
        };
        self.known.retain(|(known, object), _| *known != kind || object != name);
        self.engine.apply(event);
    }
}
