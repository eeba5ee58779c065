//! Faults and actions, and what they do.

use super::*;

/// One fault or action.
#[derive(Debug, Clone)]
pub(super) enum InjectedFault {
    Decide { lost: bool },
    See,
    Core,
    Preempt,
    Move { worker: usize },
    Deliver { worker: usize, which: usize, lost: bool },
    Drop { worker: usize, which: usize },
    Stall { worker: usize },
    Arrive { worker: usize, which: usize },
    Show { worker: usize },
    SimulatedAgent { worker: usize, does: SimulatedAgent },
    Cut { worker: usize, arrives: u8 },
    Heal { worker: usize },
    Stick { worker: usize, stuck: bool },
    List { worker: usize },
    Restart { arrives: u8 },
    Pass { time: i64 },
    Round { skip: u64 },
}

pub(super) fn fault() -> impl Strategy<Value = InjectedFault> {
    let worker = || 0..3_usize;
    let (slow, unkind) = (prop::sample::select(&SLOW[..]), prop::sample::select(&UNKIND[..]));
    let agent = |(worker, does)| InjectedFault::SimulatedAgent { worker, does };
    prop_oneof![
        8 => prop::bool::weighted(0.2).prop_map(|lost| InjectedFault::Decide { lost }),
        4 => Just(InjectedFault::See),
        3 => Just(InjectedFault::Core),
        4 => Just(InjectedFault::Preempt),
        4 => worker().prop_map(|worker| InjectedFault::Move { worker }),
        6 => (worker(), 0..4_usize, prop::bool::weighted(0.1))
            .prop_map(|(worker, which, lost)| InjectedFault::Deliver { worker, which, lost }),
        1 => (worker(), 0..4_usize).prop_map(|(worker, which)| InjectedFault::Drop { worker, which }),
        1 => worker().prop_map(|worker| InjectedFault::Stall { worker }),
        2 => (worker(), 0..4_usize).prop_map(|(worker, which)| InjectedFault::Arrive { worker, which }),
        6 => worker().prop_map(|worker| InjectedFault::Show { worker }),
        6 => (worker(), slow).prop_map(agent),
        1 => (worker(), prop::sample::select(&[SimulatedAgent::Complete, SimulatedAgent::Conclude][..])).prop_map(agent),
        3 => (worker(), unkind).prop_map(agent),
        3 => (worker(), any::<u8>()).prop_map(|(worker, arrives)| InjectedFault::Cut { worker, arrives }),
        4 => worker().prop_map(|worker| InjectedFault::Heal { worker }),
        2 => (worker(), any::<bool>()).prop_map(|(worker, stuck)| InjectedFault::Stick { worker, stuck }),
        4 => worker().prop_map(|worker| InjectedFault::List { worker }),
        2 => any::<u8>().prop_map(|arrives| InjectedFault::Restart { arrives }),
        2 => (1..60_i64).prop_map(|time| InjectedFault::Pass { time }),
        70 => (any::<u64>(), any::<u64>()).prop_map(|(one, other)| InjectedFault::Round { skip: one & other }),
    ]
}

impl DispatchSimulation {
    pub(super) fn play(&mut self, fault: &InjectedFault) {
        let count = self.workers.len();
        let at = |which: usize| which % count;
        match *fault {
            InjectedFault::Decide { lost } => self.decide(lost),
            InjectedFault::See => self.seen = self.truth.clone(),
            InjectedFault::Core => self.core(),
            InjectedFault::Preempt if self.truth.hub.quota_reserved && !self.truth.hub.evicted => {
                self.evict();
            }
            InjectedFault::Preempt => {}
            InjectedFault::Move { worker } => self.moves_to = Some(ClusterId::from(at(worker))),
            InjectedFault::Deliver { worker, which, lost } => self.deliver(at(worker), which, lost),
            InjectedFault::Drop { worker, which } => self.drop_request(at(worker), which),
            InjectedFault::Stall { worker } => self.workers[at(worker)].stall(self.now),
            InjectedFault::Arrive { worker, which } => self.arrive(at(worker), which),
            InjectedFault::Show { worker } => self.show(at(worker)),
            InjectedFault::SimulatedAgent { worker, does } => self.agent(at(worker), does),
            InjectedFault::Cut { worker, arrives } => self.cut(at(worker), arrives),
            InjectedFault::Heal { worker } => self.heal(at(worker)),
            InjectedFault::Stick { worker, stuck } => self.workers[at(worker)].stuck = stuck,
            InjectedFault::List { worker } => self.workers[at(worker)].list(),
            InjectedFault::Restart { arrives } => self.restart(arrives),
            InjectedFault::Pass { time } => self.now += time,
            InjectedFault::Round { skip } => self.round(skip),
        }
    }

    pub(super) fn deliver(&mut self, at: usize, which: usize, answer_lost: bool) {
        let now = self.now;
        let worker = &mut self.workers[at];
        if worker.cut || worker.flight.is_empty() {
            return;
        }
        let request = worker.flight.remove(which % worker.flight.len());
        if let WorkerCall::Read(object) = request
            && !answer_lost
        {
            return worker.read(object, now);
        }
        let answer = worker.serve(request);
        if answer_lost {
            worker.give_up(request, now);
        } else if let Some(object) = request.creates() {
            worker.unsettled.answered(&object, answer, Time(now));
            worker.watched();
        }
    }

    /// A call is lost or comes late.
    pub(super) fn drop_request(&mut self, at: usize, which: usize) {
        let now = self.now;
        let worker = &mut self.workers[at];
        if !worker.flight.is_empty() {
            let request = worker.flight.remove(which % worker.flight.len());
            worker.give_up(request, now);
            worker.late.push(request);
        }
    }

    /// The worker gets a call that the hub has given up.
    pub(super) fn arrive(&mut self, at: usize, which: usize) {
        let worker = &mut self.workers[at];
        if !worker.late.is_empty() && !worker.cut {
            let request = worker.late.remove(which % worker.late.len());
            worker.apply(request);
        }
    }

    pub(super) fn show(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.link == RemoteConnection::Connected
            && let Some(next) = worker.coming.pop_front()
        {
            worker.seen = next;
            worker.watched();
        }
    }

    pub(super) fn cut(&mut self, at: usize, arrives: u8) {
        let now = Time(self.now);
        let worker = &mut self.workers[at];
        if !worker.cut {
            worker.hang_up(arrives, now.0);
            let since = worker.link.lost_since().unwrap_or(now);
            (worker.cut, worker.link) = (true, RemoteConnection::Disconnected { since });
        }
    }

    pub(super) fn heal(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if let (true, Some(since)) = (worker.cut, worker.link.lost_since()) {
            (worker.cut, worker.link) = (false, RemoteConnection::NotSynced { since });
        }
    }

    pub(super) fn restart(&mut self, arrives: u8) {
        let now = Time(self.now);
        (self.raised, self.sent, self.began_at) = (false, true, self.truth.version);
        self.moves_to = None;
        // The time of the nomination is forgotten.
        self.seen.hub.nominated_at = now;
        self.truth.hub.nominated_at = now;
        for worker in &mut self.workers {
            worker.hang_up(arrives, now.0);
            worker.deleted_clone = None;
            worker.link = if worker.cut {
                RemoteConnection::Disconnected { since: now }
            } else {
                RemoteConnection::NotSynced { since: now }
            };
            (worker.seen, worker.unsettled) =
                (StoredWorkload::default(), UnsettledCreates::default());
        }
    }
}
