//! What may happen in the model.

use dispatch::{Fencing, workload::RemoteConnection};
use engine::ids::ClusterId;

use crate::{
    explorer::Model,
    world::{
        Agent, HubWorkload, Leader, LinkView, Message, Versioned, WorkerCopy, World, worker_a,
        worker_b,
    },
};

/// One step of one actor, or a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorldStep {
    LeaderSeesWorkload,
    LeaderSeesRecord,
    LeaderSeesWorker,
    LeaderListsOther,
    LeaderDecides,
    Nominate(ClusterId),
    Deliver(Message),
    AgentSeesCopy,
    AgentSeesLease,
    AgentBeats,
    AgentActs,
    Tick,
    Lose(Message),
    Cut,
    Heal,
    Takeover,
    AgentRestarts,
    Evict,
    Shorten,
}

impl WorldStep {
    /// Whether the leader may decide something else after it, although it sees nothing else.
    fn concerns_leader(&self) -> bool {
        matches!(
            self,
            Self::Tick
                | Self::Cut
                | Self::Takeover
                | Self::Deliver(_)
                | Self::Lose(_)
                | Self::Shorten
        )
    }
}

impl Model for World {
    type Action = WorldStep;

    fn actions(&self) -> Vec<WorldStep> {
        let mut steps = self.regular_steps();
        steps.extend(self.flight.iter().cloned().map(WorldStep::Deliver));
        let budget = &self.budget;
        if budget.losses > 0 {
            steps.extend(self.flight.iter().cloned().map(WorldStep::Lose));
        }
        let late = self.setting.fencing == Fencing::Timed && self.is_late();
        let faults = [
            (budget.ticks > 0 && !late, WorldStep::Tick),
            (budget.cuts > 0 && !self.is_cut, WorldStep::Cut),
            (self.is_cut, WorldStep::Heal),
            (budget.takeovers > 0, WorldStep::Takeover),
            (budget.agent_restarts > 0, WorldStep::AgentRestarts),
            (budget.evictions > 0 && self.may_evict(), WorldStep::Evict),
            (budget.shortenings > 0, WorldStep::Shorten),
        ];
        steps.extend(faults.into_iter().filter(|(may, _)| *may).map(|(_, step)| step));
        steps
    }

    fn after(&self, step: &WorldStep) -> Option<Self> {
        let mut next = self.clone();
        next.leader.is_due |= step.concerns_leader();
        next.step(step);
        next.drop_refused();
        next.renumber();
        (next != *self).then_some(next)
    }

    fn violation(&self) -> Option<String> {
        let twice = self.runs_on_a() && self.runs_on_b();
        twice.then(|| "two copies run".to_owned()).or(self.broken.map(str::to_owned))
    }

    fn violation_without_faults(&self) -> Option<String> {
        let mut world = self.clone();
        let end = |world: &Self| world.workload.object.finished && world.other.is_none();
        for round in 0..60 {
            if end(&world) {
                return None;
            }
            world.calm_round(round);
            if let Some(violation) = world.violation() {
                return Some(format!("{violation}, without a further fault"));
            }
        }
        Some(format!("it does not end: {world:#?}"))
    }
}

impl World {
    fn regular_steps(&self) -> Vec<WorldStep> {
        let leader = &self.leader;
        let link_changed = leader.link != LinkView::Connected || leader.seen != self.api;
        let own = |one: &Message| matches!(one, Message::Grant(..));
        let answered = leader.issuer.is_answered() || self.flight.iter().any(own);
        let is_fresh = self.agent.copy == self.api.copy;
        let steps = [
            (leader.workload != self.workload, WorldStep::LeaderSeesWorkload),
            (leader.record != self.record, WorldStep::LeaderSeesRecord),
            (!self.is_cut && (link_changed || !answered), WorldStep::LeaderSeesWorker),
            (!leader.has_listed_b, WorldStep::LeaderListsOther),
            (leader.is_due, WorldStep::LeaderDecides),
            (!is_fresh, WorldStep::AgentSeesCopy),
            (self.api.grant.is_some(), WorldStep::AgentSeesLease),
            (true, WorldStep::AgentBeats),
            (is_fresh && self.agent.copy.is_some(), WorldStep::AgentActs),
            (self.may_nominate() && self.may_nominate_a(), WorldStep::Nominate(worker_a())),
            (self.may_nominate() && leader.has_listed_b, WorldStep::Nominate(worker_b())),
        ];
        steps.into_iter().filter(|(may, _)| *may).map(|(_, step)| step).collect()
    }

    fn may_nominate(&self) -> bool {
        let HubWorkload { quota, finished, .. } = self.leader.workload.object;
        !quota && !finished && self.leader.workload == self.workload
    }

    fn may_evict(&self) -> bool {
        let HubWorkload { quota, evicted, .. } = self.workload.object;
        quota && !evicted
    }

    fn step(&mut self, step: &WorldStep) {
        let budget = &mut self.budget;
        match step {
            WorldStep::LeaderSeesWorkload => {
                self.leader.workload = self.workload;
                self.decide();
            }
            WorldStep::LeaderSeesRecord => {
                self.leader.record = self.record;
                self.decide();
            }
            WorldStep::LeaderSeesWorker => {
                self.leader.link = LinkView::Connected;
                self.leader.seen.clone_from(&self.api);
                self.leader.issuer.answered();
                self.decide();
            }
            WorldStep::LeaderListsOther => {
                self.leader.has_listed_b = true;
                self.decide();
            }
            WorldStep::LeaderDecides => self.decide(),
            WorldStep::Nominate(cluster) => self.nominate(*cluster),
            WorldStep::Deliver(message) => self.deliver(message),
            WorldStep::AgentSeesCopy => {
                self.see_copy();
                self.act();
            }
            WorldStep::AgentSeesLease => {
                self.see_grant();
                self.act();
            }
            WorldStep::AgentBeats => self.beat(),
            WorldStep::AgentActs => self.act(),
            WorldStep::Tick => {
                budget.ticks -= 1;
                self.tick();
            }
            WorldStep::Lose(message) => {
                budget.losses -= 1;
                self.take(message);
            }
            WorldStep::Cut => {
                budget.cuts -= 1;
                self.is_cut = true;
                let since = self.lost_since();
                self.leader.link = LinkView::Disconnected(since);
            }
            WorldStep::Heal => self.is_cut = false,
            WorldStep::Takeover => {
                budget.takeovers -= 1;
                self.take_over();
            }
            WorldStep::AgentRestarts => {
                budget.agent_restarts -= 1;
                self.restart_agent();
            }
            WorldStep::Shorten => {
                budget.shortenings -= 1;
                self.shorten();
            }
            WorldStep::Evict => {
                budget.evictions -= 1;
                self.workload.version += 1;
                self.workload.object.evicted = true;
            }
        }
    }

    pub(crate) fn see_hub(&mut self) {
        (self.leader.workload, self.leader.record) = (self.workload, self.record);
    }

    fn lost_since(&self) -> engine::Time {
        let link = RemoteConnection::from(self.leader.link);
        link.lost_since().unwrap_or_else(|| self.leader_time())
    }

    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        self.agent.beat_in_tick = false;
    }

    fn take(&mut self, message: &Message) -> bool {
        let at = self.flight.iter().position(|one| one == message);
        at.map(|at| self.flight.remove(at)).is_some()
    }

    /// The former leader is gone; what it has sent may still arrive. What its successor has watched may be old.
    fn take_over(&mut self) {
        let (workload, record) = self.standby;
        self.standby = (self.workload, self.record);
        let mut leader = Leader::new(self.leader.term + 1, workload, record, self.leader_time());
        leader.began_at = self.workload.version;
        self.leader = leader;
    }

    fn restart_agent(&mut self) {
        self.agent = Agent::new(self.agent.boot + 1, &self.api, self.agent_time(0));
        self.see_grant();
        self.act();
    }

    pub(crate) fn deliver(&mut self, message: &Message) {
        if !self.take(message) {
            return;
        }
        match message {
            Message::Workload(term, write) => self.write_workload(*term, write),
            Message::Record(_, write) if write.version == self.record.version => {
                let version = self.record.version + 1;
                self.record = Versioned { version, object: write.object };
            }
            Message::Create { term, epoch, stamp, with_clone } => {
                let empty = WorkerCopy {
                    version: 0,
                    epoch: *epoch,
                    stamp: *stamp,
                    has_job: true,
                    admitted: false,
                    running: false,
                    evicted: false,
                    done: false,
                };
                match self.api.copy {
                    None if *with_clone => self.change_copy(empty),
                    Some(copy) if !copy.has_job && copy.epoch == *epoch => {
                        self.change_copy(WorkerCopy { has_job: true, ..copy });
                    }
                    _ => {}
                }
                let term = usize::try_from(*term).expect("a small number");
                self.api.created[term] = self.api.version;
            }
            Message::Stamp(version, stamp) => {
                if let Some(copy) = self.api.copy.filter(|copy| copy.version == *version) {
                    self.change_copy(WorkerCopy { stamp: *stamp, ..copy });
                }
            }
            // A deletion names the uid, so that it meets later versions of the object as well.
            Message::DeleteJob(version) => {
                if let Some(copy) = self.api.copy.filter(|copy| copy.version >= *version) {
                    let (has_job, running) = (false, false);
                    self.change_copy(WorkerCopy { has_job, running, ..copy });
                }
            }
            Message::DeleteClone(version) => {
                if self.api.copy.is_some_and(|copy| copy.version >= *version && !copy.has_job) {
                    self.api.version += 1;
                    self.api.copy = None;
                }
            }
            Message::Grant(version, grant) => {
                if self.api.grant.as_ref().map(|(version, _)| *version) == *version {
                    self.api.version += 1;
                    self.api.grant = Some((self.api.version, grant.clone()));
                }
            }
            Message::Record(..) => {}
        }
    }

    fn write_workload(&mut self, term: u64, write: &Versioned<HubWorkload>) {
        if write.version != self.workload.version {
            return;
        }
        let (before, after) = (self.workload.object, write.object);
        self.workload = Versioned { version: write.version + 1, object: after };
        if term == self.leader.term && after.epoch > before.epoch {
            (self.leader.raised, self.leader.sent) = (true, false);
        }
        if let Some(winner) = after.recorded.filter(|_| before.recorded.is_none()) {
            let earlier = self.winners.iter().find(|(epoch, _)| *epoch == after.epoch);
            if earlier.is_some_and(|(_, cluster)| *cluster != winner) {
                self.broken = Some("two winners are recorded in one epoch");
            }
            self.winners.push((after.epoch, winner));
        }
        if after.epoch < before.epoch {
            self.broken = Some("the epoch fell");
        }
    }

    /// Writes on an old version are refused whenever they arrive.
    fn drop_refused(&mut self) {
        let workload = self.workload.version;
        let record = self.record.version;
        let grant = self.api.grant.as_ref().map(|(version, _)| *version);
        let copy = self.api.copy;
        self.flight.retain(|message| match message {
            Message::Workload(_, write) => write.version == workload,
            Message::Record(_, write) => write.version == record,
            Message::Grant(version, _) => *version == grant,
            Message::Stamp(version, _) => copy.is_some_and(|copy| copy.version == *version),
            Message::DeleteJob(_) | Message::DeleteClone(_) => copy.is_some(),
            Message::Create { .. } => true,
        });
    }

    /// Only the order of versions matters: equal orders become equal states.
    fn renumber(&mut self) {
        let leader = &mut self.leader;
        let mut hub =
            vec![&mut self.workload.version, &mut leader.workload.version, &mut leader.began_at];
        let mut worker: Vec<&mut u16> = Vec::new();
        let mut record = vec![&mut self.record.version, &mut leader.record.version];
        hub.push(&mut self.standby.0.version);
        record.push(&mut self.standby.1.version);
        for api in [&mut self.api, &mut leader.seen] {
            worker.push(&mut api.version);
            worker.extend(api.copy.iter_mut().map(|copy| &mut copy.version));
            worker.extend(api.grant.iter_mut().map(|(version, _)| version));
            worker.extend(&mut api.created);
        }
        worker.extend(self.agent.copy.iter_mut().map(|copy| &mut copy.version));
        for message in &mut self.flight {
            match message {
                Message::Workload(_, write) => hub.push(&mut write.version),
                Message::Record(_, write) => record.push(&mut write.version),
                Message::Stamp(version, _)
                | Message::DeleteJob(version)
                | Message::DeleteClone(version)
                | Message::Grant(Some(version), _) => worker.push(version),
                Message::Create { .. } | Message::Grant(None, _) => {}
            }
        }
        rank(hub);
        rank(worker);
        rank(record);
        self.flight.sort();
    }

    fn complete(&mut self) {
        if let Some(copy) = self.api.copy.filter(|copy| copy.running) {
            self.change_copy(WorkerCopy { running: false, done: true, ..copy });
        }
        self.other = self.other.map(|(epoch, _)| (epoch, false));
    }

    /// Everything arrives, every actor acts, time passes; a connection stays as it is until it heals after a while.
    fn calm_round(&mut self, round: usize) {
        if round == 20 {
            self.is_cut = false;
        }
        for _ in 0..4 {
            for message in self.flight.clone() {
                self.deliver(&message);
            }
            self.see_copy();
            self.see_grant();
            self.beat();
            self.act();
            self.step(&WorldStep::LeaderSeesWorkload);
            self.step(&WorldStep::LeaderSeesRecord);
            self.step(&WorldStep::LeaderListsOther);
            if !self.is_cut {
                self.step(&WorldStep::LeaderSeesWorker);
            }
            if self.may_nominate() {
                self.nominate(worker_b());
            }
            self.drop_refused();
        }
        if round >= 40 {
            self.complete();
        }
        self.tick();
    }
}

fn rank(mut versions: Vec<&mut u16>) {
    versions.sort_unstable();
    let (mut last, mut rank) = (None, 0);
    for version in versions {
        rank += u16::from(last.is_some_and(|last| last < *version));
        last = Some(*version);
        *version = rank;
    }
}
