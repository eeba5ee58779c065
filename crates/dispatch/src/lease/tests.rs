//! Each rule of docs/reference/dispatch.md §7-8 once. Times are seconds.

use engine::Time;

use super::*;

const SECOND: i64 = 1_000_000_000;
/// Grants last 20 s, an agent that restarts has 10 s, a worker is fenced after 45.3 s.
const TIMING: GrantTiming = GrantTiming { duration: 30 * SECOND };

fn at(seconds: i64) -> Time {
    Time(seconds * SECOND)
}

fn beat(boot: &str, sequence: u64) -> AgentBeat {
    AgentBeat { boot: boot.into(), sequence }
}

fn grant(term: u64, session: u64, echo: Option<AgentBeat>) -> HubGrant {
    HubGrant { term, session, duration: TIMING.duration, echo }
}

/// A record that a leader with grants of [`TIMING`] has written.
fn record(term: u64, session: u64) -> FenceRecord {
    FenceRecord { term, session, longest: TIMING.duration }
}

fn copy(session: u64, term: u64, admitted: bool) -> LeasedCopy {
    LeasedCopy { stamp: LeaseStamp { session, term }, admitted, observed_at: 0 }
}

/// An agent with a grant of term 2 and session 3 that began at 0.
fn holder() -> GrantHolder {
    let mut holder = GrantHolder::new("a".into(), None, at(0));
    holder.observe("hub", &grant(2, 3, None));
    let beat = holder.beat(at(0));
    holder.observe("hub", &grant(2, 3, Some(beat)));
    holder
}

fn verdict(holder: &GrantHolder, copy: &LeasedCopy, seconds: i64) -> CopyVerdict {
    holder.verdict("hub", copy, at(seconds))
}

#[test]
fn a_grant_begins_when_the_beat_was_sent() {
    let mut holder = holder();
    let (running, new) = (copy(3, 2, true), copy(3, 2, false));
    assert_eq!(verdict(&holder, &running, 19), CopyVerdict::Keep);
    assert_eq!(verdict(&holder, &running, 20), CopyVerdict::Fence);
    assert_eq!(verdict(&holder, &new, 19), CopyVerdict::Start);
    assert_eq!(verdict(&holder, &new, 20), CopyVerdict::AwaitManager);
    let late = holder.beat(at(10));
    holder.observe("hub", &grant(2, 3, Some(late)));
    assert_eq!(holder.deadline("hub"), Some(at(30)), "however late the echo was seen");
}

#[test]
fn an_echo_of_another_process_or_an_unknown_beat_grants_nothing() {
    for echo in [beat("b", 1), beat("a", 9)] {
        let mut holder = GrantHolder::new("a".into(), None, at(0));
        holder.beat(at(0));
        holder.observe("hub", &grant(2, 3, Some(echo)));
        assert_eq!(holder.deadline("hub"), None);
    }
}

#[test]
fn a_copy_of_an_ended_session_is_fenced_and_one_of_a_former_leader_waits() {
    let holder = holder();
    for (copy, expected) in [
        (copy(2, 2, true), CopyVerdict::Fence),
        (copy(2, 2, false), CopyVerdict::Fence),
        (copy(3, 1, false), CopyVerdict::AwaitManager),
        (copy(3, 1, true), CopyVerdict::Keep),
        (copy(4, 2, false), CopyVerdict::AwaitManager),
        (copy(3, 3, false), CopyVerdict::AwaitManager),
    ] {
        assert_eq!(verdict(&holder, &copy, 1), expected, "{copy:?}");
    }
}

#[test]
fn a_copy_starts_after_the_echo_of_a_beat_that_was_sent_after_it_was_observed() {
    let mut holder = holder();
    let copy = LeasedCopy { observed_at: holder.sequence(), ..copy(3, 2, false) };
    assert_eq!(verdict(&holder, &copy, 1), CopyVerdict::AwaitEcho);
    let beat = holder.beat(at(1));
    assert_eq!(verdict(&holder, &copy, 1), CopyVerdict::AwaitEcho);
    holder.observe("hub", &grant(2, 3, Some(beat)));
    assert_eq!(verdict(&holder, &copy, 1), CopyVerdict::Start);
}

#[test]
fn a_hub_lease_of_a_lower_term_or_session_is_ignored() {
    let mut holder = holder();
    let beat = holder.beat(at(10));
    holder.observe("hub", &grant(1, 3, Some(beat.clone())));
    holder.observe("hub", &grant(2, 2, Some(beat)));
    assert_eq!(holder.deadline("hub"), Some(at(20)));
}

#[test]
fn an_agent_that_restarts_keeps_work_for_a_third_if_its_predecessor_had_a_grant() {
    for (previous, echo, until) in [
        (Some("a"), Some("a"), Some(at(110))),
        (Some("b"), Some("a"), None),
        (None, Some("a"), None),
        (Some("a"), None, None),
    ] {
        let previous = previous.map(|boot| beat(boot, 7));
        let mut holder = GrantHolder::new("c".into(), previous.as_ref(), at(100));
        holder.observe("hub", &grant(2, 3, echo.map(|boot| beat(boot, 7))));
        assert_eq!(holder.deadline("hub"), until, "{previous:?} {echo:?}");
        assert_eq!(verdict(&holder, &copy(3, 2, false), 101), CopyVerdict::AwaitManager);
    }
}

#[test]
fn without_a_hub_lease_or_after_a_jump_of_the_clock_nothing_runs() {
    let mut holder = holder();
    holder.void_grants(0);
    assert_eq!(verdict(&holder, &copy(3, 2, true), 1), CopyVerdict::Fence);
    holder.forget("hub");
    assert_eq!(verdict(&holder, &copy(3, 2, true), 1), CopyVerdict::Fence);
    assert_eq!(verdict(&holder, &copy(3, 2, false), 1), CopyVerdict::AwaitManager);
    assert_eq!(holder.next_beat(), None);
}

/// A worker that is reached, with the record of term 2 and session 3.
fn worker<'a>(beat: Option<&'a AgentBeat>, grant: Option<&'a HubGrant>) -> WorkerLeases<'a> {
    WorkerLeases {
        record: record(2, 3),
        reached: true,
        lost: false,
        confirmed: false,
        fencing: Fencing::Timed,
        timing: TIMING,
        beat,
        grant,
    }
}

/// The worker after `lostAfter` without a connection.
fn lost(term: u64, session: u64) -> WorkerLeases<'static> {
    let record = record(term, session);
    WorkerLeases { record, reached: false, lost: true, ..worker(None, None) }
}

#[test]
fn a_leader_claims_the_record_before_it_writes_to_the_worker() {
    let mut issuer = GrantIssuer::new(2, at(0));
    let beat = beat("a", 1);
    let former = record(1, 3);
    let unclaimed = WorkerLeases { record: former, ..worker(Some(&beat), None) };
    let claim = IssuerStep::Claim(record(2, 3));
    assert_eq!(issuer.decide(&unclaimed, at(1)), Some(claim));
    assert!(!issuer.writes(&unclaimed) && !issuer.is_open(&unclaimed));
    let first = grant(2, 3, Some(beat.clone()));
    let claimed = worker(Some(&beat), None);
    assert_eq!(issuer.decide(&claimed, at(1)), Some(IssuerStep::Issue(first.clone())));
    assert_eq!(issuer.decide(&claimed, at(1)), None, "one write at a time");
    issuer.answered();
    let written = worker(Some(&beat), Some(&first));
    assert_eq!(issuer.decide(&written, at(1)), None);
    assert!(issuer.is_open(&written));
}

#[test]
fn a_replaced_leader_writes_nothing() {
    let mut issuer = GrantIssuer::new(2, at(0));
    let newer = grant(3, 3, None);
    assert_eq!(issuer.decide(&worker(None, Some(&newer)), at(1)), None);
    let record = record(3, 3);
    let taken = WorkerLeases { record, ..worker(None, None) };
    assert_eq!(issuer.decide(&taken, at(1)), None);
    assert_eq!(issuer.decide(&WorkerLeases { reached: false, lost: true, ..taken }, at(99)), None);
}

#[test]
fn a_session_ends_when_the_last_attempt_is_old_enough_answered_or_not() {
    let mut issuer = GrantIssuer::new(2, at(0));
    assert!(matches!(issuer.decide(&worker(None, None), at(100)), Some(IssuerStep::Issue(_))));
    let fenced_at = Time(at(100).0 + TIMING.fenced_after());
    let wait = Some(IssuerStep::WaitUntil(fenced_at));
    assert_eq!(issuer.decide(&lost(2, 3), at(110)), wait);
    assert_eq!(issuer.decide(&lost(2, 3), Time(fenced_at.0 - 1)), wait);
    let end = IssuerStep::EndSession(record(2, 4));
    assert_eq!(issuer.decide(&lost(2, 3), fenced_at), Some(end));
    assert!(!issuer.is_fenced(&lost(2, 3), fenced_at), "before it is recorded");
    assert!(issuer.is_fenced(&lost(2, 4), fenced_at));
    let back = WorkerLeases { reached: true, ..lost(2, 4) };
    assert!(!issuer.is_fenced(&back, fenced_at));
    let step = issuer.decide(&back, fenced_at);
    assert_eq!(step, Some(IssuerStep::Issue(grant(2, 4, None))), "in the next session");
}

#[test]
fn an_end_that_is_recorded_late_counts_only_after_a_later_attempt_is_old_enough() {
    let mut issuer = GrantIssuer::new(2, at(0));
    assert!(matches!(issuer.decide(&lost(2, 3), at(50)), Some(IssuerStep::EndSession(_))));
    assert!(matches!(issuer.decide(&worker(None, None), at(60)), Some(IssuerStep::Issue(_))));
    issuer.decide(&lost(2, 3), at(61));
    assert!(!issuer.is_fenced(&lost(2, 4), at(61)));
    assert!(issuer.is_fenced(&lost(2, 4), Time(at(60).0 + TIMING.fenced_after())));
}

#[test]
fn a_new_leader_counts_from_its_beginning_and_ends_a_session_of_its_own() {
    let mut issuer = GrantIssuer::new(2, at(100));
    let fenced_at = Time(at(100).0 + TIMING.fenced_after());
    assert_eq!(issuer.decide(&lost(1, 3), at(101)), Some(IssuerStep::WaitUntil(fenced_at)));
    assert!(!issuer.is_fenced(&lost(1, 4), fenced_at), "the former leader may have used it");
    let end = IssuerStep::EndSession(record(2, 5));
    assert_eq!(issuer.decide(&lost(1, 4), fenced_at), Some(end));
    assert!(issuer.is_fenced(&lost(2, 5), fenced_at));
}

#[test]
fn confirmed_fencing_needs_a_person_and_no_time() {
    let mut issuer = GrantIssuer::new(2, at(0));
    let silent = WorkerLeases { fencing: Fencing::Confirmed, ..lost(2, 3) };
    assert_eq!(issuer.decide(&silent, at(9999)), None);
    let confirmed = WorkerLeases { confirmed: true, ..silent };
    assert!(matches!(issuer.decide(&confirmed, at(1)), Some(IssuerStep::EndSession(_))));
    let recorded = WorkerLeases { record: record(2, 4), ..silent };
    assert!(issuer.is_fenced(&recorded, at(1)));
}

#[test]
fn a_duration_is_recorded_before_a_grant_has_it() {
    let mut issuer = GrantIssuer::new(2, at(0));
    let longer = GrantTiming { duration: 300 * SECOND };
    let (claimed, first) = (worker(None, None), grant(2, 3, None));
    assert_eq!(issuer.decide(&claimed, at(1)), Some(IssuerStep::Issue(first.clone())));
    issuer.answered();
    let changed = WorkerLeases { timing: longer, ..worker(None, Some(&first)) };
    let recorded = FenceRecord { longest: longer.duration, ..record(2, 3) };
    assert_eq!(issuer.decide(&changed, at(2)), Some(IssuerStep::Claim(recorded)));
    assert_eq!(issuer.decide(&changed, at(2)), Some(IssuerStep::Claim(recorded)), "not yet");
    let changed = WorkerLeases { record: recorded, ..changed };
    let longer = HubGrant { duration: longer.duration, ..first.clone() };
    assert_eq!(issuer.decide(&changed, at(3)), Some(IssuerStep::Issue(longer)));
}

#[test]
fn a_fence_counts_the_longest_grant_of_a_policy_that_became_shorter() {
    let former = GrantTiming { duration: 300 * SECOND };
    let recorded = FenceRecord { longest: former.duration, ..record(1, 3) };
    let mut issuer = GrantIssuer::new(2, at(100));
    let silent = WorkerLeases { record: recorded, ..lost(1, 3) };
    let fenced_at = Time(at(100).0 + former.fenced_after());
    assert_eq!(issuer.decide(&silent, at(150)), Some(IssuerStep::WaitUntil(fenced_at)));
    let end = FenceRecord { term: 2, session: 4, longest: former.duration };
    assert_eq!(issuer.decide(&silent, fenced_at), Some(IssuerStep::EndSession(end)));
}

#[test]
fn a_longer_duration_leaves_the_record_when_no_grant_of_it_lasts() {
    let former = GrantTiming { duration: 300 * SECOND };
    let recorded = FenceRecord { longest: former.duration, ..record(2, 3) };
    let mut issuer = GrantIssuer::new(2, at(100));
    let reached = WorkerLeases { record: recorded, ..worker(None, None) };
    let short = grant(2, 3, None);
    assert_eq!(issuer.decide(&reached, at(101)), Some(IssuerStep::Issue(short.clone())));
    issuer.answered();
    let reached = WorkerLeases { grant: Some(&short), ..reached };
    let over = Time(at(100).0 + former.fenced_after());
    assert_eq!(issuer.decide(&reached, Time(over.0 - 1)), None);
    assert_eq!(issuer.decide(&reached, over), Some(IssuerStep::Claim(record(2, 3))));
    let away = WorkerLeases { record: record(2, 3), ..lost(2, 3) };
    let fenced_at = Time(at(101).0 + TIMING.fenced_after());
    assert_eq!(issuer.decide(&away, at(102)), Some(IssuerStep::WaitUntil(fenced_at)));
}

#[test]
fn the_fence_outlasts_grants_and_one_restart_on_clocks_that_differ() {
    for seconds in [30, 60, 300] {
        let timing = GrantTiming { duration: seconds * SECOND };
        let slowest_agent = timing.grant() + timing.restart_allowance() + STOP_TIME;
        assert!(timing.fenced_after() * 99 / 100 >= slowest_agent, "{seconds}");
        assert!(timing.grant() >= 3 * timing.beat_interval());
    }
}

#[test]
fn after_a_clock_that_was_set_back_the_next_beat_is_due_at_once_and_no_predecessor_counts() {
    let hour = 3_600;
    let previous = beat("old", 3);
    let mut holder = GrantHolder::new("boot".into(), Some(&previous), at(0));
    holder.observe("hub", &grant(1, 0, None));
    holder.beat(at(0));
    holder.void_grants(at(-hour).0);
    let due = holder.next_beat().expect("a beat");
    assert!(due <= at(-hour), "{due:?}");
    holder.observe("other", &grant(1, 0, Some(previous)));
    assert_eq!(holder.deadline("other"), None, "its end is not known");
}
