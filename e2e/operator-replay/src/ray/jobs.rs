//! The Job controller.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// How long the controller waits after the first failed pod; twice as long after each further one.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);

/// Why a Job failed that ran beyond its deadline.
const TOO_LONG: &str = "DeadlineExceeded";

/// When a Job that has not ended fails.
pub(crate) fn deadline(job: &Value) -> Option<Timestamp> {
    let created: Timestamp = job["metadata"]["creationTimestamp"].as_str()?.parse().ok()?;
    let seconds = job["spec"]["activeDeadlineSeconds"].as_i64()?;
    let is_over = job["status"]["conditions"].is_array();
    (!is_over).then(|| created.checked_add(SignedDuration::from_secs(seconds)).ok()).flatten()
}

/// Whether a Job ran beyond its deadline: its pods are deleted.
pub(crate) fn is_too_long(job: &Value) -> bool {
    job["status"]["conditions"][0]["reason"] == TOO_LONG
}

/// Whether a pod belongs to a Job.
pub(crate) fn is_of_job(pod: &Value) -> bool {
    pod["kind"] == "Pod" && pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
}

/// Writes the status of a Job, and returns the pod that it needs.
pub(crate) fn control(job: &mut Value, pods: &[Value], now: Timestamp) -> Option<Value> {
    if job["status"]["conditions"].is_array() {
        return None;
    }
    let in_phase =
        |phase: &'static str| pods.iter().filter(move |pod| pod["status"]["phase"] == phase);
    if in_phase("Succeeded").next().is_some() {
        end(job, "Complete", "CompletionsReached", "", now);
        return None;
    }
    if deadline(job).is_some_and(|deadline| deadline <= now) {
        end(job, "Failed", TOO_LONG, "Job was active longer than specified deadline", now);
        return None;
    }
    let failed = in_phase("Failed").count();
    if pods.len() > failed {
        return None;
    }
    let limit = job["spec"]["backoffLimit"].as_u64().unwrap_or(6);
    if u64::try_from(failed).is_ok_and(|failed| failed > limit) {
        let message = "Job has reached the specified backoff limit";
        end(job, "Failed", "BackoffLimitExceeded", message, now);
        return None;
    }
    if failed > 0 {
        let since = job["status"]["since"].as_str().and_then(|since| since.parse().ok());
        let Some(since) = since else {
            job["status"]["since"] = json!(now.to_string());
            return None;
        };
        if now.duration_since(since) < BACKOFF {
            return None;
        }
        job["status"] = json!({});
    }
    Some(pod(job))
}

fn end(job: &mut Value, condition: &str, reason: &str, message: &str, now: Timestamp) {
    job["status"]["conditions"] = json!([{
        "type": condition,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now.to_string(),
    }]);
}

fn pod(job: &Value) -> Value {
    let name = job["metadata"]["name"].as_str().unwrap_or_default();
    let template = &job["spec"]["template"];
    let mut labels = template["metadata"]["labels"].clone();
    labels["job-name"] = json!(name);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": format!("{name}-"),
            "labels": labels,
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{"kind": "Job", "name": name, "uid": job["metadata"]["uid"]}],
        },
        "spec": template["spec"],
    })
}
