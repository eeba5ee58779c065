//! The requests of the programs, from the audit log of an API server.

use std::fs;

use anyhow::{Context, Result};
use harness::Cluster;
use serde_json::Value;

use crate::installation::NAMESPACE;

/// What a program asked for, of the requests that were answered with this code. The log of the API server has a line
/// for each request, of all tests so far.
///
/// # Errors
/// If the log cannot be read.
pub fn asked(cluster: &Cluster, account: &str, code: Option<u64>) -> Result<Vec<String>> {
    let name = account_of_program(account);
    let answered = |one: &Value| code.is_none() || one["responseStatus"]["code"].as_u64() == code;
    requests(cluster, &name, answered)
}

/// The requests of a program that its roles do not allow. A 403 alone does not say so: creating an object in a namespace
/// that is being deleted is answered alike.
///
/// # Errors
/// If the log cannot be read.
pub fn forbidden(cluster: &Cluster, account: &str) -> Result<Vec<String>> {
    forbidden_to(cluster, &account_of_program(account))
}

/// The requests of a user that its roles do not allow.
///
/// # Errors
/// If the log cannot be read.
pub fn forbidden_to(cluster: &Cluster, user: &str) -> Result<Vec<String>> {
    let decision = |one: &Value| one["annotations"]["authorization.k8s.io/decision"] == "forbid";
    requests(cluster, user, decision)
}

fn account_of_program(account: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{account}")
}

fn requests(cluster: &Cluster, user: &str, counts: impl Fn(&Value) -> bool) -> Result<Vec<String>> {
    let path = cluster.state().audit_log();
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    // The last line may be half written.
    let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let such = requests.filter(|one| one["user"]["username"] == *user && counts(one));
    Ok(such.map(|one| format!("{} {}", one["verb"], one["requestURI"])).collect())
}
