//! Which parts of the life of a kind a test on the lab shows: by the recorded cases that `recorded_lives` replays, or by a test of its own.
//! Both are read from the suite `e2e/tests/kinds`.

use std::{fs, path::Path};

use crate::{
    kinds_recording::RecordedCase,
    life_parts::{PARTS, shows},
};

/// Tests of their own: the kind, the parts of its life, the file, and the test.
const OWN: &[(&str, &[&str], &str, &str)] = &[
    ("Deployment", &["start"], "deployments", "pods_of_a_deployment_are_queued_one_by_one"),
    (
        "Deployment",
        &["mirror", "status back"],
        "deployments",
        "a_pod_of_a_deployment_runs_on_a_worker",
    ),
    ("JAXJob", &["finish"], "one_cluster", "a_job_waits_runs_and_succeeds"),
    (
        "JAXJob",
        &["mirror", "status back"],
        "workers",
        "a_job_runs_on_a_worker_and_leaves_no_objects",
    ),
    ("Job", &["finish"], "one_cluster", "a_job_waits_runs_and_succeeds"),
    (
        "Job",
        &["mirror", "status back", "delete"],
        "workers",
        "a_job_runs_on_a_worker_and_leaves_no_objects",
    ),
    (
        "JobSet",
        &["mirror", "status back", "delete"],
        "workers",
        "a_job_runs_on_a_worker_and_leaves_no_objects",
    ),
    (
        "LeaderWorkerSet",
        &["mirror"],
        "leader_worker_set",
        "all_replicas_of_a_set_run_on_one_worker",
    ),
    (
        "Pod",
        &["mirror", "status back"],
        "dispatched_pods",
        "a_pod_runs_on_a_worker_and_stays_gated_at_home",
    ),
    (
        "PodGroup",
        &["mirror", "status back"],
        "dispatched_pods",
        "a_group_of_pods_runs_on_one_worker",
    ),
    ("PodGroup", &["finish"], "pods", "a_group_runs_with_a_replacement_and_ends"),
    (
        "PodGroup",
        &["evict", "delete"],
        "pods",
        "an_evicted_group_is_deleted_and_its_replacements_run",
    ),
    ("StatefulSet", &["mirror"], "stateful_sets", "a_stateful_set_runs_on_one_worker"),
];

/// The tests of the lab.
pub(crate) struct LabTests {
    /// Names of cases, or how names end.
    replayed: Vec<String>,
}

fn source(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/tests/kinds");
    fs::read_to_string(folder.join(file).with_extension("rs")).expect("a file of the suite")
}

impl LabTests {
    /// Reads the names of the chosen cases.
    pub(crate) fn read() -> Self {
        let text = source("recorded_lives");
        let lists = text.split("const OF_").skip(1).filter_map(|rest| rest.split_once("];"));
        let texts = lists.flat_map(|(list, _)| list.split('"').skip(1).step_by(2));
        Self { replayed: texts.map(str::to_owned).collect() }
    }

    /// Whether the lab replays a case.
    fn replays(&self, case: &RecordedCase) -> bool {
        let is_chosen = |name: &String| {
            if name.starts_with('/') {
                case.name().ends_with(name.as_str())
            } else {
                case.name() == name
            }
        };
        self.replayed.iter().any(is_chosen)
    }

    /// Whether a replayed case shows a part. The answers to its creates, which webhooks have changed, are compared as well.
    pub(crate) fn replay_shows(&self, case: &RecordedCase, part: &str) -> bool {
        let is_shown = || match part {
            "webhook" => case.all_steps().iter().any(|step| {
                step.answered_object().is_some_and(|object| object["kind"] == case.kind())
            }),
            _ => shows(case, part),
        };
        self.replays(case) && is_shown()
    }
}

/// Whether a kind has a test of its own for a part.
pub(crate) fn has_own(kind: &str, part: &str) -> bool {
    OWN.iter().any(|(of, parts, ..)| *of == kind && parts.contains(&part))
}

/// The tests of their own, as lines of a list.
pub(crate) fn own_tests() -> String {
    let line = |(kind, parts, file, test): &(&str, &[&str], &str, &str)| {
        format!("* {kind}, {}: `e2e/tests/kinds/{file}.rs`, `{test}`\n", parts.join(", "))
    };
    OWN.iter().map(line).collect()
}

#[test]
fn each_test_of_its_own_is_in_the_suite() {
    for (_, parts, file, test) in OWN {
        assert!(parts.iter().all(|part| PARTS.contains(part)), "{test}");
        assert!(source(file).contains(&format!("async fn {test}(")), "{file}: {test}");
    }
    assert!(LabTests::read().replayed.len() > 10, "the constants of recorded_lives");
}
