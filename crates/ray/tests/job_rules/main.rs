//! Rules of RayJobs without a recording: lost answers, foreign objects, hostile heads, and what goes with their end.

mod head_service;
mod removal;
mod sidecar;
mod waiting;

use jiff::Timestamp;
use proptest::prelude::*;
use ray::{
    PassInputs,
    head::{HeadAnswer, HeadMethod, HeadRequest},
    job,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

fn ray_job(spec: &Value, status: &Value) -> Value {
    let container = json!({"name": "ray", "image": "ray:1"});
    let mut job = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": "rj", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "finalizers": ["ray.io/rayjob-finalizer"],
        },
        "spec": {
            "submissionMode": "HTTPMode",
            "entrypoint": "python main.py",
            "rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [container]}}}},
        },
        "status": status,
    });
    json_patch::merge(&mut job["spec"], spec);
    job
}

fn running() -> Value {
    json!({
        "jobDeploymentStatus": "Running", "jobId": "id", "rayClusterName": "rj-a",
        "dashboardURL": "rj-a-head-svc.ns.svc.cluster.local:8265",
        "startTime": "2026-01-01T00:00:00Z",
    })
}

fn owned(kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("{kind}-{name}"),
            "ownerReferences": [{"kind": "RayJob", "uid": uid, "controller": true}],
        },
    })
}

fn cluster() -> Value {
    let mut cluster = owned("RayCluster", "rj-a", "u");
    cluster["spec"] = ray_job(&json!({}), &Value::Null)["spec"]["rayClusterSpec"].clone();
    cluster["status"] = json!({"state": "ready"});
    cluster
}

/// What a pass did: its orders, and the steps at its end.
struct Done {
    orders: Vec<RayStep>,
    end: Vec<RayStep>,
}

impl Done {
    fn status(&self) -> Option<&Value> {
        self.end.iter().find_map(|step| match step {
            RayStep::ReplaceStatus(status) => Some(status),
            _ => None,
        })
    }

    fn reasons(&self) -> Vec<&str> {
        let reasons = self.end.iter().filter_map(|step| match step {
            RayStep::Event(event) => Some(event.reason),
            _ => None,
        });
        reasons.collect()
    }

    fn requests(&self) -> Vec<(HeadMethod, &str)> {
        let requests = self.orders.iter().filter_map(|step| match step {
            RayStep::Ask(request) => Some((request.method, request.url.as_str())),
            _ => None,
        });
        requests.collect()
    }
}

/// One pass; writes succeed, and the head answers as given.
fn pass(job: &Value, children: &[Value], head: impl Fn(&HeadRequest) -> HeadAnswer) -> Done {
    let create = |object: &Value| RayAnswer::Done(object.clone().into());
    pass_with(job, children, head, create, &OperatorSettings::default())
}

fn pass_with(
    job: &Value,
    children: &[Value],
    head: impl Fn(&HeadRequest) -> HeadAnswer,
    create: impl Fn(&Value) -> RayAnswer,
    settings: &OperatorSettings,
) -> Done {
    let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
    let inputs = PassInputs { now, seed: [3; 32] };
    let children: Vec<&Value> = children.iter().collect();
    let (mut orders, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let steps = job::decide(job, &children, &answers, &inputs, settings);
        if !steps.iter().any(RayStep::is_order) {
            return Done { orders, end: steps };
        }
        for step in steps {
            answers.push(match &step {
                RayStep::Create(object) => create(object),
                RayStep::Ask(request) => RayAnswer::Head(head(request)),
                _ => RayAnswer::Done(Value::Null.into()),
            });
            orders.push(step);
        }
    }
    unreachable!("the pass does not end: {orders:?}");
}

fn answer(code: u16, body: &Value) -> HeadAnswer {
    HeadAnswer::Response { code, body: body.to_string() }
}

fn unreachable(_: &HeadRequest) -> HeadAnswer {
    HeadAnswer::Unreachable("timeout".to_owned())
}

#[test]
fn names_of_an_attempt_are_stored_before_anything_is_made() {
    let done = pass(&ray_job(&json!({}), &Value::Null), &[], unreachable);
    assert_eq!(done.orders, []);
    let status = done.status().expect("a status");
    let cluster = status["rayClusterName"].as_str().expect("a name").to_owned();
    // After a crash the pass makes the cluster of this name and no second one.
    let done = pass(&ray_job(&json!({}), status), &[], unreachable);
    let [RayStep::Create(made)] = &done.orders[..] else { unreachable!("{:?}", done.orders) };
    assert_eq!(made["metadata"]["name"], *cluster);
}

#[test]
fn a_finalizer_comes_before_the_first_object() {
    let mut job = ray_job(&json!({}), &Value::Null);
    job["metadata"]["finalizers"] = json!(["a/b"]);
    let done = pass(&job, &[], unreachable);
    let [RayStep::Patch { patch, .. }] = &done.orders[..] else {
        unreachable!("{:?}", done.orders)
    };
    let metadata =
        json!({"finalizers": ["a/b", "ray.io/rayjob-finalizer"], "resourceVersion": "7"});
    assert_eq!(*patch, json!({"metadata": metadata}));
    assert_eq!(done.status(), None);
}

#[test]
fn a_cluster_that_the_cache_does_not_show_yet_is_no_error() {
    let mut status = running();
    status["jobDeploymentStatus"] = json!("Initializing");
    let conflict = |_: &Value| {
        RayAnswer::Refused(RayRefusal { code: 409, message: "already exists".to_owned() })
    };
    let (job, settings) = (ray_job(&json!({}), &status), OperatorSettings::default());
    let done = pass_with(&job, &[], unreachable, conflict, &settings);
    assert_eq!((done.reasons(), done.status()), (vec![], None));
}

#[test]
fn a_foreign_job_of_the_submitters_name_is_left_alone() {
    let mut status = running();
    status["jobDeploymentStatus"] = json!("Initializing");
    let job = ray_job(&json!({"submissionMode": "K8sJobMode"}), &status);
    let foreign = owned("Job", "rj", "another");
    let done = pass(&job, &[cluster(), foreign], unreachable);
    assert_eq!(done.orders, []);
    assert_eq!(done.reasons(), ["FailedToCreateRayJobSubmitter"]);
}

fn with_metadata(mode: &str, version: &str, more: &Value) -> Value {
    let mut spec = json!({
        "submissionMode": mode, "metadata": {"k": "v"}, "rayClusterSpec": {"rayVersion": version},
    });
    json_patch::merge(&mut spec, more);
    spec
}

/// Specs with metadata that a submitter passes on, or need not.
fn accepted_metadata() -> [(&'static str, Value); 6] {
    let command = json!({"containers": [{"name": "s", "image": "s:1", "command": ["true"]}]});
    [
        ("", json!({})),
        ("2.6.0", json!({})),
        ("nightly", json!({})),
        ("2.5.1", json!({"metadata": null})),
        ("2.5.1", json!({"submitterPodTemplate": {"spec": command}})),
        ("2.5.1", json!({"clusterSelector": {"ray.io/cluster": "rj-a"}})),
    ]
}

/// The command for submissions has the option since Ray 2.6. A version that is not written down, or cannot be read, is taken for a
/// later one.
#[test]
fn metadata_that_ray_cannot_take_fails_a_new_job() {
    let begun = |mode: &str, version: &str, more: &Value| {
        let done =
            pass(&ray_job(&with_metadata(mode, version, more), &Value::Null), &[], unreachable);
        let status = done.status().expect("a status").clone();
        let reasons: Vec<String> = done.reasons().into_iter().map(str::to_owned).collect();
        (status["jobDeploymentStatus"].clone(), reasons, status["message"].clone())
    };
    for mode in ["K8sJobMode", "SidecarMode"] {
        let refused = (
            json!("ValidationFailed"),
            vec!["InvalidRayJobSpec".to_owned()],
            json!(
                "The RayJob spec is invalid: the Ray version must be at least 2.6.0 to use the metadata field"
            ),
        );
        assert_eq!(begun(mode, "2.5.1", &json!({})), refused, "{mode}");
        assert_eq!(begun(mode, "nightly", &json!({})).0, "Initializing", "{mode}");
    }
    assert_eq!(begun("HTTPMode", "2.5.1", &json!({})).0, "Initializing");
    for (version, more) in accepted_metadata() {
        assert_eq!(begun("K8sJobMode", version, &more).0, "Initializing", "{version:?} {more}");
    }
}

/// A RayJob that an earlier version of the operator has begun is not failed, and holds no cluster that would stay idle.
#[test]
fn metadata_that_ray_cannot_take_stops_a_submitter() {
    let mut status = running();
    status["jobDeploymentStatus"] = json!("Initializing");
    let submitted = |(mode, version): (&str, &str), more: &Value, children: &[Value]| {
        let job = ray_job(&with_metadata(mode, version, more), &status);
        let done = pass(&job, children, unreachable);
        (done.orders.len(), done.reasons().into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let refused = |reason: &str| (0, vec![reason.to_owned()]);
    let none = json!({});
    for mode in ["K8sJobMode", "SidecarMode"] {
        let found = submitted((mode, "2.5.1"), &none, &[]);
        assert_eq!(found, refused("FailedToCreateRayCluster"), "{mode}");
    }
    let found = submitted(("K8sJobMode", "2.5.1"), &none, &[cluster()]);
    assert_eq!(found, refused("FailedToCreateRayJobSubmitter"));
    for (version, more) in accepted_metadata() {
        let found = submitted(("K8sJobMode", version), &more, &[cluster()]);
        assert_eq!(found.0, 1, "{version:?} {more}");
    }
    let submitting = ray_job(&with_metadata("K8sJobMode", "2.5.1", &none), &running());
    let done = pass(&submitting, &[cluster()], unreachable);
    let failed = |status: &Value| status["jobDeploymentStatus"] == "ValidationFailed";
    assert!(!done.status().is_some_and(failed), "{:?}", done.status());
}

/// The gate is one of the program, so the RayJob did not become invalid.
#[test]
fn a_gate_that_is_set_off_fails_new_jobs_only() {
    let mut settings = OperatorSettings::default();
    settings.gates.deletion_policy = false;
    settings.gates.network_policy = false;
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [3; 32] };
    let policy = json!({"policy": "DeleteCluster"});
    let specs = [
        json!({"deletionStrategy": {"onSuccess": policy, "onFailure": policy}}),
        json!({"rayClusterSpec": {"networkPolicy": {}}}),
    ];
    for spec in specs {
        let fails = |phase: &str| {
            let mut status = running();
            status["jobDeploymentStatus"] = json!(phase);
            let steps = job::decide(&ray_job(&spec, &status), &[], &[], &inputs, &settings);
            steps.iter().any(|step| match step {
                RayStep::ReplaceStatus(status) => {
                    status["jobDeploymentStatus"] == "ValidationFailed"
                }
                _ => false,
            })
        };
        assert!(fails(""), "{spec}");
        for phase in ["Initializing", "Running", "Suspended", "Complete", "Failed"] {
            assert!(!fails(phase), "{phase} {spec}");
        }
    }
}

#[test]
fn a_foreign_cluster_of_the_same_name_is_not_deleted() {
    let mut status = running();
    status["jobDeploymentStatus"] = json!("Suspending");
    let job = ray_job(&json!({"suspend": true, "shutdownAfterJobFinishes": true}), &status);
    let done = pass(&job, &[owned("RayCluster", "rj-a", "another")], unreachable);
    assert_eq!(done.orders, []);
    assert_eq!(done.status().expect("a status")["jobDeploymentStatus"], "Suspended");
}

#[test]
fn quota_returns_only_when_cluster_and_submitter_are_gone() {
    let mut status = running();
    status["jobDeploymentStatus"] = json!("Suspending");
    let spec = json!({
        "submissionMode": "K8sJobMode", "suspend": true, "shutdownAfterJobFinishes": true,
    });
    let job = ray_job(&spec, &status);
    let mut ending = cluster();
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:59Z");
    for children in [vec![cluster()], vec![ending], vec![owned("Job", "rj", "u")]] {
        assert_eq!(pass(&job, &children, unreachable).status(), None, "{children:?}");
    }
    let done = pass(&job, &[], unreachable);
    assert_eq!(done.status().expect("a status")["jobDeploymentStatus"], "Suspended");
}

#[test]
fn a_submission_without_an_answer_is_looked_up_before_it_is_repeated() {
    let job = ray_job(&json!({}), &running());
    let children = [cluster(), owned("Service", "rj-head-svc", "u")];
    let lost = |request: &HeadRequest| match request.method {
        HeadMethod::Get => answer(404, &json!({})),
        _ => HeadAnswer::Unreachable("timeout".to_owned()),
    };
    let done = pass(&job, &children, lost);
    let methods: Vec<HeadMethod> = done.requests().iter().map(|it| it.0).collect();
    assert_eq!(methods, [HeadMethod::Get, HeadMethod::Post]);
    // It reached the head all the same: nothing is submitted again.
    let known = |_: &HeadRequest| answer(200, &json!({"status": "RUNNING"}));
    let done = pass(&ray_job(&json!({}), done.status().expect("a status")), &children, known);
    assert!(done.requests().iter().all(|it| it.0 == HeadMethod::Get), "{:?}", done.requests());
    assert_eq!(done.status().expect("a status")["jobStatus"], "RUNNING");
}

#[test]
fn a_job_id_leads_to_no_other_path() {
    let mut status = running();
    status["jobId"] = json!("../../x?y#z");
    let done = pass(&ray_job(&json!({}), &status), &[cluster()], unreachable);
    let (_, url) = done.requests()[0];
    assert!(url.ends_with(":8265/api/jobs/..%2F..%2Fx%3Fy%23z"), "{url}");
}

#[test]
fn texts_of_a_head_are_cut() {
    let info =
        json!({"status": "RUNNING", "message": format!("a\u{1b}[31m{}", "x".repeat(50_000))});
    let done = pass(&ray_job(&json!({}), &running()), &[cluster()], |_| answer(200, &info));
    let message = done.status().expect("a status")["message"].as_str().expect("a text").to_owned();
    assert_eq!(message.len(), 1024);
    assert!(message.starts_with("a[31mxxx"));
}

#[test]
fn a_deleted_job_is_stopped_and_let_go_even_if_the_head_is_gone() {
    let mut job = ray_job(&json!({"clusterSelector": "no map"}), &running());
    job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:59Z");
    let done = pass(&job, &[], unreachable);
    assert!(done.requests()[0].1.ends_with("/api/jobs/id/stop"));
    let Some(RayStep::Patch { patch, .. }) = done.orders.last() else {
        panic!("{:?}", done.orders)
    };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
}

#[test]
fn a_job_without_an_id_is_let_go_without_a_request() {
    let mut status = running();
    status["jobId"] = json!("");
    let mut job = ray_job(&json!({"submissionMode": "InteractiveMode"}), &status);
    job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:59Z");
    assert_eq!(pass(&job, &[], unreachable).requests(), []);
}

#[test]
fn a_job_that_ended_long_before_its_rayjob_says_so() {
    for (state, phase) in [("SUCCEEDED", "Complete"), ("STOPPED", "Complete"), ("FAILED", "Failed")]
    {
        let mut status = running();
        status["jobStatus"] = json!(state);
        status["rayJobInfo"] = json!({"endTime": "2025-12-31T23:50:00Z"});
        let done = pass(&ray_job(&json!({}), &status), &[cluster()], unreachable);
        let status = done.status().expect("a status");
        assert_eq!(status["jobDeploymentStatus"], phase);
        let reason = "JobDeploymentStatusTransitionGracePeriodExceeded";
        assert_eq!(status["reason"], reason, "{state}");
        let message = "JobDeploymentStatus does not transition to Complete or Failed within the grace period after JobStatus reaches a terminal state.";
        assert_eq!(status["message"], message, "{state}");
    }
}

/// The status after a pass for a job with a submitter that ended so long ago.
fn after_submitter(finished: &str, head: impl Fn(&HeadRequest) -> HeadAnswer) -> Value {
    after_submitter_with(&running(), finished, head)
}

fn after_submitter_with(
    status: &Value,
    finished: &str,
    head: impl Fn(&HeadRequest) -> HeadAnswer,
) -> Value {
    let job = ray_job(&json!({"submissionMode": "K8sJobMode"}), status);
    let mut submitter = owned("Job", "rj", "u");
    let complete = json!({"type": "Complete", "status": "True", "lastTransitionTime": finished});
    submitter["status"] = json!({"conditions": [complete]});
    let done = pass(&job, &[cluster(), submitter], head);
    done.status().cloned().unwrap_or_default()
}

#[test]
fn a_job_that_ended_while_its_operator_was_away_is_not_given_up() {
    let says = |state: &'static str| move |_: &HeadRequest| answer(200, &json!({"status": state}));
    let (late, recent) = ("2026-01-01T00:00:10Z", "2026-01-01T00:00:40Z");
    let status = after_submitter(late, says("SUCCEEDED"));
    assert_eq!(status["jobDeploymentStatus"], "Complete", "{status}");
    assert_eq!(after_submitter(late, says("FAILED"))["reason"], "AppFailed");
    let given_up = "JobDeploymentStatusTransitionGracePeriodExceeded";
    for status in [after_submitter(late, says("RUNNING")), after_submitter(late, unreachable)] {
        assert_eq!(status["reason"], given_up, "{status}");
        assert_eq!(status["jobStatus"], "FAILED", "{status}");
    }
    assert_eq!(after_submitter(recent, says("RUNNING"))["jobDeploymentStatus"], "Running");
    let mut silent = running();
    silent["jobStatusCheckFailureStartTime"] = json!("2025-12-31T23:50:00Z");
    let status = after_submitter_with(&silent, late, unreachable);
    assert_eq!(status["reason"], "JobStatusCheckTimeoutExceeded");
}

#[test]
fn a_head_that_answers_again_is_not_given_up() {
    let mut status = running();
    status["jobStatusCheckFailureStartTime"] = json!("2025-12-31T23:50:00Z");
    let job = ray_job(&json!({}), &status);
    let runs = |_: &HeadRequest| answer(200, &json!({"status": "RUNNING"}));
    let done = pass(&job, &[cluster()], runs);
    let status = done.status().expect("a status");
    assert_eq!(status["jobDeploymentStatus"], "Running");
    assert!(status["jobStatusCheckFailureStartTime"].is_null(), "{status}");
    let done = pass(&job, &[cluster()], unreachable);
    assert_eq!(done.status().expect("a status")["reason"], "JobStatusCheckTimeoutExceeded");
    // Without a cluster there is no head to ask.
    let selector = json!({"ray.io/cluster": "rj-a"});
    let spec = json!({"clusterSelector": selector, "rayClusterSpec": null});
    let done = pass(&ray_job(&spec, &job["status"]), &[], unreachable);
    assert_eq!(done.status().expect("a status")["reason"], "JobStatusCheckTimeoutExceeded");
}

#[test]
fn an_invalid_job_is_reported_once() {
    let job = ray_job(&json!({"backoffLimit": -1}), &Value::Null);
    let done = pass(&job, &[], unreachable);
    assert_eq!(done.reasons(), ["InvalidRayJobSpec"]);
    let again = ray_job(&json!({"backoffLimit": -1}), done.status().expect("a status"));
    assert_eq!(pass(&again, &[], unreachable).end, []);
}

fn phase() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "Initializing",
        "Waiting",
        "Running",
        "Suspending",
        "Retrying",
        "Suspended",
        "Complete",
        "Failed",
        "ValidationFailed",
        "Other",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_answer_of_a_head_makes_the_operator_panic_or_loop(
        phase in phase(),
        mode in prop::sample::select(vec!["HTTPMode", "K8sJobMode", "SidecarMode", "InteractiveMode", "x"]),
        code in prop::sample::select(vec![200_u16, 201, 404, 500]),
        body in prop_oneof![
            Just("<html>".to_owned()),
            Just("null".to_owned()),
            Just(r#"{"status": 3, "message": [], "start_time": "x", "end_time": 1e300}"#.to_owned()),
            Just(r#"{"status": "FAILED", "start_time": -5, "end_time": 9223372036854775807}"#.to_owned()),
            ".{0,40}",
        ],
        end in prop::sample::select(vec!["", "x", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
        ttl in any::<i32>(),
    ) {
        let mut status = running();
        status["jobDeploymentStatus"] = json!(phase);
        status["endTime"] = json!(end);
        status["jobStatusCheckFailureStartTime"] = json!(end);
        let spec = json!({
            "submissionMode": mode, "jobId": "j", "shutdownAfterJobFinishes": true,
            "ttlSecondsAfterFinished": ttl, "activeDeadlineSeconds": ttl.saturating_abs(),
        });
        let head = |_: &HeadRequest| HeadAnswer::Response { code, body: body.clone() };
        let _ = pass(&ray_job(&spec, &status), &[cluster()], head);
    }
}
