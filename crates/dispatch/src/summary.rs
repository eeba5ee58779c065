//! One sentence about why no cluster takes a Workload, for the message of a condition.

use engine::Names;

use crate::{Fleet, Refused};

/// Longer messages are cut between clusters. A condition takes 32 KiB; a person reads less.
const LONGEST: usize = 900;

/// Why no cluster takes a Workload, cluster by cluster, as far as it can be read in one go.
pub fn summary(refused: &Refused, fleet: &Fleet, names: &Names) -> String {
    let mut text = "no cluster has room: ".to_owned();
    if refused.why.is_empty() {
        return text + "no cluster is configured";
    }
    for (told, (cluster, refusal)) in refused.why.iter().enumerate() {
        let part = format!("{}: {}", fleet.name(*cluster), refusal.in_words(names));
        if text.len() + part.len() > LONGEST && told > 0 {
            return format!("{text}; and {} more", refused.why.len() - told);
        }
        text.push_str(if told > 0 { "; " } else { "" });
        text.push_str(&part);
    }
    text
}
