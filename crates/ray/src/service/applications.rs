//! What a head says of its Serve applications. The answer is untrusted: texts are cut, and no more entries are kept than a status bears.
//!
//! Source: docs/reference/ray.md §9.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    head::{HeadAnswer, cut},
    json::text,
    v1::{AppStatus, ServeDeploymentStatus},
};

/// The state of an application that serves.
const RUNNING: &str = "RUNNING";

/// What a configuration says of the servers in front of all applications.
const SERVER_OPTIONS: &[&str] = &["proxy_location", "http_options", "grpc_options"];

/// The name of an application without one.
const DEFAULT_NAME: &str = "default";

/// The most applications and deployments that are kept, taken together.
const MOST_ENTRIES: usize = 512;

/// The applications of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Applications {
    pub(super) by_name: BTreeMap<String, AppStatus>,
    /// Whether there is one, and each serves.
    pub(super) all_run: bool,
}

/// The applications of both clusters of a pass. Those of a cluster that was not asked are none.
#[derive(Default)]
pub(super) struct BothApplications {
    pub(super) active: Applications,
    pub(super) pending: Applications,
}

/// What a head answers about Serve.
pub(super) struct ServeDetails(Map<String, Value>);

impl ServeDetails {
    /// Reads an answer. Only one with code 2xx counts.
    pub(super) fn parse(answer: &HeadAnswer) -> Result<Self, String> {
        let body = match answer {
            HeadAnswer::Response { code: 200..=299, body } => body,
            HeadAnswer::Response { code, .. } => return Err(format!("code {code}")),
            HeadAnswer::Unreachable(why) => return Err(why.clone()),
        };
        serde_json::from_str(body).map(Self).map_err(|error| error.to_string())
    }

    fn listed(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.get("applications").and_then(Value::as_object).into_iter().flatten()
    }

    /// The applications, with cut texts.
    pub(super) fn applications(&self) -> Applications {
        let mut found = Applications { by_name: BTreeMap::new(), all_run: true };
        let mut room = MOST_ENTRIES;
        for (name, application) in self.listed() {
            found.all_run &= application["status"] == RUNNING;
            if room == 0 {
                continue;
            }
            let name = if name.is_empty() { DEFAULT_NAME.to_owned() } else { cut(name) };
            let status = application_status(application, room - 1);
            room -= 1 + status.serve_deployment_statuses.len();
            found.by_name.insert(name, status);
        }
        found.all_run &= !found.by_name.is_empty();
        found
    }

    /// The configuration that the head serves. None if no application has one.
    ///
    /// An application that is being deleted has none any more. The capacity is not part of it.
    pub(super) fn deployed_config(&self) -> Option<Map<String, Value>> {
        let configs = self.listed().map(|(_, it)| &it["deployed_app_config"]);
        let configs: Vec<Value> = configs.filter(|it| it.is_object()).cloned().collect();
        if configs.is_empty() {
            return None;
        }
        let mut config = Map::from_iter([("applications".to_owned(), configs.into())]);
        for name in SERVER_OPTIONS {
            if let Some(value) = self.0.get(*name).filter(|value| !value.is_null()) {
                config.insert((*name).to_owned(), value.clone());
            }
        }
        Some(config)
    }

    /// The capacity in percent that the head reports. `None` if it serves nothing, or is of a version of Ray that does not report it.
    pub(super) fn reported_capacity(&self) -> Option<f64> {
        self.listed().next()?;
        match self.0.get("target_capacity")? {
            // No capacity was ever set, so nothing is scaled down.
            Value::Null => Some(100.0),
            capacity => capacity.as_f64(),
        }
    }
}

fn application_status(application: &Value, most_deployments: usize) -> AppStatus {
    let deployments = application["deployments"].as_object().into_iter().flatten();
    let deployment = |(name, deployment): (&String, &Value)| {
        let status = cut(text(&deployment["status"]));
        let message = cut(text(&deployment["message"]));
        (cut(name), ServeDeploymentStatus { message, status })
    };
    AppStatus {
        message: cut(text(&application["message"])),
        serve_deployment_statuses: deployments.take(most_deployments).map(deployment).collect(),
        status: cut(text(&application["status"])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn details(body: &Value) -> ServeDetails {
        let answer = HeadAnswer::Response { code: 200, body: body.to_string() };
        ServeDetails::parse(&answer).expect("an answer")
    }

    #[test]
    fn a_cluster_serves_when_each_of_its_applications_runs() {
        let run = |states: &[&str]| {
            let application =
                |(at, state): (usize, &&str)| (format!("a{at}"), json!({"status": state}));
            let listed: Map<String, Value> = states.iter().enumerate().map(application).collect();
            details(&json!({"applications": listed})).applications().all_run
        };
        assert!(run(&["RUNNING", "RUNNING"]));
        assert!(!run(&["RUNNING", "DEPLOYING"]));
        assert!(!run(&[]), "a head without applications serves nothing");
    }

    #[test]
    fn an_answer_that_is_not_of_a_dashboard_is_an_error() {
        for body in ["<html>", "[]", "3", ""] {
            let answer = HeadAnswer::Response { code: 200, body: body.to_owned() };
            assert!(ServeDetails::parse(&answer).is_err(), "{body}");
        }
        let body = json!({"applications": {"one": {"status": "RUNNING"}}, "target_capacity": 50});
        let failed = HeadAnswer::Response { code: 500, body: body.to_string() };
        assert!(ServeDetails::parse(&failed).is_err(), "an error page reports no capacity");
    }

    #[test]
    fn a_head_reports_the_capacity_of_what_it_serves() {
        let reported = |body: Value| details(&body).reported_capacity();
        let applications = json!({"one": {"status": "RUNNING"}});
        let of = |capacity: Value| {
            reported(json!({"applications": applications, "target_capacity": capacity}))
        };
        assert_eq!(of(json!(50)), Some(50.0));
        assert_eq!(of(json!(50.0)), Some(50.0));
        assert_eq!(of(Value::Null), Some(100.0));
        assert_eq!(of(json!("50")), None);
        assert_eq!(reported(json!({"applications": applications})), None);
        assert_eq!(reported(json!({"applications": {}, "target_capacity": 50})), None);
    }

    #[test]
    fn a_flood_of_entries_is_cut_and_still_decides_whether_all_run() {
        let mut listed = Map::new();
        for at in 0..2_000 {
            let deployments: Map<String, Value> =
                (0..9).map(|d| (format!("d{d}"), json!({"status": "HEALTHY"}))).collect();
            let application = json!({"status": "RUNNING", "message": "x".repeat(9_999), "deployments": deployments});
            listed.insert(format!("app-{at}"), application);
        }
        listed.insert("zz-last".to_owned(), json!({"status": "UNHEALTHY"}));
        let found = details(&json!({"applications": listed})).applications();
        let kept = found.by_name.values().map(|it| 1 + it.serve_deployment_statuses.len());
        assert!(kept.sum::<usize>() <= MOST_ENTRIES);
        assert!(found.by_name.values().all(|it| it.message.len() <= 1024));
        assert!(!found.all_run);
    }
}
