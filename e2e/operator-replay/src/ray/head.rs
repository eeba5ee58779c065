//! A Ray head that plays every head of a namespace.

use std::collections::BTreeSet;

use jiff::Timestamp;
use ray::head::{HeadAnswer, HeadMethod, HeadRequest};
use serde_json::{Value, json};

/// The path of the applications of Serve, behind `/api/`.
const SERVE: &str = "serve/applications/";

/// How heads answer, and what they were asked.
pub(crate) struct PlayedHead {
    /// `dashboard.set` of the recording, merged.
    settings: Value,
    /// Ids of jobs in the order in which they were first asked for.
    asked: Vec<String>,
    submitted: BTreeSet<String>,
    /// The last configuration of Serve.
    config: Value,
    /// Method, address and body of each request of a step.
    pub(crate) requests: BTreeSet<String>,
}

impl Default for PlayedHead {
    fn default() -> Self {
        Self {
            settings: json!({"up": true}),
            asked: Vec::new(),
            submitted: BTreeSet::new(),
            config: Value::Null,
            requests: BTreeSet::new(),
        }
    }
}

/// A request as the recording and the replay compare it.
pub(crate) fn line(method: &str, url: &str, body: &Value, has_token: bool) -> String {
    format!("{method} {url} {body} {has_token}")
}

impl PlayedHead {
    /// Changes how heads answer from now on.
    pub(crate) fn set(&mut self, change: &Value) {
        for (name, value) in change.as_object().into_iter().flatten() {
            match value {
                // The other settings of the applications stay.
                Value::Object(_) if name == "apps" => {
                    json_patch::merge(&mut self.settings[name], value);
                }
                _ => self.settings[name] = value.clone(),
            }
        }
    }

    /// A job that was submitted before.
    #[cfg(test)]
    pub(crate) fn know(&mut self, job: &str) {
        self.submitted.insert(job.to_owned());
    }

    pub(crate) fn answer(&mut self, request: &HeadRequest, now: Timestamp) -> HeadAnswer {
        let method = match request.method {
            HeadMethod::Get => "GET",
            HeadMethod::Post => "POST",
            HeadMethod::Put => "PUT",
        };
        let body = request.body.clone().unwrap_or_default();
        let has_token = request.token_secret.is_some();
        self.requests.insert(line(method, &request.url, &body, has_token));
        let path = request.url.split("/api/").nth(1).unwrap_or_default();
        if request.url.ends_with("/-/healthz") {
            return if self.settings["proxyHealthy"] == false {
                response(503, "unavailable")
            } else {
                response(200, "success")
            };
        }
        // It is the dashboard that is down, not the proxy.
        if self.settings["up"] == false {
            return HeadAnswer::Unreachable("connection refused".to_owned());
        }
        match (request.method, path) {
            (HeadMethod::Get, path) if path.starts_with(SERVE) => self.applications(),
            (HeadMethod::Get, path) => self.job(path.trim_start_matches("jobs/"), now),
            (HeadMethod::Post, "jobs/") => self.submit(&body),
            (HeadMethod::Put, SERVE) => self.configure(body),
            _ => response(200, "{}"),
        }
    }

    fn configure(&mut self, config: Value) -> HeadAnswer {
        let apps = &self.settings["apps"];
        if let Some(code) = apps["putCode"].as_u64().and_then(|code| u16::try_from(code).ok()) {
            return response(code, apps["putBody"].as_str().unwrap_or_default());
        }
        self.config = config;
        response(200, "{}")
    }

    fn applications(&self) -> HeadAnswer {
        let apps = &self.settings["apps"];
        let mut found = serde_json::Map::new();
        let configured = self.config["applications"].as_array();
        let listed = configured.into_iter().flatten().filter(|_| apps["hidden"] != true);
        for application in listed {
            let name = application["name"].as_str().unwrap_or_default();
            let of_all = apps["status"].as_str().unwrap_or("RUNNING");
            let status = apps["per"][name].as_str().unwrap_or(of_all);
            let health = if status == "RUNNING" { "HEALTHY" } else { "UPDATING" };
            let deployments = application["deployments"].as_array().into_iter().flatten();
            let deployments = deployments.map(|it| {
                (it["name"].as_str().unwrap_or_default().to_owned(), json!({"status": health}))
            });
            let deployments: serde_json::Map<String, Value> = deployments.collect();
            let message = apps["message"].as_str().unwrap_or_default();
            let state = json!({"status": status, "message": message, "deployments": deployments});
            found.insert(name.to_owned(), state);
        }
        response(200, &json!({"applications": found}).to_string())
    }

    fn submit(&mut self, body: &Value) -> HeadAnswer {
        if let Some(why) = self.settings["submit"].as_str().filter(|it| *it != "accept") {
            return response(500, why);
        }
        self.submitted.insert(body["submission_id"].as_str().unwrap_or_default().to_owned());
        response(200, &json!({"submission_id": body["submission_id"]}).to_string())
    }

    fn job(&mut self, id: &str, now: Timestamp) -> HeadAnswer {
        if !self.asked.iter().any(|asked| asked == id) {
            self.asked.push(id.to_owned());
        }
        if let Some(raw) = self.settings["raw"].as_array() {
            let code = raw[0].as_u64().and_then(|code| u16::try_from(code).ok()).expect("a code");
            return response(code, raw[1].as_str().unwrap_or_default());
        }
        let index = self.asked.iter().position(|asked| asked == id).expect("asked");
        let job = match self.settings["jobs"].as_array() {
            Some(jobs) => jobs.get(index).cloned().unwrap_or_default(),
            None => self.settings["job"].clone(),
        };
        let job = match job {
            Value::Null if self.submitted.contains(id) => json!({"status": "PENDING"}),
            job => job,
        };
        let Some(status) = job["status"].as_str() else { return response(404, "not found") };
        let ended = ["SUCCEEDED", "FAILED", "STOPPED"].contains(&status);
        let message = job["message"].as_str().map_or(format!("job is {status}"), str::to_owned);
        let mut info = json!({"status": status, "message": message});
        info["start_time"] = json!(now.as_millisecond());
        if ended {
            let given = job["end_time"].as_i64();
            info["end_time"] = json!(given.unwrap_or(now.as_millisecond()));
        }
        response(200, &info.to_string())
    }
}

fn response(code: u16, body: &str) -> HeadAnswer {
    HeadAnswer::Response { code, body: body.to_owned() }
}
