//! Ray heads, with a ledger of what was submitted to them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use ray::head::{HeadAnswer, HeadMethod, HeadRequest};
use serde_json::{Value, json};

use super::api::SimulatedApi;

/// How long a job runs.
const RUN: SignedDuration = SignedDuration::from_secs(5);

/// A job that a head took.
#[derive(Clone, Debug)]
pub(super) struct LedgerEntry {
    /// The uid of the head's pod.
    pub(super) head: String,
    pub(super) id: String,
    /// The uid of its RayCluster.
    cluster: String,
    pub(super) since: Timestamp,
}

/// The simulated Ray heads.
#[derive(Default)]
pub(super) struct SimulatedHeads {
    pub(super) ledger: Vec<LedgerEntry>,
    /// The body of every answer, in place of the head's own.
    pub(super) page: Option<String>,
    /// The first job fails.
    pub(super) fails_first: bool,
    /// Jobs that were submitted twice.
    pub(super) violations: BTreeSet<String>,
    hangs_until: Timestamp,
    configs: BTreeMap<String, Value>,
    stopped: Vec<String>,
}

/// The uid of the pod that answers at the head Service of a cluster.
pub(super) fn living_head(api: &SimulatedApi, cluster: &str) -> Option<String> {
    let mut pods = api.of_kind("Pod").filter(|pod| {
        let labels = &pod["metadata"]["labels"];
        labels["ray.io/node-type"] == "head"
            && labels["ray.io/cluster"] == cluster
            && pod["status"]["phase"] == "Running"
            && pod["metadata"]["deletionTimestamp"].is_null()
    });
    pods.next().and_then(|pod| pod["metadata"]["uid"].as_str()).map(str::to_owned)
}

/// The uid of the RayCluster of a head.
fn cluster_of(api: &SimulatedApi, head: &str) -> String {
    let pod = api.of_kind("Pod").find(|pod| pod["metadata"]["uid"] == head);
    let owner = pod.map(|pod| &pod["metadata"]["ownerReferences"][0]["uid"]);
    owner.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether a job may be submitted to a cluster under the id of an earlier one.
///
/// Ray's head forgets its jobs when it dies. The official operator then submits the job to the next head of the same cluster under the
/// same id, and so does its submitter, which asks the head for the id first (docs/reference/ray.md §8). All else runs a job twice.
fn may_follow(api: &SimulatedApi, earlier: &LedgerEntry, cluster: &str) -> bool {
    let head = api.of_kind("Pod").find(|pod| pod["metadata"]["uid"] == earlier.head.as_str());
    let is_dead = head.is_none_or(|pod| pod["status"]["phase"] == "Failed");
    let mut ended = api.of_kind("RayJob").filter(|job| {
        let status = &job["status"];
        status["jobId"] == earlier.id.as_str()
            && matches!(status["jobStatus"].as_str(), Some("SUCCEEDED" | "FAILED" | "STOPPED"))
    });
    is_dead && earlier.cluster == cluster && ended.next().is_none()
}

impl SimulatedHeads {
    /// From now on until then no head answers.
    pub(super) fn hang(&mut self, until: Timestamp) {
        self.hangs_until = until;
    }

    pub(super) fn hangs(&self, now: Timestamp) -> bool {
        now < self.hangs_until
    }

    /// Takes a job, unless this head has one of the same id already.
    pub(super) fn submit(&mut self, api: &SimulatedApi, head: &str, id: &str) -> bool {
        let is_new = !self.ledger.iter().any(|entry| entry.head == head && entry.id == id);
        if is_new {
            let cluster = cluster_of(api, head);
            let repeated = self
                .ledger
                .iter()
                .filter(|earlier| earlier.id == id && !may_follow(api, earlier, &cluster));
            let repeated =
                repeated.map(|it| format!("{id} was submitted to {} and to {head}", it.head));
            self.violations.extend(repeated);
            let (head, id) = (head.to_owned(), id.to_owned());
            self.ledger.push(LedgerEntry { head, id, cluster, since: api.now });
        }
        is_new
    }

    /// Takes a job of its user, which may have run before.
    pub(super) fn submit_by_user(&mut self, api: &SimulatedApi, head: &str, id: &str) {
        let violations = self.violations.clone();
        self.submit(api, head, id);
        self.violations = violations;
    }

    /// The state of a job; none if this head does not know it.
    pub(super) fn status(&self, head: &str, id: &str, now: Timestamp) -> Option<&'static str> {
        let entry = self.ledger.iter().find(|entry| entry.head == head && entry.id == id)?;
        let age = now.duration_since(entry.since);
        Some(match () {
            () if self.stopped.iter().any(|stopped| stopped == id) => "STOPPED",
            () if age < SignedDuration::from_secs(1) => "PENDING",
            () if age < RUN => "RUNNING",
            () if self.fails_first && self.ledger.first().is_some_and(|it| it.id == id) => "FAILED",
            () => "SUCCEEDED",
        })
    }

    pub(super) fn answer(
        &mut self,
        api: &SimulatedApi,
        request: &HeadRequest,
        now: Timestamp,
    ) -> HeadAnswer {
        let address = request.url.trim_start_matches("http://");
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        let service = host.split('.').next().unwrap_or_default();
        let cluster = service.trim_end_matches("-head-svc");
        let Some(head) = living_head(api, cluster) else {
            return HeadAnswer::Unreachable("connection refused".to_owned());
        };
        if let Some(page) = &self.page {
            return HeadAnswer::Response { code: 200, body: page.clone() };
        }
        let body = request.body.clone().unwrap_or_default();
        match (request.method, path) {
            (HeadMethod::Get, "-/healthz") => response(200, &json!("success")),
            (HeadMethod::Put, path) if path.starts_with("api/serve") => {
                self.configs.insert(head, body);
                response(200, &json!({}))
            }
            (HeadMethod::Get, path) if path.starts_with("api/serve") => {
                response(200, &self.applications(&head))
            }
            (HeadMethod::Post, "api/jobs/") => {
                let id = body["submission_id"].as_str().unwrap_or_default();
                // Ray's own rule.
                if self.submit(api, &head, id) {
                    response(200, &json!({"submission_id": id}))
                } else {
                    response(500, &json!("Job with submission_id already exists"))
                }
            }
            (HeadMethod::Post, path) => {
                let id = path.trim_start_matches("api/jobs/").trim_end_matches("/stop");
                self.stopped.push(id.to_owned());
                response(200, &json!({"stopped": true}))
            }
            (_, path) => self.job(&head, path.trim_start_matches("api/jobs/"), now),
        }
    }

    fn job(&self, head: &str, id: &str, now: Timestamp) -> HeadAnswer {
        let Some(status) = self.status(head, id, now) else {
            return response(404, &json!({}));
        };
        let mut info = json!({"status": status, "message": "", "start_time": 1});
        if matches!(status, "SUCCEEDED" | "FAILED" | "STOPPED") {
            info["end_time"] = json!(now.as_millisecond());
        }
        response(200, &info)
    }

    fn applications(&self, head: &str) -> Value {
        let configured = self.configs.get(head).and_then(|it| it["applications"].as_array());
        let running = configured.into_iter().flatten().map(|application| {
            let name = application["name"].as_str().unwrap_or_default().to_owned();
            (name, json!({"status": "RUNNING", "deployments": {}}))
        });
        let running: serde_json::Map<String, Value> = running.collect();
        json!({"applications": running})
    }
}

fn response(code: u16, body: &Value) -> HeadAnswer {
    HeadAnswer::Response { code, body: body.to_string() }
}
