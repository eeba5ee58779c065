//! A worker with its connection: what it stores, what was sent, and what the hub has seen.

use std::collections::VecDeque;

use super::*;

/// A clone as the worker stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimulatedClone {
    pub(super) uid: u64,
    pub(super) view: RemoteWorkload,
}

/// A job as the worker stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimulatedJob {
    pub(super) uid: u64,
    pub(super) epoch: u64,
    pub(super) deleting: bool,
    pub(super) running: bool,
    pub(super) done: bool,
}

/// What a worker has at one of its versions.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredWorkload {
    pub(super) version: u64,
    pub(super) clone: Option<SimulatedClone>,
    pub(super) job: Option<SimulatedJob>,
}

/// A write on its way to a worker.
#[derive(Debug, Clone, Copy)]
pub(super) enum WorkerCall {
    CreateClone(u64),
    CreateJob(u64),
    DeleteClone(u64),
    DeleteJob(u64),
    Read(SimulatedObject),
}

/// An object of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimulatedObject {
    Clone,
    Job,
}

impl WorkerCall {
    /// What it creates.
    pub(super) fn creates(self) -> Option<SimulatedObject> {
        match self {
            Self::CreateClone(_) => Some(SimulatedObject::Clone),
            Self::CreateJob(_) => Some(SimulatedObject::Job),
            Self::DeleteClone(_) | Self::DeleteJob(_) | Self::Read(_) => None,
        }
    }
}

/// A worker, and what the hub's process knows about it.
#[derive(Debug)]
pub(super) struct SimulatedWorker {
    pub(super) truth: StoredWorkload,
    pub(super) cut: bool,
    /// It answers, but its lists never end.
    pub(super) stuck: bool,
    pub(super) link: RemoteConnection,
    pub(super) seen: StoredWorkload,
    pub(super) coming: VecDeque<StoredWorkload>,
    pub(super) flight: Vec<WorkerCall>,
    /// Calls that the hub has given up, and that the worker may still get.
    pub(super) late: Vec<WorkerCall>,
    pub(super) unsettled: UnsettledCreates<SimulatedObject, ()>,
    /// The uid of the last clone that was sent a deletion.
    pub(super) deleted_clone: Option<u64>,
    pub(super) left_out: i64,
    /// It was lost for so long that its copy may run beside another one.
    pub(super) excused: bool,
}

impl SimulatedWorker {
    pub(super) fn new() -> Self {
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

    pub(super) fn settled(&self) -> bool {
        self.unsettled.objects().next().is_none()
    }

    pub(super) fn has(&self, object: SimulatedObject) -> bool {
        match object {
            SimulatedObject::Clone => self.truth.clone.is_some(),
            SimulatedObject::Job => self.truth.job.is_some(),
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.truth.job.is_some_and(|job| job.running)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.truth.clone.is_none() && self.truth.job.is_none()
    }

    /// The worker's API server changes something.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut StoredWorkload)) {
        change(&mut self.truth);
        self.truth.version += 1;
        if !self.cut {
            self.coming.push_back(self.truth.clone());
        }
    }

    /// The worker gets a call. Returns the answer to a create.
    pub(super) fn serve(&mut self, request: WorkerCall) -> CreateAnswer {
        let exists = request.creates().is_some_and(|object| self.has(object));
        self.apply(request);
        if exists { CreateAnswer::Unknown } else { CreateAnswer::Stored(self.truth.version) }
    }

    pub(super) fn apply(&mut self, request: WorkerCall) {
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

    pub(super) fn clone_is(&self, uid: u64) -> bool {
        self.truth.clone.as_ref().is_some_and(|clone| clone.uid == uid)
    }

    pub(super) fn job_is(&self, uid: u64) -> bool {
        self.truth.job.is_some_and(|job| job.uid == uid)
    }

    /// The hub gets no answer to a call any more.
    pub(super) fn give_up(&mut self, request: WorkerCall, now: i64) {
        if let Some(object) = request.creates() {
            self.unsettled.answered(&object, CreateAnswer::Unknown, Time(now));
        } else if let WorkerCall::Read(object) = request {
            self.unsettled.read(&object, ReadAnswer::Unknown, Time(now));
        }
    }

    /// The worker gets the late calls now or never.
    pub(super) fn end_late_calls(&mut self, arrives: u8) {
        for (at, request) in std::mem::take(&mut self.late).into_iter().enumerate() {
            if arrives >> (at % 8) & 1 == 1 {
                self.apply(request);
            }
        }
    }

    /// The connection ends. Calls in flight are applied now or never.
    pub(super) fn hang_up(&mut self, arrives: u8, now: i64) {
        for request in std::mem::take(&mut self.flight) {
            self.give_up(request, now);
            self.late.push(request);
        }
        self.end_late_calls(arrives);
        self.coming.clear();
    }

    /// The connection is half-open: every call is given up, and may be applied later.
    pub(super) fn stall(&mut self, now: i64) {
        for request in std::mem::take(&mut self.flight) {
            self.give_up(request, now);
            self.late.push(request);
        }
    }

    pub(super) fn list(&mut self) {
        if !self.cut && !self.stuck && matches!(self.link, RemoteConnection::NotSynced { .. }) {
            self.coming.clear();
            (self.seen, self.link) = (self.truth.clone(), RemoteConnection::Connected);
            self.watched();
        }
    }

    /// The watch has shown the present `seen`.
    pub(super) fn watched(&mut self) {
        for object in [SimulatedObject::Clone, SimulatedObject::Job] {
            self.unsettled.observe(&object, self.seen.version);
        }
    }

    /// A consistent read of an object is answered. What the watch shows is at least as new afterwards.
    pub(super) fn read(&mut self, object: SimulatedObject, now: i64) {
        self.end_late_calls(u8::MAX);
        let version = self.truth.version;
        self.unsettled.read(&object, ReadAnswer::Present(version), Time(now));
        self.watched();
    }
}
