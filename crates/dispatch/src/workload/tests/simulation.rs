//! One Workload, a hub and its workers on a virtual clock, with injected faults.
//!
//! Calls wait until they are delivered, in any order, and their answers may be lost. Watch events arrive late but in
//! order per cluster, also later than the answers to calls. Connections end and return, with or without a list; the hub's process
//! restarts at any time, and what the next process sees of the hub may be older than what the former one wrote. A connection that
//! ends applies or drops its calls, but does not delay them. On a half-open connection the calls are given up without an answer
//! and may be applied as long as no later read was answered. The bookkeeping of creates is [`UnsettledCreates`], as in the
//! manager. Agents admit, refuse, evict, run and stop at any time.
//!
//! A Workload that requires its checkpoint is recorded on one cluster only: the write that raises the epoch names the next one.
//! Two clusters never run pods at the same time, except for one that was lost for `worker_lost_timeout`. After the
//! faults stop, the Workload finishes once, and no copy is left.

use std::collections::{BTreeSet, VecDeque};

use engine::{Time, ids::ClusterId};
use proptest::prelude::*;

use crate::{CopyHistory, CreateAnswer, ReadAnswer, UnsettledCreates, workload::*};

const SETTINGS: DispatchTimeouts = DispatchTimeouts {
    worker_lost_timeout: 100,
    admission_timeout: 60,
    start_timeout: 60,
    preemption_timeout: 30,
};

/// A clone as the worker stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SimulatedClone {
    uid: u64,
    view: RemoteWorkload,
}

/// A job as the worker stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SimulatedJob {
    uid: u64,
    epoch: u64,
    deleting: bool,
    running: bool,
    done: bool,
}

/// What a worker has at one of its versions.
#[derive(Debug, Clone, Default)]
struct StoredWorkload {
    version: u64,
    clone: Option<SimulatedClone>,
    job: Option<SimulatedJob>,
}

/// A write on its way to a worker.
#[derive(Debug, Clone, Copy)]
enum WorkerCall {
    CreateClone(u64),
    CreateJob(u64),
    DeleteClone(u64),
    DeleteJob(u64),
    Read(SimulatedObject),
}

/// An object of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedObject {
    Clone,
    Job,
}

impl WorkerCall {
    /// What it creates.
    fn creates(self) -> Option<SimulatedObject> {
        match self {
            Self::CreateClone(_) => Some(SimulatedObject::Clone),
            Self::CreateJob(_) => Some(SimulatedObject::Job),
            Self::DeleteClone(_) | Self::DeleteJob(_) | Self::Read(_) => None,
        }
    }
}

/// A worker, and what the hub's process knows about it.
#[derive(Debug)]
struct SimulatedWorker {
    truth: StoredWorkload,
    cut: bool,
    /// It answers, but its lists never end.
    stuck: bool,
    link: RemoteConnection,
    seen: StoredWorkload,
    coming: VecDeque<StoredWorkload>,
    flight: Vec<WorkerCall>,
    /// Calls that the hub has given up, and that the worker may still get.
    late: Vec<WorkerCall>,
    unsettled: UnsettledCreates<SimulatedObject, ()>,
    /// The uid of the last clone that was sent a deletion.
    deleted_clone: Option<u64>,
    left_out: i64,
    /// It was lost for so long that its copy may run beside another one.
    excused: bool,
}

impl SimulatedWorker {
    fn new() -> Self {
        Self {
            truth: StoredWorkload::default(),
            cut: false,
            stuck: false,
            link: RemoteConnection::NotSynced { since: Time(0) },
            seen: StoredWorkload::default(),
            coming: VecDeque::new(),
            flight: Vec::new(),
            late: Vec::new(),
            unsettled: UnsettledCreates::default(),
            deleted_clone: None,
            left_out: 0,
            excused: false,
        }
    }

    fn settled(&self) -> bool {
        self.unsettled.objects().next().is_none()
    }

    fn has(&self, object: SimulatedObject) -> bool {
        match object {
            SimulatedObject::Clone => self.truth.clone.is_some(),
            SimulatedObject::Job => self.truth.job.is_some(),
        }
    }

    fn runs(&self) -> bool {
        self.truth.job.is_some_and(|job| job.running)
    }

    fn is_empty(&self) -> bool {
        self.truth.clone.is_none() && self.truth.job.is_none()
    }

    /// The worker's API server changes something.
    fn change(&mut self, change: impl FnOnce(&mut StoredWorkload)) {
        change(&mut self.truth);
        self.truth.version += 1;
        if !self.cut {
            self.coming.push_back(self.truth.clone());
        }
    }

    /// The worker gets a call. Returns the answer to a create.
    fn serve(&mut self, request: WorkerCall) -> CreateAnswer {
        let exists = request.creates().is_some_and(|object| self.has(object));
        self.apply(request);
        if exists { CreateAnswer::Unknown } else { CreateAnswer::Stored(self.truth.version) }
    }

    fn apply(&mut self, request: WorkerCall) {
        let uid = self.truth.version + 1;
        match request {
            WorkerCall::CreateClone(epoch) if self.truth.clone.is_none() => self.change(|stored| {
                let view = RemoteWorkload {
                    epoch,
                    same_spec: true,
                    same_pods: true,
                    same_uid: true,
                    ..RemoteWorkload::default()
                };
                stored.clone = Some(SimulatedClone { uid, view });
            }),
            WorkerCall::CreateJob(epoch) if self.truth.job.is_none() => self.change(|stored| {
                let job = SimulatedJob { uid, epoch, deleting: false, running: false, done: false };
                stored.job = Some(job);
            }),
            WorkerCall::DeleteClone(uid) if self.clone_is(uid) => {
                self.change(|one| one.clone = None);
            }
            WorkerCall::DeleteJob(uid) if self.job_is(uid) => self.change(|stored| {
                stored.job.as_mut().expect("checked").deleting = true;
            }),
            _ => {}
        }
    }

    fn clone_is(&self, uid: u64) -> bool {
        self.truth.clone.as_ref().is_some_and(|clone| clone.uid == uid)
    }

    fn job_is(&self, uid: u64) -> bool {
        self.truth.job.is_some_and(|job| job.uid == uid)
    }

    /// The hub gets no answer to a call any more.
    fn give_up(&mut self, request: WorkerCall, now: i64) {
        if let Some(object) = request.creates() {
            self.unsettled.answered(&object, CreateAnswer::Unknown, Time(now));
        } else if let WorkerCall::Read(object) = request {
            self.unsettled.read(&object, ReadAnswer::Unknown, Time(now));
        }
    }

    /// The worker gets the late calls now or never.
    fn end_late_calls(&mut self, arrives: u8) {
        for (at, request) in std::mem::take(&mut self.late).into_iter().enumerate() {
            if arrives >> (at % 8) & 1 == 1 {
                self.apply(request);
            }
        }
    }

    /// The connection ends. Calls in flight are applied now or never.
    fn hang_up(&mut self, arrives: u8, now: i64) {
        for request in std::mem::take(&mut self.flight) {
            self.give_up(request, now);
            self.late.push(request);
        }
        self.end_late_calls(arrives);
        self.coming.clear();
    }

    /// The connection is half-open: every call is given up, and may be applied later.
    fn stall(&mut self, now: i64) {
        for request in std::mem::take(&mut self.flight) {
            self.give_up(request, now);
            self.late.push(request);
        }
    }

    fn list(&mut self) {
        if !self.cut && !self.stuck && matches!(self.link, RemoteConnection::NotSynced { .. }) {
            self.coming.clear();
            (self.seen, self.link) = (self.truth.clone(), RemoteConnection::Connected);
            self.watched();
        }
    }

    /// The watch has shown the present `seen`.
    fn watched(&mut self) {
        for object in [SimulatedObject::Clone, SimulatedObject::Job] {
            self.unsettled.observe(&object, self.seen.version);
        }
    }

    /// A consistent read of an object is answered. What the watch shows is at least as new afterwards.
    fn read(&mut self, object: SimulatedObject, now: i64) {
        self.end_late_calls(u8::MAX);
        let version = self.truth.version;
        self.unsettled.read(&object, ReadAnswer::Present(version), Time(now));
        self.watched();
    }
}

/// Actions of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SimulatedAgent {
    Admit,
    Start,
    Complete,
    Conclude,
    Stop,
    Remove,
    Refuse,
    Evict,
    DeleteJob,
    DeleteClone,
}

const KIND: [SimulatedAgent; 6] = [
    SimulatedAgent::Admit,
    SimulatedAgent::Start,
    SimulatedAgent::Complete,
    SimulatedAgent::Conclude,
    SimulatedAgent::Stop,
    SimulatedAgent::Remove,
];
const UNKIND: [SimulatedAgent; 4] = [
    SimulatedAgent::Refuse,
    SimulatedAgent::Evict,
    SimulatedAgent::DeleteJob,
    SimulatedAgent::DeleteClone,
];

/// The Workload and its job on the hub's API server.
#[derive(Debug, Clone)]
struct HubObjects {
    version: u64,
    hub: LocalWorkload,
    /// Epoch, activity and end in the job's status.
    status: Option<(u64, bool, bool)>,
    /// The cluster that the Workload was last withdrawn from.
    last_cluster: Option<ClusterId>,
}

/// How clusters are nominated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SimulatedDispatcher {
    /// One, chosen by its room.
    Single,
    /// All that are usable.
    Race,
    /// One, and its queues decide within [`QUEUE_TIME`]. The Workload may move to others meanwhile.
    Queue,
}

/// Time that the queues of a cluster have.
const QUEUE_TIME: i64 = 80;

#[derive(Debug)]
struct DispatchSimulation {
    settings: DispatchTimeouts,
    now: i64,
    dispatcher: SimulatedDispatcher,
    /// No cluster but the one with the checkpoint takes the Workload.
    requires_checkpoint: bool,
    /// Every cluster that was recorded.
    recorded: BTreeSet<ClusterId>,
    /// Memory: the cluster that the Workload moves to.
    moves_to: Option<ClusterId>,
    truth: HubObjects,
    seen: HubObjects,
    /// Version of the hub at which the present process began.
    began_at: u64,
    raised: bool,
    sent: bool,
    workers: Vec<SimulatedWorker>,
    completed: BTreeSet<u64>,
    finishes: usize,
    wake_at: Option<i64>,
    /// Since when the recorded worker does not start the job.
    start_awaited: Option<i64>,
    /// Since when the end of a job that may exist there is not observed.
    end_awaited: Option<i64>,
}

impl DispatchSimulation {
    fn new(workers: usize, dispatcher: SimulatedDispatcher, settings: DispatchTimeouts) -> Self {
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
    fn state(&mut self, lost: bool, change: impl FnOnce(&mut HubObjects)) -> bool {
        if self.seen.version != self.truth.version || lost {
            return false;
        }
        self.happen(change);
        true
    }

    fn happen(&mut self, change: impl FnOnce(&mut HubObjects)) {
        let before = self.truth.hub.epoch;
        change(&mut self.truth);
        self.truth.version += 1;
        assert!(self.truth.hub.epoch >= before, "the epoch fell");
    }

    fn hub(&self) -> LocalWorkload {
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
    fn queues(&self, hub: &LocalWorkload) -> Option<(Vec<ClusterId>, Time)> {
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

    fn copies(&self) -> Vec<RemoteCopy> {
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

    fn decide(&mut self, lost: bool) {
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

    fn carry_out(&mut self, step: &DispatchStep, lost: bool) {
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

    fn finish(&mut self, lost: bool) {
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
    fn adopt(&mut self, cluster: ClusterId, lost: bool) {
        let job = self.workers[cluster.index()].seen.job.expect("it is seen");
        assert!(self.completed.contains(&job.epoch), "nothing was completed");
        let finished = self.state(lost, |stated| {
            stated.status = Some((job.epoch, false, true));
            (stated.hub.finished, stated.hub.quota_reserved) = (true, false);
        });
        self.finishes += usize::from(finished);
    }

    fn send(&mut self, cluster: ClusterId, request: WorkerCall) {
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
    fn core(&mut self) {
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

    fn evict(&mut self) {
        self.happen(|stated| (stated.hub.evicted, stated.hub.job.suspended) = (true, true));
    }

    /// Every second epoch has another check, so that the nomination follows the reservation.
    fn nominate(&mut self) {
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
    fn nominate_late(&mut self, lost: bool) {
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

    fn usable_clusters(&self) -> Vec<ClusterId> {
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
    fn may_take(&self, cluster: ClusterId) -> bool {
        !self.requires_checkpoint || self.truth.last_cluster.is_none_or(|last| last == cluster)
    }

    fn agent(&mut self, at: usize, agent: SimulatedAgent) {
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

    fn deliver(&mut self, at: usize, which: usize, answer_lost: bool) {
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
    fn drop_request(&mut self, at: usize, which: usize) {
        let now = self.now;
        let worker = &mut self.workers[at];
        if !worker.flight.is_empty() {
            let request = worker.flight.remove(which % worker.flight.len());
            worker.give_up(request, now);
            worker.late.push(request);
        }
    }

    /// The worker gets a call that the hub has given up.
    fn arrive(&mut self, at: usize, which: usize) {
        let worker = &mut self.workers[at];
        if !worker.late.is_empty() && !worker.cut {
            let request = worker.late.remove(which % worker.late.len());
            worker.apply(request);
        }
    }

    fn show(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.link == RemoteConnection::Connected
            && let Some(next) = worker.coming.pop_front()
        {
            worker.seen = next;
            worker.watched();
        }
    }

    fn cut(&mut self, at: usize, arrives: u8) {
        let now = Time(self.now);
        let worker = &mut self.workers[at];
        if !worker.cut {
            worker.hang_up(arrives, now.0);
            let since = worker.link.lost_since().unwrap_or(now);
            (worker.cut, worker.link) = (true, RemoteConnection::Disconnected { since });
        }
    }

    fn heal(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if let (true, Some(since)) = (worker.cut, worker.link.lost_since()) {
            (worker.cut, worker.link) = (false, RemoteConnection::NotSynced { since });
        }
    }

    fn restart(&mut self, arrives: u8) {
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

    /// Invariants of every moment.
    fn check(&mut self) -> Result<(), TestCaseError> {
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

    fn play(&mut self, fault: &InjectedFault) {
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

    /// A round in which a bit of `skip` leaves one action out.
    fn round(&mut self, skip: u64) {
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
    fn calm(&mut self, does: &[SimulatedAgent]) {
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

    fn is_over(&self) -> bool {
        self.truth.hub.finished && self.workers.iter().all(SimulatedWorker::is_empty)
    }
}

fn release(stated: &mut HubObjects) {
    let hub = &mut stated.hub;
    (hub.quota_reserved, hub.evicted, hub.recorded_cluster, hub.check) =
        (false, false, None, DispatchCheckState::Pending);
    hub.nominated_clusters.clear();
    hub.awaits_other_checks = false;
}

fn act(stored: &mut StoredWorkload, agent: SimulatedAgent, now: Time) {
    if let Some(clone) = stored.clone.as_mut().map(|clone| &mut clone.view) {
        match agent {
            SimulatedAgent::Admit => clone.admitted_at = Some(now),
            SimulatedAgent::Conclude => clone.finished = Some(("Succeeded".into(), "done".into())),
            SimulatedAgent::Refuse => clone.refused = Some("no".into()),
            SimulatedAgent::Evict => (clone.evicted, clone.admitted_at) = (true, None),
            _ => {}
        }
    }
    if let Some(job) = &mut stored.job {
        match agent {
            SimulatedAgent::Start => job.running = true,
            SimulatedAgent::Complete => (job.running, job.done) = (false, true),
            SimulatedAgent::Stop => job.running = false,
            SimulatedAgent::DeleteJob => job.deleting = true,
            _ => {}
        }
    }
    match agent {
        SimulatedAgent::Remove => stored.job = None,
        SimulatedAgent::DeleteClone => stored.clone = None,
        _ => {}
    }
}

/// One fault or action.
#[derive(Debug, Clone)]
enum InjectedFault {
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

fn fault() -> impl Strategy<Value = InjectedFault> {
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

proptest! {
    #[test]
    fn one_cluster_runs_the_workload_and_it_finishes_once(
        workers in 2..4_usize,
        dispatcher in prop::sample::select(&DISPATCHERS[..]),
        requires_checkpoint in any::<bool>(),
        faults in prop::collection::vec(fault(), 1..300),
    ) {
        let mut simulation = DispatchSimulation::new(workers, dispatcher, SETTINGS);
        simulation.requires_checkpoint = requires_checkpoint;
        for fault in &faults {
            simulation.play(fault);
            simulation.check()?;
        }
        for _ in 0..200 {
            (0..workers).for_each(|at| simulation.heal(at));
            simulation.workers.iter_mut().for_each(|worker| worker.stuck = false);
            simulation.calm(&KIND);
            simulation.check()?;
        }
        prop_assert!(simulation.is_over(), "{:#?}", simulation);
        prop_assert_eq!(simulation.finishes, 1);
    }
}

const DISPATCHERS: [SimulatedDispatcher; 3] =
    [SimulatedDispatcher::Single, SimulatedDispatcher::Race, SimulatedDispatcher::Queue];

/// Runs rounds without faults until `done`.
fn until(
    simulation: &mut DispatchSimulation,
    does: &[SimulatedAgent],
    done: impl Fn(&DispatchSimulation) -> bool,
) {
    for _ in 0..200 {
        if done(simulation) {
            return;
        }
        simulation.calm(does);
    }
    panic!("it never came to that: {simulation:#?}");
}

const SLOW: [SimulatedAgent; 4] =
    [SimulatedAgent::Admit, SimulatedAgent::Start, SimulatedAgent::Stop, SimulatedAgent::Remove];

/// The property is meaningful only if the simulation can show two running copies.
#[test]
fn work_of_a_lost_cluster_starts_elsewhere_only_after_worker_lost_timeout() {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Single, SETTINGS);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[0].runs());
    until(&mut simulation, &SLOW, |simulation| {
        simulation.truth.hub.check == DispatchCheckState::Ready
    });
    let cut = simulation.now;
    simulation.cut(0, 0);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[1].runs());
    assert!(simulation.workers[0].runs(), "no stop can reach it");
    assert!(simulation.now >= cut + SETTINGS.worker_lost_timeout);
    simulation.heal(0);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[0].is_empty());
    assert!(simulation.workers[1].runs(), "the recorded copy stays");
}

#[test]
fn work_of_a_cluster_whose_lists_never_end_starts_elsewhere_and_the_old_copy_is_removed_later() {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Single, SETTINGS);
    until(&mut simulation, &SLOW, |simulation| {
        simulation.workers[0].runs() && simulation.truth.hub.check == DispatchCheckState::Ready
    });
    let cut = simulation.now;
    simulation.cut(0, 0);
    simulation.workers[0].stuck = true;
    simulation.heal(0);
    until(&mut simulation, &SLOW, |simulation| simulation.workers[1].runs());
    assert!(simulation.now >= cut + SETTINGS.worker_lost_timeout);
    simulation.workers[0].stuck = false;
    until(&mut simulation, &SLOW, |simulation| simulation.workers[0].is_empty());
    assert!(simulation.workers[1].runs(), "the recorded copy stays");
}

#[test]
fn a_dispatch_without_faults_raises_no_epoch() {
    for dispatcher in DISPATCHERS {
        let mut simulation = DispatchSimulation::new(2, dispatcher, SETTINGS);
        until(&mut simulation, &KIND, DispatchSimulation::is_over);
        assert_eq!((simulation.truth.hub.epoch, simulation.finishes), (1, 1));
    }
}

/// Both clusters admit in the same second, the first by name a moment later: while the deletion of its clone is on the way.
#[test]
fn clusters_that_admit_at_the_same_time_do_not_lose_both_clones() {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Race, SETTINGS);
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| {
        simulation.workers.iter().all(|worker| worker.seen.clone.is_some())
    });
    for worker in [1, 0] {
        simulation.agent(worker, SimulatedAgent::Admit);
        simulation.show(worker);
        simulation.decide(false);
    }
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| simulation.workers[1].runs());
    assert!(simulation.workers[0].is_empty());
    assert_eq!(simulation.truth.hub.epoch, 1);
}

/// What agents do that admit nothing by themselves.
const WITHOUT_ADMISSION: [SimulatedAgent; 3] =
    [SimulatedAgent::Start, SimulatedAgent::Stop, SimulatedAgent::Remove];

/// A Workload that waits for the queue of the first cluster and moves to the second one.
fn waiting_on_both() -> DispatchSimulation {
    let mut simulation = DispatchSimulation::new(2, SimulatedDispatcher::Queue, SETTINGS);
    let waits = |worker: &SimulatedWorker| worker.seen.clone.is_some();
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| waits(&simulation.workers[0]));
    simulation.play(&InjectedFault::Move { worker: 1 });
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| waits(&simulation.workers[1]));
    simulation
}

#[test]
fn a_move_takes_the_workload_to_another_cluster_within_its_epoch() {
    let mut simulation = waiting_on_both();
    assert!(simulation.workers[0].seen.clone.is_some(), "it keeps its place in the queue");
    simulation.agent(1, SimulatedAgent::Admit);
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| simulation.workers[1].runs());
    assert!(simulation.workers[0].is_empty());
    assert_eq!(simulation.truth.hub.epoch, 1);
}

#[test]
fn a_queue_that_decides_during_a_move_keeps_the_workload() {
    let mut simulation = waiting_on_both();
    simulation.agent(0, SimulatedAgent::Admit);
    simulation.now += 1;
    simulation.agent(1, SimulatedAgent::Admit);
    until(&mut simulation, &WITHOUT_ADMISSION, |simulation| simulation.workers[0].runs());
    assert!(simulation.workers[1].is_empty());
}
