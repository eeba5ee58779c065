//! One Workload, a hub and its workers on a virtual clock, with injected faults.
//!
//! Calls wait until they are delivered, in any order, and their answers may be lost. Watch events arrive late but in
//! order per cluster. Connections end and return; the hub's process restarts at any time. A connection that ends
//! applies or drops its calls, but does not delay them. Agents admit, refuse, evict, run and stop at any time.
//!
//! Two clusters never run pods at the same time, except for one that was lost for `worker_lost_timeout`. After the
//! faults stop, the Workload finishes once, and no copy is left.

use std::collections::{BTreeSet, VecDeque};

use engine::{Time, ids::ClusterId};
use proptest::prelude::*;

use crate::workload::*;

const SETTINGS: DispatchTimeouts =
    DispatchTimeouts { worker_lost_timeout: 100, admission_timeout: 60 };

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
}

impl WorkerCall {
    fn creates(self) -> bool {
        matches!(self, Self::CreateClone(_) | Self::CreateJob(_))
    }
}

/// A worker, and what the hub's process knows about it.
#[derive(Debug)]
struct SimulatedWorker {
    truth: StoredWorkload,
    cut: bool,
    link: RemoteConnection,
    seen: StoredWorkload,
    coming: VecDeque<StoredWorkload>,
    flight: Vec<WorkerCall>,
    /// A create whose answer was lost: a new list is needed.
    ambiguous: bool,
    /// Newest version that an answered create returned.
    made: u64,
    left_out: i64,
    /// It was lost for so long that its copy may run beside another one.
    excused: bool,
}

impl SimulatedWorker {
    fn new() -> Self {
        Self {
            truth: StoredWorkload::default(),
            cut: false,
            link: RemoteConnection::NotSynced,
            seen: StoredWorkload::default(),
            coming: VecDeque::new(),
            flight: Vec::new(),
            ambiguous: false,
            made: 0,
            left_out: 0,
            excused: false,
        }
    }

    fn settled(&self) -> bool {
        let creating = self.flight.iter().any(|request| request.creates());
        !creating && !self.ambiguous && self.seen.version >= self.made
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

    fn serve(&mut self, request: WorkerCall) {
        let uid = self.truth.version + 1;
        match request {
            WorkerCall::CreateClone(epoch) if self.truth.clone.is_none() => self.change(|stored| {
                let view = RemoteWorkload { epoch, same_spec: true, ..RemoteWorkload::default() };
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

    /// The connection ends. Calls in flight are applied now or never.
    fn hang_up(&mut self, arrives: u8) {
        for (at, request) in std::mem::take(&mut self.flight).into_iter().enumerate() {
            if arrives >> (at % 8) & 1 == 1 {
                self.serve(request);
            }
        }
        self.coming.clear();
    }

    fn list(&mut self) {
        if !self.cut && self.link == RemoteConnection::NotSynced {
            self.coming.clear();
            (self.seen, self.link) = (self.truth.clone(), RemoteConnection::Connected);
            (self.ambiguous, self.made) = (false, 0);
        }
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
}

#[derive(Debug)]
struct DispatchSimulation {
    settings: DispatchTimeouts,
    now: i64,
    race: bool,
    truth: HubObjects,
    seen: HubObjects,
    raised: bool,
    sent: bool,
    workers: Vec<SimulatedWorker>,
    completed: BTreeSet<u64>,
    finishes: usize,
    due: Option<i64>,
}

impl DispatchSimulation {
    fn new(workers: usize, race: bool, settings: DispatchTimeouts) -> Self {
        let job = LocalJob { exists: true, suspended: true, ..LocalJob::default() };
        let hub = LocalWorkload { exists: true, epoch: 1, job, ..LocalWorkload::default() };
        let truth = HubObjects { version: 1, hub, status: None };
        Self {
            settings,
            now: 0,
            race,
            seen: truth.clone(),
            truth,
            raised: false,
            sent: false,
            workers: (0..workers).map(|_| SimulatedWorker::new()).collect(),
            completed: BTreeSet::new(),
            finishes: 0,
            due: None,
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
        LocalWorkload { epoch_raised: self.raised, create_sent: self.sent, job, ..hub }
    }

    fn copies(&self) -> Vec<RemoteCopy> {
        let status = self.seen.status;
        let view = |job: &SimulatedJob| RemoteJob {
            epoch: job.epoch,
            deleting: job.deleting,
            active: job.running,
            finished: job.done,
            status_synced: status == Some((job.epoch, job.running, job.done)),
        };
        let copies = self.workers.iter().enumerate().map(|(at, worker)| RemoteCopy {
            cluster: ClusterId::from(at),
            connection: worker.link,
            creates_answered: worker.settled(),
            refused: None,
            clone: worker.seen.clone.as_ref().map(|clone| clone.view.clone()),
            job: worker.seen.job.as_ref().map(view),
        });
        copies.collect()
    }

    fn decide(&mut self, lost: bool) {
        let steps = decide(&self.hub(), &self.copies(), &self.settings, Time(self.now));
        self.due = None;
        for step in steps {
            self.carry_out(&step, lost);
        }
    }

    fn carry_out(&mut self, step: &DispatchStep, lost: bool) {
        let epoch = self.seen.hub.epoch;
        match *step {
            DispatchStep::CreateClone(one) => self.send(one, WorkerCall::CreateClone(epoch)),
            DispatchStep::CreateJob(one) => self.send(one, WorkerCall::CreateJob(epoch)),
            DispatchStep::DeleteClone(one) => {
                let uid = self.workers[one.index()].seen.clone.as_ref().map(|clone| clone.uid);
                self.send(one, WorkerCall::DeleteClone(uid.expect("it is seen")));
            }
            DispatchStep::DeleteJob(one) => {
                let uid = self.workers[one.index()].seen.job.map(|job| job.uid);
                self.send(one, WorkerCall::DeleteJob(uid.expect("it is seen")));
            }
            DispatchStep::WaitUntil(time) => self.due = Some(time.0),
            DispatchStep::RaiseEpoch => {
                if self.state(false, |stated| stated.hub.epoch += 1) && !lost {
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
                self.state(lost, |stated| {
                    (stated.hub.recorded_cluster, stated.hub.check) =
                        (Some(one), DispatchCheckState::Ready);
                    stated.hub.nominated_clusters.clear();
                });
            }
            DispatchStep::SetCheckRetry(_) => {
                self.state(lost, |stated| stated.hub.check = DispatchCheckState::Retry);
            }
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
        let shown =
            self.seen.status.is_some_and(|(epoch, _, done)| done && epoch == self.seen.hub.epoch);
        assert!(shown || self.workers[cluster.index()].seen.job.is_none(), "the end is not shown");
        let finished = self.state(lost, |stated| {
            (stated.hub.finished, stated.hub.quota_reserved) = (true, false);
        });
        self.finishes += usize::from(finished);
    }

    fn send(&mut self, cluster: ClusterId, request: WorkerCall) {
        let worker = &mut self.workers[cluster.index()];
        assert_eq!(worker.link, RemoteConnection::Connected, "only live clusters are written to");
        self.sent |= request.creates();
        worker.flight.push(request);
    }

    /// The engine's part: evicts after Retry, resumes after Ready, nominates.
    fn core(&mut self) {
        let hub = &self.truth.hub;
        let is_current = self.seen.version == self.truth.version;
        if hub.quota_reserved && !hub.evicted && hub.check == DispatchCheckState::Retry {
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

    fn nominate(&mut self) {
        let usable = |worker: &SimulatedWorker| {
            worker.link == RemoteConnection::Connected && worker.left_out <= self.now
        };
        // Another cluster each time, so that the Workload moves.
        let count = self.workers.len();
        let first = usize::try_from(self.truth.hub.epoch - 1).expect("a small number");
        let all = (0..count).map(|at| (at + first) % count);
        let most = if self.race { count } else { 1 };
        let usable = all.filter(|&at| usable(&self.workers[at])).take(most);
        let nominated: Vec<_> = usable.map(ClusterId::from).collect();
        if nominated.is_empty() {
            return;
        }
        let now = Time(self.now);
        self.raised = false;
        self.happen(|stated| {
            (stated.hub.quota_reserved, stated.hub.nominated_at) = (true, now);
            stated.hub.nominated_clusters = nominated;
        });
    }

    fn agent(&mut self, at: usize, agent: SimulatedAgent) {
        let now = Time(self.now);
        let worker = &mut self.workers[at];
        let truth = &worker.truth;
        let clone = truth.clone.as_ref().map(|clone| clone.view.clone()).unwrap_or_default();
        let open = truth.clone.is_some() && !clone.evicted && clone.finished.is_none();
        let (waits, admitted) = (
            open && clone.admitted_at.is_none() && clone.refused.is_none(),
            clone.admitted_at.is_some(),
        );
        let job = truth.job;
        let is = |test: &dyn Fn(SimulatedJob) -> bool| job.is_some_and(test);
        let of_clone = |job: SimulatedJob| job.epoch == clone.epoch && !job.deleting;
        let may = match agent {
            SimulatedAgent::Admit | SimulatedAgent::Refuse => waits,
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
        let worker = &mut self.workers[at];
        if worker.cut || worker.flight.is_empty() {
            return;
        }
        let request = worker.flight.remove(which % worker.flight.len());
        worker.serve(request);
        if request.creates() && answer_lost {
            self.doubt(at);
        } else if request.creates() {
            worker.made = worker.truth.version;
        }
    }

    fn drop_request(&mut self, at: usize, which: usize) {
        let worker = &mut self.workers[at];
        if !worker.flight.is_empty() && worker.flight.remove(which % worker.flight.len()).creates()
        {
            self.doubt(at);
        }
    }

    /// A call without an answer: the connection is closed, and the cluster is listed again.
    fn doubt(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        worker.ambiguous = true;
        worker.hang_up(0);
        worker.link = RemoteConnection::NotSynced;
    }

    fn show(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.link == RemoteConnection::Connected
            && let Some(next) = worker.coming.pop_front()
        {
            worker.seen = next;
        }
    }

    fn cut(&mut self, at: usize, arrives: u8) {
        let now = Time(self.now);
        let worker = &mut self.workers[at];
        if !worker.cut {
            worker.hang_up(arrives);
            (worker.cut, worker.link) = (true, RemoteConnection::Disconnected { since: now });
        }
    }

    fn heal(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.cut {
            (worker.cut, worker.link) = (false, RemoteConnection::NotSynced);
        }
    }

    fn restart(&mut self, arrives: u8) {
        let now = Time(self.now);
        (self.raised, self.sent, self.seen) = (false, true, self.truth.clone());
        // The time of the nomination is forgotten.
        self.seen.hub.nominated_at = now;
        self.truth.hub.nominated_at = now;
        for worker in &mut self.workers {
            worker.hang_up(arrives);
            worker.link = if worker.cut {
                RemoteConnection::Disconnected { since: now }
            } else {
                RemoteConnection::NotSynced
            };
            (worker.seen, worker.ambiguous, worker.made) = (StoredWorkload::default(), false, 0);
        }
    }

    /// Invariants of every moment.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for worker in &mut self.workers {
            let lost = matches!(worker.link, RemoteConnection::Disconnected { since } if self.now - since.0 >= SETTINGS.worker_lost_timeout);
            worker.excused = (worker.excused || lost) && !worker.is_empty();
        }
        let running = self.workers.iter().filter(|one| one.runs() && !one.excused).count();
        prop_assert!(running <= 1, "{} clusters run it: {:#?}", running, self);
        prop_assert!(self.finishes <= 1);
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
            InjectedFault::Deliver { worker, which, lost } => self.deliver(at(worker), which, lost),
            InjectedFault::Drop { worker, which } => self.drop_request(at(worker), which),
            InjectedFault::Show { worker } => self.show(at(worker)),
            InjectedFault::SimulatedAgent { worker, does } => self.agent(at(worker), does),
            InjectedFault::Cut { worker, arrives } => self.cut(at(worker), arrives),
            InjectedFault::Heal { worker } => self.heal(at(worker)),
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
    Deliver { worker: usize, which: usize, lost: bool },
    Drop { worker: usize, which: usize },
    Show { worker: usize },
    SimulatedAgent { worker: usize, does: SimulatedAgent },
    Cut { worker: usize, arrives: u8 },
    Heal { worker: usize },
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
        6 => (worker(), 0..4_usize, prop::bool::weighted(0.1))
            .prop_map(|(worker, which, lost)| InjectedFault::Deliver { worker, which, lost }),
        1 => (worker(), 0..4_usize).prop_map(|(worker, which)| InjectedFault::Drop { worker, which }),
        6 => worker().prop_map(|worker| InjectedFault::Show { worker }),
        6 => (worker(), slow).prop_map(agent),
        1 => (worker(), prop::sample::select(&[SimulatedAgent::Complete, SimulatedAgent::Conclude][..])).prop_map(agent),
        3 => (worker(), unkind).prop_map(agent),
        3 => (worker(), any::<u8>()).prop_map(|(worker, arrives)| InjectedFault::Cut { worker, arrives }),
        4 => worker().prop_map(|worker| InjectedFault::Heal { worker }),
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
        race in any::<bool>(),
        faults in prop::collection::vec(fault(), 1..300),
    ) {
        let mut simulation = DispatchSimulation::new(workers, race, SETTINGS);
        for fault in &faults {
            simulation.play(fault);
            simulation.check()?;
        }
        for _ in 0..200 {
            (0..workers).for_each(|at| simulation.heal(at));
            simulation.calm(&KIND);
            simulation.check()?;
        }
        prop_assert!(simulation.is_over(), "{:#?}", simulation);
        prop_assert_eq!(simulation.finishes, 1);
    }
}

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
    let mut simulation = DispatchSimulation::new(2, false, SETTINGS);
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
fn a_dispatch_without_faults_raises_no_epoch() {
    for race in [false, true] {
        let mut simulation = DispatchSimulation::new(2, race, SETTINGS);
        until(&mut simulation, &KIND, DispatchSimulation::is_over);
        assert_eq!((simulation.truth.hub.epoch, simulation.finishes), (1, 1));
    }
}
