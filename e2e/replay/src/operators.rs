//! Cases of the official operators of Ray and AppWrapper, replayed in memory.

use operator_replay::OperatorOutcome;
use serde_json::Value;

use crate::{
    compare::{Difference, Level},
    report::{CutCase, ReplayReport},
};

/// Replays cases and reports on them.
#[must_use]
pub fn run_operators(cases: &[Value]) -> ReplayReport {
    let mut report = ReplayReport::default();
    for case in cases {
        let id = case["name"].as_str().unwrap_or_default().to_owned();
        let found = operator_replay::replay(case);
        report.n_exempt_events += found.n_exempt_events;
        match found.outcome {
            OperatorOutcome::Alike => {
                report.passed += 1;
                for reason in operator_replay::taken_for_equal(case) {
                    *report.excepted.entry(reason).or_default() += 1;
                }
            }
            OperatorOutcome::Wanted(found) => {
                report.passed += 1;
                for reason in found.reasons {
                    *report.excepted.entry(reason).or_default() += 1;
                }
                report.n_further += found.n_further;
                report.cut.extend(found.cut_at.map(|step| CutCase { case: id, step }));
            }
            OperatorOutcome::Skipped(reason) => {
                *report.skipped.entry(reason.to_owned()).or_default() += 1;
            }
            OperatorOutcome::Different(found) => {
                let difference = |text| Difference { level: Level::Objects, text };
                report.failed.push((id, found.into_iter().map(difference).collect()));
            }
        }
    }
    report
}
