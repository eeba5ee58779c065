//! Cases of which the rest is not compared, each with the step that differs after a wanted difference: `cut-cases.tsv`. What they
//! no longer show another case or test has to show, so that a new line needs a reason.

use std::collections::BTreeSet;

use crate::report::CutCase;

const FILE: &str = include_str!("../../cut-cases.tsv");

/// The cases that are known to end early.
#[must_use]
pub fn listed_cuts() -> BTreeSet<CutCase> {
    let lines = FILE.lines().filter(|line| !line.starts_with('#'));
    let cases = lines.filter_map(|line| {
        let (case, step) = line.split_once('\t')?;
        Some(CutCase { case: case.to_owned(), step: step.parse().ok()? })
    });
    cases.collect()
}

/// Whether a case is known to end at a step.
pub(super) fn is_listed(case: &str, step: u64) -> bool {
    listed_cuts().contains(&CutCase { case: case.to_owned(), step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_case_with_a_step() {
        let n_lines = FILE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(listed_cuts().len(), n_lines);
    }
}
