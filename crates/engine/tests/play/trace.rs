//! Entries and states as trace lines.

use engine::ids::{FlavorId, QueueId, WorkloadId};
use engine::{
    Amount, CycleEntry, CycleOutcome, NanoAmount, PodSetFlavorAssignment, RequeueDestination,
    RequeueKey, SecondPass, explain,
};

use crate::play::Player;
use crate::play::words::Words;

impl Player {
    /// The line of one entry.
    pub(super) fn describe(&self, entry: &CycleEntry) -> String {
        let names = self.engine.names();
        let name = names.workloads.name(entry.workload);
        let queue = names.queues.name(entry.queue);
        match entry.outcome {
            CycleOutcome::Reserved { cluster } => {
                let mut line = format!("reserve {name} {queue}{}", self.assignments(entry));
                if entry.assignment.borrow > 0 {
                    line += &format!(" (borrows, height {})", entry.assignment.borrow);
                }
                if cluster.is_some() {
                    line += " on a cluster";
                }
                line += &self.checks(entry.workload);
                let considered = explain::considered_flavors(&self.engine, entry);
                if self.with_messages && !considered.is_empty() {
                    line += &format!(": {considered}");
                }
                line
            }
            CycleOutcome::NodeReplaced => {
                format!("replace-node {name} {queue}{}", self.assignments(entry))
            }
            CycleOutcome::Preempting => {
                format!("preempt for {name} {queue}: {}", self.targets(&entry.targets))
            }
            CycleOutcome::Migrating { from } => {
                let from = names.workloads.name(from);
                format!("migrate to {name} {queue}: {from}{}", self.message_of(entry))
            }
            CycleOutcome::NoClusterCapacity(key) => {
                let keys = std::iter::once(&key).chain(&entry.further_keys);
                let flavor = |key: &RequeueKey| {
                    let id = FlavorId::from(usize::try_from(key.0).expect("a flavor"));
                    names.flavors.name(id)
                };
                let flavors: Vec<_> = keys.map(flavor).collect();
                format!("no capacity for {name} {queue} in {}", flavors.join(", "))
            }
            _ => {
                let verdict = verdict(entry);
                format!("{} {name} {queue} {verdict}{}", verb(entry), self.message_of(entry))
            }
        }
    }

    /// The condition message, if messages are on.
    fn message_of(&self, entry: &CycleEntry) -> String {
        if self.with_messages {
            format!(": {}", explain::condition_message(&self.engine, entry))
        } else {
            String::new()
        }
    }

    /// Pending checks, or that all are ready; empty without checks.
    fn checks(&self, workload: WorkloadId) -> String {
        let checks = self.engine.required_checks(workload);
        if checks.is_empty() {
            return String::new();
        }
        let names = self.engine.names();
        let checks = checks.iter().map(|&check| format!(" {}", names.checks.name(check)));
        let verb = if self.engine.is_admitted(workload) { "passed" } else { "needs" };
        format!(", {verb}{}", checks.collect::<String>())
    }

    /// The line of one second pass.
    pub(super) fn describe_second(&self, pass: &SecondPass) -> String {
        let name = self.engine.names().workloads.name(pass.workload);
        match &pass.outcome {
            Ok(pod_sets) => {
                let domains = pod_sets.iter().flat_map(|one| &one.domains);
                let domains = domains.map(|one| format!("{}:{}", one.values.join("/"), one.count));
                let domains = domains.collect::<Vec<_>>().join(",");
                format!("topology of {name} at {domains}{}", self.checks(pass.workload))
            }
            Err(_) if !pass.targets.is_empty() => {
                format!("preempt for topology of {name}: {}", self.targets(&pass.targets))
            }
            Err(reasons) if reasons.is_empty() => format!("no topology for {name}"),
            Err(reasons) => {
                format!(
                    "no topology for {name}: {}",
                    explain::reason_messages(&self.engine, reasons).join(", ")
                )
            }
        }
    }

    fn targets(&self, targets: &[engine::PreemptionTarget]) -> String {
        let names = &self.engine.names().workloads;
        let one = |target: &engine::PreemptionTarget| {
            format!("{} {}", names.name(target.workload), target.reason.name())
        };
        let mut targets: Vec<String> = targets.iter().map(one).collect();
        targets.sort();
        targets.join(", ")
    }

    fn assignments(&self, entry: &CycleEntry) -> String {
        let parts = entry.assignment.pod_sets.iter().map(|one| self.pod_set_assignment(one));
        parts.collect::<Vec<_>>().join(" +")
    }

    fn pod_set_assignment(&self, one: &PodSetFlavorAssignment) -> String {
        let names = self.engine.names();
        let mut text = String::new();
        let mut flavor_assignments: Vec<_> = one.flavor_assignments.iter().collect();
        flavor_assignments.sort_by_key(|choice| names.resources.name(choice.resource));
        for choice in flavor_assignments {
            let resource = names.resources.name(choice.resource);
            let flavor = names.flavors.name(choice.flavor);
            text += &format!(" {resource}={flavor}:{}", plain(choice.amount));
        }
        if !one.domains.is_empty() {
            let domains = one.domains.iter();
            let domains =
                domains.map(|domain| format!("{}:{}", domain.values.join("/"), domain.count));
            text += &format!(" at {}", domains.collect::<Vec<_>>().join(","));
        }
        text
    }

    /// The line `explain`.
    pub(super) fn why(&mut self, name: &str) {
        let id = self.engine.names().workloads.get(name).expect("a Workload");
        let why = self.engine.explain_pending(id).expect("a Workload that exists");
        for line in explain::explanation_text(&self.engine, &why).lines() {
            self.trace += &format!("?  {line}\n");
        }
    }

    /// The line `advise`.
    pub(super) fn advise(&mut self, name: &str) {
        let id = self.engine.names().workloads.get(name).expect("a Workload");
        let before = self.engine.debug_dump();
        let advice = self.engine.explain_admission(id);
        assert_eq!(self.engine.debug_dump(), before, "an explanation left a trace");
        let text = advice.and_then(|one| explain::admission_text(&self.engine, &one));
        self.trace += &format!("!  {}\n", text.as_deref().unwrap_or("nothing to explain"));
    }

    /// The line `usage`.
    pub(super) fn usages(&mut self, words: &Words<'_>) {
        for &name in std::iter::once(&words.name()).chain(words.rest()) {
            let names = self.engine.names();
            let id = names.local_queues.get(name).expect("a LocalQueue");
            let (consumed, _) = self.engine.consumed_resources(id);
            let used = consumed.iter().map(|(resource, amount)| {
                format!(" {}={}", names.resources.name(*resource), amount.0 / NanoAmount::PER_UNIT)
            });
            let share = self.engine.fair_sharing_usage(id).nanos() / 1_000_000;
            let share = i64::try_from(share).unwrap_or(i64::MAX);
            let line = format!("-  {name} consumed{}, share {share}\n", used.collect::<String>());
            self.trace += &line;
        }
    }

    /// The line `show`: usage, reservations, pending and inadmissible Workloads.
    pub(super) fn show(&mut self, words: &Words<'_>) {
        for &name in std::iter::once(&words.name()).chain(words.rest()) {
            let names = self.engine.names();
            let text = match (names.queues.get(name), names.cohorts.get(name)) {
                (Some(queue), _) => self.show_queue(queue),
                (None, Some(cohort)) => self.usage(self.engine.cohort_usage(cohort)),
                (None, None) => " is unknown".to_owned(),
            };
            self.trace += &format!("-  {name}{text}\n");
        }
    }

    fn show_queue(&self, queue: QueueId) -> String {
        let list = |what: &str, ids: Vec<WorkloadId>| {
            let names = &self.engine.names().workloads;
            let ids = ids.iter().map(|&id| format!(" {}", names.name(id)));
            let ids: String = ids.collect();
            if ids.is_empty() { ids } else { format!(", {what}{ids}") }
        };
        let text = [
            list("reserving", self.engine.reserving_workloads(queue)),
            list("pending", self.engine.active_workloads(queue)),
            list("inadmissible", self.engine.inadmissible_workloads(queue)),
        ];
        self.usage(self.engine.queue_usage(queue)) + &text.concat()
    }

    fn usage(&self, all: Vec<(FlavorId, engine::ids::ResourceId, Amount)>) -> String {
        let names = self.engine.names();
        let one = |(flavor, resource, amount): (_, _, Amount)| {
            format!(
                " {}/{}={}",
                names.resources.name(resource),
                names.flavors.name(flavor),
                plain(amount)
            )
        };
        let mut used: Vec<String> = all.into_iter().map(one).collect();
        used.sort();
        if used.is_empty() { " uses nothing".to_owned() } else { format!(" uses{}", used.concat()) }
    }
}

fn plain(amount: Amount) -> String {
    if amount.is_unlimited() { "unlimited".to_owned() } else { amount.0.to_string() }
}

fn verb(entry: &CycleEntry) -> &'static str {
    match entry.requeue {
        RequeueDestination::NotRequeued if entry.outcome == CycleOutcome::NodesFailed => "evict",
        RequeueDestination::NotRequeued if entry.outcome == CycleOutcome::NodeNotReplaced => "keep",
        RequeueDestination::NotRequeued => "drop",
        RequeueDestination::Active => "requeue",
        RequeueDestination::Inadmissible => "inadmissible",
        RequeueDestination::InadmissibleClass => "inadmissible-class",
    }
}

fn verdict(entry: &CycleEntry) -> String {
    match (entry.outcome, entry.assignment.pending_reason) {
        (CycleOutcome::NoFit, Some(pending_reason)) => pending_reason.name().to_owned(),
        (outcome, _) => format!("{outcome:?}"),
    }
}
