//! Probes of Ray's containers.
//!
//! Source: docs/reference/ray.md §3 "Ray container".

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::{ClusterContext, Origin};
use crate::json::object;

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
    let container = object(container);
    let timeout = if is_head { 5 } else { 2 };
    let is_unset = |value: Option<&Value>| value.is_none_or(Value::is_null);
    // A probe of the template is taken as a whole, no field of it is completed.
    if is_unset(container.get("livenessProbe")) {
        let check = health_check(context, is_head, params, false);
        container.insert("livenessProbe".into(), probe(check, 30, timeout, 120));
    }
    if is_unset(container.get("readinessProbe")) {
        let check = health_check(context, is_head, params, serves);
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
    serves: bool,
) -> Value {
    let port = |name: &str, default: u16| {
        params.get(name).and_then(|port| port.parse().ok()).unwrap_or(default)
    };
    let agent = port("dashboard-agent-listen-port", 52365);
    let has_one = version(&context.spec.ray_version).is_some_and(|at| at >= ONE_ENDPOINT_SINCE);
    // As recorded, a worker of a RayService asks the single endpoints also from Ray 2.53 on.
    if has_one && !serves {
        return json!({"httpGet": {"path": "/api/healthz", "port": agent}});
    }
    let mut commands = vec![ask(2, agent, "api/local_raylet_healthz")];
    if is_head {
        commands.push(ask(10, port("dashboard-port", 8265), "api/gcs_healthz"));
    }
    if serves {
        commands.push(ask(10, 8000, "-/healthz"));
    }
    json!({"exec": {"command": ["bash", "-c", commands.join(" && ")]}})
}

fn ask(timeout: u32, port: u16, path: &str) -> String {
    format!("wget --tries 1 -T {timeout} -q -O- http://localhost:{port}/{path} | grep success")
}

/// The three numbers of a version; none for other texts such as `nightly`.
pub(crate) fn version(text: &str) -> Option<(u64, u64, u64)> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let numbers = text.split(['-', '+']).next()?;
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let version =
        (parts.next()??, parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?);
    parts.next().is_none().then_some(version)
}
