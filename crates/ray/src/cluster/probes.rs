//! Probes of Ray's containers.
//!
//! Source: docs/reference/ray.md §3 "Ray container".

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::{ClusterContext, Origin};
use crate::json::{named, object};

/// Where Serve listens by default.
const DEFAULT_SERVE_PORT: u64 = 8000;

/// The first version with one health endpoint for everything.
const ONE_ENDPOINT_SINCE: (u64, u64, u64) = (2, 53, 0);

/// Adds the probes that a container does not have.
pub(crate) fn add_probes(
    context: &ClusterContext<'_>,
    is_head: bool,
    params: &BTreeMap<String, String>,
    container: &mut Value,
) {
    if !context.settings.inject_probes {
        return;
    }
    let serves = !is_head && context.origin() == Origin::Service;
    let serve_port = named(&container["ports"], "serve")
        .and_then(|port| port["containerPort"].as_u64())
        .unwrap_or(DEFAULT_SERVE_PORT);
    let container = object(container);
    let timeout = if is_head { 5 } else { 2 };
    let is_unset = |value: Option<&Value>| value.is_none_or(Value::is_null);
    // A probe of the template is taken as a whole, no field of it is completed.
    if is_unset(container.get("livenessProbe")) {
        let check = health_check(context, is_head, params, None);
        container.insert("livenessProbe".into(), probe(check, 30, timeout, 120));
    }
    if is_unset(container.get("readinessProbe")) {
        let check = health_check(context, is_head, params, serves.then_some(serve_port));
        let failures = if serves { 1 } else { 10 };
        container.insert("readinessProbe".into(), probe(check, 10, timeout, failures));
    }
}

fn probe(mut check: Value, delay: u32, timeout: u32, failures: u32) -> Value {
    let probe = object(&mut check);
    for (name, seconds) in [
        ("initialDelaySeconds", delay),
        ("timeoutSeconds", timeout),
        ("periodSeconds", 5),
        ("successThreshold", 1),
        ("failureThreshold", failures),
    ] {
        probe.insert(name.to_owned(), seconds.into());
    }
    check
}

fn health_check(
    context: &ClusterContext<'_>,
    is_head: bool,
    params: &BTreeMap<String, String>,
    serve_port: Option<u64>,
) -> Value {
    let port = |name: &str, default: u64| {
        params.get(name).and_then(|port| port.parse().ok()).unwrap_or(default)
    };
    let agent = port("dashboard-agent-listen-port", 52365);
    let has_one = version(&context.spec.ray_version).is_some_and(|at| at >= ONE_ENDPOINT_SINCE);
    // As recorded, a worker of a RayService asks the single endpoints also from Ray 2.53 on.
    if has_one && serve_port.is_none() {
        return json!({"httpGet": {"path": "/api/healthz", "port": agent}});
    }
    let mut commands = vec![ask(2, agent, "api/local_raylet_healthz")];
    if is_head {
        commands.push(ask(10, port("dashboard-port", 8265), "api/gcs_healthz"));
    }
    if let Some(serve_port) = serve_port {
        commands.push(ask(10, serve_port, "-/healthz"));
    }
    json!({"exec": {"command": ["bash", "-c", commands.join(" && ")]}})
}

fn ask(timeout: u32, port: u64, path: &str) -> String {
    format!("wget --tries 1 -T {timeout} -q -O- http://localhost:{port}/{path} | grep success")
}

/// The first three numbers of a version, at least two of which are there: `2.53.0rc1` is 2.53.0. None for other texts such as `nightly`.
pub(crate) fn version(text: &str) -> Option<(u64, u64, u64)> {
    let text = text.trim();
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let mut numbers = Vec::new();
    loop {
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, behind) = rest.split_at(end);
        let Ok(number) = digits.parse::<u64>() else { break };
        numbers.push(number);
        let Some(behind) = behind.strip_prefix('.') else { break };
        rest = behind;
    }
    let number = |index: usize| numbers.get(index).copied();
    Some((number(0)?, number(1)?, number(2).unwrap_or_default()))
}

/// Why a text is no version, in the words of the official operator's parser.
pub(crate) fn version_problem(text: &str) -> String {
    let begin = text.trim_start();
    let begin = begin.strip_prefix('v').unwrap_or(begin);
    match begin.starts_with(|it: char| it.is_ascii_digit()) {
        // One number is too few.
        true => format!("illegal version string {text:?}"),
        false => format!("could not parse {text:?} as version"),
    }
}
