//! The hub's process: it decides and carries the steps out. Rounds let everything happen once.

use std::collections::BTreeSet;

use super::*;

/// Time that the queues of a cluster have.
pub(super) const QUEUE_TIME: i64 = 80;

#[derive(Debug)]
pub(super) struct DispatchSimulation {
    pub(super) settings: DispatchTimeouts,
    pub(super) now: i64,
    pub(super) dispatcher: SimulatedDispatcher,
    /// No cluster but the one with the checkpoint takes the Workload.
    pub(super) requires_checkpoint: bool,
    /// Every cluster that was recorded.
    pub(super) recorded: BTreeSet<ClusterId>,
    /// Memory: the cluster that the Workload moves to.
    pub(super) moves_to: Option<ClusterId>,
    pub(super) truth: HubObjects,
    pub(super) seen: HubObjects,
    /// Version of the hub at which the present process began.
    pub(super) began_at: u64,
    pub(super) raised: bool,
    pub(super) sent: bool,
    pub(super) workers: Vec<SimulatedWorker>,
    pub(super) completed: BTreeSet<u64>,
    pub(super) finishes: usize,
    pub(super) wake_at: Option<i64>,
    /// Since when the recorded worker does not start the job.
    pub(super) start_awaited: Option<i64>,
    /// Since when the end of a job that may exist there is not observed.
    pub(super) end_awaited: Option<i64>,
}

impl DispatchSimulation {
    pub(super) fn new(
        workers: usize,
        dispatcher: SimulatedDispatcher,
        settings: DispatchTimeouts,
    ) -> Self {
        let job = LocalJob { exists: true, suspended: true, ..LocalJob::default() };
        let hub = LocalWorkload { exists: true, epoch: 1, job, ..LocalWorkload::default() };
        let truth = HubObjects { version: 1, hub, status: None, last_cluster: None };
        Self {
            settings,
            now: 0,
            dispatcher,
            requires_checkpoint: false,
            recorded: BTreeSet::new(),
            moves_to: None,
            seen: truth.clone(),
            truth,
            began_at: 0,
            raised: false,
            sent: false,
            workers: (0..workers).map(|_| SimulatedWorker::new()).collect(),
            completed: BTreeSet::new(),
            finishes: 0,
            wake_at: None,
            start_awaited: None,
            end_awaited: None,
        }
    }

    /// A write to the hub; it is refused if it was decided on an old version.
    pub(super) fn state(&mut self, lost: bool, change: impl FnOnce(&mut HubObjects)) -> bool {
        if self.seen.version != self.truth.version || lost {
            return false;
        }
        self.happen(change);
        true
    }

    pub(super) fn happen(&mut self, change: impl FnOnce(&mut HubObjects)) {
        let before = self.truth.hub.epoch;
        change(&mut self.truth);
        self.truth.version += 1;
        assert!(self.truth.hub.epoch >= before, "the epoch fell");
    }

    pub(super) fn hub(&self) -> LocalWorkload {
        let (hub, status) = (self.seen.hub.clone(), self.seen.status);
        let job = LocalJob {
            active: status.is_some_and(|(_, active, _)| active),
            started: status.is_some_and(|(epoch, ..)| epoch == hub.epoch),
            ..hub.job
        };
        let start_awaited_since = self.start_awaited.map(Time);
        let end_awaited_since = self.end_awaited.map(Time);
        let (epoch_raised, create_sent) = (self.raised, self.sent);
        let is_own_version = self.seen.version > self.began_at;
        let (race, race_until) = self.queues(&hub).unzip();
        LocalWorkload {
            epoch_raised,
            create_sent,
            is_own_version,
            start_awaited_since,
            end_awaited_since,
            job,
            race,
            race_until,
            ..hub
        }
    }

    /// The clusters with the queues that decide, with the one that the Workload moves to, and until when.
    pub(super) fn queues(&self, hub: &LocalWorkload) -> Option<(Vec<ClusterId>, Time)> {
        let is_queued = self.dispatcher == SimulatedDispatcher::Queue;
        let mut race = Some(hub.nominated_clusters.clone()).filter(|_| is_queued)?;
        // What is not nominated yet waits for no queue.
        match self.moves_to.filter(|one| !race.contains(one) && self.may_take(*one)) {
            _ if race.is_empty() => race = self.usable_clusters(),
            Some(target) => race.push(target),
            None => {}
        }
        Some((race, Time(hub.nominated_at.0 + QUEUE_TIME)))
    }

    pub(super) fn copies(&self) -> Vec<RemoteCopy> {
        let status = self.seen.status;
        let view = |job: &SimulatedJob| RemoteJob {
            handed_over: false,
            shared: false,
            stale_size: false,
            epoch: job.epoch,
            history: CopyHistory::Known,
            same_uid: true,
            deleting: job.deleting,
            active: job.running,
            suspended: !job.running && !job.done,
            finished: job.done,
            succeeded: job.done,
            status_synced: status == Some((job.epoch, job.running, job.done)),
            end_refused: false,
            abandoned: false,
        };
        let copies = self.workers.iter().enumerate().map(|(at, worker)| RemoteCopy {
            cluster: ClusterId::from(at),
            connection: worker.link,
            cleanup_confirmed: false,
            creates_answered: worker.settled(),
            lease: RemoteLease::default(),
            refused: None,
            clone: worker.seen.clone.as_ref().map(|clone| RemoteWorkload {
                delete_sent: worker.deleted_clone == Some(clone.uid),
                ..clone.view.clone()
            }),
            jobs: worker.seen.job.iter().map(view).collect(),
            missing_job: worker.seen.job.is_none(),
            name_held: false,
        });
        copies.collect()
    }

    pub(super) fn decide(&mut self, lost: bool) {
        let (hub, copies) = (self.hub(), self.copies());
        let recorded = copies.iter().find(|copy| Some(copy.cluster) == hub.recorded_cluster);
        let awaited = recorded.is_some_and(|copy| copy.awaits_start(&hub.job));
        self.start_awaited = awaited.then(|| self.start_awaited.unwrap_or(self.now));
        let awaited = recorded.is_some_and(RemoteCopy::awaits_end);
        self.end_awaited = awaited.then(|| self.end_awaited.unwrap_or(self.now));
        let steps = decide(&self.hub(), &copies, &self.settings, Time(self.now));
        self.wake_at = None;
        for step in steps {
            self.carry_out(&step, lost);
        }
        for worker in &mut self.workers {
            let live = worker.link == RemoteConnection::Connected;
            for (object, ()) in
                worker.unsettled.take_reads(Time(self.now)).into_iter().filter(|_| live)
            {
                worker.unsettled.reading(&object);
                worker.flight.push(WorkerCall::Read(object));
            }
        }
    }

    pub(super) fn carry_out(&mut self, step: &DispatchStep, lost: bool) {
        let epoch = self.seen.hub.epoch;
        match *step {
            DispatchStep::Nominate => self.nominate_late(lost),
            DispatchStep::PushPriority(_) => unreachable!("no priority changes here"),
            DispatchStep::PushSize(_) => unreachable!("no size changes here"),
            DispatchStep::OpenPreemptionGate(_) => unreachable!("agents do not preempt"),
            DispatchStep::Stamp(_) => unreachable!("KeepRunning has no leases"),
            DispatchStep::DeleteMembers(_) => unreachable!("it is no group"),
            DispatchStep::ConfirmVersion => {
                self.state(lost, |_| {});
            }
            DispatchStep::CreateClone(one) => self.send(one, WorkerCall::CreateClone(epoch)),
            DispatchStep::CreateJobs(one) => self.send(one, WorkerCall::CreateJob(epoch)),
            DispatchStep::DeleteClone(one) => {
                let uid = self.workers[one.index()].seen.clone.as_ref().map(|clone| clone.uid);
                self.send(one, WorkerCall::DeleteClone(uid.expect("it is seen")));
                self.workers[one.index()].deleted_clone = uid;
            }
            DispatchStep::DeleteJobs(one) => {
                let uid = self.workers[one.index()].seen.job.map(|job| job.uid);
                self.send(one, WorkerCall::DeleteJob(uid.expect("it is seen")));
            }
            DispatchStep::WaitUntil(time) => self.wake_at = Some(time.0),
            DispatchStep::RaiseEpoch(epoch) => {
                let raised = self.state(false, |stated| {
                    stated.hub.epoch = epoch;
                    stated.last_cluster = stated.hub.recorded_cluster.or(stated.last_cluster);
                });
                if raised && !lost {
                    // The write was answered. No create was sent with the new epoch.
                    (self.raised, self.sent) = (true, false);
                }
            }
            DispatchStep::SyncStatus(one) => {
                let job = self.workers[one.index()].seen.job.expect("it is seen");
                let status = Some((job.epoch, job.running, job.done));
                assert!(!self.seen.hub.job.suspended, "the API refuses it");
                self.state(lost, |stated| stated.status = status);
            }
            DispatchStep::ClearActivePods => {
                self.state(lost, |stated| {
                    stated.status = stated.status.map(|(epoch, _, done)| (epoch, false, done));
                });
            }
            DispatchStep::SetCheckReady(one) => {
                let recorded = self.state(lost, |stated| {
                    (stated.hub.recorded_cluster, stated.hub.check) =
                        (Some(one), DispatchCheckState::Ready);
                    stated.hub.nominated_clusters.clear();
                });
                self.recorded.extend(recorded.then_some(one));
            }
            DispatchStep::SetCheckRetry(_) => {
                self.state(lost, |stated| stated.hub.check = DispatchCheckState::Retry);
            }
            DispatchStep::AdoptResult(one) => self.adopt(one, lost),
            DispatchStep::Finish { .. } => self.finish(lost),
            DispatchStep::Withdrawn => {
                self.state(lost, release);
            }
            DispatchStep::CancelNomination { cluster, .. } => {
                if self.state(lost, release) {
                    self.workers[cluster.index()].left_out = self.now + 20;
                }
            }
        }
    }

    pub(super) fn finish(&mut self, lost: bool) {
        assert!(self.completed.contains(&self.seen.hub.epoch), "nothing was completed");
        let cluster = self.seen.hub.recorded_cluster.expect("only what is recorded is finished");
        let copied =
            self.seen.status.is_some_and(|(epoch, _, done)| done && epoch == self.seen.hub.epoch);
        assert!(copied || self.workers[cluster.index()].seen.job.is_none(), "the end is not shown");
        let finished = self.state(lost, |stated| {
            (stated.hub.finished, stated.hub.quota_reserved) = (true, false);
        });
        self.finishes += usize::from(finished);
    }

    /// The job of the hub gets the status, and the Workload finishes with it.
    pub(super) fn adopt(&mut self, cluster: ClusterId, lost: bool) {
        let job = self.workers[cluster.index()].seen.job.expect("it is seen");
        assert!(self.completed.contains(&job.epoch), "nothing was completed");
        let finished = self.state(lost, |stated| {
            stated.status = Some((job.epoch, false, true));
            (stated.hub.finished, stated.hub.quota_reserved) = (true, false);
        });
        self.finishes += usize::from(finished);
    }

    pub(super) fn send(&mut self, cluster: ClusterId, request: WorkerCall) {
        let worker = &mut self.workers[cluster.index()];
        assert_eq!(worker.link, RemoteConnection::Connected, "only live clusters are written to");
        let early = request.creates().is_some() && self.seen.hub.awaits_other_checks;
        assert!(!early, "another check is not Ready");
        if let Some(object) = request.creates() {
            self.sent = true;
            worker.unsettled.sent(object, ());
        }
        worker.flight.push(request);
    }

    /// The engine's part: evicts after Retry, resumes after Ready, nominates.
    pub(super) fn core(&mut self) {
        let hub = &self.truth.hub;
        let is_current = self.seen.version == self.truth.version;
        if hub.awaits_other_checks {
            self.happen(|stated| stated.hub.awaits_other_checks = false);
        } else if hub.quota_reserved && !hub.evicted && hub.check == DispatchCheckState::Retry {
            self.evict();
        } else if hub.quota_reserved
            && !hub.evicted
            && hub.check == DispatchCheckState::Ready
            && hub.job.suspended
        {
            self.happen(|stated| stated.hub.job.suspended = false);
        } else if is_current && !hub.quota_reserved && !hub.finished {
            self.nominate();
        }
    }

    pub(super) fn evict(&mut self) {
        self.happen(|stated| (stated.hub.evicted, stated.hub.job.suspended) = (true, true));
    }

    /// Every second epoch has another check, so that the nomination follows the reservation.
    pub(super) fn nominate(&mut self) {
        let nominated = self.usable_clusters();
        if nominated.is_empty() {
            return;
        }
        let now = Time(self.now);
        self.raised = false;
        self.happen(|stated| {
            (stated.hub.quota_reserved, stated.hub.nominated_at) = (true, now);
            if stated.hub.epoch.is_multiple_of(2) {
                stated.hub.awaits_other_checks = true;
            } else {
                stated.hub.nominated_clusters = nominated;
            }
        });
    }

    /// The nomination after the other checks; the quota is released if no cluster is usable any more.
    pub(super) fn nominate_late(&mut self, lost: bool) {
        assert!(!self.seen.hub.awaits_other_checks, "another check is not Ready");
        if !self.seen.hub.nominated_clusters.is_empty() {
            // The time of the queues goes on.
            let target = self.moves_to.expect("nothing else joins");
            self.state(lost, |stated| stated.hub.nominated_clusters.push(target));
            return;
        }
        let (nominated, now) = (self.usable_clusters(), Time(self.now));
        self.state(lost, |stated| {
            if nominated.is_empty() {
                release(stated);
            } else {
                stated.hub.nominated_at = now;
                stated.hub.nominated_clusters = nominated;
            }
        });
    }

    pub(super) fn usable_clusters(&self) -> Vec<ClusterId> {
        let usable = |worker: &SimulatedWorker| {
            worker.link == RemoteConnection::Connected && worker.left_out <= self.now
        };
        // Another cluster each time, so that the Workload moves.
        let count = self.workers.len();
        let first = usize::try_from(self.truth.hub.epoch - 1).expect("a small number");
        let all = (0..count).map(|at| (at + first) % count);
        let most = if self.dispatcher == SimulatedDispatcher::Race { count } else { 1 };
        let may_take = |at: usize| self.may_take(ClusterId::from(at));
        let usable = all.filter(|&at| usable(&self.workers[at]) && may_take(at)).take(most);
        usable.map(ClusterId::from).collect()
    }

    /// Whether a cluster has the checkpoint, if that is required.
    pub(super) fn may_take(&self, cluster: ClusterId) -> bool {
        !self.requires_checkpoint || self.truth.last_cluster.is_none_or(|last| last == cluster)
    }

    pub(super) fn agent(&mut self, at: usize, agent: SimulatedAgent) {
        let now = Time(self.now);
        let worker = &mut self.workers[at];
        let truth = &worker.truth;
        let clone = truth.clone.as_ref().map(|clone| clone.view.clone()).unwrap_or_default();
        let open = truth.clone.is_some() && !clone.evicted && clone.finished.is_none();
        let (pending, admitted) = (
            open && clone.admitted_at.is_none() && clone.refused.is_none(),
            clone.admitted_at.is_some(),
        );
        let job = truth.job;
        let is = |test: &dyn Fn(SimulatedJob) -> bool| job.is_some_and(test);
        let of_clone = |job: SimulatedJob| job.epoch == clone.epoch && !job.deleting;
        let may = match agent {
            SimulatedAgent::Admit | SimulatedAgent::Refuse => pending,
            SimulatedAgent::Start => {
                open && admitted && is(&|job| of_clone(job) && !job.done && !job.running)
            }
            SimulatedAgent::Complete => is(&|job| job.running),
            SimulatedAgent::Conclude => open && admitted && is(&|job| of_clone(job) && job.done),
            SimulatedAgent::Stop => is(&|job| job.running && (job.deleting || !open)),
            SimulatedAgent::Remove => is(&|job| job.deleting && !job.running),
            SimulatedAgent::Evict => open && admitted,
            SimulatedAgent::DeleteJob => is(&|job| !job.deleting),
            SimulatedAgent::DeleteClone => truth.clone.is_some(),
        };
        if !may {
            return;
        }
        if agent == SimulatedAgent::Complete {
            self.completed.extend(job.map(|job| job.epoch));
        }
        worker.change(|stored| act(stored, agent, now));
    }

    /// Invariants of every moment.
    pub(super) fn check(&mut self) -> Result<(), TestCaseError> {
        for worker in &mut self.workers {
            let since = worker.link.lost_since();
            let lost =
                since.is_some_and(|since| self.now - since.0 >= SETTINGS.worker_lost_timeout);
            worker.excused = (worker.excused || lost) && !worker.is_empty();
        }
        let running = self.workers.iter().filter(|one| one.runs() && !one.excused).count();
        prop_assert!(running <= 1, "{} clusters run it: {:#?}", running, self);
        prop_assert!(self.finishes <= 1);
        let stays = !self.requires_checkpoint || self.recorded.len() <= 1;
        prop_assert!(stays, "its checkpoint is elsewhere: {:#?}", self);
        Ok(())
    }

    /// A round in which a bit of `skip` leaves one action out.
    pub(super) fn round(&mut self, skip: u64) {
        let mut bits = (0..64).map(|bit| skip >> bit & 1 == 0);
        let mut happens = || bits.next().unwrap_or(true);
        for at in 0..self.workers.len() {
            if happens() {
                self.workers[at].list();
            }
            if happens() {
                self.deliver(at, usize::from(happens()), false);
                self.deliver(at, 0, false);
            }
            for one in KIND {
                // Jobs complete only when a fault requests it.
                if happens() && one != SimulatedAgent::Complete {
                    self.agent(at, one);
                }
            }
            if happens() {
                self.show(at);
                self.show(at);
            }
        }
        if happens() {
            self.core();
        }
        if happens() {
            self.seen = self.truth.clone();
        }
        if happens() {
            self.decide(false);
        }
        self.now += 5;
    }

    /// A round without faults. Connections stay as they are; agents perform the given actions.
    pub(super) fn calm(&mut self, does: &[SimulatedAgent]) {
        for at in 0..self.workers.len() {
            self.workers[at].list();
            while !self.workers[at].cut && !self.workers[at].flight.is_empty() {
                self.deliver(at, 0, false);
            }
            does.iter().for_each(|&one| self.agent(at, one));
            while !self.workers[at].cut && !self.workers[at].coming.is_empty() {
                self.show(at);
            }
        }
        self.core();
        self.seen = self.truth.clone();
        self.decide(false);
        self.seen = self.truth.clone();
        self.now += 5;
    }

    pub(super) fn is_over(&self) -> bool {
        self.truth.hub.finished && self.workers.iter().all(SimulatedWorker::is_empty)
    }
}
