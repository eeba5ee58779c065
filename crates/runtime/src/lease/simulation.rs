//! Many candidates against a simulated server, on a virtual clock: requests and answers take their time or get lost, and
//! at no moment do two lead.
//!
//! A candidate here is the real one; only the network is played. Each has one request under way at a time, and gives it
//! up after a while, though it may still arrive.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    candidate::{Candidate, FoundLease, LeaseWrite},
    decide::{ElectionStep, LeaseTiming},
    record::LeaseRecord,
};

const ROUNDS: usize = 400;

/// What the network does to one request, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Fate {
    there: u64,
    back: u64,
    lost_there: bool,
    lost_back: bool,
}

const SMOOTH: Fate = Fate { there: 5, back: 5, lost_there: false, lost_back: false };

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The candidate looks at what to do.
    Wake,
    /// A request arrives at the server; none is a read.
    Arrive(Option<Expected>, Fated),
    /// An answer arrives at the candidate.
    Answer(Reply, Sent),
}

type Expected = (Option<u64>, String, i32);
type Fated = (u64, bool, Sent);
/// When it was sent, and the number of the request.
type Sent = (Duration, usize);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reply {
    Read(Option<(u64, String, i32)>),
    Written(u64, String, i32),
    Refused,
}

/// The record that stands for holder, version and transitions. The version is the time of renewal: each write differs.
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

struct World {
    timing: LeaseTiming,
    start: Instant,
    queue: BinaryHeap<Reverse<(Duration, usize, usize, What)>>,
    pushed: usize,
    candidates: Vec<Candidate>,
    waiting_for: Vec<usize>,
    sent: usize,
    stored: Option<(u64, String, i32)>,
    writes: u64,
    reads_next: Vec<bool>,
}

impl World {
    fn new(candidates: usize, timing: LeaseTiming) -> Self {
        let mut world = Self {
            timing,
            start: Instant::now(),
            queue: BinaryHeap::new(),
            pushed: 0,
            candidates: (0..candidates).map(|at| Candidate::new(at.to_string(), timing)).collect(),
            waiting_for: vec![0; candidates],
            sent: 0,
            stored: None,
            writes: 0,
            reads_next: vec![true; candidates],
        };
        (0..candidates).for_each(|who| world.push(Duration::ZERO, who, What::Wake));
        world
    }

    fn push(&mut self, at: Duration, who: usize, what: What) {
        self.pushed += 1;
        self.queue.push(Reverse((at, self.pushed, who, what)));
    }

    fn leaders(&self, now: Duration) -> usize {
        let now = self.start + now;
        self.candidates.iter().filter(|candidate| candidate.leads(now)).count()
    }

    /// One event. Returns its time.
    fn turn(&mut self, fate: Fate) -> Duration {
        let Reverse((now, _, who, what)) = self.queue.pop().expect("an event");
        match what {
            What::Wake => self.wake(now, who, fate),
            What::Arrive(request, (back, lost, sent)) => {
                let reply = self.serve(request);
                if !lost {
                    let at = now + Duration::from_millis(back);
                    self.push(at, who, What::Answer(reply, sent));
                }
            }
            What::Answer(reply, sent) => self.answer(now, who, reply, sent),
        }
        now
    }

    fn wake(&mut self, now: Duration, who: usize, fate: Fate) {
        let instant = self.start + now;
        if self.candidates[who].leads_until().is_none() && self.reads_next[who] {
            return self.send(now, who, None, fate);
        }
        self.reads_next[who] = true;
        match self.candidates[who].step(instant) {
            ElectionStep::Lost => {
                self.candidates[who].stand_down();
                self.push(now + self.timing.retry, who, What::Wake);
            }
            ElectionStep::Wait { until } => {
                let at = (until - self.start).min(now + self.timing.retry);
                self.push(at, who, What::Wake);
            }
            ElectionStep::Acquire | ElectionStep::Renew => {
                let LeaseWrite { record, expects } =
                    self.candidates[who].propose(Timestamp::UNIX_EPOCH);
                let expects = expects.map(|version| version.parse().expect("a version"));
                let request = (expects, record.holder, record.transitions);
                self.send(now, who, Some(request), fate);
            }
        }
    }

    fn send(&mut self, now: Duration, who: usize, request: Option<Expected>, fate: Fate) {
        self.sent += 1;
        self.waiting_for[who] = self.sent;
        let sent = (now, self.sent);
        if !fate.lost_there {
            let at = now + Duration::from_millis(fate.there);
            self.push(at, who, What::Arrive(request, (fate.back, fate.lost_back, sent)));
        }
        // Giving up. An answer in time makes the number another one.
        let at = now + self.timing.renew_deadline / 2;
        self.push(at, who, What::Answer(Reply::Refused, sent));
    }

    fn serve(&mut self, request: Option<Expected>) -> Reply {
        let Some((expects, holder, transitions)) = request else {
            return Reply::Read(self.stored.clone());
        };
        if self.stored.as_ref().map(|stored| stored.0) != expects {
            return Reply::Refused;
        }
        self.writes += 1;
        self.stored = Some((self.writes, holder.clone(), transitions));
        Reply::Written(self.writes, holder, transitions)
    }

    fn answer(&mut self, now: Duration, who: usize, reply: Reply, (sent, number): Sent) {
        if self.waiting_for[who] != number {
            return;
        }
        self.waiting_for[who] = 0;
        let timing = self.timing;
        let found = |(version, holder, transitions): (u64, String, i32)| FoundLease {
            record: record(&timing, version, &holder, transitions),
            version: version.to_string(),
        };
        let instant = self.start + now;
        let next = match reply {
            Reply::Read(stored) => {
                self.candidates[who].saw(stored.map(found), instant);
                self.reads_next[who] = false;
                now
            }
            Reply::Written(version, holder, transitions) => {
                let found = found((version, holder, transitions));
                self.candidates[who].wrote(found, self.start + sent);
                now + self.timing.retry
            }
            // It reads, as the elector does after a conflict, and so learns of its own unanswered write.
            Reply::Refused => {
                let stored = self.stored.clone().map(found);
                self.candidates[who].saw(stored, instant);
                now + self.timing.retry
            }
        };
        self.push(next, who, What::Wake);
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let delay = || prop_oneof![4 => 1_u64..200, 2 => 200_u64..6_000, 1 => 6_000_u64..40_000];
    let lost = || prop::bool::weighted(0.15);
    let fate =
        (delay(), delay(), lost(), lost()).prop_map(|(there, back, lost_there, lost_back)| Fate {
            there,
            back,
            lost_there,
            lost_back,
        });
    prop::collection::vec(fate, ROUNDS)
}

proptest! {
    #[test]
    fn at_most_one_leads_at_any_time(candidates in 2_usize..6, fates in fates()) {
        let mut world = World::new(candidates, LeaseTiming::default());
        for fate in fates {
            let now = world.turn(fate);
            prop_assert!(world.leaders(now) <= 1, "{} lead at {now:?}", world.leaders(now));
        }
        // When the network is well again somebody leads, and stays.
        for _ in 0..ROUNDS {
            world.turn(SMOOTH);
        }
        for _ in 0..ROUNDS {
            let now = world.turn(SMOOTH);
            prop_assert_eq!(world.leaders(now), 1, "at {:?}", now);
        }
    }
}

/// The property above is worth something only if the simulation can show two leaders.
#[test]
fn a_deadline_beyond_the_lease_lets_two_lead() {
    let reckless =
        LeaseTiming { renew_deadline: Duration::from_secs(40), ..LeaseTiming::default() };
    let mut world = World::new(2, reckless);
    for _ in 0..10 {
        world.turn(SMOOTH);
    }
    let cut_off = usize::from(world.candidates[1].leads(world.start + Duration::from_secs(1)));
    let mut most = 0;
    for _ in 0..ROUNDS {
        let next = world.queue.peek().map(|Reverse((_, _, who, _))| *who);
        let lost = next == Some(cut_off);
        let now = world.turn(Fate { lost_there: lost, ..SMOOTH });
        most = most.max(world.leaders(now));
    }
    assert_eq!(most, 2);
}
