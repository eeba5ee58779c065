//! The name of the resource of a kind, where nothing says it: references between objects name kinds.

/// The plural of a kind by the rules of English, as generators of CustomResourceDefinitions make it.
#[must_use]
pub fn guessed_plural(kind: &str) -> String {
    let singular = kind.to_ascii_lowercase();
    let consonant_before_y = singular
        .strip_suffix('y')
        .filter(|stem| !stem.is_empty() && !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match consonant_before_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end)) => {
            format!("{singular}es")
        }
        None => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::guessed_plural;

    #[test]
    fn the_end_of_a_kind_decides() {
        let cases = [
            ("Job", "jobs"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Sandbox", "sandboxes"),
            ("Glass", "glasses"),
            ("Batch", "batches"),
            ("LeaderWorkerSet", "leaderworkersets"),
        ];
        for (kind, plural) in cases {
            assert_eq!(guessed_plural(kind), plural);
        }
    }
}
