//! Replays what the official operators of Ray and AppWrapper did, recorded step by step, against the decisions of `ray` and `appwrapper`.
//!
//! A small cluster in memory takes the place of the API server, the kubelets, other controllers and the garbage collector. The decisions
//! are those that the agent runs; after each step the objects, statuses, events and requests to Ray heads are compared.
//!
//! | module | cases |
//! |---|---|
//! | `ray` | RayCluster, RayJob, RayService, RayCronJob, and the webhooks of Ray |
//! | `wrapper` | AppWrapper and its webhooks |
//! | `normal`, `value_difference` | objects in the form of the recording, and how two of them differ |
//! | `wanted` | differences on purpose, by case and by rule |

mod normal;
#[cfg(test)]
mod odd_values;
mod ray;
mod value_difference;
mod wanted;
mod wrapper;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorOutcome {
    /// Every step is alike.
    Alike,
    /// These differences were found.
    Different(Vec<String>),
    /// It differs on purpose: rule and reason.
    Wanted(&'static str),
    /// It was not replayed, for this reason.
    Skipped(&'static str),
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
pub fn replay(case: &Value) -> OperatorOutcome {
    let found = catch_unwind(AssertUnwindSafe(|| differences(case)));
    let name = case["name"].as_str().unwrap_or_default();
    match found {
        Ok(Err(skipped)) => OperatorOutcome::Skipped(skipped),
        Ok(Ok(found)) if found.is_empty() => OperatorOutcome::Alike,
        Ok(Ok(found)) => match wanted::by_name(name).or_else(|| wanted::by_rule(case, &found)) {
            Some(reason) => OperatorOutcome::Wanted(reason),
            None => OperatorOutcome::Different(found),
        },
        Err(_) => OperatorOutcome::Different(vec!["the replay does not know a step".to_owned()]),
    }
}

/// What differs, or why a case is not replayed.
fn differences(case: &Value) -> Result<Vec<String>, &'static str> {
    match (case["kind"].as_str().unwrap_or_default(), case["of"].as_str()) {
        ("Webhook", Some("AppWrapper")) => wrapper::webhook::differences(case),
        ("Webhook", _) => ray::webhook::differences(case),
        ("AppWrapper", _) => Ok(wrapper::compare::differences(case)),
        ("RayCronJob", _) => Ok(ray::cron::differences(case)),
        _ => Ok(ray::compare::differences(case)),
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

    /// Replays a file: so many cases are alike, and all others differ on purpose or are skipped.
    fn check(name: &str, file: &str, n_expected: usize) {
        let (mut wrong, mut n_alike) = (Vec::new(), 0);
        for case in cases(name, file) {
            let id = case["name"].as_str().expect("a name");
            assert!(is_case(&case), "{id}");
            match replay(&case) {
                OperatorOutcome::Alike if wanted::by_name(id).is_some() => {
                    wrong.push(format!("{id} is alike, and in differences.tsv"));
                }
                OperatorOutcome::Alike => n_alike += 1,
                OperatorOutcome::Different(found) => {
                    wrong.push(format!("{id}\n    {}", found.join("\n    ")));
                }
                OperatorOutcome::Wanted(_) | OperatorOutcome::Skipped(_) => {}
            }
        }
        assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
        assert_eq!(n_alike, n_expected, "cases that are alike");
    }

    #[test]
    fn recorded_ray_clusters_are_treated_alike() {
        check("ray", "raycluster", 192);
    }

    #[test]
    fn recorded_ray_jobs_are_treated_alike() {
        check("ray", "rayjob", 106);
    }

    #[test]
    fn recorded_ray_services_are_treated_alike() {
        check("ray", "rayservice", 52);
    }

    #[test]
    fn recorded_ray_cron_jobs_are_treated_alike() {
        check("ray", "raycronjob", 13);
    }

    #[test]
    fn recorded_app_wrappers_are_treated_alike() {
        check("appwrapper", "appwrapper", 62);
    }

    #[test]
    fn recorded_requests_about_ray_are_answered_alike() {
        check("ray", "webhook", 45);
    }

    #[test]
    fn recorded_requests_about_app_wrappers_are_answered_alike() {
        check("appwrapper", "webhook", 41);
    }

    #[test]
    fn an_unknown_step_fails_its_own_case_only() {
        let case = serde_json::json!({
            "name": "x", "kind": "RayJob", "profile": "default",
            "steps": [{"step": "s", "do": [{"op": "unheard-of"}], "put": {}}],
        });
        assert!(matches!(replay(&case), OperatorOutcome::Different(_)));
    }
}
