//! Our own words for places: whether pods find some in the topology of a flavor, and if not, what is missing.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::explain::pending_explanation::{FlavorExplanation, TopologyExplanation};
use crate::explain::quantity::format_quantity;
use crate::spec::TopologyTiming;
use crate::topology::{
    FittingCount, HOSTNAME_LABEL, LimitingResource, NodeMismatch, PlacementRemedy,
    PlacementShortfall, TopologyMode, TopologyUsage,
};

/// Lines about a flavor; a flavor without a topology has none.
pub(super) fn lines(
    engine: &Engine,
    one: &FlavorExplanation,
    indent: &str,
    lines: &mut Vec<String>,
) {
    let flavor = engine.names().flavors.name(one.flavor);
    let quota = if one.has_quota() { "enough is free, " } else { "" };
    let but = if one.has_quota() { "but " } else { "" };
    let mut say = |text: String| lines.push(format!("{indent}flavor {flavor}: {text}"));
    match &one.places {
        TopologyExplanation::NotNeeded if one.has_quota() => say("enough is free".to_owned()),
        TopologyExplanation::NotNeeded => {}
        TopologyExplanation::Delayed(when) => say(format!("{quota}{}", put_off(*when))),
        TopologyExplanation::Fits if one.has_quota() => {
            say("enough is free, and places too".to_owned());
        }
        TopologyExplanation::Fits => say("there are places".to_owned()),
        TopologyExplanation::InvalidRequest(reason) => {
            say(format!("{quota}{but}its topology never has such places: {}", reason.message()));
        }
        TopologyExplanation::Shortfall(shortfall) => {
            say(format!("{quota}{but}{}", missing(shortfall)));
            details(engine, shortfall, indent, lines);
        }
    }
}

fn put_off(when: TopologyTiming) -> &'static str {
    match when {
        TopologyTiming::WithQuota | TopologyTiming::AfterChecks => {
            "places are looked for when its checks are ready"
        }
        TopologyTiming::OnWorker => "places are looked for in another cluster",
    }
}

/// A level as people call it.
fn level(label: &str) -> &str {
    if label == HOSTNAME_LABEL { "machine" } else { label }
}

fn within(label: &str) -> String {
    format!("{} one {}", if label == HOSTNAME_LABEL { "on" } else { "in" }, level(label))
}

fn counted(count: i64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn missing(shortfall: &PlacementShortfall) -> String {
    let asked = match &shortfall.slice {
        Some((label, size)) => {
            let each = format!("of {} {}", counted(*size, "pod"), within(label));
            format!("{} {each}", counted(shortfall.requested, "slice"))
        }
        None => counted(shortfall.requested, "pod"),
    };
    let leader = if shortfall.has_leader { " and their leader" } else { "" };
    let together = match &shortfall.mode {
        TopologyMode::Required(label) => format!("all {}", within(label)),
        TopologyMode::Preferred(label) => format!("preferably all {}", within(label)),
        TopologyMode::Unconstrained => "anywhere".to_owned(),
    };
    let text = format!("{asked}{leader} asked for, {together}");
    if shortfall.exceeds_maximum() {
        let most = fit(shortfall.maximum, "any", |units| format!("more than {units}"));
        return format!("{text}, never places for {most}");
    }
    let at_most = if shortfall.domain.is_some() { " at most" } else { "" };
    format!(
        "{text}, places for {}",
        fit(shortfall.fit, "none", |units| format!("{units}{at_most}"))
    )
}

fn fit(fit: FittingCount, none: &str, some: impl Fn(i64) -> String) -> String {
    let units = if fit.units == 0 { none.to_owned() } else { some(fit.units) };
    let leader = if fit.leader { "" } else { ", and none for the leader" };
    format!("{units}{leader}")
}

fn details(engine: &Engine, shortfall: &PlacementShortfall, indent: &str, lines: &mut Vec<String>) {
    let mut say = |text: String| lines.push(format!("{indent}  {text}"));
    if let Some(domain) = &shortfall.domain {
        let domain = domain.join("/");
        if shortfall.exceeds_maximum() {
            say(format!("the largest is {domain}"));
        } else if shortfall.fit_in_domain == shortfall.fit {
            say(format!("the nearest is {domain}"));
        } else {
            let there = fit(shortfall.fit_in_domain, "none", |units| units.to_string());
            say(format!("the nearest is {domain}, with places for {there}"));
        }
    }
    if shortfall.earlier > 0 {
        say(format!("other pod sets have {} there", counted(shortfall.earlier, "place")));
    }
    if let Some(one) = &shortfall.limiting_resource {
        say(short(engine, shortfall, one));
    } else if shortfall.leaves == 0 {
        say("the topology has no machines".to_owned());
    } else if shortfall.mismatches.iter().map(|one| one.1).sum::<usize>() < shortfall.leaves {
        say("what they ask for is free in different places".to_owned());
    }
    for (why, leaves) in &shortfall.mismatches {
        say(format!("not for these pods: {}", unfit(shortfall, why, *leaves)));
    }
    if !shortfall.users.is_empty() {
        say(format!("in use: {}", topology_users(engine, shortfall)));
    }
    let remedies = shortfall.remedies.iter().map(|one| remedy(shortfall, *one));
    say(format!("would help: {}", remedies.collect::<Vec<_>>().join("; or ")));
}

fn short(engine: &Engine, shortfall: &PlacementShortfall, one: &LimitingResource) -> String {
    let resource = engine.names().resources.name(one.resource);
    let say = |amount: Amount| format_quantity(resource, amount);
    let free = if shortfall.exceeds_maximum() { "in all" } else { "free" };
    let mut text = format!("{} {resource} asked for, {} {free}", say(one.request), say(one.free));
    if one.largest < one.free {
        text += &format!(", {} at most {}", say(one.largest), within(&shortfall.lowest_level));
    }
    format!("{text}, {} missing", say(one.missing))
}

fn unfit(shortfall: &PlacementShortfall, why: &NodeMismatch, count: usize) -> String {
    let leaves = i64::try_from(shortfall.leaves).unwrap_or(i64::MAX);
    let of = format!("{count} of {}", counted(leaves, level(&shortfall.lowest_level)));
    match why {
        NodeMismatch::Taint(taint) => format!("{of}, for the taint {taint}"),
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
            return format!("pods that are not ours {amount}");
        };
        let admission = engine.state.workloads.get(id).and_then(|one| one.admission.as_deref());
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
    let who = more.into_iter().chain(leader).collect::<Vec<_>>().join(" and ");
    let there = if shortfall.domain.is_some() { " there" } else { "" };
    match remedy {
        PlacementRemedy::ReleaseCapacity => format!("places for {who} given back{there}"),
        PlacementRemedy::PreferInsteadOfRequire => {
            "preferred instead of required, for that there are places".to_owned()
        }
        PlacementRemedy::AddNodes => format!("machines with places for {who}{there}"),
    }
}
