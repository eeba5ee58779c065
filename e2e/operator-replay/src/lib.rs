//! Replays what the official operators of Ray and AppWrapper did, recorded step by step, against the decisions of `ray` and `appwrapper`.
//!
//! A small cluster in memory takes the place of the API server, the kubelets, other controllers and the garbage collector. The decisions
//! are those that the agent runs; after each step the objects, statuses, events and requests to Ray heads are compared.
//!
//! | module | cases |
//! |---|---|
//! | `ray` | RayCluster, RayJob, RayService, RayCronJob, and the webhooks of Ray |
//! | `wrapper` | AppWrapper and its webhooks |
//! | `operations`, `pod_status` | what the recorder did, as far as every family of cases plays it alike |
//! | `normal`, `value_difference` | objects in the form of the recording, and how two of them differ |
//! | `verdict` | what is found of a case, and when it goes on |
//! | `wanted` | differences on purpose, by rule |

mod normal;
#[cfg(test)]
mod odd_values;
mod operations;
mod pod_status;
mod ray;
mod value_difference;
mod verdict;
mod wanted;
mod wrapper;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use verdict::CaseVerdict;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorOutcome {
    /// Every step is alike.
    Alike,
    /// These differences were found.
    Different(Vec<String>),
    /// It differs on purpose.
    Wanted(WantedCase),
    /// It was not replayed, for this reason.
    Skipped(&'static str),
}

/// A case that differs on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCase {
    /// Rules and reasons.
    pub reasons: Vec<&'static str>,
    /// Steps after the first such difference that are as recorded. One that differs by a rule again is not.
    pub n_further: usize,
    /// The step, from 1, at which the comparison ends, because it follows from one.
    pub cut_at: Option<u64>,
}

/// What came of a case, and what was not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorReplay {
    /// What came of it.
    pub outcome: OperatorOutcome,
    /// Events that depend on the delay of a watch.
    pub n_exempt_events: usize,
}

/// Rules and reasons of differences on purpose that the comparison of a case takes for equal.
pub fn taken_for_equal(case: &Value) -> impl Iterator<Item = &'static str> {
    wanted::taken_for_equal(case)
}

/// Whether a value is a case of this format.
#[must_use]
pub fn is_case(value: &Value) -> bool {
    value["name"].is_string() && (value["profile"].is_string() || value["of"].is_string())
}

/// Replays a case. One that cannot be replayed fails alone.
#[must_use]
pub fn replay(case: &Value) -> OperatorReplay {
    let outcome = |outcome| OperatorReplay { outcome, n_exempt_events: 0 };
    if let Some(unknown) = operations::unknown(case) {
        return outcome(OperatorOutcome::Different(vec![unknown]));
    }
    let found = catch_unwind(AssertUnwindSafe(|| verdict(case)));
    match found {
        Ok(Err(skipped)) => outcome(OperatorOutcome::Skipped(skipped)),
        Ok(Ok(verdict)) => judged(verdict),
        Err(why) => {
            let text = why.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or_default();
            let found = vec![format!("the replay cannot go on: {text}")];
            outcome(OperatorOutcome::Different(found))
        }
    }
}

fn judged(verdict: CaseVerdict) -> OperatorReplay {
    let CaseVerdict { differences, wanted, n_further, cut_at, n_exempt, .. } = verdict;
    let outcome = if !differences.is_empty() {
        OperatorOutcome::Different(differences)
    } else if wanted.is_empty() {
        OperatorOutcome::Alike
    } else {
        let reasons = wanted.into_iter().collect();
        OperatorOutcome::Wanted(WantedCase { reasons, n_further, cut_at })
    };
    OperatorReplay { outcome, n_exempt_events: n_exempt }
}

/// What differs, or why a case is not replayed.
fn verdict(case: &Value) -> Result<CaseVerdict, &'static str> {
    match (case["kind"].as_str().unwrap_or_default(), case["of"].as_str()) {
        ("Webhook", Some("AppWrapper")) => {
            wrapper::webhook::differences(case).map(CaseVerdict::of_request)
        }
        ("Webhook", _) => ray::webhook::differences(case).map(CaseVerdict::of_request),
        ("AppWrapper", _) => Ok(wrapper::compare::verdict(case)),
        ("RayCronJob", _) => Ok(CaseVerdict::of_request(ray::cron::differences(case))),
        _ => Ok(ray::compare::verdict(case)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// The cases of a file of a crate, in the order of their names.
    pub(crate) fn cases(name: &str, file: &str) -> Vec<Value> {
        let root = env!("CARGO_MANIFEST_DIR");
        let path = format!("{root}/../../crates/{name}/tests/operatororacle/{file}.jsonl.gz");
        let compressed = std::fs::read(path).expect("the recording");
        let mut text = String::new();
        GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("gzip");
        text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
    }

    /// Replays a file: so many cases are alike, and all others differ on purpose up to their end or are skipped. So many events are
    /// not compared.
    fn check(name: &str, file: &str, expected: (usize, usize)) {
        let (mut wrong, mut n_alike, mut n_exempt, mut cut) = (Vec::new(), 0, 0, Vec::new());
        for case in cases(name, file) {
            let id = case["name"].as_str().expect("a name");
            assert!(is_case(&case), "{id}");
            let found = replay(&case);
            n_exempt += found.n_exempt_events;
            match found.outcome {
                OperatorOutcome::Alike => n_alike += 1,
                OperatorOutcome::Different(found) => {
                    wrong.push(format!("{id}\n    {}", found.join("\n    ")));
                }
                OperatorOutcome::Wanted(found) if found.cut_at.is_some() => cut.push(id.to_owned()),
                OperatorOutcome::Wanted(_) | OperatorOutcome::Skipped(_) => {}
            }
        }
        assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
        assert_eq!(cut, Vec::<String>::new(), "cases that end early");
        assert_eq!(
            (n_alike, n_exempt),
            expected,
            "cases that are alike, events that are not compared"
        );
    }

    #[test]
    fn recorded_ray_clusters_are_treated_alike() {
        check("ray", "raycluster", (192, 23));
    }

    #[test]
    fn recorded_ray_jobs_are_treated_alike() {
        check("ray", "rayjob", (106, 29));
    }

    #[test]
    fn recorded_ray_services_are_treated_alike() {
        check("ray", "rayservice", (52, 194));
    }

    #[test]
    fn recorded_ray_cron_jobs_are_treated_alike() {
        check("ray", "raycronjob", (13, 0));
    }

    #[test]
    fn recorded_app_wrappers_are_treated_alike() {
        check("appwrapper", "appwrapper", (62, 2));
    }

    #[test]
    fn recorded_requests_about_ray_are_answered_alike() {
        check("ray", "webhook", (45, 0));
    }

    #[test]
    fn recorded_requests_about_app_wrappers_are_answered_alike() {
        check("appwrapper", "webhook", (41, 0));
    }
}
