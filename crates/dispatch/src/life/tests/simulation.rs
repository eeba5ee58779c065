//! One Workload, a hub and its workers on a virtual clock, with everything that can go wrong in between.
//!
//! Requests wait until they are delivered, in any order, and their answers may be lost; views come late, but in order per
//! cluster; links are cut and healed; the process on the hub forgets everything at any moment. A connection that ends
//! takes what is on its way with it: applied or lost, but not later. Agents admit, refuse, evict, run and stop when they
//! like.
//!
//! At no moment do two clusters run pods, except one that was lost for `lost_after`. When faults stop, the Workload
//! finishes, once, and nothing is left anywhere.

use std::collections::{BTreeSet, VecDeque};

use engine::{Time, ids::ClusterId};
use proptest::prelude::*;

use crate::life::*;

const SETTINGS: LifeSettings = LifeSettings { lost_after: 100, admit_within: 60 };

/// A clone as the worker stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Clone_ {
    uid: u64,
    view: CloneView,
}

/// A job as the worker stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    uid: u64,
    epoch: u64,
    deleting: bool,
    running: bool,
    done: bool,
}

/// What a worker has at one of its versions.
#[derive(Debug, Clone, Default)]
struct Stored {
    version: u64,
    clone: Option<Clone_>,
    job: Option<Job>,
}

/// A write on its way to a worker.
#[derive(Debug, Clone, Copy)]
enum Request {
    CreateClone(u64),
    CreateJob(u64),
    DeleteClone(u64),
    DeleteJob(u64),
}

impl Request {
    fn creates(self) -> bool {
        matches!(self, Self::CreateClone(_) | Self::CreateJob(_))
    }
}

/// A worker, and what the hub's process knows of it.
#[derive(Debug)]
struct Worker {
    truth: Stored,
    cut: bool,
    link: Link,
    seen: Stored,
    coming: VecDeque<Stored>,
    flight: Vec<Request>,
    /// A create whose answer was lost: only a new list tells.
    ambiguous: bool,
    /// The newest version that an answered create made.
    made: u64,
    left_out: i64,
    /// It was lost for so long that its copy may run beside another.
    excused: bool,
}

impl Worker {
    fn new() -> Self {
        Self {
            truth: Stored::default(),
            cut: false,
            link: Link::Unlisted,
            seen: Stored::default(),
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
    fn change(&mut self, change: impl FnOnce(&mut Stored)) {
        change(&mut self.truth);
        self.truth.version += 1;
        if !self.cut {
            self.coming.push_back(self.truth.clone());
        }
    }

    fn serve(&mut self, request: Request) {
        let uid = self.truth.version + 1;
        match request {
            Request::CreateClone(epoch) if self.truth.clone.is_none() => self.change(|stored| {
                let view = CloneView { epoch, same_spec: true, ..CloneView::default() };
                stored.clone = Some(Clone_ { uid, view });
            }),
            Request::CreateJob(epoch) if self.truth.job.is_none() => self.change(|stored| {
                let job = Job { uid, epoch, deleting: false, running: false, done: false };
                stored.job = Some(job);
            }),
            Request::DeleteClone(uid) if self.clone_is(uid) => self.change(|one| one.clone = None),
            Request::DeleteJob(uid) if self.job_is(uid) => self.change(|stored| {
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

    /// The connection ends. What is on its way arrives now or never.
    fn hang_up(&mut self, arrives: u8) {
        for (at, request) in std::mem::take(&mut self.flight).into_iter().enumerate() {
            if arrives >> (at % 8) & 1 == 1 {
                self.serve(request);
            }
        }
        self.coming.clear();
    }

    fn list(&mut self) {
        if !self.cut && self.link == Link::Unlisted {
            self.coming.clear();
            (self.seen, self.link) = (self.truth.clone(), Link::Live);
            (self.ambiguous, self.made) = (false, 0);
        }
    }
}

/// What an agent does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
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

const KIND: [Agent; 6] =
    [Agent::Admit, Agent::Start, Agent::Complete, Agent::Conclude, Agent::Stop, Agent::Remove];
const UNKIND: [Agent; 4] = [Agent::Refuse, Agent::Evict, Agent::DeleteJob, Agent::DeleteClone];

/// The Workload and its job on the hub's API server.
#[derive(Debug, Clone)]
struct Stated {
    version: u64,
    hub: Hub,
    /// Epoch, activity and end that the job's status shows.
    status: Option<(u64, bool, bool)>,
}

#[derive(Debug)]
struct World {
    settings: LifeSettings,
    now: i64,
    race: bool,
    truth: Stated,
    seen: Stated,
    raised: bool,
    sent: bool,
    workers: Vec<Worker>,
    completed: BTreeSet<u64>,
    finishes: usize,
    due: Option<i64>,
}

impl World {
    fn new(workers: usize, race: bool, settings: LifeSettings) -> Self {
        let job = HubJob { exists: true, suspended: true, ..HubJob::default() };
        let hub = Hub { exists: true, epoch: 1, job, ..Hub::default() };
        let truth = Stated { version: 1, hub, status: None };
        Self {
            settings,
            now: 0,
            race,
            seen: truth.clone(),
            truth,
            raised: false,
            sent: false,
            workers: (0..workers).map(|_| Worker::new()).collect(),
            completed: BTreeSet::new(),
            finishes: 0,
            due: None,
        }
    }

    /// A write to the hub, which is refused if it was decided on an old view.
    fn state(&mut self, lost: bool, change: impl FnOnce(&mut Stated)) -> bool {
        if self.seen.version != self.truth.version || lost {
            return false;
        }
        self.happen(change);
        true
    }

    fn happen(&mut self, change: impl FnOnce(&mut Stated)) {
        let before = self.truth.hub.epoch;
        change(&mut self.truth);
        self.truth.version += 1;
        assert!(self.truth.hub.epoch >= before, "the epoch fell");
    }

    fn hub(&self) -> Hub {
        let (hub, status) = (self.seen.hub.clone(), self.seen.status);
        let job = HubJob {
            active: status.is_some_and(|(_, active, _)| active),
            started: status.is_some_and(|(epoch, ..)| epoch == hub.epoch),
            ..hub.job
        };
        Hub { raised: self.raised, sent: self.sent, job, ..hub }
    }

    fn copies(&self) -> Vec<Copy> {
        let status = self.seen.status;
        let view = |job: &Job| JobView {
            epoch: job.epoch,
            deleting: job.deleting,
            active: job.running,
            finished: job.done,
            synced: status == Some((job.epoch, job.running, job.done)),
        };
        let copies = self.workers.iter().enumerate().map(|(at, worker)| Copy {
            cluster: ClusterId::from(at),
            link: worker.link,
            settled: worker.settled(),
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

    fn carry_out(&mut self, step: &Step, lost: bool) {
        let epoch = self.seen.hub.epoch;
        match *step {
            Step::CreateClone(one) => self.send(one, Request::CreateClone(epoch)),
            Step::CreateJob(one) => self.send(one, Request::CreateJob(epoch)),
            Step::DeleteClone(one) => {
                let uid = self.workers[one.index()].seen.clone.as_ref().map(|clone| clone.uid);
                self.send(one, Request::DeleteClone(uid.expect("it is seen")));
            }
            Step::DeleteJob(one) => {
                let uid = self.workers[one.index()].seen.job.map(|job| job.uid);
                self.send(one, Request::DeleteJob(uid.expect("it is seen")));
            }
            Step::WaitUntil(time) => self.due = Some(time.0),
            Step::RaiseEpoch => {
                if self.state(false, |stated| stated.hub.epoch += 1) && !lost {
                    // The answer came. Nothing was sent under the new epoch.
                    (self.raised, self.sent) = (true, false);
                }
            }
            Step::SyncStatus(one) => {
                let job = self.workers[one.index()].seen.job.expect("it is seen");
                let status = Some((job.epoch, job.running, job.done));
                assert!(!self.seen.hub.job.suspended, "the API refuses it");
                self.state(lost, |stated| stated.status = status);
            }
            Step::Idle => {
                self.state(lost, |stated| {
                    stated.status = stated.status.map(|(epoch, _, done)| (epoch, false, done));
                });
            }
            Step::Ready(one) => {
                self.state(lost, |stated| {
                    (stated.hub.recorded, stated.hub.check) = (Some(one), Check::Ready);
                    stated.hub.nominated.clear();
                });
            }
            Step::Retry(_) => {
                self.state(lost, |stated| stated.hub.check = Check::Retry);
            }
            Step::Finish { .. } => self.finish(lost),
            Step::Withdrawn => {
                self.state(lost, release);
            }
            Step::Unplace { cluster, .. } => {
                if self.state(lost, release) {
                    self.workers[cluster.index()].left_out = self.now + 20;
                }
            }
        }
    }

    fn finish(&mut self, lost: bool) {
        assert!(self.completed.contains(&self.seen.hub.epoch), "nothing was completed");
        let cluster = self.seen.hub.recorded.expect("only what is recorded is finished");
        let shown =
            self.seen.status.is_some_and(|(epoch, _, done)| done && epoch == self.seen.hub.epoch);
        assert!(shown || self.workers[cluster.index()].seen.job.is_none(), "the end is not shown");
        let finished = self.state(lost, |stated| {
            (stated.hub.finished, stated.hub.quota) = (true, false);
        });
        self.finishes += usize::from(finished);
    }

    fn send(&mut self, cluster: ClusterId, request: Request) {
        let worker = &mut self.workers[cluster.index()];
        assert_eq!(worker.link, Link::Live, "only live clusters are written to");
        self.sent |= request.creates();
        worker.flight.push(request);
    }

    /// What the rest of the hub does: evicts after a Retry, resumes after Ready, nominates.
    fn core(&mut self) {
        let hub = &self.truth.hub;
        let fresh = self.seen.version == self.truth.version;
        if hub.quota && !hub.evicted && hub.check == Check::Retry {
            self.evict();
        } else if hub.quota && !hub.evicted && hub.check == Check::Ready && hub.job.suspended {
            self.happen(|stated| stated.hub.job.suspended = false);
        } else if fresh && !hub.quota && !hub.finished {
            self.nominate();
        }
    }

    fn evict(&mut self) {
        self.happen(|stated| (stated.hub.evicted, stated.hub.job.suspended) = (true, true));
    }

    fn nominate(&mut self) {
        let usable = |worker: &Worker| worker.link == Link::Live && worker.left_out <= self.now;
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
            (stated.hub.quota, stated.hub.nominated_at) = (true, now);
            stated.hub.nominated = nominated;
        });
    }

    fn agent(&mut self, at: usize, agent: Agent) {
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
        let is = |test: &dyn Fn(Job) -> bool| job.is_some_and(test);
        let of_clone = |job: Job| job.epoch == clone.epoch && !job.deleting;
        let may = match agent {
            Agent::Admit | Agent::Refuse => waits,
            Agent::Start => {
                open && admitted && is(&|job| of_clone(job) && !job.done && !job.running)
            }
            Agent::Complete => is(&|job| job.running),
            Agent::Conclude => open && admitted && is(&|job| of_clone(job) && job.done),
            Agent::Stop => is(&|job| job.running && (job.deleting || !open)),
            Agent::Remove => is(&|job| job.deleting && !job.running),
            Agent::Evict => open && admitted,
            Agent::DeleteJob => is(&|job| !job.deleting),
            Agent::DeleteClone => truth.clone.is_some(),
        };
        if !may {
            return;
        }
        if agent == Agent::Complete {
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

    /// No answer came: the connection is given up, and the cluster is listed anew.
    fn doubt(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        worker.ambiguous = true;
        worker.hang_up(0);
        worker.link = Link::Unlisted;
    }

    fn show(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.link == Link::Live
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
            (worker.cut, worker.link) = (true, Link::Lost { since: now });
        }
    }

    fn heal(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.cut {
            (worker.cut, worker.link) = (false, Link::Unlisted);
        }
    }

    fn restart(&mut self, arrives: u8) {
        let now = Time(self.now);
        (self.raised, self.sent, self.seen) = (false, true, self.truth.clone());
        // The moment of the nomination is not known any more.
        self.seen.hub.nominated_at = now;
        self.truth.hub.nominated_at = now;
        for worker in &mut self.workers {
            worker.hang_up(arrives);
            worker.link = if worker.cut { Link::Lost { since: now } } else { Link::Unlisted };
            (worker.seen, worker.ambiguous, worker.made) = (Stored::default(), false, 0);
        }
    }

    /// What must hold at every moment.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for worker in &mut self.workers {
            let lost = matches!(worker.link, Link::Lost { since } if self.now - since.0 >= SETTINGS.lost_after);
            worker.excused = (worker.excused || lost) && !worker.is_empty();
        }
        let running = self.workers.iter().filter(|one| one.runs() && !one.excused).count();
        prop_assert!(running <= 1, "{} clusters run it: {:#?}", running, self);
        prop_assert!(self.finishes <= 1);
        Ok(())
    }

    fn play(&mut self, fault: &Fault) {
        let count = self.workers.len();
        let at = |which: usize| which % count;
        match *fault {
            Fault::Decide { lost } => self.decide(lost),
            Fault::See => self.seen = self.truth.clone(),
            Fault::Core => self.core(),
            Fault::Preempt if self.truth.hub.quota && !self.truth.hub.evicted => self.evict(),
            Fault::Preempt => {}
            Fault::Deliver { worker, which, lost } => self.deliver(at(worker), which, lost),
            Fault::Drop { worker, which } => self.drop_request(at(worker), which),
            Fault::Show { worker } => self.show(at(worker)),
            Fault::Agent { worker, does } => self.agent(at(worker), does),
            Fault::Cut { worker, arrives } => self.cut(at(worker), arrives),
            Fault::Heal { worker } => self.heal(at(worker)),
            Fault::List { worker } => self.workers[at(worker)].list(),
            Fault::Restart { arrives } => self.restart(arrives),
            Fault::Pass { time } => self.now += time,
            Fault::Round { skip } => self.round(skip),
        }
    }

    /// A round in which much happens late: each bit leaves something out.
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
                // Jobs take their time: they complete when a fault says so.
                if happens() && one != Agent::Complete {
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

    /// A round without faults. Links stay as they are; agents do what is asked of them.
    fn calm(&mut self, does: &[Agent]) {
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
        self.truth.hub.finished && self.workers.iter().all(Worker::is_empty)
    }
}

fn release(stated: &mut Stated) {
    let hub = &mut stated.hub;
    (hub.quota, hub.evicted, hub.recorded, hub.check) = (false, false, None, Check::Pending);
    hub.nominated.clear();
}

fn act(stored: &mut Stored, agent: Agent, now: Time) {
    if let Some(clone) = stored.clone.as_mut().map(|clone| &mut clone.view) {
        match agent {
            Agent::Admit => clone.admitted_at = Some(now),
            Agent::Conclude => clone.finished = Some(("Succeeded".into(), "done".into())),
            Agent::Refuse => clone.refused = Some("no".into()),
            Agent::Evict => (clone.evicted, clone.admitted_at) = (true, None),
            _ => {}
        }
    }
    if let Some(job) = &mut stored.job {
        match agent {
            Agent::Start => job.running = true,
            Agent::Complete => (job.running, job.done) = (false, true),
            Agent::Stop => job.running = false,
            Agent::DeleteJob => job.deleting = true,
            _ => {}
        }
    }
    match agent {
        Agent::Remove => stored.job = None,
        Agent::DeleteClone => stored.clone = None,
        _ => {}
    }
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Fault {
    Decide { lost: bool },
    See,
    Core,
    Preempt,
    Deliver { worker: usize, which: usize, lost: bool },
    Drop { worker: usize, which: usize },
    Show { worker: usize },
    Agent { worker: usize, does: Agent },
    Cut { worker: usize, arrives: u8 },
    Heal { worker: usize },
    List { worker: usize },
    Restart { arrives: u8 },
    Pass { time: i64 },
    Round { skip: u64 },
}

fn fault() -> impl Strategy<Value = Fault> {
    let worker = || 0..3_usize;
    let (slow, unkind) = (prop::sample::select(&SLOW[..]), prop::sample::select(&UNKIND[..]));
    let agent = |(worker, does)| Fault::Agent { worker, does };
    prop_oneof![
        8 => prop::bool::weighted(0.2).prop_map(|lost| Fault::Decide { lost }),
        4 => Just(Fault::See),
        3 => Just(Fault::Core),
        4 => Just(Fault::Preempt),
        6 => (worker(), 0..4_usize, prop::bool::weighted(0.1))
            .prop_map(|(worker, which, lost)| Fault::Deliver { worker, which, lost }),
        1 => (worker(), 0..4_usize).prop_map(|(worker, which)| Fault::Drop { worker, which }),
        6 => worker().prop_map(|worker| Fault::Show { worker }),
        6 => (worker(), slow).prop_map(agent),
        1 => (worker(), prop::sample::select(&[Agent::Complete, Agent::Conclude][..])).prop_map(agent),
        3 => (worker(), unkind).prop_map(agent),
        3 => (worker(), any::<u8>()).prop_map(|(worker, arrives)| Fault::Cut { worker, arrives }),
        4 => worker().prop_map(|worker| Fault::Heal { worker }),
        4 => worker().prop_map(|worker| Fault::List { worker }),
        2 => any::<u8>().prop_map(|arrives| Fault::Restart { arrives }),
        2 => (1..60_i64).prop_map(|time| Fault::Pass { time }),
        70 => (any::<u64>(), any::<u64>()).prop_map(|(one, other)| Fault::Round { skip: one & other }),
    ]
}

proptest! {
    #[test]
    fn one_cluster_runs_it_and_it_finishes_once(
        workers in 2..4_usize,
        race in any::<bool>(),
        faults in prop::collection::vec(fault(), 1..300),
    ) {
        let mut world = World::new(workers, race, SETTINGS);
        for fault in &faults {
            world.play(fault);
            world.check()?;
        }
        for _ in 0..200 {
            (0..workers).for_each(|at| world.heal(at));
            world.calm(&KIND);
            world.check()?;
        }
        prop_assert!(world.is_over(), "{:#?}", world);
        prop_assert_eq!(world.finishes, 1);
    }
}

/// Runs calmly until `done`.
fn until(world: &mut World, does: &[Agent], done: impl Fn(&World) -> bool) {
    for _ in 0..200 {
        if done(world) {
            return;
        }
        world.calm(does);
    }
    panic!("it never came to that: {world:#?}");
}

const SLOW: [Agent; 4] = [Agent::Admit, Agent::Start, Agent::Stop, Agent::Remove];

/// The property above is worth something only if the simulation can show two that run.
#[test]
fn the_work_of_a_lost_cluster_starts_elsewhere_after_lost_after_and_not_before() {
    let mut world = World::new(2, false, SETTINGS);
    until(&mut world, &SLOW, |world| world.workers[0].runs());
    until(&mut world, &SLOW, |world| world.truth.hub.check == Check::Ready);
    let cut = world.now;
    world.cut(0, 0);
    until(&mut world, &SLOW, |world| world.workers[1].runs());
    assert!(world.workers[0].runs(), "nobody could tell it to stop");
    assert!(world.now >= cut + SETTINGS.lost_after);
    world.heal(0);
    until(&mut world, &SLOW, |world| world.workers[0].is_empty());
    assert!(world.workers[1].runs(), "the recorded copy stays");
}

#[test]
fn a_quiet_life_raises_no_epoch() {
    for race in [false, true] {
        let mut world = World::new(2, race, SETTINGS);
        until(&mut world, &KIND, World::is_over);
        assert_eq!((world.truth.hub.epoch, world.finishes), (1, 1));
    }
}
