//! One sentence about why no cluster takes a Workload, for the message of a condition.

use engine::Names;

use crate::{Fleet, PlacementRefusal};

/// Longer messages are cut between clusters. A condition takes 32 KiB; a person reads less.
const LONGEST: usize = 900;

/// Why no cluster takes a Workload, cluster by cluster, as far as it can be read in one go.
pub fn placement_message(refused: &PlacementRefusal, fleet: &Fleet, names: &Names) -> String {
    let mut text = "no cluster has room: ".to_owned();
    if refused.reasons.is_empty() {
        return text + "no cluster is configured";
    }
    for (told, (cluster, refusal)) in refused.reasons.iter().enumerate() {
        let part = format!("{}: {}", fleet.name(*cluster), refusal.message(names));
        if text.len() + part.len() > LONGEST && told > 0 {
            return format!("{text}; and {} more", refused.reasons.len() - told);
        }
        text.push_str(if told > 0 { "; " } else { "" });
        text.push_str(&part);
    }
    text
}
