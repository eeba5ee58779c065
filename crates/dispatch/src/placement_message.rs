//! The message of a condition that explains why no cluster takes a Workload.

use engine::Names;

use crate::{Fleet, PlacementRefusal};

/// Longer messages are cut between clusters. A condition can hold 32 KiB; a shorter text is readable.
const MAX_LENGTH: usize = 900;

/// Lists the reason of each cluster, up to the maximum length.
pub fn placement_message(placement: &PlacementRefusal, fleet: &Fleet, names: &Names) -> String {
    let mut text = "no cluster has room: ".to_owned();
    if placement.reasons.is_empty() {
        return text + "no cluster is configured";
    }
    for (n_listed, (cluster, refusal)) in placement.reasons.iter().enumerate() {
        let part = format!("{}: {}", fleet.name(*cluster), refusal.message(names));
        if text.len() + part.len() > MAX_LENGTH && n_listed > 0 {
            return format!("{text}; and {} more", placement.reasons.len() - n_listed);
        }
        text.push_str(if n_listed > 0 { "; " } else { "" });
        text.push_str(&part);
    }
    text
}
