//! The conditions of a MultiKueueCluster before its client certificate or token expires.

use std::time::Duration;

use runtime::credential_expiry::CredentialExpiry;

use super::{
    dispatched::{connect, dispatching, east, hub_job},
    *,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn later(days: u32) -> Timestamp {
    outbox::after(NOW, DAY * days)
}

fn loaded(control: &mut ManagerControl, expiry: Option<CredentialExpiry>, now: Timestamp) {
    control.observe(east(WorkerInput::Credential(expiry)), now);
}

/// The conditions that a decision writes to the MultiKueueCluster, as `type reason`. The write is done.
fn written(control: &mut ManagerControl, now: Timestamp) -> Option<Vec<String>> {
    let step = control.decide(now);
    let mut orders = step.orders.iter();
    let order = orders.find(|order| order.ticket.purpose == Purpose::ClusterCondition)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    let conditions = body["status"]["conditions"].as_array().expect("conditions").clone();
    let word = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let words =
        conditions.iter().map(|one| format!("{} {}", word(one, "type"), word(one, "reason")));
    let words = words.collect();
    let before = body["metadata"]["resourceVersion"].as_str().expect("a version");
    let version = (before.parse::<u64>().expect("a number") + 1).to_string();
    let object = json!({
        "metadata": {"name": "east", "resourceVersion": version}, "spec": {}, "status": body["status"],
    });
    control.answered(&order.ticket.clone(), WriteOutcome::done(object), now);
    Some(words)
}

fn connected() -> ManagerControl {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    connect(&mut control, vec![], vec![]);
    assert_eq!(written(&mut control, NOW), Some(vec!["Active Active".to_owned()]));
    control
}

#[test]
fn a_certificate_is_reported_a_week_before_its_end_and_at_its_end() {
    let mut control = connected();
    loaded(&mut control, Some(CredentialExpiry::of_certificate(later(30))), NOW);
    assert_eq!(written(&mut control, NOW), None, "a month is left");
    let wake = control.decide(NOW).wake.expect("a time");
    assert!(wake <= later(23), "{wake}");
    let expiring = "sluice.dev/CertificateExpiring";
    let with =
        |reason: &str| Some(vec!["Active Active".to_owned(), format!("{expiring} {reason}")]);
    assert_eq!(written(&mut control, later(23)), with("CertificateExpiring"));
    assert_eq!(written(&mut control, later(24)), None, "it is written once");
    assert_eq!(written(&mut control, later(30)), with("CertificateExpired"));

    loaded(&mut control, Some(CredentialExpiry::of_certificate(later(400))), later(31));
    assert_eq!(written(&mut control, later(31)), Some(vec!["Active Active".to_owned()]));
}

#[test]
fn a_kubeconfig_without_an_expiry_ends_the_report() {
    let mut control = connected();
    loaded(&mut control, Some(CredentialExpiry::of_certificate(later(1))), NOW);
    let written_first = written(&mut control, NOW).expect("a write");
    assert_eq!(written_first.len(), 2, "{written_first:?}");
    loaded(&mut control, None, NOW);
    assert_eq!(written(&mut control, later(0)), Some(vec!["Active Active".to_owned()]));
}

#[test]
fn a_token_is_reported_in_the_last_part_of_its_lifetime_in_place_of_a_certificate() {
    let mut control = connected();
    loaded(&mut control, Some(CredentialExpiry::of_certificate(later(1))), NOW);
    let certificate = "sluice.dev/CertificateExpiring CertificateExpiring";
    let with = |condition: &str| Some(vec!["Active Active".to_owned(), condition.to_owned()]);
    assert_eq!(written(&mut control, NOW), with(certificate));
    loaded(&mut control, Some(CredentialExpiry::of_token(Some(NOW), later(10))), NOW);
    assert_eq!(written(&mut control, NOW), Some(vec!["Active Active".to_owned()]));
    assert_eq!(written(&mut control, later(7)), None, "three days of ten are left");
    assert_eq!(written(&mut control, later(8)), with("sluice.dev/TokenExpiring TokenExpiring"));
    assert_eq!(written(&mut control, later(10)), with("sluice.dev/TokenExpiring TokenExpired"));
}
