//! The state of the model: one Workload, the hub's API server and its leader, the worker `a` with its API server and its agent,
//! and the writes on their way. The worker `b` is reliable: what is created there runs at once, and is seen at once by a leader that has
//! listed it.

use dispatch::{
    AgentBeat, FenceRecord, Fencing, GrantHolder, GrantIssuer, GrantTiming, HubGrant, LeaseStamp,
    workload::RemoteConnection,
};
use engine::{Time, ids::ClusterId};

use crate::{explorer::Model, steps::WorldStep};

/// A tick of real time, in nanoseconds: half a grant.
const TICK: i64 = 15_000_000_000;

/// `leaseDuration`: a grant lasts two ticks.
const TIMING: GrantTiming = GrantTiming { duration: 3 * TICK };

/// `leaseDuration` of a policy that becomes shorter: a grant lasted four ticks.
pub(crate) const LONG_TIMING: GrantTiming = GrantTiming { duration: 6 * TICK };

/// Origin of the hub.
pub(crate) const ORIGIN: &str = "hub";

/// The names that `dispatch` gives to the workers.
pub(crate) fn worker_a() -> ClusterId {
    ClusterId::from(0)
}

pub(crate) fn worker_b() -> ClusterId {
    ClusterId::from(1)
}

/// What is left out of the messages, to show that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Weakened {
    Nothing,
    /// Every hub Lease seems to echo the last beat.
    Echo,
    /// Every object carries the same session.
    Session,
    /// Every object on the worker carries the same term.
    Term,
}

/// What a model runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Setting {
    pub(crate) fencing: Fencing,
    pub(crate) weakened: Weakened,
    /// Whether the hub stores and shows writes of the leader at any later time. Otherwise it does at once, which leaves fewer states.
    pub(crate) slow_hub: bool,
    /// Rates of the clocks of leader and agent, in percent of real time.
    pub(crate) leader_rate: i64,
    pub(crate) agent_rate: i64,
}

/// Faults that may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FaultBudget {
    pub(crate) ticks: u8,
    pub(crate) cuts: u8,
    pub(crate) takeovers: u8,
    pub(crate) agent_restarts: u8,
    pub(crate) evictions: u8,
    pub(crate) losses: u8,
    /// Changes of the policy to a shorter `leaseDuration`.
    pub(crate) shortenings: u8,
}

/// The Workload on the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HubWorkload {
    pub(crate) epoch: u64,
    pub(crate) quota: bool,
    pub(crate) evicted: bool,
    pub(crate) finished: bool,
    pub(crate) nominated: Option<ClusterId>,
    pub(crate) recorded: Option<ClusterId>,
}

/// An object with the number of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Versioned<T> {
    pub(crate) version: u16,
    pub(crate) object: T,
}

/// Clone and job on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WorkerCopy {
    pub(crate) version: u16,
    pub(crate) epoch: u64,
    pub(crate) stamp: LeaseStamp,
    pub(crate) has_job: bool,
    pub(crate) admitted: bool,
    pub(crate) running: bool,
    pub(crate) evicted: bool,
    pub(crate) done: bool,
}

/// What the API server of worker `a` holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct WorkerApi {
    pub(crate) version: u16,
    pub(crate) copy: Option<WorkerCopy>,
    pub(crate) beat: Option<AgentBeat>,
    pub(crate) grant: Option<(u16, HubGrant)>,
    /// Version of the last create, by the term of its leader.
    pub(crate) created: [u16; 4],
}

/// The process that leads on the hub, and what it knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    pub(crate) term: u64,
    /// Version of the Workload when it began.
    pub(crate) began_at: u16,
    pub(crate) workload: Versioned<HubWorkload>,
    pub(crate) record: Versioned<FenceRecord>,
    pub(crate) link: LinkView,
    pub(crate) seen: WorkerApi,
    pub(crate) issuer: GrantIssuer,
    /// It has listed worker `b`.
    pub(crate) has_listed_b: bool,
    /// Something may follow although it sees nothing new.
    pub(crate) is_due: bool,
    pub(crate) raised: bool,
    pub(crate) sent: bool,
}

/// [`RemoteConnection`] that can be hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LinkView {
    Unlisted(Time),
    Connected,
    Disconnected(Time),
}

impl From<LinkView> for RemoteConnection {
    fn from(link: LinkView) -> Self {
        match link {
            LinkView::Unlisted(since) => Self::NotSynced { since },
            LinkView::Connected => Self::Connected,
            LinkView::Disconnected(since) => Self::Disconnected { since },
        }
    }
}

/// The process that acts as the agent of worker `a`, and what it knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Agent {
    pub(crate) boot: u8,
    pub(crate) began: Time,
    pub(crate) holder: GrantHolder,
    pub(crate) copy: Option<WorkerCopy>,
    /// Number of the last beat when the stamp of the copy was first seen.
    pub(crate) observed_at: u64,
    pub(crate) beat_in_tick: bool,
}

/// A write on its way. It may arrive at any time, or never.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    /// To the hub, with the version that it was decided on.
    Workload(u64, Versioned<HubWorkload>),
    Record(u64, Versioned<FenceRecord>),
    /// To worker `a`.
    Create {
        term: u64,
        epoch: u64,
        stamp: LeaseStamp,
        with_clone: bool,
    },
    Stamp(u16, LeaseStamp),
    DeleteJob(u16),
    DeleteClone(u16),
    Grant(Option<u16>, HubGrant),
}

/// The state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) budget: FaultBudget,
    pub(crate) ticks: i64,
    /// `leaseDuration` of the policy.
    pub(crate) timing: GrantTiming,
    pub(crate) is_cut: bool,
    pub(crate) workload: Versioned<HubWorkload>,
    pub(crate) record: Versioned<FenceRecord>,
    pub(crate) leader: Leader,
    /// What the next leader has watched.
    pub(crate) standby: (Versioned<HubWorkload>, Versioned<FenceRecord>),
    pub(crate) flight: Vec<Message>,
    pub(crate) api: WorkerApi,
    pub(crate) agent: Agent,
    /// What worker `b` has: the epoch, and whether it runs.
    pub(crate) other: Option<(u64, bool)>,
    /// The cluster that was recorded in each epoch.
    pub(crate) winners: Vec<(u64, ClusterId)>,
    pub(crate) broken: Option<&'static str>,
}

impl World {
    pub(crate) fn new(setting: Setting, budget: FaultBudget) -> Self {
        let object = HubWorkload {
            epoch: 1,
            quota: false,
            evicted: false,
            finished: false,
            nominated: None,
            recorded: None,
        };
        let workload = Versioned { version: 1, object };
        let record = Versioned { version: 1, object: FenceRecord::default() };
        let api = WorkerApi::default();
        let leader = Leader::new(1, workload, record, Time(0));
        Self {
            setting,
            budget,
            ticks: 0,
            timing: if budget.shortenings > 0 { LONG_TIMING } else { TIMING },
            is_cut: false,
            workload,
            record,
            leader,
            standby: (workload, record),
            flight: Vec::new(),
            agent: Agent::new(0, &api, Time(0)),
            api,
            other: None,
            winners: Vec::new(),
            broken: None,
        }
    }

    /// The clock of the leader's machine.
    pub(crate) fn leader_time(&self) -> Time {
        Time(self.ticks * TICK / 100 * self.setting.leader_rate)
    }

    /// The clock of the agent's machine, so many ticks from now.
    pub(crate) fn agent_time(&self, ticks: i64) -> Time {
        Time((self.ticks + ticks) * TICK / 100 * self.setting.agent_rate)
    }

    /// The world in which the copy on worker `a` has come so far without any fault.
    pub(crate) fn played_until(mut self, begins: impl Fn(&Self) -> bool) -> Self {
        let steps = || {
            let sees = [
                WorldStep::LeaderSeesWorkload,
                WorldStep::LeaderSeesRecord,
                WorldStep::LeaderSeesWorker,
            ];
            let acts = [WorldStep::AgentBeats, WorldStep::AgentSeesLease, WorldStep::AgentSeesCopy];
            sees.into_iter().chain([WorldStep::Nominate(worker_a())]).chain(acts)
        };
        for _ in 0..20 {
            for step in steps() {
                if begins(&self) {
                    return self.watched_by_standby();
                }
                if self.actions().contains(&step) {
                    self = self.after(&step).unwrap_or(self);
                }
                while let Some(message) = self.flight.first().cloned() {
                    if begins(&self) {
                        return self.watched_by_standby();
                    }
                    self = self.after(&WorldStep::Deliver(message)).unwrap_or(self);
                }
            }
        }
        unreachable!("it never begins: {self:#?}");
    }

    fn watched_by_standby(mut self) -> Self {
        self.standby = (self.workload, self.record);
        self
    }

    /// The world after these steps.
    pub(crate) fn played(self, steps: impl Iterator<Item = WorldStep>) -> Self {
        steps.fold(self, |world, step| {
            assert!(world.actions().contains(&step), "{step:?} cannot happen: {world:#?}");
            world.after(&step).unwrap_or(world)
        })
    }

    /// Adds a write, unless the same one is on its way.
    pub(crate) fn send(&mut self, message: Message) {
        if !self.flight.contains(&message) {
            self.flight.push(message);
        }
    }

    /// The policy gets the shorter `leaseDuration`.
    pub(crate) fn shorten(&mut self) {
        self.timing = TIMING;
    }

    /// The stamp as objects carry it.
    pub(crate) fn on_wire(&self, mut stamp: LeaseStamp) -> LeaseStamp {
        match self.setting.weakened {
            Weakened::Session => stamp.session = 0,
            Weakened::Term => stamp.term = 0,
            Weakened::Nothing | Weakened::Echo => {}
        }
        stamp
    }

    pub(crate) fn runs_on_a(&self) -> bool {
        self.api.copy.is_some_and(|copy| copy.running)
    }

    pub(crate) fn runs_on_b(&self) -> bool {
        self.other.is_some_and(|(_, running)| running)
    }
}
