//! The message of a condition that explains why no cluster takes a Workload.

use engine::Names;

use crate::{Fleet, PlacementRefusal, RefusedFlavors};

/// Longer messages are cut between clusters. A condition can hold 32 KiB; a shorter text is readable.
const MAX_LENGTH: usize = 900;

const NO_ROOM: &str = "no cluster has room";

/// Lists the reason of each cluster, up to the maximum length.
pub fn placement_message(placement: &PlacementRefusal, fleet: &Fleet, names: &Names) -> String {
    format!("{NO_ROOM}: {}", reasons(placement, MAX_LENGTH, fleet, names))
}

/// Lists the reasons of each tried flavor of a Workload with alternative flavors.
pub fn refusals_message(refused: &[RefusedFlavors], fleet: &Fleet, names: &Names) -> String {
    if let [only] = refused {
        return placement_message(&only.refusal, fleet, names);
    }
    let max_length = MAX_LENGTH / refused.len().max(1);
    let part = |one: &RefusedFlavors| {
        let flavors: Vec<_> = one.flavors.iter().map(|id| names.flavors.name(*id)).collect();
        let reasons = reasons(&one.refusal, max_length, fleet, names);
        format!("{NO_ROOM} in {}: {reasons}", flavors.join(", "))
    };
    let parts: Vec<String> = refused.iter().map(part).collect();
    parts.join(". ")
}

fn reasons(
    placement: &PlacementRefusal,
    max_length: usize,
    fleet: &Fleet,
    names: &Names,
) -> String {
    if placement.reasons.is_empty() {
        return "no cluster is configured".to_owned();
    }
    let mut text = String::new();
    for (n_listed, (cluster, refusal)) in placement.reasons.iter().enumerate() {
        let part = format!("{}: {}", fleet.name(*cluster), refusal.message(names));
        if text.len() + part.len() > max_length && n_listed > 0 {
            return format!("{text}; and {} more", placement.reasons.len() - n_listed);
        }
        text.push_str(if n_listed > 0 { "; " } else { "" });
        text.push_str(&part);
    }
    text
}
