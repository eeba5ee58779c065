//! What is found of a case: when a step has settled, and what a report counts.

use std::time::Duration;

use tokio::time::Instant;

use super::{case::TraceCase, details::DetailCounts, wanted_differences};
use crate::{
    compare::{Difference, Level},
    report::ReplayReport,
};

/// How long the objects of a step may take.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long details that differ may still change once the objects are as recorded.
const DETAILS_TIMEOUT: Duration = Duration::from_secs(2);

/// What was found of a case.
#[derive(Debug, Default)]
pub(super) struct JudgedCase {
    pub(super) differences: Vec<Difference>,
    pub(super) details: DetailCounts,
}

/// What was found of a case, or why it could not be run.
pub(super) type CaseDifferences = anyhow::Result<JudgedCase>;

/// The looks at a step so far.
pub(super) struct Settling {
    until: Instant,
    /// Since when the objects are as recorded, with the best details since then.
    settled: Option<(Instant, DetailCounts)>,
}

impl Settling {
    pub(super) fn begin(now: Instant) -> Self {
        Self { until: now + SETTLE_TIMEOUT, settled: None }
    }

    /// The verdict of a step after one more look, if no further look is needed. `lines` say how the objects differ.
    pub(super) fn look(
        &mut self,
        now: Instant,
        lines: Vec<String>,
        details: DetailCounts,
    ) -> Option<JudgedCase> {
        if !lines.is_empty() {
            // Objects that were as recorded go on: what comes after the step does not count against it.
            if let Some((_, details)) = self.settled.take() {
                return Some(JudgedCase { details, ..JudgedCase::default() });
            }
            let text = |line| Difference { level: Level::Objects, text: line };
            let differences = lines.into_iter().map(text).collect();
            return (now >= self.until).then_some(JudgedCase { differences, details });
        }
        let (since, best) = match self.settled.take() {
            Some((since, best)) if best.differences.len() <= details.differences.len() => {
                (since, best)
            }
            earlier => (earlier.map_or(now, |(since, _)| since), details),
        };
        if best.differences.is_empty() || now - since >= DETAILS_TIMEOUT || now >= self.until {
            return Some(JudgedCase { details: best, ..JudgedCase::default() });
        }
        self.settled = Some((since, best));
        None
    }
}

/// Counts a case that passes. Returns one that does not: it may be judged again, and its details count once.
pub(super) fn count<'a>(
    report: &mut ReplayReport,
    case: &'a TraceCase,
    found: CaseDifferences,
) -> Option<(&'a TraceCase, JudgedCase)> {
    // A case that cannot be run fails alone.
    let judged = found.unwrap_or_else(|error| {
        let text = format!("{error:#}");
        let differences = vec![Difference { level: Level::Verdict, text }];
        JudgedCase { differences, ..JudgedCase::default() }
    });
    if let Some(reason) = wanted_differences::reason(&case.case, &judged.differences) {
        *report.excepted.entry(reason).or_default() += 1;
    } else if !judged.differences.is_empty() {
        return Some((case, judged));
    }
    report.details.absorb(judged.details);
    report.passed += 1;
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::traces::details::DetailCount;

    /// A detail that is as recorded, or one that is not.
    fn details(different: usize) -> DetailCounts {
        let differences = vec!["d".to_owned(); different];
        let same = usize::from(different == 0);
        let counts = [("messages of conditions", DetailCount { same, different })].into();
        DetailCounts { counts, differences }
    }

    /// The verdict of looks at these seconds, with so many differing objects and details: when it came, and what differs.
    fn verdict(looks: &[(f64, usize, usize)]) -> Option<(f64, usize, usize)> {
        let begin = Instant::now();
        let mut settling = Settling::begin(begin);
        looks.iter().find_map(|(at, objects, differing)| {
            let now = begin + Duration::from_secs_f64(*at);
            let lines = vec!["o".to_owned(); *objects];
            let judged = settling.look(now, lines, details(*differing))?;
            Some((*at, judged.differences.len(), judged.details.differences.len()))
        })
    }

    #[test]
    fn a_step_settles_with_its_details_or_a_while_after_its_objects() {
        assert_eq!(verdict(&[(0.0, 1, 0), (1.0, 0, 0)]), Some((1.0, 0, 0)));
        assert_eq!(verdict(&[(0.0, 0, 2), (1.0, 0, 1)]), None);
        assert_eq!(verdict(&[(0.0, 0, 2), (1.0, 0, 1), (2.0, 0, 3)]), Some((2.0, 0, 1)));
        assert_eq!(verdict(&[(0.0, 1, 2), (59.0, 2, 1)]), None);
        assert_eq!(verdict(&[(0.0, 1, 2), (60.0, 2, 1)]), Some((60.0, 2, 1)));
    }

    #[test]
    fn objects_that_were_as_recorded_are_not_held_to_what_comes_after() {
        assert_eq!(verdict(&[(0.0, 0, 2), (1.0, 0, 1), (1.5, 3, 4)]), Some((1.5, 0, 1)));
        assert_eq!(verdict(&[(59.0, 0, 1), (60.5, 1, 1)]), Some((60.5, 0, 1)));
    }

    #[test]
    fn the_details_of_a_case_count_once() {
        let case = json!({ "case": "Job/life/x", "kind": "Job", "steps": [] });
        let case: TraceCase = from_value(case).expect("a case");
        let mut report = ReplayReport::default();
        let differences = vec![Difference { level: Level::Objects, text: "o".to_owned() }];
        let failed = JudgedCase { differences, details: details(1) };
        assert!(count(&mut report, &case, Ok(failed)).is_some());
        let passed = JudgedCase { details: details(0), ..JudgedCase::default() };
        assert!(count(&mut report, &case, Ok(passed)).is_none());
        assert_eq!(report.passed, 1);
        assert_eq!(report.details.counts.values().map(|it| it.same).sum::<usize>(), 1);
        assert_eq!(report.details.differences, [""; 0]);
    }
}
