//! The outbox: one write per object, and waiters that are evaluated.

use jiff::ToSpan;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn key(name: &str) -> Key {
    Key { namespace: Some("ns".into()), name: name.into() }
}

fn stamp(version: u64) -> Stamp {
    Stamp { version, uid: Some("u".into()) }
}

fn submit(outbox: &mut Outbox, target: &Target, base: Stamp) -> Ticket {
    let waiter = Reevaluation::Job(key("waiter"));
    let intent = Intent { target: target.clone(), purpose: Purpose::Start, base, waiter };
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
    let target = Target::home(Subject::Job, &key("a"));
    let ticket = submit(&mut outbox, &target, stamp(5));
    assert!(!outbox.writes().is_free(&target, &stamp(5), NOW));
    assert!(outbox.writes().is_in_flight(&target));
    let settled = outbox.settle(&ticket, &WriteOutcome::Done(Value::Null), NOW, &mut agenda);
    assert_eq!(settled.base, Some(stamp(5)));
    assert!(outbox.writes().is_free(&target, &stamp(5), NOW));
    assert!(agenda.take_jobs().contains(&key("waiter")), "the waiter is evaluated");
}

#[test]
fn after_a_conflict_a_newer_object_or_half_a_minute_is_needed() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::home(Subject::Job, &key("a"));
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
    let target = Target::home(Subject::Job, &key("a"));
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
    outbox.settle(&ticket, &WriteOutcome::Done(Value::Null), now, &mut agenda);
    let ticket = submit(&mut outbox, &target, stamp(6));
    let settled = outbox.settle(&ticket, &unknown(), now, &mut agenda);
    assert_eq!(settled.retry_at, Some(now + 200.milliseconds()));
}

#[test]
fn a_write_on_a_worker_without_an_answer_may_still_be_applied_for_a_while() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::worker("east", Subject::Workload, &key("a"));
    let ticket = submit(&mut outbox, &target, Stamp::default());
    outbox.settle(&ticket, &unknown(), NOW, &mut agenda);
    let writes = outbox.writes();
    assert!(writes.may_apply(&target, NOW) && writes.any_may_apply("east", NOW));
    assert!(writes.is_free(&target, &Stamp::default(), NOW), "it may be sent again");
    assert!(!writes.any_may_apply("west", NOW));
    let later = NOW + 15.seconds();
    assert!(!writes.may_apply(&target, later) && writes.is_pending(&target));
    outbox.writes_mut().drop_settled("east", later);
    assert!(!outbox.writes().is_pending(&target));
}

#[test]
fn an_answer_to_an_earlier_write_of_the_same_name_settles_nothing() {
    let (mut outbox, mut agenda) = (Outbox::default(), Agenda::default());
    let target = Target::home(Subject::Workload, &key("a"));
    let create = submit(&mut outbox, &target, Stamp::default());
    assert!(outbox.writes().is_free(&target, &stamp(7), NOW), "the watch has reported the object");
    submit(&mut outbox, &target, stamp(7));
    let settled = outbox.settle(&create, &WriteOutcome::Done(Value::Null), NOW, &mut agenda);
    assert_eq!(settled.base, None);
    assert!(outbox.writes().is_in_flight(&target));
    assert!(agenda.take_jobs().contains(&key("waiter")), "the waiter is evaluated all the same");
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
