//! Our own words for places: whether pods find some in the topology of a flavor, and if not, what is missing.

use crate::amount::Amount;
use crate::engine::Engine;
use crate::explain::quantity::in_words;
use crate::explain::why::{FlavorWhy, PlacesWhy};
use crate::spec::TopologyTiming;
use crate::topology::{Fit, HOSTNAME, Holder, Lack, PlaceCure, Scarce, Togetherness, Unfit};

/// Lines about a flavor; a flavor without a topology has none.
pub(super) fn lines(engine: &Engine, one: &FlavorWhy, indent: &str, lines: &mut Vec<String>) {
    let flavor = engine.names().flavors.name(one.flavor);
    let quota = if one.has_quota() { "enough is free, " } else { "" };
    let but = if one.has_quota() { "but " } else { "" };
    let mut say = |text: String| lines.push(format!("{indent}flavor {flavor}: {text}"));
    match &one.places {
        PlacesWhy::NotNeeded if one.has_quota() => say("enough is free".to_owned()),
        PlacesWhy::NotNeeded => {}
        PlacesWhy::PutOff(when) => say(format!("{quota}{}", put_off(*when))),
        PlacesWhy::Found if one.has_quota() => say("enough is free, and places too".to_owned()),
        PlacesWhy::Found => say("there are places".to_owned()),
        PlacesWhy::Contradiction(reason) => {
            say(format!("{quota}{but}its topology never has such places: {}", reason.in_words()));
        }
        PlacesWhy::Lack(lack) => {
            say(format!("{quota}{but}{}", missing(lack)));
            details(engine, lack, indent, lines);
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
    if label == HOSTNAME { "machine" } else { label }
}

fn within(label: &str) -> String {
    format!("{} one {}", if label == HOSTNAME { "on" } else { "in" }, level(label))
}

fn counted(count: i64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn missing(lack: &Lack) -> String {
    let asked = match &lack.slice {
        Some((label, size)) => {
            let each = format!("of {} {}", counted(*size, "pod"), within(label));
            format!("{} {each}", counted(lack.wanted, "slice"))
        }
        None => counted(lack.wanted, "pod"),
    };
    let leader = if lack.led { " and their leader" } else { "" };
    let together = match &lack.together {
        Togetherness::Required(label) => format!("all {}", within(label)),
        Togetherness::Preferred(label) => format!("preferably all {}", within(label)),
        Togetherness::Unconstrained => "anywhere".to_owned(),
    };
    let text = format!("{asked}{leader} asked for, {together}");
    if lack.is_hopeless() {
        let most = fit(lack.most, "any", |units| format!("more than {units}"));
        return format!("{text}, never places for {most}");
    }
    let at_most = if lack.domain.is_some() { " at most" } else { "" };
    format!("{text}, places for {}", fit(lack.fit, "none", |units| format!("{units}{at_most}")))
}

fn fit(fit: Fit, none: &str, some: impl Fn(i64) -> String) -> String {
    let units = if fit.units == 0 { none.to_owned() } else { some(fit.units) };
    let leader = if fit.leader { "" } else { ", and none for the leader" };
    format!("{units}{leader}")
}

fn details(engine: &Engine, lack: &Lack, indent: &str, lines: &mut Vec<String>) {
    let mut say = |text: String| lines.push(format!("{indent}  {text}"));
    if let Some(domain) = &lack.domain {
        let domain = domain.join("/");
        if lack.is_hopeless() {
            say(format!("the largest is {domain}"));
        } else if lack.there == lack.fit {
            say(format!("the nearest is {domain}"));
        } else {
            let there = fit(lack.there, "none", |units| units.to_string());
            say(format!("the nearest is {domain}, with places for {there}"));
        }
    }
    if lack.earlier > 0 {
        say(format!("other pod sets have {} there", counted(lack.earlier, "place")));
    }
    if let Some(one) = &lack.scarce {
        say(short(engine, lack, one));
    } else if lack.leaves == 0 {
        say("the topology has no machines".to_owned());
    } else if lack.unfit.iter().map(|one| one.1).sum::<usize>() < lack.leaves {
        say("what they ask for is free in different places".to_owned());
    }
    for (why, leaves) in &lack.unfit {
        say(format!("not for these pods: {}", unfit(lack, why, *leaves)));
    }
    if !lack.holders.is_empty() {
        say(format!("in use: {}", holders(engine, lack)));
    }
    let cures = lack.cures.iter().map(|one| cure(lack, *one));
    say(format!("would help: {}", cures.collect::<Vec<_>>().join("; or ")));
}

fn short(engine: &Engine, lack: &Lack, one: &Scarce) -> String {
    let resource = engine.names().resources.name(one.resource);
    let say = |amount: Amount| in_words(resource, amount);
    let free = if lack.is_hopeless() { "in all" } else { "free" };
    let mut text = format!("{} {resource} asked for, {} {free}", say(one.request), say(one.free));
    if one.largest < one.free {
        text += &format!(", {} at most {}", say(one.largest), within(&lack.lowest));
    }
    format!("{text}, {} missing", say(one.missing))
}

fn unfit(lack: &Lack, why: &Unfit, count: usize) -> String {
    let leaves = i64::try_from(lack.leaves).unwrap_or(i64::MAX);
    let of = format!("{count} of {}", counted(leaves, level(&lack.lowest)));
    match why {
        Unfit::Taint(taint) => format!("{of}, for the taint {taint}"),
        Unfit::Selector => format!("{of}, by node selector"),
        Unfit::Affinity => format!("{of}, by node affinity"),
    }
}

fn holders(engine: &Engine, lack: &Lack) -> String {
    let resource =
        lack.scarce.as_ref().map_or("pods", |one| engine.names().resources.name(one.resource));
    let one = |holder: &Holder| {
        let amount = in_words(resource, holder.amount);
        let Some(id) = holder.workload else {
            return format!("pods that are not ours {amount}");
        };
        let admission = engine.state.workloads.get(id).and_then(|one| one.admission.as_deref());
        let queue = admission.map_or("", |one| engine.names().queues.name(one.queue));
        format!("{} ({queue}) {amount}", engine.names().workloads.name(id))
    };
    let mut all: Vec<String> = lack.holders.iter().map(one).collect();
    if lack.more_holders > 0 {
        all.push(format!("and {} more", lack.more_holders));
    }
    all.join(", ")
}

fn cure(lack: &Lack, cure: PlaceCure) -> String {
    let fit = if lack.is_hopeless() { lack.most } else { lack.there };
    let unit = if lack.slice.is_some() { "more slice" } else { "more pod" };
    let more = (lack.missing() > 0).then(|| counted(lack.missing(), unit));
    let leader = (!fit.leader).then(|| "the leader".to_owned());
    let who = more.into_iter().chain(leader).collect::<Vec<_>>().join(" and ");
    let there = if lack.domain.is_some() { " there" } else { "" };
    match cure {
        PlaceCure::Free => format!("places for {who} given back{there}"),
        PlaceCure::Prefer => "preferred instead of required, for that there are places".to_owned(),
        PlaceCure::MoreMachines => format!("machines with places for {who}{there}"),
    }
}
