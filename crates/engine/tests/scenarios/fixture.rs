//! The language of scenarios, one line per object:
//!
//! ```text
//! cohort ml parent=all cpu/spot=4
//! cq team-a cohort=ml gpu/h100=4 borrow=2 lend=1 strict within=lower reclaim=any
//! wl one q=team-a gpu=6 prio=3 t=1
//! finish one
//! ```
//!
//! `cycle` lines run a cycle each; without any, cycles run until nobody is left to evaluate. Flavors are made as they are
//! named. The trace has one line per head: cycle, what happened, Workload, queue, details.

use std::collections::BTreeMap;
use std::fmt::Write;

use engine::flavors::matching::Selection;
use engine::spec::{
    BorrowWithinCohort, ClusterQueueSpec, CohortSpec, FlavorQuotas, FlavorSpec, Fungibility, Hold,
    LocalQueueSpec, NamespaceSelector, PodSetSpec, Preemption, PreemptionPolicy, ResourceGroup,
    ResourceQuota, Search, Strategy, Weight, WorkloadSpec,
};
use engine::{Amount, Anywhere, Engine, Entry, Event, Outcome, Placer, Settings, Time, explain};
use expect_test::Expect;

/// Plays a fixture under plain Kueue and compares the trace.
pub(crate) fn check(fixture: &str, expect: &Expect) {
    check_with(Settings::default(), &mut Anywhere, fixture, expect);
}

/// Plays a fixture with settings and a placer.
pub(crate) fn check_with(
    settings: Settings,
    placer: &mut dyn Placer,
    fixture: &str,
    expect: &Expect,
) {
    let mut player = Player { engine: Engine::new(settings), trace: String::new(), cycles: 0 };
    let id = player.engine.names_mut().namespaces.intern("ns");
    player.engine.apply(Event::Namespace(id, Some(Vec::new())));
    let mut explicit = false;
    for line in fixture.lines().map(str::trim).filter(|line| !line.is_empty()) {
        explicit |= line == "cycle";
        player.line(line, placer);
    }
    while !explicit && player.cycles < 20 {
        let before = player.trace.len();
        player.cycle(placer);
        if player.trace.len() == before {
            break;
        }
    }
    expect.assert_eq(&player.trace);
}

struct Player {
    engine: Engine,
    trace: String,
    cycles: usize,
}

impl Player {
    fn line(&mut self, line: &str, placer: &mut dyn Placer) {
        let mut words = line.split_whitespace();
        let kind = words.next().expect("a word");
        let name = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        match kind {
            "cycle" => self.cycle(placer),
            "cohort" => self.cohort(name, &rest),
            "cq" => self.queue(name, &rest),
            "wl" => self.workload(name, &rest),
            "finish" => {
                let id = self.engine.names_mut().workloads.intern(name);
                self.engine.apply(Event::WorkloadGone(id));
            }
            "release" => {
                let workload = self.engine.names_mut().workloads.intern(name);
                let queued_at = Time(number(&rest, "t").unwrap_or(0));
                self.engine.apply(Event::Released { workload, hold: Hold::None, queued_at });
            }
            "room" => {
                let key = engine::WakeKey(name.parse().expect("a number"));
                self.engine.apply(Event::Room(key));
            }
            other => unreachable!("unknown word {other}"),
        }
    }

    fn cohort(&mut self, name: &str, rest: &[&str]) {
        let parent = text(rest, "parent").map(|one| self.engine.names_mut().cohorts.intern(one));
        let groups = self.groups(rest);
        let id = self.engine.names_mut().cohorts.intern(name);
        let spec = CohortSpec { parent, groups, weight: Weight::default() };
        self.engine.apply(Event::Cohort(id, Some(spec)));
    }

    fn queue(&mut self, name: &str, rest: &[&str]) {
        let cohort = text(rest, "cohort").map(|one| self.engine.names_mut().cohorts.intern(one));
        let groups = self.groups(rest);
        let id = self.engine.names_mut().queues.intern(name);
        let has = |word: &str| rest.contains(&word);
        let spec = ClusterQueueSpec {
            cohort,
            groups,
            strategy: if has("strict") { Strategy::StrictFifo } else { Strategy::BestEffortFifo },
            preemption: Preemption {
                within_queue: policy(text(rest, "within")),
                reclaim: policy(text(rest, "reclaim")),
                borrow: has("preempt-while-borrowing")
                    .then_some(BorrowWithinCohort { max_priority: None }),
            },
            fungibility: Fungibility {
                when_can_preempt: Search::TryNext,
                ..Fungibility::default()
            },
            weight: Weight(number(rest, "weight").map_or(1, i64::unsigned_abs) * 1_000_000_000),
            stopped: has("stopped"),
            ready: true,
            namespaces: NamespaceSelector::All(Vec::new()),
        };
        self.engine.apply(Event::ClusterQueue(id, Some(Box::new(spec))));
        let local = self.engine.names_mut().local_queues.intern(name);
        let spec = LocalQueueSpec { queue: id, stopped: false };
        self.engine.apply(Event::LocalQueue(local, Some(spec)));
    }

    /// All `resource/flavor=amount` words as one group; `borrow` and `lend` hold for each of them.
    fn groups(&mut self, rest: &[&str]) -> Vec<ResourceGroup> {
        let limit = |name| number(rest, name).map(Amount);
        let (borrowing_limit, lending_limit) = (limit("borrow"), limit("lend"));
        let mut group = ResourceGroup::default();
        for (key, value) in rest.iter().filter_map(|word| word.split_once('=')) {
            let Some((resource, flavor)) = key.split_once('/') else {
                continue;
            };
            let names = self.engine.names_mut();
            let (resource, flavor) =
                (names.resources.intern(resource), names.flavors.intern(flavor));
            self.engine.apply(Event::Flavor(flavor, Some(FlavorSpec::default())));
            let nominal = Amount(value.parse().expect("an amount"));
            let quota = ResourceQuota { resource, nominal, borrowing_limit, lending_limit };
            if !group.resources.contains(&resource) {
                group.resources.push(resource);
            }
            match group.flavors.iter_mut().find(|one| one.flavor == flavor) {
                Some(one) => one.resources.push(quota),
                None => group.flavors.push(FlavorQuotas { flavor, resources: vec![quota] }),
            }
        }
        if group.flavors.is_empty() { Vec::new() } else { vec![group] }
    }

    fn workload(&mut self, name: &str, rest: &[&str]) {
        let mut requests = BTreeMap::new();
        for (key, value) in rest.iter().filter_map(|word| word.split_once('=')) {
            if !["q", "prio", "t", "pods", "min"].contains(&key) {
                requests.insert(key, Amount(value.parse().expect("an amount")));
            }
        }
        let names = self.engine.names_mut();
        let requests =
            requests.into_iter().map(|(key, amount)| (names.resources.intern(key), amount));
        let pod_set = PodSetSpec {
            name: "main".into(),
            count: number(rest, "pods").unwrap_or(1),
            min_count: number(rest, "min"),
            requests: requests.collect(),
            selection: Selection::default(),
            topology: None,
            template: 0,
        };
        let queue = text(rest, "q").expect("a queue");
        let spec = WorkloadSpec {
            namespace: names.namespaces.intern("ns"),
            local_queue: Some(names.local_queues.intern(queue)),
            uid: name.into(),
            priority: number(rest, "prio").unwrap_or(0),
            queued_at: Time(number(rest, "t").unwrap_or(0)),
            pod_sets: vec![pod_set],
            hold: Hold::None,
            invalid: None,
            admission: None,
        };
        let id = names.workloads.intern(name);
        self.engine.apply(Event::Workload(id, Box::new(spec)));
    }

    fn cycle(&mut self, placer: &mut dyn Placer) {
        self.cycles += 1;
        let now = Time(i64::try_from(self.cycles).expect("few cycles"));
        let entries = self.engine.cycle(now, placer).to_vec();
        for entry in &entries {
            let line = self.describe(entry);
            writeln!(self.trace, "{}  {line}", self.cycles).expect("strings take everything");
        }
    }

    fn describe(&self, entry: &Entry) -> String {
        let names = self.engine.names();
        let who = names.workloads.name(entry.workload);
        let queue = names.queues.name(entry.queue);
        match entry.outcome {
            Outcome::Reserved { cluster } => {
                let one = &entry.assignment.pod_sets[0];
                let flavors: Vec<String> = one
                    .choices
                    .iter()
                    .map(|choice| {
                        let resource = names.resources.name(choice.resource);
                        let flavor = names.flavors.name(choice.flavor);
                        format!("{resource}={flavor}:{}", choice.amount.0)
                    })
                    .collect();
                let mut line = format!("reserve {who} {queue} {}", flavors.join(" "));
                if entry.assignment.borrow > 0 {
                    write!(line, " (borrows, height {})", entry.assignment.borrow).expect("text");
                }
                if let Some(cluster) = cluster {
                    write!(line, " on cluster {}", cluster.0).expect("text");
                }
                line
            }
            Outcome::Preempting => {
                let mut victims: Vec<String> = entry
                    .targets
                    .iter()
                    .map(|target| {
                        let victim = names.workloads.name(target.workload);
                        format!("{victim} {}", target.reason.name())
                    })
                    .collect();
                victims.sort();
                format!("preempt for {who} {queue}: {}", victims.join(", "))
            }
            Outcome::NoRoom(key) => format!("no room for {who} {queue}, waits for {}", key.0),
            _ => {
                let message = explain::message(&self.engine, entry);
                let message = message.replace("couldn't assign flavors to pod set main: ", "");
                format!("park {who} {queue} ({:?}): {message}", entry.requeue)
            }
        }
    }
}

fn text<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words
        .iter()
        .filter_map(|word| word.split_once('='))
        .find(|(one, _)| *one == key)
        .map(|(_, v)| v)
}

fn number(words: &[&str], key: &str) -> Option<i64> {
    text(words, key).map(|value| value.parse().expect("a number"))
}

fn policy(name: Option<&str>) -> PreemptionPolicy {
    match name {
        None => PreemptionPolicy::Never,
        Some("lower") => PreemptionPolicy::LowerPriority,
        Some("newer") => PreemptionPolicy::LowerOrNewerEqualPriority,
        Some("any") => PreemptionPolicy::Any,
        Some(other) => unreachable!("unknown policy {other}"),
    }
}
