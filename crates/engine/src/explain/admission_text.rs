//! Renders an [`AdmissionExplanation`] as one line: what would make the Workload admissible, then what is missing.
//!
//! Anyone with the rights of a namespace may read it, so neither Workloads of other namespaces nor other ClusterQueues are named.

use crate::amount::Amount;
use crate::cycle::alone::Admissibility;
use crate::engine::Engine;
use crate::explain::admission_explanation::{
    AdmissionExplanation, FlavorAmount, SufficientChange, WorkloadEnd,
};
use crate::explain::condition_message::slot_names;
use crate::explain::explanation::{
    FlavorExplanation, PendingExplanation, PodSetExplanation, QueueingStatus, TopologyExplanation,
};
use crate::explain::explanation_text::{headline, topology_error, unsuitable};
use crate::explain::quantity::format_quantity;
use crate::explain::quota_shortage::{QueueUsage, QuotaShortage};
use crate::explain::topology_text;
use crate::ids::{QueueId, WorkloadId};

/// Flavors that are explained per pod set.
const MAX_FLAVORS: usize = 5;

/// The explanation; `None` if there is nothing to explain: the Workload is about to be admitted, or not eligible.
pub fn admission_text(engine: &Engine, explanation: &AdmissionExplanation) -> Option<String> {
    let AdmissionExplanation { why, admissible, changes } = explanation;
    match why.status {
        QueueingStatus::HoldsQuota | QueueingStatus::NotEligible(_) => None,
        QueueingStatus::Pending(1..) if *admissible => Some(headline(engine, why)),
        _ if *admissible => None,
        QueueingStatus::Inadmissible | QueueingStatus::Pending(_) if why.better.is_none() => {
            Some(what_is_missing(engine, why, changes))
        }
        _ => Some(headline(engine, why)),
    }
}

fn what_is_missing(
    engine: &Engine,
    why: &PendingExplanation,
    changes: &[SufficientChange],
) -> String {
    let mut sentences = Vec::new();
    if !changes.is_empty() {
        let changes = changes.iter().map(|one| change(engine, why.workload, one));
        sentences.push(format!("Admissible {}.", changes.collect::<Vec<_>>().join("; or ")));
    }
    if why.preemption_gated {
        sentences.push("Its preemption gates are closed.".to_owned());
    }
    let many = why.pod_sets.len() > 1;
    let facts = why.pod_sets.iter().flat_map(|one| pod_set(engine, why.queue, one, many));
    let facts: Vec<String> = facts.collect();
    if !facts.is_empty() {
        sentences.push(format!("Missing: {}.", facts.join("; ")));
    }
    sentences.join(" ")
}

fn change(engine: &Engine, pending: WorkloadId, change: &SufficientChange) -> String {
    match change {
        SufficientChange::MoreQuota(added, how) => {
            let by = if *how == Admissibility::Preempts { ", by preemption" } else { "" };
            let added = added.iter().map(|one| format!("+{}", in_flavor(engine, *one)));
            format!("with {}{by}", added.collect::<Vec<_>>().join(" and "))
        }
        SufficientChange::Priority(priority) => {
            format!("with priority ≥ {priority}, by preemption")
        }
        SufficientChange::End(end) => format!("when {} ends", ended(engine, pending, end)),
    }
}

fn in_flavor(engine: &Engine, (flavor, resource, amount): FlavorAmount) -> String {
    let (flavor, resource) =
        (engine.names().flavors.name(flavor), engine.names().resources.name(resource));
    format!("{} {resource} in flavor {flavor}", format_quantity(resource, amount))
}

fn ended(engine: &Engine, pending: WorkloadId, end: &WorkloadEnd) -> String {
    let namespace = |id| engine.state.workloads.get(id).map(|one| one.namespace);
    if namespace(pending) == namespace(end.workload) {
        let name = engine.names().workloads.name(end.workload);
        return name.rsplit_once('/').map_or(name, |(_, name)| name).to_owned();
    }
    let own = engine.state.workloads.get(pending).and_then(|one| one.queue);
    if own == Some(end.queue) {
        let queue = engine.names().queues.name(end.queue);
        return format!("a Workload of another namespace in ClusterQueue {queue}");
    }
    "a Workload of another ClusterQueue".to_owned()
}

/// The flavors that do not fit a pod set, of resource groups without one that fits.
fn unfit<'a>(
    engine: &Engine,
    queue: Option<QueueId>,
    one: &'a PodSetExplanation,
) -> Vec<&'a FlavorExplanation> {
    let groups = queue.map(|id| &engine.state.queues.at(id).groups);
    let groups = groups.into_iter().flat_map(|groups| groups.iter());
    groups.flat_map(|group| one.unfit_in(&group.flavors)).collect()
}

fn pod_set(
    engine: &Engine,
    queue: Option<QueueId>,
    one: &PodSetExplanation,
    many: bool,
) -> Vec<String> {
    let uncovered = one.uncovered.iter().map(|&resource| {
        let resource = engine.names().resources.name(resource);
        format!("{resource} is not covered by any resource group of the queue")
    });
    let unfit = unfit(engine, queue, one);
    let more = unfit.len().saturating_sub(MAX_FLAVORS);
    let unfit = unfit.into_iter().take(MAX_FLAVORS).map(|one| flavor(engine, queue, one));
    let error = one.topology_error.iter().map(|reason| topology_error(engine, reason));
    let mut facts: Vec<String> = uncovered.chain(unfit).chain(error).collect();
    if more > 0 {
        facts.push(format!("and {more} more flavors"));
    }
    if many {
        facts.iter_mut().for_each(|fact| *fact = format!("pod set {}, {fact}", one.name));
    }
    facts
}

fn flavor(engine: &Engine, queue: Option<QueueId>, one: &FlavorExplanation) -> String {
    let name = engine.names().flavors.name(one.flavor);
    if let Some(reason) = &one.unsuitable {
        return format!("flavor {name}: {}", unsuitable(engine, reason));
    }
    let mut facts: Vec<String> =
        one.shortages.iter().map(|shortage| missing(engine, queue, shortage)).collect();
    match &one.topology {
        TopologyExplanation::InvalidRequest(reason) => {
            facts.push(format!("its topology cannot satisfy the request: {}", reason.message()));
        }
        TopologyExplanation::Shortfall(shortfall) => {
            facts.push(topology_text::shortfall(engine, shortfall));
        }
        TopologyExplanation::NotNeeded
        | TopologyExplanation::Delayed(_)
        | TopologyExplanation::Fits => {}
    }
    format!("flavor {name}: {}", facts.join(", "))
}

fn missing(engine: &Engine, queue: Option<QueueId>, one: &QuotaShortage) -> String {
    let (_, resource) = slot_names(engine, one.slot);
    let say = |amount: Amount| format_quantity(resource, amount);
    let wanted = say(one.earlier + one.request);
    let text = format!("{} of {wanted} {resource}", say(one.missing));
    if one.exceeds_maximum() {
        return format!("{text} (at most {} available)", say(one.maximum.clip()));
    }
    let (own, others): (Vec<&QueueUsage>, Vec<&QueueUsage>) =
        one.users.iter().partition(|user| Some(user.queue) == queue);
    let own = own.into_iter().map(|user| {
        let queue = engine.names().queues.name(user.queue);
        let borrowed = if user.borrowed > Amount::ZERO {
            format!(", {} of it borrowed", say(user.borrowed))
        } else {
            String::new()
        };
        format!("{queue} {}{borrowed}", say(user.amount))
    });
    let mut users: Vec<String> = own.collect();
    if !others.is_empty() {
        let amount = others.iter().fold(Amount::ZERO, |sum, user| sum + user.amount);
        users.push(format!("others in the cohort {}", say(amount)));
    }
    if users.is_empty() { text } else { format!("{text} (used by {})", users.join("; ")) }
}
