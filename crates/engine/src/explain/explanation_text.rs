//! Renders a [`PendingExplanation`] as text.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::explain::condition_message::{reason_message, slot_names};
use crate::explain::explanation::{
    FlavorExplanation, PendingExplanation, PodSetExplanation, QueueInactiveReason, QueueingStatus,
};
use crate::explain::quantity::format_quantity;
use crate::explain::quota_shortage::{QuotaRemedy, QuotaShortage};
use crate::explain::topology_text;
use crate::node_selection::NodeTaint;
use crate::reason::NoFitReason;
use crate::spec::QueueEligibility;

/// The explanation, one fact per line; details are indented below the line they belong to.
pub fn explanation_text(engine: &Engine, why: &PendingExplanation) -> String {
    let mut lines = vec![headline(engine, why)];
    if why.preemption_gated {
        lines.push("its preemption gates are closed: it must not preempt".to_owned());
    }
    if let Some(better) = why.better {
        let better = engine.names().workloads.name(better);
        lines.push(format!("its variant {better} is admitted with a better flavor"));
    }
    let many = why.pod_sets.len() > 1;
    for one in &why.pod_sets {
        if many {
            let pods = if one.count == 1 { "pod" } else { "pods" };
            lines.push(format!("pod set {}, {} {pods}", one.name, one.count));
        }
        pod_set(engine, one, if many { "  " } else { "" }, &mut lines);
    }
    lines.join("\n")
}

pub(super) fn headline(engine: &Engine, why: &PendingExplanation) -> String {
    let name = engine.names().workloads.name(why.workload);
    let queue = why.queue.map_or("", |queue| engine.names().queues.name(queue));
    match why.status {
        QueueingStatus::HoldsQuota => format!("{name} holds quota in {queue}"),
        QueueingStatus::NoLocalQueue => {
            format!("{name} is in no ClusterQueue: its LocalQueue is missing or stopped")
        }
        QueueingStatus::Inactive(why) => {
            format!("{name} is pending: {queue} is inactive, {}", inactive(engine, why))
        }
        QueueingStatus::NotEligible(QueueEligibility::AwaitsRequeue) => {
            format!("{name} is pending until its queue is resumed")
        }
        QueueingStatus::NotEligible(_) => format!("{name} is not eligible for queueing"),
        QueueingStatus::FailedCheck(check) => {
            format!("{name} failed admission check {}", engine.names().checks.name(check))
        }
        QueueingStatus::NamespaceMismatch => {
            format!("the namespace of {name} does not match the namespaceSelector of {queue}")
        }
        QueueingStatus::Invalid => {
            let workload = engine.state.workloads.get(why.workload);
            let problem = workload.and_then(|one| one.invalid.as_deref()).unwrap_or_default();
            format!("{name} is invalid: {problem}")
        }
        QueueingStatus::NoClusterCapacity => {
            format!("{name} fits the quota of {queue}, but no cluster has capacity")
        }
        QueueingStatus::Inadmissible => {
            format!("{name} is inadmissible in {queue}")
        }
        QueueingStatus::Pending(0) => format!("{name} is first in the pending queue of {queue}"),
        QueueingStatus::Pending(ahead) => {
            format!("{name} is behind {ahead} in the pending queue of {queue}")
        }
    }
}

fn inactive(engine: &Engine, why: QueueInactiveReason) -> String {
    match why {
        QueueInactiveReason::Missing => "it does not exist".to_owned(),
        QueueInactiveReason::Stopped => "it is stopped".to_owned(),
        QueueInactiveReason::CohortCycle => "its cohorts form a cycle".to_owned(),
        QueueInactiveReason::Flavor(id) => {
            format!("flavor {} or its topology is missing", engine.names().flavors.name(id))
        }
        QueueInactiveReason::Check(id) => {
            format!("check {} is missing or not active", engine.names().checks.name(id))
        }
        QueueInactiveReason::NotReady => "it is not ready".to_owned(),
    }
}

fn pod_set(engine: &Engine, one: &PodSetExplanation, indent: &str, lines: &mut Vec<String>) {
    for &resource in &one.uncovered {
        let resource = engine.names().resources.name(resource);
        lines.push(format!("{indent}{resource}: not covered by any resource group of the queue"));
    }
    for flavor in &one.flavors {
        flavor_lines(engine, flavor, indent, lines);
    }
    lines.extend(
        one.topology_error
            .iter()
            .map(|reason| format!("{indent}{}", topology_error(engine, reason))),
    );
}

/// Why the pods cannot get a topology assignment, whatever is free.
pub(super) fn topology_error(engine: &Engine, reason: &NoFitReason) -> String {
    match reason {
        NoFitReason::NoTopologies => {
            "the pods need a topology, and no flavor of the queue has one".to_owned()
        }
        NoFitReason::NoTopologyFlavor => {
            "the pods need a topology, and their flavors have none".to_owned()
        }
        NoFitReason::TopologyFlavors(flavors) => {
            let names: Vec<&str> =
                flavors.iter().map(|&id| engine.names().flavors.name(id)).collect();
            format!("the pods need a topology of one flavor, and get several: {}", names.join(", "))
        }
        other => reason_message(engine, other),
    }
}

fn flavor_lines(engine: &Engine, one: &FlavorExplanation, indent: &str, lines: &mut Vec<String>) {
    let name = engine.names().flavors.name(one.flavor);
    if let Some(reason) = &one.unsuitable {
        lines.push(format!("{indent}flavor {name}: {}", unsuitable(engine, reason)));
        return;
    }
    for shortage in &one.shortages {
        lines.push(format!("{indent}flavor {name}: {}", missing(engine, shortage)));
        if !shortage.users.is_empty() && !shortage.exceeds_maximum() {
            lines.push(format!("{indent}  used by: {}", users(engine, shortage)));
        }
        let remedies = shortage.remedies.iter().map(|one| remedy(engine, shortage, *one));
        lines.push(format!("{indent}  would help: {}", remedies.collect::<Vec<_>>().join("; or ")));
    }
    topology_text::lines(engine, one, indent, lines);
}

/// Why pods cannot run on a flavor's nodes. The line already names the flavor.
pub(super) fn unsuitable(engine: &Engine, reason: &NoFitReason) -> String {
    match reason {
        NoFitReason::Taint { flavor, taint } => {
            let spec = engine.state.quota.flavor(*flavor);
            let taint = spec.and_then(|spec| spec.taints.get(*taint)).map(NodeTaint::to_string);
            format!("its taint {} is not tolerated", taint.unwrap_or_default())
        }
        NoFitReason::Affinity(_) => "node selector or affinity exclude it".to_owned(),
        NoFitReason::FlavorNotFound(_) => "it does not exist".to_owned(),
        NoFitReason::FlavorNotAllowed(_) => "it is not an allowed flavor".to_owned(),
        NoFitReason::DiffersFromReplacedSlice { original, .. } => {
            let original = original.map_or("nothing", |id| engine.names().flavors.name(id));
            format!("the replaced slice uses {original}")
        }
        NoFitReason::NoTopology(_) => "the pods request a topology, and it has none".to_owned(),
        NoFitReason::OnlyTopologyAware(_) => {
            "it accepts only pods that request its topology".to_owned()
        }
        NoFitReason::NoTopologyLevel(_) => {
            "its topology lacks the level that the pods request".to_owned()
        }
        other => reason_message(engine, other),
    }
}

fn missing(engine: &Engine, one: &QuotaShortage) -> String {
    let (_, resource) = slot_names(engine, one.slot);
    let say = |amount: Amount| format_quantity(resource, amount);
    let mut text = format!("{} {resource} requested", say(one.request));
    if one.earlier > Amount::ZERO {
        text += &format!(" in addition to {} for other pod sets", say(one.earlier));
    }
    if one.exceeds_maximum() {
        format!(
            "{text}, at most {} available, {} missing",
            say(one.maximum.clip()),
            say(one.missing)
        )
    } else {
        format!("{text}, {} free, {} missing", say(one.free), say(one.missing))
    }
}

fn users(engine: &Engine, one: &QuotaShortage) -> String {
    let (_, resource) = slot_names(engine, one.slot);
    let users = one.users.iter().map(|user| {
        let queue = engine.names().queues.name(user.queue);
        let amount = format_quantity(resource, user.amount);
        if user.borrowed > Amount::ZERO {
            format!("{queue} {amount} ({} borrowed)", format_quantity(resource, user.borrowed))
        } else {
            format!("{queue} {amount}")
        }
    });
    users.collect::<Vec<_>>().join(", ")
}

fn remedy(engine: &Engine, one: &QuotaShortage, remedy: QuotaRemedy) -> String {
    let (_, resource) = slot_names(engine, one.slot);
    let say = |amount: Amount| format!("{} {resource}", format_quantity(resource, amount));
    match remedy {
        QuotaRemedy::ReleaseQuota(amount) => format!("{} released", say(amount)),
        QuotaRemedy::AllowReclaim(amount) => {
            format!("reclaimWithinCohort, since {} of its own quota is lent", say(amount))
        }
        QuotaRemedy::AllowPreemption(1) => {
            "withinClusterQueue, since 1 Workload has lower priority".to_owned()
        }
        QuotaRemedy::AllowPreemption(lower) => {
            format!("withinClusterQueue, since {lower} Workloads have lower priority")
        }
        QuotaRemedy::RaiseBorrowingLimit(amount) => {
            format!("a borrowingLimit higher by {}", say(amount))
        }
        QuotaRemedy::LendMore(amount) => format!("other queues lending {} more", say(amount)),
        QuotaRemedy::RaiseQuota(amount) => format!("a quota larger by {}", say(amount)),
    }
}
