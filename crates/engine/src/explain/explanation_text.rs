//! Our own words for [`PendingExplanation`]: what a person has to know who asks why a Workload waits.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::explain::names;
use crate::explain::pending_explanation::{
    FlavorExplanation, PendingExplanation, PodSetExplanation, QueueInactiveReason, QueueingStatus,
};
use crate::explain::quantity::format_quantity;
use crate::explain::quota_shortage::{QuotaRemedy, QuotaShortage};
use crate::explain::topology_text;
use crate::node_selection::Taint;
use crate::reason::NoFitReason;
use crate::spec::QueueEligibility;

/// The explanation, one fact per line; what belongs to a line is indented below it.
pub fn explanation(engine: &Engine, why: &PendingExplanation) -> String {
    let mut lines = vec![headline(engine, why)];
    if why.preemption_gated {
        lines.push("its preemption gates are closed: it may preempt nobody".to_owned());
    }
    if let Some(better) = why.better {
        let better = engine.names().workloads.name(better);
        lines.push(format!("its sibling {better} is admitted with a better flavor"));
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

fn headline(engine: &Engine, why: &PendingExplanation) -> String {
    let name = engine.names().workloads.name(why.workload);
    let queue = why.queue.map_or("", |queue| engine.names().queues.name(queue));
    match why.standing {
        QueueingStatus::HoldsQuota => format!("{name} holds quota in {queue}"),
        QueueingStatus::NoLocalQueue => {
            format!("{name} is in no queue: its LocalQueue is missing or stopped")
        }
        QueueingStatus::Inactive(why) => {
            format!("{name} waits: {queue} hands out nobody, {}", inactive(engine, why))
        }
        QueueingStatus::NotEligible(QueueEligibility::BackoffUntil(_)) => {
            format!("{name} waits for the end of its backoff")
        }
        QueueingStatus::NotEligible(QueueEligibility::AwaitsRequeue) => {
            format!("{name} waits for its queue to be restarted")
        }
        QueueingStatus::NotEligible(_) => format!("{name} is not to be queued"),
        QueueingStatus::FailedCheck(check) => {
            format!("{name} was sent back by check {}", engine.names().checks.name(check))
        }
        QueueingStatus::NamespaceMismatch => {
            format!("{name} may not use {queue} from its namespace")
        }
        QueueingStatus::Invalid => {
            let workload = engine.state.workloads.get(why.workload);
            let problem = workload.and_then(|one| one.invalid.as_deref()).unwrap_or_default();
            format!("{name} is invalid: {problem}")
        }
        QueueingStatus::NoClusterCapacity => {
            format!("{name} would get quota in {queue}, but no cluster has room")
        }
        QueueingStatus::Inadmissible => {
            format!("{name} was refused in {queue} and waits for a change")
        }
        QueueingStatus::Pending(0) => format!("{name} is next in {queue}"),
        QueueingStatus::Pending(ahead) => format!("{name} is in line in {queue} behind {ahead}"),
    }
}

fn inactive(engine: &Engine, why: QueueInactiveReason) -> String {
    match why {
        QueueInactiveReason::Missing => "it does not exist".to_owned(),
        QueueInactiveReason::Stopped => "it is stopped".to_owned(),
        QueueInactiveReason::CohortCycle => "its cohorts form a ring".to_owned(),
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
    for &resource in &one.undeclared {
        let resource = engine.names().resources.name(resource);
        lines.push(format!("{indent}{resource}: the queue has none in any flavor"));
    }
    for flavor in &one.flavors {
        flavor_lines(engine, flavor, indent, lines);
    }
    lines.extend(
        one.misplaced.iter().map(|reason| format!("{indent}{}", misplaced(engine, reason))),
    );
}

/// Why there are no places for pods, whatever is free.
fn misplaced(engine: &Engine, reason: &NoFitReason) -> String {
    match reason {
        NoFitReason::NoTopologies => {
            "the pods need places, and no flavor of the queue has any".to_owned()
        }
        NoFitReason::NoTopologyFlavor => {
            "the pods need places, and get no flavor that has any".to_owned()
        }
        NoFitReason::TopologyFlavors(flavors) => {
            let names: Vec<&str> =
                flavors.iter().map(|&id| engine.names().flavors.name(id)).collect();
            format!("the pods need places of one flavor, and get several: {}", names.join(", "))
        }
        other => super::in_text(engine, other),
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
            lines.push(format!("{indent}  in use: {}", users(engine, shortage)));
        }
        let remedies = shortage.remedies.iter().map(|one| remedy(engine, shortage, *one));
        lines.push(format!("{indent}  would help: {}", remedies.collect::<Vec<_>>().join("; or ")));
    }
    topology_text::lines(engine, one, indent, lines);
}

/// Why pods may not run on a flavor's nodes. The flavor is named already.
fn unsuitable(engine: &Engine, reason: &NoFitReason) -> String {
    match reason {
        NoFitReason::Taint { flavor, taint } => {
            let spec = engine.state.flavor(*flavor);
            let taint = spec.and_then(|spec| spec.taints.get(*taint)).map(Taint::to_string);
            format!("its taint {} is not tolerated", taint.unwrap_or_default())
        }
        NoFitReason::Affinity(_) => "node selector or affinity exclude it".to_owned(),
        NoFitReason::FlavorNotFound(_) => "it does not exist".to_owned(),
        NoFitReason::FlavorNotAllowed(_) => {
            "it is not among the flavors that are allowed".to_owned()
        }
        NoFitReason::DiffersFromReplacedSlice { original, .. } => {
            let original = original.map_or("nothing", |id| engine.names().flavors.name(id));
            format!("the slice that is replaced has {original}")
        }
        NoFitReason::NoTopology(_) => "the pods ask for a topology, and it has none".to_owned(),
        NoFitReason::OnlyTopologyAware(_) => {
            "it takes only pods that ask for its topology".to_owned()
        }
        NoFitReason::NoTopologyLevel(_) => {
            "its topology lacks the level that the pods ask for".to_owned()
        }
        other => super::in_text(engine, other),
    }
}

fn missing(engine: &Engine, one: &QuotaShortage) -> String {
    let (_, resource) = names(engine, one.slot);
    let say = |amount: Amount| format_quantity(resource, amount);
    let mut text = format!("{} {resource} asked for", say(one.request));
    if one.earlier > Amount::ZERO {
        text += &format!(" beside {} for other pod sets", say(one.earlier));
    }
    if one.exceeds_maximum() {
        format!(
            "{text}, never more than {} to be had, {} missing",
            say(one.most.clip()),
            say(one.missing)
        )
    } else {
        format!("{text}, {} free, {} missing", say(one.free), say(one.missing))
    }
}

fn users(engine: &Engine, one: &QuotaShortage) -> String {
    let (_, resource) = names(engine, one.slot);
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
    let (_, resource) = names(engine, one.slot);
    let say = |amount: Amount| format!("{} {resource}", format_quantity(resource, amount));
    match remedy {
        QuotaRemedy::Free(amount) => format!("{} given back", say(amount)),
        QuotaRemedy::AllowReclaim(amount) => {
            format!("reclaimWithinCohort, since {} of its own is lent", say(amount))
        }
        QuotaRemedy::AllowPreemption(1) => {
            "withinClusterQueue, since 1 has lower priority".to_owned()
        }
        QuotaRemedy::AllowPreemption(lower) => {
            format!("withinClusterQueue, since {lower} have lower priority")
        }
        QuotaRemedy::RaiseBorrowingLimit(amount) => {
            format!("a borrowingLimit higher by {}", say(amount))
        }
        QuotaRemedy::LendMore(amount) => format!("others lending {} more", say(amount)),
        QuotaRemedy::RaiseQuota(amount) => format!("a quota larger by {}", say(amount)),
    }
}
