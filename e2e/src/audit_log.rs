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
    let path = cluster.state().audit_log();
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
    // The last line may be half written.
    let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = requests.filter(|one| one["user"]["username"] == *user);
    let such = ours.filter(|one| code.is_none() || one["responseStatus"]["code"].as_u64() == code);
    Ok(such.map(|one| format!("{} {}", one["verb"], one["requestURI"])).collect())
}
