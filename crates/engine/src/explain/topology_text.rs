//! Renders the topology part of an explanation: whether pods fit into the topology of a flavor, and what is
//! missing.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::explain::explanation::{FlavorExplanation, TopologyExplanation};
use crate::explain::quantity::format_quantity;
use crate::spec::TopologyTiming;
use crate::topology::{
    FittingCount, HOSTNAME_LABEL, LimitingResource, NodeMismatch, PlacementRemedy,
    PlacementShortfall, TopologyMode, TopologyUsage,
};

/// Lines about a flavor; none if the flavor has no topology and lacks quota.
pub(super) fn lines(
    engine: &Engine,
    one: &FlavorExplanation,
    indent: &str,
    lines: &mut Vec<String>,
) {
    let flavor = engine.names().flavors.name(one.flavor);
    let quota = if one.has_quota() { "enough quota is free, " } else { "" };
    let but = if one.has_quota() { "but " } else { "" };
    let mut say = |text: String| lines.push(format!("{indent}flavor {flavor}: {text}"));
    match &one.topology {
        TopologyExplanation::NotNeeded if one.has_quota() => say("enough quota is free".to_owned()),
        TopologyExplanation::NotNeeded => {}
        TopologyExplanation::Delayed(when) => say(format!("{quota}{}", delayed(*when))),
        TopologyExplanation::Fits if one.has_quota() => {
            say("enough quota is free, and the pods fit into its topology".to_owned());
        }
        TopologyExplanation::Fits => say("the pods fit into its topology".to_owned()),
        TopologyExplanation::InvalidRequest(reason) => {
            say(format!(
                "{quota}{but}its topology cannot satisfy the request: {}",
                reason.message()
            ));
        }
        TopologyExplanation::Shortfall(shortfall) => {
            say(format!("{quota}{but}{}", missing(shortfall)));
            details(engine, shortfall, indent, lines);
        }
    }
}

/// What a topology lacks, in one line.
pub(super) fn shortfall(engine: &Engine, one: &PlacementShortfall) -> String {
    match &one.limiting_resource {
        Some(resource) => format!("{}, {}", missing(one), limiting(engine, one, resource)),
        None => missing(one),
    }
}

fn delayed(when: TopologyTiming) -> &'static str {
    match when {
        TopologyTiming::WithQuota | TopologyTiming::AfterChecks => {
            "its topology is assigned when its admission checks are ready"
        }
        TopologyTiming::OnWorker => "its topology is assigned in a worker cluster",
    }
}

/// The display name of a level.
fn level(label: &str) -> &str {
    if label == HOSTNAME_LABEL { "node" } else { label }
}

fn within(label: &str) -> String {
    format!("{} one {}", if label == HOSTNAME_LABEL { "on" } else { "in" }, level(label))
}

fn counted(count: i64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn requested(shortfall: &PlacementShortfall) -> String {
    match &shortfall.slice {
        Some((label, size)) => {
            let each = format!("of {} {}", counted(*size, "pod"), within(label));
            format!("{} {each}", counted(shortfall.requested, "slice"))
        }
        None => counted(shortfall.requested, "pod"),
    }
}

fn missing(shortfall: &PlacementShortfall) -> String {
    let requested = requested(shortfall);
    let leader = if shortfall.has_leader { " and their leader" } else { "" };
    let constraint = match &shortfall.mode {
        TopologyMode::Required(label) => format!("all {}", within(label)),
        TopologyMode::Preferred(label) => format!("preferably all {}", within(label)),
        TopologyMode::Unconstrained => "anywhere".to_owned(),
    };
    let text = format!("{requested}{leader} requested, {constraint}");
    if shortfall.exceeds_maximum() {
        let maximum = fitting(shortfall.maximum, "none", |units| format!("at most {units}"));
        return format!("{text}; fitting when empty: {maximum}");
    }
    let at_most = if shortfall.domain.is_some() { "at most " } else { "" };
    format!(
        "{text}; fitting now: {}",
        fitting(shortfall.fit, "none", |units| format!("{at_most}{units}"))
    )
}

fn fitting(fit: FittingCount, none: &str, some: impl Fn(i64) -> String) -> String {
    let units = if fit.units == 0 { none.to_owned() } else { some(fit.units) };
    let leader = if fit.leader { "" } else { ", without the leader" };
    format!("{units}{leader}")
}

fn domain_line(shortfall: &PlacementShortfall, domain: &str) -> String {
    if shortfall.exceeds_maximum() {
        format!("largest domain: {domain}")
    } else if shortfall.fit_in_domain == shortfall.fit {
        format!("nearest domain: {domain}")
    } else {
        let there = fitting(shortfall.fit_in_domain, "none", |units| units.to_string());
        format!("nearest domain: {domain}, fitting there: {there}")
    }
}

fn details(engine: &Engine, shortfall: &PlacementShortfall, indent: &str, lines: &mut Vec<String>) {
    let mut say = |text: String| lines.push(format!("{indent}  {text}"));
    if let Some(domain) = &shortfall.domain {
        say(domain_line(shortfall, &domain.join("/")));
    }
    if shortfall.earlier > 0 {
        say(format!("other pod sets have {} there", counted(shortfall.earlier, "pod")));
    }
    if let Some(one) = &shortfall.limiting_resource {
        say(limiting(engine, shortfall, one));
    } else if shortfall.leaves == 0 {
        say("the topology has no nodes".to_owned());
    } else if shortfall.mismatches.iter().map(|one| one.1).sum::<usize>() < shortfall.leaves {
        say("the requested resources are free in different domains".to_owned());
    }
    for (why, leaves) in &shortfall.mismatches {
        say(format!("excluded: {}", mismatch(shortfall, why, *leaves)));
    }
    if !shortfall.users.is_empty() {
        say(format!("used by: {}", topology_users(engine, shortfall)));
    }
    let remedies = shortfall.remedies.iter().map(|one| remedy(shortfall, *one));
    say(format!("would help: {}", remedies.collect::<Vec<_>>().join("; or ")));
}

fn limiting(engine: &Engine, shortfall: &PlacementShortfall, one: &LimitingResource) -> String {
    let resource = engine.names().resources.name(one.resource);
    let say = |amount: Amount| format_quantity(resource, amount);
    let free = if shortfall.exceeds_maximum() { "in total" } else { "free" };
    let mut text = format!("{} {resource} requested, {} {free}", say(one.request), say(one.free));
    if one.largest < one.free {
        text += &format!(", {} at most {}", say(one.largest), within(&shortfall.lowest_level));
    }
    format!("{text}, {} missing", say(one.missing))
}

fn mismatch(shortfall: &PlacementShortfall, why: &NodeMismatch, count: usize) -> String {
    let leaves = i64::try_from(shortfall.leaves).unwrap_or(i64::MAX);
    let of = format!("{count} of {}", counted(leaves, level(&shortfall.lowest_level)));
    match why {
        NodeMismatch::Taint(taint) => format!("{of}, untolerated taint {taint}"),
        NodeMismatch::Selector => format!("{of}, by node selector"),
        NodeMismatch::Affinity => format!("{of}, by node affinity"),
    }
}

fn topology_users(engine: &Engine, shortfall: &PlacementShortfall) -> String {
    let resource = shortfall
        .limiting_resource
        .as_ref()
        .map_or("pods", |one| engine.names().resources.name(one.resource));
    let one = |user: &TopologyUsage| {
        let amount = format_quantity(resource, user.amount);
        let Some(id) = user.workload else {
            return format!("pods not managed by TAS {amount}");
        };
        let admission = engine.state.workloads.admission(id);
        let queue = admission.map_or("", |one| engine.names().queues.name(one.queue));
        format!("{} ({queue}) {amount}", engine.names().workloads.name(id))
    };
    let mut all: Vec<String> = shortfall.users.iter().map(one).collect();
    if shortfall.more_users > 0 {
        all.push(format!("and {} more", shortfall.more_users));
    }
    all.join(", ")
}

fn remedy(shortfall: &PlacementShortfall, remedy: PlacementRemedy) -> String {
    let fit = if shortfall.exceeds_maximum() { shortfall.maximum } else { shortfall.fit_in_domain };
    let unit = if shortfall.slice.is_some() { "more slice" } else { "more pod" };
    let more = (shortfall.missing() > 0).then(|| counted(shortfall.missing(), unit));
    let leader = (!fit.leader).then(|| "the leader".to_owned());
    let missing = more.into_iter().chain(leader).collect::<Vec<_>>().join(" and ");
    let there = if shortfall.domain.is_some() { " there" } else { "" };
    match remedy {
        PlacementRemedy::ReleaseCapacity => format!("releasing capacity for {missing}{there}"),
        PlacementRemedy::PreferInsteadOfRequire => {
            "preferring the level instead of requiring it, since the pods fit then".to_owned()
        }
        PlacementRemedy::AddNodes => format!("nodes with capacity for {missing}{there}"),
    }
}
