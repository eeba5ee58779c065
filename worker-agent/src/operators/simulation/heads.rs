//! Ray heads, with a ledger of what was submitted to them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use ray::head::{HeadAnswer, HeadMethod, HeadRequest};
use serde_json::{Value, json};

use super::api::SimulatedApi;

/// How long a job runs.
const RUN: SignedDuration = SignedDuration::from_secs(6);

/// A job that a head took.
#[derive(Clone, Debug)]
pub(super) struct LedgerEntry {
    /// The uid of the head's pod.
    pub(super) head: String,
    pub(super) id: String,
    pub(super) since: Timestamp,
}

/// See the module.
#[derive(Default)]
pub(super) struct SimulatedHeads {
    pub(super) ledger: Vec<LedgerEntry>,
    /// The body of every answer, in place of the head's own.
    pub(super) page: Option<String>,
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

impl SimulatedHeads {
    /// Takes a job, unless this head has one of the same id already.
    pub(super) fn submit(&mut self, head: &str, id: &str, now: Timestamp) -> bool {
        let is_new = !self.ledger.iter().any(|entry| entry.head == head && entry.id == id);
        if is_new {
            let (head, id) = (head.to_owned(), id.to_owned());
            self.ledger.push(LedgerEntry { head, id, since: now });
        }
        is_new
    }

    /// The state of a job; none if this head does not know it.
    pub(super) fn status(&self, head: &str, id: &str, now: Timestamp) -> Option<&'static str> {
        let entry = self.ledger.iter().find(|entry| entry.head == head && entry.id == id)?;
        let age = now.duration_since(entry.since);
        Some(match () {
            () if self.stopped.iter().any(|stopped| stopped == id) => "STOPPED",
            () if age < SignedDuration::from_secs(1) => "PENDING",
            () if age < RUN => "RUNNING",
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
                match self.submit(&head, id, now) {
                    true => response(200, &json!({"submission_id": id})),
                    false => response(500, &json!("Job with submission_id already exists")),
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
        if status == "SUCCEEDED" || status == "STOPPED" {
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
