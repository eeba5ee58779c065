//! Several candidates against a simulated API server, on a virtual clock: requests and responses are delayed or lost, and at
//! most one candidate leads at any moment.
//!
//! The candidates are the real ones; only the network is simulated. Each has one request in flight at a time and abandons it
//! after a timeout, although the request may still arrive.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    candidate::{FoundLease, LeaseCandidate, LeaseWrite},
    decide::{ElectionStep, LeaseTiming},
    record::LeaseRecord,
};

const ROUNDS: usize = 400;

/// Delays of one request and its response in milliseconds, and whether they are lost.
#[derive(Clone, Copy, Debug)]
struct NetworkFate {
    there: u64,
    back: u64,
    lost_there: bool,
    lost_back: bool,
}

const RELIABLE: NetworkFate =
    NetworkFate { there: 5, back: 5, lost_there: false, lost_back: false };

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedEvent {
    /// The candidate takes its next step.
    Wake,
    /// A request arrives at the server; `None` is a read.
    Arrive(Option<Expected>, SimulatedRequest),
    /// A response arrives at the candidate.
    Answer(SimulatedResponse, SentRequest),
}

type Expected = (Option<u64>, String, i32);
type SimulatedRequest = (u64, bool, SentRequest);
/// When a request was sent, and its number.
type SentRequest = (Duration, usize);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedResponse {
    Read(Option<(u64, String, i32)>),
    Written(u64, String, i32),
    Refused,
}

/// A record with this holder, version and transitions. The version is stored as the renew time, so that each write differs.
fn record(timing: &LeaseTiming, version: u64, holder: &str, transitions: i32) -> LeaseRecord {
    let seconds = i64::try_from(version).expect("a small number");
    LeaseRecord {
        holder: holder.to_owned(),
        duration: Some(timing.lease),
        acquired: None,
        renewed: Timestamp::from_second(seconds).ok(),
        transitions,
    }
}

struct Simulation {
    timing: LeaseTiming,
    start: Instant,
    queue: BinaryHeap<Reverse<(Duration, usize, usize, SimulatedEvent)>>,
    pushed: usize,
    candidates: Vec<LeaseCandidate>,
    waiting_for: Vec<usize>,
    sent: usize,
    stored: Option<(u64, String, i32)>,
    writes: u64,
    reads_next: Vec<bool>,
}

impl Simulation {
    fn new(candidates: usize, timing: LeaseTiming) -> Self {
        let mut simulation = Self {
            timing,
            start: Instant::now(),
            queue: BinaryHeap::new(),
            pushed: 0,
            candidates: (0..candidates)
                .map(|at| LeaseCandidate::new(at.to_string(), timing))
                .collect(),
            waiting_for: vec![0; candidates],
            sent: 0,
            stored: None,
            writes: 0,
            reads_next: vec![true; candidates],
        };
        (0..candidates)
            .for_each(|candidate| simulation.push(Duration::ZERO, candidate, SimulatedEvent::Wake));
        simulation
    }

    fn push(&mut self, at: Duration, candidate: usize, event: SimulatedEvent) {
        self.pushed += 1;
        // The number orders events of one moment, so that a run depends on its inputs only.
        self.queue.push(Reverse((at, self.pushed, candidate, event)));
    }

    fn leaders(&self, now: Duration) -> usize {
        let now = self.start + now;
        self.candidates.iter().filter(|candidate| candidate.leads(now)).count()
    }

    /// Handles the next event and returns its time.
    fn advance(&mut self, fate: NetworkFate) -> Duration {
        let Reverse((now, _, candidate, event)) = self.queue.pop().expect("an event");
        match event {
            SimulatedEvent::Wake => self.step(now, candidate, fate),
            SimulatedEvent::Arrive(request, (back, lost, sent)) => {
                let reply = self.serve(request);
                if !lost {
                    let at = now + Duration::from_millis(back);
                    self.push(at, candidate, SimulatedEvent::Answer(reply, sent));
                }
            }
            SimulatedEvent::Answer(reply, sent) => self.answer(now, candidate, reply, sent),
        }
        now
    }

    fn step(&mut self, now: Duration, candidate: usize, fate: NetworkFate) {
        let instant = self.start + now;
        if self.candidates[candidate].leads_until().is_none() && self.reads_next[candidate] {
            return self.send(now, candidate, None, fate);
        }
        self.reads_next[candidate] = true;
        match self.candidates[candidate].step(instant) {
            ElectionStep::Lost => {
                // A process ends here; the candidate goes on as the process that follows it.
                self.candidates[candidate].stand_down();
                self.push(now + self.timing.retry, candidate, SimulatedEvent::Wake);
            }
            ElectionStep::Wait { until } => {
                // The elector of a follower reads after every retry period as well.
                let at = (until - self.start).min(now + self.timing.retry);
                self.push(at, candidate, SimulatedEvent::Wake);
            }
            ElectionStep::Acquire | ElectionStep::Renew => {
                let LeaseWrite { record, expects } =
                    self.candidates[candidate].propose(Timestamp::UNIX_EPOCH);
                let expects = expects.map(|version| version.parse().expect("a version"));
                let request = (expects, record.holder, record.transitions);
                self.send(now, candidate, Some(request), fate);
            }
        }
    }

    fn send(
        &mut self,
        now: Duration,
        candidate: usize,
        request: Option<Expected>,
        fate: NetworkFate,
    ) {
        self.sent += 1;
        self.waiting_for[candidate] = self.sent;
        let sent = (now, self.sent);
        if !fate.lost_there {
            let at = now + Duration::from_millis(fate.there);
            self.push(
                at,
                candidate,
                SimulatedEvent::Arrive(request, (fate.back, fate.lost_back, sent)),
            );
        }
        // The timeout. A response that arrives before it changes the number.
        let at = now + self.timing.renew_deadline / 2;
        self.push(at, candidate, SimulatedEvent::Answer(SimulatedResponse::Refused, sent));
    }

    fn serve(&mut self, request: Option<Expected>) -> SimulatedResponse {
        let Some((expects, holder, transitions)) = request else {
            return SimulatedResponse::Read(self.stored.clone());
        };
        if self.stored.as_ref().map(|stored| stored.0) != expects {
            return SimulatedResponse::Refused;
        }
        self.writes += 1;
        self.stored = Some((self.writes, holder.clone(), transitions));
        SimulatedResponse::Written(self.writes, holder, transitions)
    }

    fn answer(
        &mut self,
        now: Duration,
        candidate: usize,
        reply: SimulatedResponse,
        (sent, number): SentRequest,
    ) {
        // The candidate abandoned the request at its timeout, or was answered before it.
        if self.waiting_for[candidate] != number {
            return;
        }
        self.waiting_for[candidate] = 0;
        let timing = self.timing;
        let found = |(version, holder, transitions): (u64, String, i32)| FoundLease {
            record: record(&timing, version, &holder, transitions),
            version: version.to_string(),
        };
        let instant = self.start + now;
        let next = match reply {
            SimulatedResponse::Read(stored) => {
                self.candidates[candidate].observe(stored.map(found), instant);
                self.reads_next[candidate] = false;
                now
            }
            SimulatedResponse::Written(version, holder, transitions) => {
                let found = found((version, holder, transitions));
                self.candidates[candidate].confirm(found, self.start + sent);
                now + self.timing.retry
            }
            // Reads, as the elector does after a conflict, and so learns about its own unanswered write.
            SimulatedResponse::Refused => {
                let stored = self.stored.clone().map(found);
                self.candidates[candidate].observe(stored, instant);
                now + self.timing.retry
            }
        };
        self.push(next, candidate, SimulatedEvent::Wake);
    }
}

fn fates() -> impl Strategy<Value = Vec<NetworkFate>> {
    let delay = || prop_oneof![4 => 1_u64..200, 2 => 200_u64..6_000, 1 => 6_000_u64..40_000];
    let lost = || prop::bool::weighted(0.15);
    let fate =
        (delay(), delay(), lost(), lost()).prop_map(|(there, back, lost_there, lost_back)| {
            NetworkFate { there, back, lost_there, lost_back }
        });
    prop::collection::vec(fate, ROUNDS)
}

proptest! {
    #[test]
    fn at_most_one_candidate_leads_at_any_time(candidates in 2_usize..6, fates in fates()) {
        let mut simulation = Simulation::new(candidates, LeaseTiming::default());
        for fate in fates {
            let now = simulation.advance(fate);
            prop_assert!(simulation.leaders(now) <= 1, "{} lead at {now:?}", simulation.leaders(now));
        }
        // Once the network works again, one candidate leads and stays leader.
        for _ in 0..ROUNDS {
            simulation.advance(RELIABLE);
        }
        for _ in 0..ROUNDS {
            let now = simulation.advance(RELIABLE);
            prop_assert_eq!(simulation.leaders(now), 1, "at {:?}", now);
        }
    }
}

/// Control: the simulation is able to show two leaders.
#[test]
fn a_renew_deadline_beyond_the_lease_duration_allows_two_leaders() {
    let reckless =
        LeaseTiming { renew_deadline: Duration::from_secs(40), ..LeaseTiming::default() };
    let mut simulation = Simulation::new(2, reckless);
    for _ in 0..10 {
        simulation.advance(RELIABLE);
    }
    let cut_off =
        usize::from(simulation.candidates[1].leads(simulation.start + Duration::from_secs(1)));
    let mut most = 0;
    for _ in 0..ROUNDS {
        let next = simulation.queue.peek().map(|Reverse((_, _, candidate, _))| *candidate);
        let lost = next == Some(cut_off);
        let now = simulation.advance(NetworkFate { lost_there: lost, ..RELIABLE });
        most = most.max(simulation.leaders(now));
    }
    assert_eq!(most, 2);
}
