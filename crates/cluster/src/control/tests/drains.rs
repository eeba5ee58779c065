//! Drains by annotations of a MultiKueueCluster (docs/reference/dispatch.md §3).

use jiff::ToSpan;

use super::{
    dispatched::{done, orders},
    gang_reservation::{manager, waiting},
    policy::{retried, running_under},
    *,
};

/// `east` gets these annotations; the names are without their prefix.
fn annotate(control: &mut ManagerControl, version: u32, annotations: &[(&str, String)]) {
    let named =
        annotations.iter().map(|(name, value)| (format!("sluice.dev/{name}"), json!(value)));
    let annotations: serde_json::Map<String, Value> = named.collect();
    let east = json!({
        "metadata": {"name": "east", "uid": "east", "resourceVersion": version.to_string(), "annotations": annotations},
        "spec": {},
    });
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(east))), NOW);
}

fn drain(window: (i64, i64), deadline: Option<&str>) -> Vec<(&'static str, String)> {
    let (from, until) = (NOW + window.0.minutes(), NOW + window.1.minutes());
    let deadline = deadline.map(|text| ("drain-deadline", text.to_owned()));
    let all = [("drain", "true".to_owned()), ("drain-window", format!("{from}/{until}"))];
    all.into_iter().chain(deadline).collect()
}

/// Whether a Workload that fits is reserved for `east` when it is submitted at this minute.
fn is_taken(control: &mut ManagerControl, minute: i64) -> bool {
    let now = NOW + minute.minutes();
    let small = waiting("small", 1, 4);
    control.observe(ManagerInput::Workload(Change::Apply(shared(small))), now);
    orders(&control.decide(now)).contains(&"hub reserve".to_owned())
}

/// Whether the Workload is reserved, once the status that says why it waits is written.
fn is_reserved_later(control: &mut ManagerControl, now: Timestamp) -> bool {
    let step = control.decide(now);
    let mut written = waiting("small", 1, 4);
    written["metadata"]["resourceVersion"] = json!("100");
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Pending);
    let body = order.expect("the reason").write.request().body();
    let body: Value = serde_json::from_slice(body).expect("JSON");
    written["status"] = body["status"].clone();
    done(control, &step, "pending", written, now);
    orders(&control.decide(now)).contains(&"hub reserve".to_owned())
}

#[test]
fn new_work_comes_outside_the_window_of_a_drain() {
    for (minute, taken) in [(9, true), (10, false), (19, false), (20, true)] {
        let mut control = manager(&json!({}));
        annotate(&mut control, 60, &drain((10, 20), None));
        control.decide(NOW);
        assert_eq!(is_taken(&mut control, minute), taken, "{minute}");
    }
}

#[test]
fn the_end_of_a_window_wakes_what_waits() {
    let mut control = manager(&json!({}));
    annotate(&mut control, 60, &drain((-1, 10), None));
    control.decide(NOW);
    assert!(!is_taken(&mut control, 9));
    let wake = control.decide(NOW + 9.minutes()).wake.expect("the end of the window");
    assert!(wake <= NOW + 10.minutes(), "{wake}");
    assert!(is_reserved_later(&mut control, NOW + 10.minutes()));
}

#[test]
fn an_annotation_without_a_window_holds_until_it_is_removed() {
    let mut control = manager(&json!({}));
    annotate(&mut control, 60, &[("drain", "true".to_owned())]);
    assert!(!is_taken(&mut control, 1));
    annotate(&mut control, 61, &[]);
    assert!(is_reserved_later(&mut control, NOW + 2.minutes()));
}

#[test]
fn running_work_is_withdrawn_at_the_deadline_within_the_window() {
    let mut control = running_under(&json!({}));
    annotate(&mut control, 60, &drain((10, 20), Some("5m")));
    let wake = control.decide(NOW).wake.expect("the beginning of the window");
    assert!(wake <= NOW + 10.minutes(), "{wake}");
    for minute in [10, 14] {
        assert_eq!(retried(&mut control, NOW + minute.minutes()), None, "{minute}");
    }
    let wake = control.decide(NOW + 14.minutes()).wake.expect("the deadline");
    assert!(wake <= NOW + 15.minutes(), "{wake}");
    let message = retried(&mut control, NOW + 15.minutes()).expect("it is withdrawn");
    assert!(message.contains("Worker cluster \\\"east\\\" is drained"), "{message}");
}

#[test]
fn nothing_is_withdrawn_outside_the_window_although_the_deadline_has_passed() {
    let earlier = (NOW - 1.hours()).to_string();
    let mut control = running_under(&json!({}));
    annotate(&mut control, 60, &drain((10, 20), Some(&earlier)));
    assert_eq!(retried(&mut control, NOW), None, "the window is not open");
    assert!(retried(&mut control, NOW + 10.minutes()).is_some(), "it is");
    let mut control = running_under(&json!({}));
    annotate(&mut control, 60, &drain((-20, -10), Some("1m")));
    assert_eq!(retried(&mut control, NOW), None, "the window is over");
}

#[test]
fn the_earlier_deadline_of_policy_and_annotation_counts() {
    for (policy, annotation) in [(5, 15), (15, 5)] {
        let at = |minute: i64| (NOW + minute.minutes()).to_string();
        let drained = json!({"clusters": [{"name": "east", "drain": {"deadline": at(policy)}}]});
        let mut control = running_under(&drained);
        let deadline = ("drain-deadline", at(annotation));
        annotate(&mut control, 60, &[("drain", "true".to_owned()), deadline]);
        assert_eq!(retried(&mut control, NOW + 4.minutes()), None, "{policy}");
        assert!(retried(&mut control, NOW + 5.minutes()).is_some(), "{policy}");
    }
}

/// Types of the conditions that a decision writes to `east`, with its Events.
fn reported(control: &mut ManagerControl) -> (Vec<String>, Vec<String>) {
    let step = control.decide(NOW);
    let written = step.orders.iter().find(|one| one.ticket.purpose == Purpose::ClusterCondition);
    let conditions = written.map_or(json!([]), |order| {
        let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        body["status"]["conditions"].clone()
    });
    let types = conditions.as_array().into_iter().flatten();
    let types = types.map(|one| one["type"].as_str().unwrap_or_default().to_owned()).collect();
    let about = step.events.iter().filter(|one| one.regarding.kind == "MultiKueueCluster");
    (types, about.map(|one| format!("{} {}", one.reason, one.note)).collect())
}

#[test]
fn annotations_without_a_meaning_are_reported_and_drain_nothing() {
    let mut control = manager(&json!({}));
    control.decide(NOW);
    let bad = [("drain", "true".to_owned()), ("drain-window", "tonight".to_owned())];
    annotate(&mut control, 60, &bad);
    let (conditions, events) = reported(&mut control);
    assert!(conditions.contains(&"sluice.dev/DrainInvalid".to_owned()), "{conditions:?}");
    let [event] = &*events else { panic!("one Event: {events:?}") };
    let wanted = "InvalidDrain sluice.dev/drain-window: \"tonight\" is no window";
    assert!(event.starts_with(wanted), "{event}");
    annotate(&mut control, 61, &bad);
    assert!(reported(&mut control).1.is_empty(), "it is reported once");
    assert!(is_taken(&mut control, 1));
}
