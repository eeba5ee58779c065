//! API server, kubelets and heads together, and what goes wrong between them and an agent.

use std::{
    collections::BTreeSet, convert::Infallible, future::Future, future::pending, pin::Pin,
    sync::Arc, time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use parking_lot::{Mutex, MutexGuard};
use ray::head::{HeadAnswer, HeadMethod, HeadRequest};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{
    api::SimulatedApi,
    environment::{kill_heads, move_on},
    faults::{Disturbance, FaultPoint, WriteFault},
    heads::SimulatedHeads,
    request::{OperatorAnswer, OperatorRequest, discovery, refusal},
    specs::job_kinds,
};
use crate::operators::{head_client::AskHead, object_cache::ObjectId, parent::AllSettings};

/// How long an agent waits for a head.
const HEAD_DEADLINE: Duration = Duration::from_secs(2);

/// How long heads hang.
const HANG: SignedDuration = SignedDuration::from_secs(15);

/// The most requests of an agent at one moment.
const MOST_REQUESTS: usize = 500;

/// The simulated world of an agent.
pub(super) struct OperatorWorld {
    pub(super) api: SimulatedApi,
    pub(super) heads: SimulatedHeads,
    /// The object that disturbances concern.
    pub(super) parent: ObjectId,
    pub(super) plan: Option<FaultPoint>,
    pub(super) settings: AllSettings,
    /// Groups and kinds of the jobs that the agent starts.
    pub(super) jobs: Vec<(String, String)>,
    /// What has happened to the object so far.
    pub(super) happened: BTreeSet<Disturbance>,
    /// When something went wrong the last time.
    pub(super) disturbed: Option<Instant>,
    /// The writes of all agents, requests to heads that change something included.
    pub(super) lines: Vec<String>,
    /// What becomes of reads.
    pub(super) reads: ReadFault,
    /// The fault happened: the number of changes before it.
    pub(super) tripped: Option<usize>,
    /// Requests since the environment moved the last time.
    n_requests: usize,
    /// The agent is to be killed.
    pub(super) crashed: bool,
    began: Instant,
}

/// A world that an agent and its environment share.
#[derive(Clone)]
pub(super) struct SharedWorld(Arc<Mutex<OperatorWorld>>);

/// What becomes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFault {
    None,
    /// The connection breaks.
    Lost,
    /// The API server does not answer.
    Hangs,
    /// A program between answers that there is no such page.
    NoPage,
}

/// The connection broke before the answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection broke")]
struct BrokenConnection;

impl OperatorWorld {
    /// The time of the virtual clock.
    pub(super) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        let begin = Timestamp::from_second(1_767_225_600).unwrap_or_default();
        begin.saturating_add(elapsed).unwrap_or(begin)
    }

    pub(super) fn move_environment(&mut self) {
        self.n_requests = 0;
        self.api.now = self.now();
        move_on(&mut self.api, &mut self.heads);
    }

    pub(super) fn parent(&self) -> &Value {
        self.api.objects.get(&self.parent).unwrap_or(&Value::Null)
    }

    /// Whether the user has named the job of a RayJob.
    pub(super) fn is_job_named(&self) -> bool {
        self.parent()["spec"]["jobId"].is_string()
    }

    pub(super) fn disturb(&mut self, disturbance: Disturbance) {
        self.api.now = self.now();
        self.happened.insert(disturbance);
        let parent = self.parent.clone();
        match disturbance {
            Disturbance::Nothing => {}
            Disturbance::Suspend => {
                self.api.change(&parent, |object| object["spec"]["suspend"] = json!(true));
            }
            Disturbance::Delete => self.api.delete(&parent),
            Disturbance::HeadDies => kill_heads(&mut self.api),
            Disturbance::HeadHangs => self.heads.hang(self.api.now + HANG),
        }
    }

    /// Whether an agent sends requests without end while no time passes.
    fn is_endless(&mut self) -> bool {
        self.n_requests += 1;
        let is_endless = self.n_requests > MOST_REQUESTS;
        if is_endless {
            let last = self.lines.last().cloned().unwrap_or_default();
            self.api.violations.insert(format!("requests without end; the last one is {last}"));
        }
        is_endless
    }

    /// Counts a write, and says what goes wrong at it.
    fn count(&mut self, line: String) -> Option<FaultPoint> {
        let number = self.lines.len();
        self.lines.push(line);
        let fault = self.plan.filter(|plan| plan.write == number && self.tripped.is_none())?;
        self.tripped = Some(self.api.log.len());
        Some(fault)
    }
}

impl SharedWorld {
    pub(super) fn new(parent: Value, plan: Option<FaultPoint>) -> Self {
        let world = OperatorWorld {
            api: SimulatedApi::default(),
            heads: SimulatedHeads::default(),
            parent: ObjectId::of(&parent),
            plan,
            settings: AllSettings::default(),
            jobs: job_kinds(),
            happened: BTreeSet::new(),
            disturbed: None,
            lines: Vec::new(),
            reads: ReadFault::None,
            tripped: None,
            n_requests: 0,
            crashed: false,
            began: Instant::now(),
        };
        let shared = Self(Arc::new(Mutex::new(world)));
        shared.create(parent);
        shared
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, OperatorWorld> {
        self.0.lock()
    }

    /// Creates an object as its user.
    pub(super) fn create(&self, object: Value) {
        let mut world = self.lock();
        world.api.now = world.now();
        let id = ObjectId::of(&object);
        let method = "POST".to_owned();
        let request =
            OperatorRequest { method, id, is_status: false, is_apply: false, body: object };
        let answer = world.api.answer(&request);
        assert_eq!(answer.0, 201, "{answer:?}");
    }

    pub(super) fn client(&self) -> Client {
        let world = self.clone();
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let world = world.clone();
            async move {
                let is_read = request.method() == hyper::Method::GET;
                world.read_fault(is_read).await?;
                let discovered = discovery(request.uri().path());
                let has_no_page = is_read && world.lock().reads == ReadFault::NoPage;
                let answer = match OperatorRequest::read(request).await {
                    _ if has_no_page => Some((404, json!("default backend - 404"))),
                    None => discovered
                        .or_else(|| Some(refusal(404, "NotFound", "the kind is not served"))),
                    Some(request) => world.carry_out(request).await,
                };
                let (code, body) = answer.ok_or(BrokenConnection)?;
                let body = Body::from(body.to_string().into_bytes());
                let answer = hyper::Response::builder().status(code).body(body);
                answer.map_err(|_| BrokenConnection)
            }
        });
        Client::new(service, "default")
    }

    async fn read_fault(&self, is_read: bool) -> Result<(), BrokenConnection> {
        let reads = self.lock().reads;
        match reads {
            _ if !is_read => Ok(()),
            ReadFault::None | ReadFault::NoPage => Ok(()),
            ReadFault::Lost => Err(BrokenConnection),
            ReadFault::Hangs => pending().await,
        }
    }

    /// The answer to a request; none if it is lost.
    async fn carry_out(&self, request: OperatorRequest) -> Option<OperatorAnswer> {
        if self.lock().is_endless() {
            // Nothing moves any more, so that the test ends.
            pending::<Infallible>().await;
        }
        let point = if request.is_write() { self.lock().count(request.line()) } else { None };
        let Some(point) = point else { return Some(self.apply(&request)) };
        let applied = self.clone();
        self.fail(point, move || drop(applied.apply(&request))).await;
        None
    }

    fn apply(&self, request: &OperatorRequest) -> OperatorAnswer {
        let mut world = self.lock();
        world.api.now = world.now();
        world.api.answer(request)
    }

    /// Carries a write out at the time of its fault, or not at all. Returns if the agent learns that the answer is lost.
    async fn fail(&self, point: FaultPoint, write: impl FnOnce() + Send + 'static) {
        match point.fault.delay() {
            None => {}
            Some(Duration::ZERO) => write(),
            Some(delay) => drop(tokio::spawn(async move {
                time::sleep(delay).await;
                write();
            })),
        }
        let waits = point.fault.is_crash() || point.fault == WriteFault::Late;
        self.trip(point);
        if waits {
            pending::<Infallible>().await;
        }
    }

    fn trip(&self, point: FaultPoint) {
        let mut world = self.lock();
        world.crashed = point.fault.is_crash();
        world.disturbed = Some(Instant::now());
        world.disturb(point.disturbance);
    }

    fn answer_of_head(&self, request: &HeadRequest) -> HeadAnswer {
        let mut world = self.lock();
        let now = world.now();
        let OperatorWorld { api, heads, .. } = &mut *world;
        heads.answer(api, request, now)
    }
}

impl AskHead for SharedWorld {
    fn ask<'a>(
        &'a self,
        request: &'a HeadRequest,
        _: &'a str,
        _: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = HeadAnswer> + Send + 'a>> {
        Box::pin(async move {
            let point = match request.method {
                HeadMethod::Get => None,
                HeadMethod::Post | HeadMethod::Put => self.lock().count(request.url.clone()),
            };
            let hangs = {
                let world = self.lock();
                world.heads.hangs(world.now())
            };
            if hangs && point.is_none() {
                time::sleep(HEAD_DEADLINE).await;
                return HeadAnswer::Unreachable("no answer within 2s".to_owned());
            }
            let Some(point) = point else { return self.answer_of_head(request) };
            let (heads, sent) = (self.clone(), request.clone());
            let failed = self.fail(point, move || drop(heads.answer_of_head(&sent)));
            let _ = time::timeout(HEAD_DEADLINE, failed).await;
            if point.fault.is_crash() {
                pending::<Infallible>().await;
            }
            HeadAnswer::Unreachable("no answer within 2s".to_owned())
        })
    }
}
