//! What the official operator refused of RayJobs and RayServices, compared with the functions of this crate.

use std::io::Read;

use flate2::read::GzDecoder;
use ray::{job, service, settings::OperatorSettings, v1::RayJobSpec};
use serde_json::Value;

fn cases(compressed: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(compressed).read_to_string(&mut text).expect("gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

fn settings(case: &Value) -> OperatorSettings {
    let mut settings = OperatorSettings::default();
    match case["profile"].as_str() {
        Some("gates-off") => settings.gates.deletion_policy = false,
        Some("gates" | "gates2") => settings.gates.network_policy = true,
        _ => {}
    }
    settings
}

/// The RayJob of the first step as stored, and the message with which its validation failed.
fn first_job(case: &Value) -> Option<(&Value, Option<&str>)> {
    let put = case["steps"][0]["put"].as_object()?;
    let job = put.values().find(|object| object["kind"] == "RayJob")?;
    let failed = job["status"]["jobDeploymentStatus"] == "ValidationFailed";
    Some((job, failed.then(|| job["status"]["message"].as_str()).flatten()))
}

#[test]
fn recorded_ray_jobs_are_refused_alike() {
    let (mut wrong, mut n_refused, mut n_accepted) = (Vec::new(), 0, 0);
    for case in cases(include_bytes!("operatororacle/rayjob.jsonl.gz")) {
        let Some((job, theirs)) = first_job(&case) else { continue };
        if job["spec"]["managedBy"] == "kueue.x-k8s.io/multikueue" {
            continue;
        }
        let spec: RayJobSpec = serde_json::from_value(job["spec"].clone()).expect("a spec decodes");
        let ours = job::check_job(job, &spec, &settings(&case)).err().map(|error| error.message);
        match theirs {
            Some(_) => n_refused += 1,
            None => n_accepted += 1,
        }
        // What follows the text of the runtime environment is the message of the YAML parser.
        let cut = |text: &str| match text.strip_prefix("failed to unmarshal RuntimeEnvYAML: ") {
            Some(rest) => rest.split(": ").next().unwrap_or_default().to_owned(),
            None => text.to_owned(),
        };
        if ours.as_deref().map(cut) != theirs.map(cut) {
            wrong.push(format!("{}\n  theirs {theirs:?}\n  ours   {ours:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((n_refused, n_accepted), (21, 76));
}

#[test]
fn recorded_ray_services_are_refused_alike() {
    let (mut wrong, mut n_refused, mut n_accepted) = (Vec::new(), 0, 0);
    for case in cases(include_bytes!("operatororacle/rayservice.jsonl.gz")) {
        let step = &case["steps"][0];
        let put = step["put"].as_object().into_iter().flatten();
        let Some((_, service)) = put.into_iter().find(|(_, it)| it["kind"] == "RayService") else {
            continue;
        };
        let events = step["events"].as_array().into_iter().flatten();
        let theirs = events
            .filter(|event| event["about"].as_str().is_some_and(|it| it.starts_with("RayService/")))
            .find(|event| event["reason"].as_str().is_some_and(|it| it.starts_with("Invalid")))
            .map(|event| (text(&event["reason"]), text(&event["message"])));
        let spec = serde_json::from_value(service["spec"].clone()).expect("a spec decodes");
        let path = format!("<ns>/{}: ", text(&service["metadata"]["name"]));
        let ours = service::check_service(service, &spec, &settings(&case)).err();
        let ours = ours.map(|error| (error.reason.to_owned(), path + &error.message));
        match theirs {
            Some(_) => n_refused += 1,
            None => n_accepted += 1,
        }
        if ours != theirs {
            wrong.push(format!("{}\n  theirs {theirs:?}\n  ours   {ours:?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((n_refused, n_accepted), (5, 48));
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
