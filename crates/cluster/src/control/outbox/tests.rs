//! The outbox: one write per object, and waiters that are evaluated.

use jiff::ToSpan;
use k8s_openapi::api::core::v1::ConfigMap;
use runtime::events::{EventType, Regarding};
use serde_json::Value;

use super::*;
use crate::control::job_key::JobKey;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn key(name: &str) -> Key {
    Key { namespace: Some("ns".into()), name: name.into() }
}

fn job(name: &str) -> JobKey {
    JobKey::new(::jobs::job::kind(), &key(name))
}

fn stamp(version: u64) -> Stamp {
    Stamp { version, uid: Some("u".into()) }
}

fn submit(outbox: &mut Outbox, target: &Target, base: Stamp) -> Ticket {
    submit_for(Purpose::Start, outbox, target, base)
}

fn submit_for(purpose: Purpose, outbox: &mut Outbox, target: &Target, base: Stamp) -> Ticket {
    let waiter = Reevaluation::Job(job("waiter"));
    let intent = Intent { target: target.clone(), purpose, base, waiter };
    assert!(outbox.submit(intent, |purpose, key| {
        Write::merge::<ConfigMap>(purpose, key, None, &json!({}))
    }));
    let (mut orders, _) = outbox.take();
    orders.pop().expect("an order").ticket
}

fn unknown() -> WriteOutcome {
    WriteOutcome::Unknown("no answer".to_owned())
}

#[test]
fn an_object_is_free_again_when_its_write_is_done() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::job(&job("a"));
    let ticket = submit(&mut outbox, &target, stamp(5));
    assert!(!outbox.writes().is_free(&target, &stamp(5), NOW));
    assert!(outbox.writes().is_in_flight(&target));
    let settled = outbox.settle(&ticket, &WriteOutcome::done(Value::Null), NOW, &mut agenda);
    assert_eq!(settled.base, Some(stamp(5)));
    assert!(outbox.writes().is_free(&target, &stamp(5), NOW));
    assert!(agenda.take_jobs().contains(&job("waiter")), "the waiter is evaluated");
}

#[test]
fn a_write_announces_when_it_is_done() {
    let announced = |answer: &WriteOutcome| {
        let mut outbox = Outbox::default();
        let target = Target::job(&job("a"));
        let ticket = submit(&mut outbox, &target, stamp(5));
        outbox.announce(announcement());
        let first = outbox.announced(&ticket, answer).events.len();
        (first, outbox.announced(&ticket, answer).events.len())
    };
    assert_eq!(announced(&WriteOutcome::done(Value::Null)), (1, 0));
    assert_eq!(announced(&WriteOutcome::Stale), (0, 0));
}

fn announcement() -> EventRecord {
    EventRecord {
        regarding: Regarding::of(&ConfigMap::default()),
        event_type: EventType::Normal,
        action: "Stopped".to_owned(),
        reason: "Stopped".to_owned(),
        note: String::new(),
        controller: None,
    }
}

#[test]
fn another_machine_writes_an_object_after_the_answer_to_the_first() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::job(&job("a"));
    let ticket = submit(&mut outbox, &target, stamp(5));
    // The watch may show the object of the first write before its answer is here, and nothing follows that would wake.
    let other = Reevaluation::Job(job("other"));
    let newer = stamp(6);
    assert!(!outbox.writes().is_free(&target, &newer, NOW));
    outbox.await_turn(&target, &other, &mut agenda);
    assert!(agenda.take_jobs().is_empty());
    outbox.settle(&ticket, &WriteOutcome::done(Value::Null), NOW, &mut agenda);
    assert!(agenda.take_jobs().contains(&job("other")));
    assert!(outbox.writes().is_free(&target, &newer, NOW));
    let ticket = submit(&mut outbox, &target, stamp(6));
    outbox.settle(&ticket, &WriteOutcome::done(Value::Null), NOW, &mut agenda);
    assert!(!agenda.take_jobs().contains(&job("other")), "it waited once");
}

#[test]
fn after_a_conflict_a_newer_object_or_half_a_minute_is_needed() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::job(&job("a"));
    let ticket = submit(&mut outbox, &target, stamp(5));
    outbox.settle(&ticket, &WriteOutcome::Stale, NOW, &mut agenda);
    assert!(!outbox.writes().is_free(&target, &stamp(5), NOW));
    assert!(
        outbox.writes().is_free(&target, &stamp(6), NOW),
        "observed before or after the answer"
    );
    assert!(outbox.writes().is_free(&target, &stamp(5), NOW + 30.seconds()));
    let other = Stamp { version: 2, uid: Some("another".into()) };
    assert!(outbox.writes().is_free(&target, &other, NOW), "an object of another uid");
}

#[test]
fn backoff_doubles_with_failures_and_ends_with_success() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::job(&job("a"));
    let mut now = NOW;
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let ticket = submit(&mut outbox, &target, stamp(5));
        let settled = outbox.settle(&ticket, &unknown(), now, &mut agenda);
        let at = settled.retry_at.expect("a time");
        pauses.push(at.as_millisecond() - now.as_millisecond());
        now = at;
    }
    assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000]);
    let ticket = submit(&mut outbox, &target, stamp(5));
    outbox.settle(&ticket, &WriteOutcome::done(Value::Null), now, &mut agenda);
    let ticket = submit(&mut outbox, &target, stamp(6));
    let settled = outbox.settle(&ticket, &unknown(), now, &mut agenda);
    assert_eq!(settled.retry_at, Some(now + 200.milliseconds()));
}

#[test]
fn a_write_that_changes_nothing_is_repeated_more_and_more_slowly() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::job(&job("a"));
    let unchanged = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}});
    let mut now = NOW;
    for pause in [200, 400, 800] {
        let ticket = submit(&mut outbox, &target, stamp(5));
        let settled =
            outbox.settle(&ticket, &WriteOutcome::done(unchanged.clone()), now, &mut agenda);
        let at = now + pause.milliseconds();
        assert_eq!(settled.retry_at, Some(at));
        assert!(!outbox.writes().is_free(&target, &stamp(5), now));
        now = at;
    }
    let confirmed = submit_for(Purpose::ConfirmVersion, &mut outbox, &target, stamp(5));
    outbox.settle(&confirmed, &WriteOutcome::done(unchanged), now, &mut agenda);
    assert!(outbox.writes().is_free(&target, &stamp(5), now), "a version may be confirmed again");
}

#[test]
fn a_create_on_a_worker_without_an_answer_may_be_applied_until_a_read_settles_it() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::worker("east", Subject::Workload, &key("a"));
    let ticket = submit_for(Purpose::CloneCreate, &mut outbox, &target, Stamp::default());
    outbox.settle(&ticket, &unknown(), NOW, &mut agenda);
    outbox.connection_changed("east");
    let much_later = NOW + 9_999.seconds();
    outbox.observe_version(&target, Some(9));
    assert!(outbox.writes().is_unsettled(&target) && outbox.writes().has_unsettled("east"));
    assert!(!outbox.writes().has_unsettled("west"));
    assert_eq!(outbox.unsettled_due(much_later).len(), 1);
    let read = submit_for(Purpose::Settle, &mut outbox, &target, Stamp::default());
    outbox.settle(&read, &unknown(), much_later, &mut agenda);
    assert!(outbox.writes().is_unsettled(&target), "the read had no answer either");
    let read = submit_for(Purpose::Settle, &mut outbox, &target, Stamp::default());
    outbox.settle(&read, &WriteOutcome::done(json!({"items": []})), much_later, &mut agenda);
    assert!(!outbox.writes().is_unsettled(&target));
    assert!(outbox.writes().is_free(&target, &Stamp::default(), much_later));
    assert_eq!(outbox.writes().failures(&target), 1, "the failures count on");
}

#[test]
fn an_answer_to_an_earlier_write_of_the_same_name_settles_nothing() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::home(Subject::Workload, &key("a"));
    let create = submit(&mut outbox, &target, Stamp::default());
    assert!(outbox.writes().is_free(&target, &stamp(7), NOW), "the watch has reported the object");
    submit(&mut outbox, &target, stamp(7));
    let settled = outbox.settle(&create, &WriteOutcome::done(Value::Null), NOW, &mut agenda);
    assert_eq!(settled.base, None);
    assert!(outbox.writes().is_in_flight(&target));
    assert!(agenda.take_jobs().contains(&job("waiter")), "the waiter is evaluated all the same");
}

#[test]
fn a_create_of_an_existing_object_is_not_tried_again_before_the_object_is_observed() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::home(Subject::Workload, &key("a"));
    let create = submit(&mut outbox, &target, Stamp::default());
    let settled = outbox.settle(&create, &WriteOutcome::Exists, NOW, &mut agenda);
    assert_eq!(settled.retry_at, Some(NOW + 30.seconds()));
    assert!(!outbox.writes().is_free(&target, &Stamp::default(), NOW));
    assert!(outbox.writes().is_free(&target, &stamp(7), NOW), "it was observed");
    assert!(outbox.writes().is_free(&target, &Stamp::default(), NOW + 30.seconds()));
}

#[test]
fn failed_writes_of_objects_that_are_gone_do_not_pile_up() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let mut now = NOW;
    for number in 0..1_000 {
        let target = Target::home(Subject::Workload, &key(&number.to_string()));
        let ticket = submit(&mut outbox, &target, stamp(5));
        outbox.settle(&ticket, &WriteOutcome::Gone, now, &mut agenda);
        now += 60.seconds();
    }
    let pending = (0..1_000).filter(|number| {
        outbox.writes().is_pending(&Target::home(Subject::Workload, &key(&number.to_string())))
    });
    assert!(
        pending.count() <= 65,
        "ten minutes and half a minute of them, and what the search tolerates"
    );
}

#[test]
fn a_status_is_written_for_the_version_that_it_is_based_on() {
    let mut outbox = Outbox::default();
    let target = Target::job(&job("a"));
    let intent = || {
        let waiter = Reevaluation::Job(job("waiter"));
        Intent { target: target.clone(), purpose: Purpose::Start, base: stamp(5), waiter }
    };
    let (before, after) = (json!({ "a": 1 }), json!({ "a": 2 }));
    assert!(!outbox.submit_status::<ConfigMap, _>(intent(), &before, &before), "nothing differs");
    assert!(outbox.submit_status::<ConfigMap, _>(intent(), &before, &after));
    assert!(outbox.submit_status_of_unwatched::<ConfigMap, _>(intent(), &before, &after));
    let (orders, _) = outbox.take();
    let body = |order: &Order| -> Value {
        serde_json::from_slice(order.write.request().body()).expect("JSON")
    };
    let versioned = json!({ "status": { "a": 2 }, "metadata": { "resourceVersion": "5" } });
    let expected = [versioned, json!({ "status": { "a": 2 } })];
    assert_eq!(orders.iter().map(body).collect::<Vec<_>>(), expected);
}

#[test]
fn a_copy_that_a_worker_does_not_accept_is_tried_again_later_and_later() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::worker("east", Subject::Workload, &key("a"));
    let refused =
        || WriteOutcome::Refused { code: 422, reason: String::new(), message: String::new() };
    let mut pauses = Vec::new();
    for answer in
        [WriteOutcome::Exists, refused(), WriteOutcome::Stale, unknown(), refused(), refused()]
    {
        let ticket = submit(&mut outbox, &target, Stamp::default());
        let settled = outbox.settle(&ticket, &answer, NOW, &mut agenda);
        pauses.push(settled.retry_at.expect("a time").duration_since(NOW).as_secs());
        assert!(!outbox.writes().is_free(&target, &Stamp::default(), NOW));
        assert!(!outbox.writes().is_changing(&target) && !outbox.writes().is_unsettled(&target));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30]);
    outbox.observe_version(&target, Some(1));
    assert!(outbox.writes().is_free(&target, &Stamp::default(), NOW), "its watch shows it");
}

#[test]
fn a_backoff_lasts_as_long_when_the_clock_is_set() {
    let refused = WriteOutcome::Refused {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "no".to_owned(),
    };
    for (answer, seconds) in [(refused, 10), (WriteOutcome::Stale, 30)] {
        for by in [3, -3].map(SignedDuration::from_hours) {
            let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
            let target = Target::job(&job("a"));
            let ticket = submit(&mut outbox, &target, stamp(5));
            outbox.settle(&ticket, &answer, NOW, &mut agenda);
            outbox.clock_jumped(by);
            let end = NOW + by + seconds.seconds();
            let is_free = |now| outbox.writes().is_free(&target, &stamp(5), now);
            assert!(!is_free(end - 1.second()) && is_free(end), "{by}");
        }
    }
}

#[test]
fn a_created_copy_that_no_watch_shows_is_read_as_soon_when_the_clock_is_set_back() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::worker("east", Subject::Job(job("a").kind), &key("a"));
    let ticket = submit_for(Purpose::JobCreate, &mut outbox, &target, Stamp::default());
    let stored = json!({"metadata": {"resourceVersion": "9"}});
    outbox.settle(&ticket, &WriteOutcome::done(stored), NOW, &mut agenda);
    let back = SignedDuration::from_hours(-3);
    outbox.clock_jumped(back);
    assert_eq!(outbox.unsettled_due(NOW + back + 14.seconds()).len(), 0);
    assert_eq!(outbox.unsettled_due(NOW + back + 15.seconds()).len(), 1);
}

#[test]
fn what_may_be_applied_is_known_for_each_purpose() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::worker("east", Subject::Workload, &key("a"));
    let may_be = |outbox: &Outbox| {
        [Purpose::OpenCloneGate, Purpose::Priority]
            .map(|purpose| outbox.writes().may_be_applied(&target, purpose))
    };
    let priority = submit_for(Purpose::Priority, &mut outbox, &target, stamp(5));
    outbox.settle(&priority, &unknown(), NOW, &mut agenda);
    assert_eq!(may_be(&outbox), [false, true]);
    let opening = submit_for(Purpose::OpenCloneGate, &mut outbox, &target, stamp(5));
    assert_eq!(may_be(&outbox), [true, true]);
    let refused =
        WriteOutcome::Refused { code: 403, reason: String::new(), message: String::new() };
    outbox.settle(&opening, &refused, NOW, &mut agenda);
    assert_eq!(may_be(&outbox), [false, true]);
    let opening = submit_for(Purpose::OpenCloneGate, &mut outbox, &target, stamp(5));
    outbox.settle(&opening, &unknown(), NOW, &mut agenda);
    submit_for(Purpose::Priority, &mut outbox, &target, stamp(5));
    assert_eq!(may_be(&outbox), [true, true]);
    outbox.observe_version(&target, Some(6));
    assert_eq!(may_be(&outbox), [false, false]);
}
