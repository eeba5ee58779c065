//! What is found of a case: when a step has settled, and what a report counts.

use std::time::Duration;

use tokio::time::Instant;

use super::{case::TraceCase, cut_cases, details::DetailCounts, wanted_differences};
use crate::{
    compare::{Difference, Level},
    report::{CutCase, ReplayReport},
};

/// How long the objects of a step may take.
pub(super) const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the objects of a step after a wanted difference may take, if only those are left or the case is known to end at the
/// step: they may last for the rest of the case.
const FURTHER_TIMEOUT: Duration = Duration::from_secs(20);

/// How long details that differ may still change once the objects are as recorded.
const DETAILS_TIMEOUT: Duration = Duration::from_secs(2);

/// What was found of a case.
#[derive(Debug, Default)]
pub(super) struct JudgedCase {
    /// Those that are not wanted: the case fails.
    pub(super) differences: Vec<Difference>,
    /// Those that are wanted.
    pub(super) wanted: Vec<Difference>,
    /// Steps after the first wanted difference that are as recorded.
    pub(super) n_further: usize,
    /// The step that differed after one with a wanted difference. What comes after it is not compared.
    pub(super) cut_at: Option<u64>,
    pub(super) details: DetailCounts,
}

impl JudgedCase {
    /// How long the objects of a step of a case may take that differ so. Time alone separates what follows from a wanted difference
    /// from what is late.
    pub(super) fn timeout(&self, case: &str, step: u64, found: &[Difference]) -> Duration {
        let may_last = !self.wanted.is_empty()
            && (wanted_differences::reason(case, found).is_some()
                || cut_cases::is_listed(case, step));
        if may_last { FURTHER_TIMEOUT } else { SETTLE_TIMEOUT }
    }

    /// Whether a second look at the case alone may show that it passes, or is not cut.
    pub(super) fn is_doubtful(&self, case: &str) -> bool {
        let is_unlisted = |step| !cut_cases::is_listed(case, step);
        self.fails(case) || self.cut_at.is_some_and(is_unlisted)
    }

    /// Whether something differs that is not wanted. The Events of a case are compared after its steps.
    pub(super) fn fails(&self, case: &str) -> bool {
        let is_wanted = wanted_differences::reason(case, &self.differences).is_some();
        !self.differences.is_empty() && !is_wanted
    }

    /// Takes what differs in the next step of a case, of this number. Returns whether the case goes on.
    ///
    /// A wanted difference ends no case. What differs after it and has no line of its own follows from it: the case ends there, and
    /// does not fail.
    pub(super) fn take(&mut self, case: &str, step: u64, found: Vec<Difference>) -> bool {
        if found.is_empty() {
            self.n_further += usize::from(!self.wanted.is_empty());
        } else if wanted_differences::reason(case, &found).is_some() {
            self.wanted.extend(found);
        } else if self.wanted.is_empty() {
            self.differences = found;
        } else {
            self.cut_at = Some(step);
        }
        self.differences.is_empty() && self.cut_at.is_none()
    }
}

/// What was found of a case, or why it could not be run.
pub(super) type CaseDifferences = anyhow::Result<JudgedCase>;

/// The looks at a step so far.
pub(super) struct Settling {
    begin: Instant,
    /// Since when the objects are as recorded, with the best details since then.
    settled: Option<(Instant, DetailCounts)>,
}

impl Settling {
    pub(super) fn begin(now: Instant) -> Self {
        Self { begin: now, settled: None }
    }

    /// The verdict of a step after one more look, if no further look is needed. `differences` are those of the objects, which may
    /// take so long.
    pub(super) fn look(
        &mut self,
        (now, timeout): (Instant, Duration),
        differences: Vec<Difference>,
        details: DetailCounts,
    ) -> Option<JudgedCase> {
        let until = self.begin + timeout;
        if !differences.is_empty() {
            // Objects that were as recorded go on: what comes after the step does not count against it.
            if let Some((_, details)) = self.settled.take() {
                return Some(JudgedCase { details, ..JudgedCase::default() });
            }
            return (now >= until).then_some(JudgedCase {
                differences,
                details,
                ..JudgedCase::default()
            });
        }
        let (since, best) = match self.settled.take() {
            Some((since, best)) if best.differences.len() <= details.differences.len() => {
                (since, best)
            }
            earlier => (earlier.map_or(now, |(since, _)| since), details),
        };
        if best.differences.is_empty() || now - since >= DETAILS_TIMEOUT || now >= until {
            return Some(JudgedCase { details: best, ..JudgedCase::default() });
        }
        self.settled = Some((since, best));
        None
    }
}

/// What was found. A case that cannot be run fails alone.
pub(super) fn judged(found: CaseDifferences) -> JudgedCase {
    found.unwrap_or_else(|error| {
        let text = format!("{error:#}");
        let differences = vec![Difference { level: Level::Verdict, text }];
        JudgedCase { differences, ..JudgedCase::default() }
    })
}

/// Counts a case.
pub(super) fn count(report: &mut ReplayReport, case: &TraceCase, judged: JudgedCase) {
    report.details.absorb(judged.details);
    let of_events = wanted_differences::reason(&case.case, &judged.differences);
    if of_events.is_none() && !judged.differences.is_empty() {
        report.failed.push((case.case.clone(), judged.differences));
        return;
    }
    let of_steps = wanted_differences::reason(&case.case, &judged.wanted);
    if let Some(reason) = of_steps.or(of_events) {
        *report.excepted.entry(reason).or_default() += 1;
        report.n_further += judged.n_further;
        let cut = |step| CutCase { case: case.case.clone(), step };
        report.cut.extend(judged.cut_at.map(cut));
    }
    report.passed += 1;
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
        looks.iter().find_map(|(at, objects, n_details)| {
            let now = begin + Duration::from_secs_f64(*at);
            let found = vec![differing("o").remove(0); *objects];
            let judged = settling.look((now, SETTLE_TIMEOUT), found, details(*n_details))?;
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

    fn differing(text: &str) -> Vec<Difference> {
        vec![Difference { level: Level::Objects, text: text.to_owned() }]
    }

    #[test]
    fn a_case_goes_on_after_a_wanted_difference_until_something_else_differs() {
        let case = "PodGroup/life/one-succeeds";
        let wanted = || differing("step 2: .conditions.PodsReady.reason: \"WaitForRecovery\"");
        let other = || differing("step 4: Pod/a is not gone");
        let mut judged = JudgedCase::default();
        assert!(judged.take(case, 1, vec![]));
        assert!(judged.take(case, 2, wanted()) && judged.take(case, 3, vec![]));
        assert!(judged.take(case, 4, wanted()) && judged.take(case, 5, vec![]));
        assert_eq!((judged.wanted.len(), judged.n_further, judged.cut_at), (2, 2, None));
        assert!(!judged.take(case, 6, other()));
        assert_eq!(judged.cut_at, Some(6), "it follows from the wanted one");
        assert!(judged.differences.is_empty());
        let mut failed = JudgedCase::default();
        assert!(!failed.take(case, 1, other()));
        assert!(failed.cut_at.is_none() && failed.differences.len() == 1);
    }

    #[test]
    fn steps_after_a_wanted_difference_are_counted_apart() {
        let case = json!({ "case": "PodGroup/life/one-succeeds", "kind": "PodGroup", "steps": [] });
        let case: TraceCase = from_value(case).expect("a case");
        let mut report = ReplayReport::default();
        let wanted = differing("step 2: .conditions.PodsReady.reason: \"WaitForRecovery\"");
        let judged = JudgedCase { wanted, n_further: 3, cut_at: Some(5), ..JudgedCase::default() };
        count(&mut report, &case, judged);
        let text = report.to_string();
        let cut = CutCase { case: case.case.clone(), step: 5 };
        assert_eq!((report.further_steps(), report.cut()), (3, &[cut][..]));
        let line = "3 steps after an expected difference as recorded; 1 cases end at what follows from one\n";
        assert!(text.contains(line) && text.ends_with("1 passed, 0 failed"), "{text}");
    }

    #[test]
    fn the_details_of_a_case_count_once() {
        let case = json!({ "case": "Job/life/x", "kind": "Job", "steps": [] });
        let case: TraceCase = from_value(case).expect("a case");
        let mut report = ReplayReport::default();
        count(&mut report, &case, JudgedCase { details: details(0), ..JudgedCase::default() });
        assert_eq!((report.passed, report.failed.len()), (1, 0));
        assert_eq!(report.details.counts.values().map(|it| it.same).sum::<usize>(), 1);
        assert_eq!(report.details.differences, [""; 0]);
        let failed = JudgedCase { differences: differing("o"), ..JudgedCase::default() };
        count(&mut report, &case, failed);
        assert_eq!((report.passed, report.failed.len()), (1, 1));
    }

    #[test]
    fn a_case_that_fails_or_is_cut_where_no_line_says_so_is_doubtful() {
        let (listed, other) = ("LeaderWorkerSet/life/deactivated", "PodGroup/life/one-succeeds");
        let wanted = || differing("step 2: .conditions.PodsReady.reason: \"WaitForRecovery\"");
        let cut =
            |step| JudgedCase { wanted: wanted(), cut_at: Some(step), ..JudgedCase::default() };
        assert!(!cut(8).is_doubtful(listed));
        assert!(cut(7).is_doubtful(listed) && cut(8).is_doubtful(other));
        let of_events = |differences| JudgedCase { differences, ..JudgedCase::default() };
        assert!(of_events(differing("o")).is_doubtful(other));
        assert!(!of_events(wanted()).is_doubtful(other));
        assert!(!JudgedCase::default().is_doubtful(other));
    }

    #[test]
    fn only_what_is_known_to_differ_gets_less_time() {
        let (listed, other) = ("LeaderWorkerSet/life/deactivated", "PodGroup/life/one-succeeds");
        let wanted = || differing("step 4: .conditions.PodsReady.reason: \"WaitForRecovery\"");
        let further = JudgedCase { wanted: wanted(), ..JudgedCase::default() };
        let unknown = differing("step 4: Pod/a is not gone");
        assert_eq!(further.timeout(other, 4, &wanted()), FURTHER_TIMEOUT);
        assert_eq!(further.timeout(other, 4, &unknown), SETTLE_TIMEOUT);
        assert_eq!(further.timeout(listed, 8, &unknown), FURTHER_TIMEOUT);
        assert_eq!(JudgedCase::default().timeout(other, 4, &wanted()), SETTLE_TIMEOUT);
    }
}
