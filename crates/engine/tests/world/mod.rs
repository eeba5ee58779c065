//! Random worlds: lines of the language of scenarios, chosen by proptest, played on an engine and checked.
//!
//! A failing case prints its lines; with the expected trace below them they are a scenario.

pub(crate) mod checks;
pub(crate) mod fresh;
pub(crate) mod kin;
pub(crate) mod lines;
pub(crate) mod model;
pub(crate) mod places;
pub(crate) mod replacing;

use engine::{CycleEntry, CycleOutcome, Event};

use crate::play::Player;

/// Workloads of a world.
pub(crate) const WORKLOADS: usize = 10;

/// One thing that happens. What makes no sense at the moment does not happen.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A line as it is.
    Say(String),
    /// A Workload, new or changed, whether it holds quota or not.
    Submit(usize, String),
    /// It ends.
    Finish(usize),
    /// It is evicted for a reason from outside.
    Evict(usize),
    /// Its reservation could not be written.
    Fail(usize),
    /// One of its pods is done.
    Reclaim(usize),
    /// It gets another priority.
    Priority(usize, i64),
    /// The pods of everybody on the way out are gone; those of whom the first is true go into a backoff.
    Release(bool),
    /// The backoff of everybody is over.
    Resume,
    /// One cycle.
    Cycle,
}

/// A world and the lines that made it.
pub(crate) struct World {
    pub(crate) player: Player,
    /// The line `settings`.
    pub(crate) settings: String,
    pub(crate) lines: Vec<String>,
    clock: i64,
}

impl World {
    /// The world that these lines make.
    pub(crate) fn new(settings: &str, objects: &[String]) -> Self {
        let mut world = Self {
            player: Player::new(),
            settings: settings.to_owned(),
            lines: Vec::new(),
            clock: 0,
        };
        world.say(settings);
        for line in objects {
            world.say(line);
        }
        world
    }

    /// Plays a line and keeps it.
    pub(crate) fn say(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        self.player.line(line);
    }

    /// Plays a step. Returns what a cycle decided.
    pub(crate) fn play(&mut self, step: &Step) -> Vec<CycleEntry> {
        self.clock += 1;
        match step {
            Step::Cycle => {
                self.lines.push("cycle".to_owned());
                return self.player.cycle();
            }
            Step::Say(line) => self.say(line),
            Step::Submit(index, words) => {
                let line = format!("wl w{index} {words} t={}", self.clock);
                self.say(&line);
            }
            Step::Finish(index) => self.say(&format!("finish w{index}")),
            Step::Evict(index) if self.holds(*index) => self.say(&format!("evict w{index}")),
            Step::Fail(index) if self.holds(*index) => self.say(&format!("write-failed w{index}")),
            Step::Reclaim(index) if self.has_pods_to_spare(*index) => {
                self.say(&format!("reclaim w{index} 1"));
            }
            Step::Priority(index, priority) => self.reprioritise(*index, *priority),
            Step::Release(eligibility) => {
                self.release(*eligibility);
            }
            Step::Resume => self.resume(),
            Step::Evict(_) | Step::Fail(_) | Step::Reclaim(_) => {}
        }
        Vec::new()
    }

    /// Gives back what everybody on the way out holds. Returns whether there was anybody.
    pub(crate) fn release(&mut self, eligibility: bool) -> bool {
        let leaving: Vec<usize> = (0..WORKLOADS).filter(|&index| self.is_leaving(index)).collect();
        for index in &leaving {
            let words = if eligibility { " hold=requeue" } else { "" };
            let line = format!("release w{index} t={}{words}", self.clock);
            self.say(&line);
        }
        !leaving.is_empty()
    }

    fn resume(&mut self) {
        for index in (0..WORKLOADS).filter(|&index| !self.holds(index)).collect::<Vec<_>>() {
            self.rephrase(index, |line| line.replace(" hold=requeue", ""));
        }
    }

    fn reprioritise(&mut self, index: usize, priority: i64) {
        self.rephrase(index, |line| {
            let words =
                line.split(' ').filter(|word| !word.starts_with("prio=") && *word != "class");
            format!("{} prio={priority} class", words.collect::<Vec<_>>().join(" "))
        });
    }

    /// Says a Workload again, in other words.
    fn rephrase(&mut self, index: usize, change: impl FnOnce(&str) -> String) {
        let prefix = format!("wl w{index} ");
        let known = self.player.known.contains_key(&("wl", format!("w{index}")));
        let last = self.lines.iter().rev().find(|line| line.starts_with(&prefix));
        if let Some(line) = last.filter(|_| known).map(|line| change(line)) {
            self.say(&line);
        }
    }

    fn id(&self, index: usize) -> Option<engine::ids::WorkloadId> {
        self.player.engine.names().workloads.get(&format!("w{index}"))
    }

    pub(crate) fn holds(&self, index: usize) -> bool {
        self.id(index).is_some_and(|id| self.player.engine.admission(id).is_some())
    }

    fn is_leaving(&self, index: usize) -> bool {
        self.id(index).is_some_and(|id| self.player.engine.is_evicted(id))
    }

    fn has_pods_to_spare(&self, index: usize) -> bool {
        let known = self.player.known.get(&("wl", format!("w{index}")));
        let Some(Event::Workload(id, spec)) = known else {
            return false;
        };
        let held = self.player.engine.admission(*id).map(|held| held[0].count - held[0].reclaimed);
        spec.pod_sets[0].count > 1 && spec.pod_sets[0].min_count.is_none() && held != Some(1)
    }
}

/// Whether a cycle got anybody any further.
pub(crate) fn moves(entries: &[CycleEntry]) -> bool {
    let moved = |one: &CycleEntry| {
        matches!(
            one.outcome,
            CycleOutcome::Reserved { .. }
                | CycleOutcome::Preempting
                | CycleOutcome::Deferred
                | CycleOutcome::Migrating { .. }
        )
    };
    entries.iter().any(moved)
}

/// What got somebody further, or was decided about a holder, in full.
pub(crate) fn decisions(entries: &[CycleEntry]) -> Vec<String> {
    let counts = |one: &&CycleEntry| {
        one.outcome.concerns_reserving_workload() || moves(std::slice::from_ref(one))
    };
    entries.iter().filter(counts).map(|one| format!("{one:?}")).collect()
}
