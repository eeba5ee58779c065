//! What the official webhooks answered, compared with the functions of this crate.
//!
//! Values that a message prints as a Go struct are left out.

use std::io::Read;

use appwrapper::{
    settings::WrapperSettings,
    webhook::{self, WrapperRequester},
};
use crds::validation::denial;
use flate2::read::GzDecoder;
use serde_json::Value;

fn cases() -> Vec<Value> {
    let compressed = include_bytes!("operatororacle/webhook.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("gzip");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case"));
    cases.filter(|case| case["of"] == "AppWrapper").collect()
}

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

fn requester(case: &Value) -> WrapperRequester {
    let name = case["user"].as_str().unwrap_or("admin").to_owned();
    let forbidden = if name == "bob" { (0..10).collect() } else { [].into() };
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
    // The spec of the change, with its labels and annotations merged into what is stored.
    let mut new = case["old"].clone();
    for part in ["labels", "annotations"] {
        json_patch::merge(&mut new["metadata"][part], &object["metadata"][part]);
    }
    new["spec"] = object["spec"].clone();
    denial(&webhook::validate_update(&new, &case["old"]))
}

#[test]
fn recorded_requests_are_answered_alike() {
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for case in cases() {
        let message = case["answer"]["message"].as_str().unwrap_or_default();
        let prefix = "admission webhook \"vappwrapper.kb.io\" denied the request: ";
        let theirs = message.strip_prefix(prefix).map(without_structs);
        if theirs.is_none() && !message.is_empty() {
            // The schema refused; the webhook was not asked.
            continue;
        }
        n_compared += 1;
        let ours = refusal(&case);
        if ours != theirs {
            wrong.push(format!("{}\n  theirs {theirs:?}\n  ours   {ours:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(n_compared, 41, "recorded answers of the webhook");
}

#[test]
fn recorded_defaults_are_set_alike() {
    for case in cases().iter().filter(|case| case["verb"] == "create") {
        let stored = &case["answer"]["stored"];
        if stored.is_null() {
            continue;
        }
        let mut object = case["object"].clone();
        webhook::default(&mut object, &requester(case), &settings(case));
        assert_eq!(object["metadata"]["labels"], stored["metadata"]["labels"], "{}", case["name"]);
    }
}
