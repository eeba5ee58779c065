//! What the head of a cluster serves: its applications are read, and the configuration is sent where it is missing.
//!
//! Source: docs/reference/ray.md §9.

use serde_json::{Map, Value, json};

use super::{
    applications::{Applications, ServeDetails},
    conditions::UPGRADE_IN_PROGRESS,
    context::{ServiceContext, Unfinished},
    incremental::{CapacityMove, due_capacity, next_capacity},
    memory::ServiceMemory,
    state::ServiceState,
};
use crate::{
    cluster::{dashboard_address, is_running_and_ready, token_secret},
    conditions_of,
    head::{HeadAnswer, HeadMethod, HeadRequest, is_success},
    json::name,
    names,
    pass::Pass,
    user_yaml::decode_user_yaml,
};

/// The path of the applications.
const PATH: &str = "/api/serve/applications/";

/// Where the head of a cluster is asked, and with which token.
struct Dashboard<'a> {
    cluster: &'a Value,
    address: String,
    token_secret: Option<String>,
}

/// Reads what a cluster serves, and sends the configuration to it. Nothing is served before the head is ready.
///
/// The cluster that gives up capacity in an incremental upgrade may have a dead head: its steps are noted then, and sent when the head
/// answers again. Otherwise its pods go with the cluster at the end. The official operator waits for that head without end.
pub(super) fn reconcile_serve(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    memory: &mut ServiceMemory,
    state: &mut ServiceState,
    cluster: &Value,
) -> Result<Applications, Unfinished> {
    let is_ready = is_head_ready(context, cluster);
    if is_ready && let Ok(applications) = exchange(context, pass, memory, state, cluster) {
        return Ok(applications);
    }
    let gives_up = is_upgraded(context, state) && state.gives_up_capacity(name(cluster));
    if pass.is_pending() || (is_ready && !gives_up) {
        return Err(Unfinished::Waiting);
    }
    if gives_up && let Some(step) = next_capacity(context, state, name(cluster)) {
        state.set_capacity(&step);
    }
    Ok(Applications::default())
}

fn is_upgraded(context: &ServiceContext<'_>, state: &ServiceState) -> bool {
    context.is_incremental() && state.is_true(UPGRADE_IN_PROGRESS)
}

/// Asks a head that is ready, and sends what it lacks.
fn exchange(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    memory: &mut ServiceMemory,
    state: &mut ServiceState,
    cluster: &Value,
) -> Result<Applications, Unfinished> {
    let dashboard = dashboard_of(context, pass, cluster)?;
    let query = format!("{}{PATH}?api_type=declarative", dashboard.address);
    let answer =
        pass.ask(dashboard.request(HeadMethod::Get, query, None)).ok_or(Unfinished::Waiting)?;
    // Without the present state nothing is decided: a head that restarts is asked again.
    let details = ServeDetails::parse(answer).map_err(|_| Unfinished::Waiting)?;
    let applications = details.applications();
    let upgrades = is_upgraded(context, state);
    // During an incremental upgrade the new configuration is that of the new cluster.
    let keeps_config = upgrades && name(cluster) == state.active.cluster;
    let sent = memory.sent(name(cluster));
    // A head that restarted without a stored state serves nothing.
    let is_missing = applications.by_name.is_empty() || sent != context.spec.serve_config_v2;
    let is_sent = (is_missing || sent.is_empty()) && !keeps_config;
    if is_sent {
        send(context, pass, memory, state, &dashboard)?;
    }
    if !upgrades {
        return Ok(applications);
    }
    // The configuration was just sent with the capacity of the status.
    let reported = if is_sent { None } else { details.reported_capacity() };
    if let Some(step) = due_capacity(context, state, name(cluster), reported) {
        let config = present_config(context, memory.sent(name(cluster)), &details);
        move_capacity(context, pass, &dashboard, config, &step)?;
        state.set_capacity(&step);
    }
    Ok(applications)
}

fn dashboard_of<'a>(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    cluster: &'a Value,
) -> Result<Dashboard<'a>, Unfinished> {
    let dashboard = context.of_cluster(cluster, |it| {
        let address = format!("http://{}", dashboard_address(it)?);
        Ok(Dashboard { cluster, address, token_secret: token_secret(it) })
    });
    let path = context.path(name(cluster));
    dashboard.ok_or(Unfinished::Waiting)?.map_err(|why: &str| cannot_send(pass, &path, why))
}

fn is_head_ready(context: &ServiceContext<'_>, cluster: &Value) -> bool {
    if context.settings.gates.status_conditions {
        conditions_of::is_true(cluster, names::HEAD_POD_READY)
    } else {
        context.head_pod(cluster).is_some_and(is_running_and_ready)
    }
}

fn send(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    memory: &mut ServiceMemory,
    state: &ServiceState,
    dashboard: &Dashboard<'_>,
) -> Result<(), Unfinished> {
    let text = &context.spec.serve_config_v2;
    let capacity = state.capacity_of(name(dashboard.cluster)).filter(|_| context.is_incremental());
    let path = context.path(name(dashboard.cluster));
    match put(pass, dashboard, parse(text), capacity)? {
        Ok(()) => {
            memory.note_sent(name(dashboard.cluster), text);
            let message = format!("Updated serve applications to the RayCluster {path}");
            pass.normal("UpdatedServeApplications", message);
            Ok(())
        }
        Err(why) => Err(cannot_send(pass, &path, &why)),
    }
}

/// Explains why a cluster does not get its configuration.
fn cannot_send(pass: &mut Pass<'_>, path: &str, why: &str) -> Unfinished {
    let message = format!("Failed to update serve applications to the RayCluster {path}: {why}");
    pass.warning("FailedToUpdateServeApplications", message);
    Unfinished::Waiting
}

/// A configuration as JSON, or why it has none.
type ParsedConfig = Result<Map<String, Value>, String>;

/// The configuration that a cluster has already.
///
/// After a restart the one that was sent is not known, and in an incremental upgrade that of the spec is for the new cluster only. So the
/// one counts that the head reports. A head that reports none gets that of the spec, as by the official operator.
fn present_config(
    context: &ServiceContext<'_>,
    sent: &str,
    details: &ServeDetails,
) -> ParsedConfig {
    match sent {
        "" => details.deployed_config().map_or_else(|| parse(&context.spec.serve_config_v2), Ok),
        sent => parse(sent),
    }
}

/// Sends the configuration that the cluster has already, with another capacity.
fn move_capacity(
    context: &ServiceContext<'_>,
    pass: &mut Pass<'_>,
    dashboard: &Dashboard<'_>,
    config: ParsedConfig,
    step: &CapacityMove,
) -> Result<(), Unfinished> {
    let path = context.path(name(dashboard.cluster));
    match put(pass, dashboard, config, Some(step.capacity))? {
        Ok(()) => {
            // The wording is the official operator's.
            let message = format!(
                "Updated target_capacity of serve applications to to the RayCluster {path}"
            );
            pass.normal("UpdatedServeTargetCapacity", message);
            Ok(())
        }
        Err(why) => {
            let message = format!(
                "Failed to update target_capacity of serve applications to the RayCluster {path}: {why}"
            );
            pass.warning("FailedToUpdateTargetCapacity", message);
            Err(Unfinished::Waiting)
        }
    }
}

/// Sends a configuration. The inner error says why it did not arrive.
fn put(
    pass: &mut Pass<'_>,
    dashboard: &Dashboard<'_>,
    config: ParsedConfig,
    capacity: Option<i32>,
) -> Result<Result<(), String>, Unfinished> {
    let mut config = match config {
        Ok(config) => config,
        Err(why) => return Ok(Err(format!("error converting YAML to JSON: {why}"))),
    };
    if let Some(capacity) = capacity {
        config.insert("target_capacity".to_owned(), json!(capacity));
    }
    let url = format!("{}{PATH}", dashboard.address);
    let body = Some(Value::Object(config));
    let answer =
        pass.ask(dashboard.request(HeadMethod::Put, url, body)).ok_or(Unfinished::Waiting)?;
    Ok(match answer {
        answer if is_success(answer) => Ok(()),
        HeadAnswer::Response { code, body } => Err(format!("{code}: {}", crate::head::cut(body))),
        HeadAnswer::Unreachable(why) => Err(why.clone()),
    })
}

/// The configuration as JSON. No text is a configuration without applications.
fn parse(text: &str) -> ParsedConfig {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let parsed = decode_user_yaml::<Option<Map<String, Value>>>(text);
    parsed.map(Option::unwrap_or_default).map_err(|error| error.to_string())
}

impl Dashboard<'_> {
    fn request(&self, method: HeadMethod, url: String, body: Option<Value>) -> HeadRequest {
        HeadRequest { method, url, body, token_secret: self.token_secret.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_do_not_multiply_a_configuration() {
        let text = format!("a: &a \"{}\"\nb: [{}]", "<".repeat(10_000), "*a, ".repeat(98) + "*a");
        assert!(parse(&text).is_err());
    }

    #[test]
    fn a_configuration_may_repeat_parts_by_alias() {
        let text = "a: &a {num_cpus: 1}\nb: {<<: *a}\nc: *a";
        let expected = json!({"a": {"num_cpus": 1}, "b": {"num_cpus": 1}, "c": {"num_cpus": 1}});
        assert_eq!(parse(text).map(Value::Object), Ok(expected));
    }
}
