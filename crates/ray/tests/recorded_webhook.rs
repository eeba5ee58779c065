//! What the official webhooks answered, compared with the functions of this crate.
//!
//! The message about two groups of the same name prints the whole group upstream and its name here; the rest is compared.

use std::io::Read;

use crds::validation::denial;
use flate2::read::GzDecoder;
use ray::webhook;
use serde_json::Value;

fn cases() -> Vec<Value> {
    let compressed = include_bytes!("operatororacle/webhook.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

/// A message in which a group is its name.
fn without_groups(message: &str) -> String {
    let Some((before, group)) = message.split_once("{\"groupName\":") else {
        return message.to_owned();
    };
    let name = group.split(',').next().unwrap_or_default();
    let after = group.split_once("}: ").map_or("", |(_, after)| after);
    format!("{before}{name}: {after}")
}

#[test]
fn recorded_requests_are_answered_alike() {
    let (mut wrong, mut n_compared) = (Vec::new(), 0);
    for case in cases() {
        let message = case["answer"]["message"].as_str().unwrap_or_default();
        let is_webhook = message.starts_with("admission webhook");
        if !message.is_empty() && !is_webhook {
            // The schema refused; the webhook was not asked.
            continue;
        }
        n_compared += 1;
        let theirs = message.split_once(" is invalid: ").filter(|_| is_webhook);
        let theirs = theirs.map(|(_, errors)| without_groups(errors));
        let ours = denial(&webhook::validate(&case["object"]));
        if ours != theirs {
            wrong.push(format!("{}\n  theirs {theirs:?}\n  ours   {ours:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(n_compared, 45, "recorded answers of the webhooks");
}
