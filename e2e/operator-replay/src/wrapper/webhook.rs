//! What the official webhooks answered, compared with the functions of `appwrapper`.
//!
//! Values that a message prints as a Go struct are left out.

use appwrapper::{
    settings::WrapperSettings,
    webhook::{self, WrapperRequester},
};
use crds::validation::denial;
use serde_json::Value;

use crate::operations;

/// A message without the Go structs in it.
fn without_structs(message: &str) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some(at) = rest.find("[]v1beta2.") {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let mut depth = 0;
        let end = after.find(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == '}' && depth == 0
        });
        rest = after.get(end.map_or(after.len(), |end| end + 1)..).unwrap_or_default();
        rest = rest.trim_start_matches(": ");
    }
    text + rest
}

/// The resource of an object, as the recorded cluster served it.
fn resource(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let is_served = group.is_empty()
        || ["apps", "batch", "kubeflow.org", "ray.io", "workload.codeflare.dev"].contains(&group)
        || group.ends_with(".k8s.io");
    match object["kind"].as_str().filter(|_| is_served) {
        Some(kind) => format!("{}s", kind.to_lowercase()),
        None => "*".to_owned(),
    }
}

/// Of the recorded users `bob` may create AppWrappers alone, `alice@example.com` pods as well, and the administrator everything.
fn may_create(user: Option<&str>, resource: &str) -> bool {
    match user {
        None => true,
        Some("alice@example.com") => resource == "pods",
        Some(_) => false,
    }
}

fn requester(case: &Value) -> WrapperRequester {
    let user = case["user"].as_str();
    let components = case["object"]["spec"]["components"].as_array().into_iter().flatten();
    let resources = components.map(|component| resource(&component["template"])).enumerate();
    let forbidden = resources.filter(|(_, resource)| !may_create(user, resource)).collect();
    let name = user.unwrap_or("admin").to_owned();
    WrapperRequester { name, forbidden, ..WrapperRequester::default() }
}

fn settings(case: &Value) -> WrapperSettings {
    let is_configured =
        case["name"].as_str().is_some_and(|name| name.starts_with("webhook/awconfig"));
    if !is_configured {
        return WrapperSettings::default();
    }
    WrapperSettings {
        default_queue_name: Some("default-queue".to_owned()),
        user_rbac_check: false,
        ..WrapperSettings::default()
    }
}

fn refusal(case: &Value) -> Option<String> {
    let mut object = case["object"].clone();
    object["metadata"]["namespace"] = "<ns>".into();
    if case["verb"] == "create" {
        return denial(&webhook::validate_create(&object, &requester(case), &settings(case)));
    }
    // What is stored has the labels of its creation.
    let mut old = case["old"].clone();
    webhook::default(&mut old, &requester(case), &settings(case));
    denial(&webhook::validate_update(&operations::updated(&old, &object), &old))
}

/// What differs. A request that the schema refused did not reach the webhook.
pub(crate) fn differences(case: &Value) -> Result<Vec<String>, &'static str> {
    let message = case["answer"]["message"].as_str().unwrap_or_default();
    let prefix = "admission webhook \"vappwrapper.kb.io\" denied the request: ";
    let theirs = message.strip_prefix(prefix).map(without_structs);
    if theirs.is_none() && !message.is_empty() {
        return Err("requests that the schema refused");
    }
    let ours = refusal(case);
    let mut found = Vec::new();
    if ours != theirs {
        found.push(format!("theirs {theirs:?}\n  ours   {ours:?}"));
    }
    found.extend(defaults(case));
    Ok(found)
}

/// The labels that a created object is stored with.
fn defaults(case: &Value) -> Option<String> {
    let stored = &case["answer"]["stored"];
    if case["verb"] != "create" || stored.is_null() {
        return None;
    }
    let mut object = case["object"].clone();
    webhook::default(&mut object, &requester(case), &settings(case));
    let (ours, theirs) = (&object["metadata"]["labels"], &stored["metadata"]["labels"]);
    (ours != theirs).then(|| format!("labels\n  theirs {theirs}\n  ours   {ours}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn component(kind: &str) -> Value {
        let spec = json!({"containers": [{"name": "a"}]});
        json!({"template": {
            "apiVersion": if kind == "Pod" { "v1" } else { "batch/v1" }, "kind": kind,
            "metadata": {"name": "a"},
            "spec": if kind == "Pod" { spec } else { json!({"template": {"spec": spec}}) },
        }})
    }

    fn update(labels: &Value) -> Option<String> {
        let spec = json!({"components": [component("Job")]});
        refusal(&json!({
            "name": "webhook/x", "verb": "update", "user": "alice@example.com",
            "old": {"metadata": {"name": "w"}, "spec": spec},
            "object": {"metadata": {"name": "w", "labels": labels}, "spec": spec},
        }))
    }

    #[test]
    fn a_user_creates_what_the_recorded_one_may() {
        let create = |user: Option<&str>, kind: &str| {
            let mut case = json!({
                "name": "webhook/x", "verb": "create",
                "object": {"metadata": {"name": "w"}, "spec": {"components": [component(kind)]}},
            });
            if let Some(user) = user {
                case["user"] = json!(user);
            }
            let refusal = refusal(&case).unwrap_or_default();
            refusal.split_once("User ").map(|(_, rest)| rest.to_owned())
        };
        let forbidden = |user: &str, resource: &str| {
            Some(format!("{user} is not authorized to create {resource} in <ns>"))
        };
        assert_eq!((create(None, "Pod"), create(None, "Job")), (None, None));
        assert_eq!(create(Some("alice@example.com"), "Pod"), None);
        assert_eq!(
            create(Some("alice@example.com"), "Job"),
            forbidden("alice@example.com", "jobs")
        );
        assert_eq!(create(Some("bob"), "Pod"), forbidden("bob", "pods"));
    }

    #[test]
    fn a_change_is_compared_with_the_labels_of_the_creation() {
        let user = "workload.codeflare.dev/user";
        assert_eq!(update(&json!({user: "alice_example.com"})), None, "the same");
        assert_eq!(update(&json!({"a": "b"})), None);
        for other in [json!("eve"), Value::Null] {
            let refusal = update(&json!({user: other})).unwrap_or_default();
            assert!(refusal.contains("attempt to change immutable field"), "{refusal}");
        }
    }
}
