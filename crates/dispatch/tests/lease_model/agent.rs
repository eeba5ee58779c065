//! The agent's half: `GrantHolder`, and the writes that follow from its verdict.
//!
//! A write of the agent is applied at once if it was decided on the present version, and is refused otherwise.

use dispatch::{CopyVerdict, GrantHolder, LeasedCopy, STOP_TIME};
use engine::Time;

use crate::world::{Agent, ORIGIN, WorkerApi, WorkerCopy, World};

impl Agent {
    /// A process that has listed everything.
    pub(crate) fn new(boot: u8, api: &WorkerApi, now: Time) -> Self {
        let holder = GrantHolder::new(boot.to_string().into(), api.beat.as_ref(), now);
        let copy = api.copy;
        Self { boot, began: now, holder, copy, observed_at: 0, beat_in_tick: false }
    }

    fn verdict(&self, copy: &WorkerCopy, now: Time) -> CopyVerdict {
        let observed_at = self.observed_at;
        let leased = LeasedCopy { stamp: copy.stamp, admitted: copy.admitted, observed_at };
        self.holder.verdict(ORIGIN, &leased, now)
    }
}

impl World {
    /// The agent sees the present copy.
    pub(crate) fn see_copy(&mut self) {
        let identity = |copy: Option<WorkerCopy>| copy.map(|copy| (copy.epoch, copy.stamp));
        if identity(self.api.copy) != identity(self.agent.copy) {
            self.agent.observed_at = self.agent.holder.sequence();
        }
        self.agent.copy = self.api.copy;
    }

    /// The agent sees the present hub Lease.
    pub(crate) fn see_grant(&mut self) {
        if let Some((_, grant)) = self.api.grant.clone() {
            let grant = self.weaken(grant);
            self.agent.holder.observe(ORIGIN, &grant);
        }
    }

    /// The agent beats, at most once in a tick, or when a copy needs it to start.
    pub(crate) fn beat(&mut self) {
        let now = self.agent_time(0);
        let copy = self.agent.copy.filter(|copy| !copy.admitted && !copy.evicted);
        let awaits = copy.is_some_and(|copy| {
            self.agent.verdict(&copy, now) == CopyVerdict::AwaitEcho
                && self.agent.holder.sequence() == self.agent.observed_at
        });
        if self.agent.holder.next_beat().is_some() && (!self.agent.beat_in_tick || awaits) {
            self.agent.beat_in_tick = true;
            self.api.beat = Some(self.agent.holder.beat(now));
            self.api.version += 1;
        }
    }

    /// The agent acts on the copy that it sees, until nothing is left to do.
    pub(crate) fn act(&mut self) {
        while self.act_once() {}
    }

    fn act_once(&mut self) -> bool {
        let Some(copy) = self.agent.copy.filter(|copy| Some(*copy) == self.api.copy) else {
            return false;
        };
        let next = match self.agent.verdict(&copy, self.agent_time(0)) {
            CopyVerdict::Start if !copy.evicted => WorkerCopy { admitted: true, ..copy },
            CopyVerdict::Keep if copy.has_job && !copy.evicted && !copy.done => {
                WorkerCopy { running: true, ..copy }
            }
            // Its end needs no permission.
            CopyVerdict::Fence if !copy.done => {
                WorkerCopy { evicted: true, running: false, ..copy }
            }
            _ => return false,
        };
        if next != copy {
            self.change_copy(next);
            self.agent.copy = self.api.copy;
        }
        next != copy
    }

    /// The API server of worker `a` stores a changed copy.
    pub(crate) fn change_copy(&mut self, copy: WorkerCopy) {
        self.api.version += 1;
        self.api.copy = Some(WorkerCopy { version: self.api.version, ..copy });
    }

    /// Whether the agent breaks what Timed assumes if a tick passes before it acts: it lives, and reaches its API server.
    pub(crate) fn is_late(&self) -> bool {
        let agent = &self.agent;
        let silent = self.api.grant.is_some() && agent.holder.sequence() == 0;
        let until = agent.holder.deadline(ORIGIN).unwrap_or(agent.began).max(agent.began);
        let overdue = self.agent_time(1).0 > until.0 + STOP_TIME;
        silent || self.runs_on_a() && overdue
    }
}
