//! What the official webhooks answered, compared with the functions of `ray`.
//!
//! The message about two groups of the same name prints the whole group upstream and its name here; the rest is compared.

use crds::validation::denial;
use ray::webhook;
use serde_json::Value;

use crate::operations;

/// A message in which a group is its name.
fn without_groups(message: &str) -> String {
    let Some((before, group)) = message.split_once("{\"groupName\":") else {
        return message.to_owned();
    };
    let name = group.split(',').next().unwrap_or_default();
    let after = group.split_once("}: ").map_or("", |(_, after)| after);
    format!("{before}{name}: {after}")
}

/// What differs. A request that the schema refused did not reach the webhook.
pub(crate) fn differences(case: &Value) -> Result<Vec<String>, &'static str> {
    let message = case["answer"]["message"].as_str().unwrap_or_default();
    let is_webhook = message.starts_with("admission webhook");
    if !message.is_empty() && !is_webhook {
        return Err("requests that the schema refused");
    }
    let theirs = message.split_once(" is invalid: ").filter(|_| is_webhook);
    let theirs = theirs.map(|(_, errors)| without_groups(errors));
    let object = match case["verb"].as_str() {
        Some("update") => operations::updated(&case["old"], &case["object"]),
        _ => case["object"].clone(),
    };
    let ours = denial(&webhook::validate(&object));
    let differs = ours != theirs;
    Ok(differs.then(|| format!("theirs {theirs:?}\n  ours   {ours:?}")).into_iter().collect())
}
