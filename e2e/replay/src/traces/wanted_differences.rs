//! Differences from recorded traces that are wanted, each with its rule and reason: `differences.tsv`.

use crate::compare::Difference;

const FILE: &str = include_str!("../../differences.tsv");

/// A line of the file.
struct WantedDifference {
    case: &'static str,
    text: &'static str,
    reason: &'static str,
}

fn lines() -> impl Iterator<Item = WantedDifference> {
    let lines = FILE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.filter_map(|line| {
        let mut columns = line.split('\t');
        let [case, text, reason] = [columns.next()?, columns.next()?, columns.next()?];
        Some(WantedDifference { case, text, reason })
    })
}

/// Why a case differs; `None` if a difference has no reason.
pub(super) fn reason(case: &str, found: &[Difference]) -> Option<&'static str> {
    let of = |difference: &Difference| {
        let mut wanted = lines();
        let wanted =
            wanted.find(|one| case.contains(one.case) && difference.text.contains(one.text));
        wanted.map(|one| one.reason)
    };
    let reasons: Option<Vec<&str>> = found.iter().map(of).collect();
    reasons?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Level;

    #[test]
    fn every_line_has_a_reason() {
        let n_lines =
            FILE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        assert_eq!(lines().count(), n_lines);
        assert!(lines().all(|line| line.reason.len() > 40 && line.reason.contains("upstream")));
    }

    #[test]
    fn a_case_with_another_difference_as_well_has_no_reason() {
        let difference = |text: &str| Difference { level: Level::Objects, text: text.to_owned() };
        let known = difference("Workload/g: .conditions.PodsReady.reason: \"WaitForRecovery\"");
        let case = "PodGroup/life/one-succeeds";
        assert!(reason(case, std::slice::from_ref(&known)).is_some());
        assert_eq!(reason(case, &[known, difference("Pod/a is not gone")]), None);
        assert_eq!(reason(case, &[]), None);
    }
}
