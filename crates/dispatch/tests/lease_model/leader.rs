//! The manager's half: `dispatch::workload::decide` and `GrantIssuer`, with their steps as messages.

use dispatch::{
    CopyHistory, FenceRecord, Fencing, GrantIssuer, GrantTiming, IssuerStep, LeaseStamp,
    WorkerLeases,
    workload::{
        DispatchCheckState, DispatchStep, DispatchTimeouts, LocalWorkload, RemoteConnection,
        RemoteCopy, RemoteJob, RemoteLease, RemoteWorkload, StampState, decide,
    },
};
use engine::{Time, ids::ClusterId};

use crate::world::{
    HubWorkload, Leader, LinkView, Message, Versioned, Weakened, WorkerApi, WorkerCopy, World,
    worker_a, worker_b,
};

/// Under ExactlyOnce no time decides about a loss, and here every admission is in time.
const TIMEOUTS: DispatchTimeouts = DispatchTimeouts {
    worker_lost_timeout: 0,
    admission_timeout: i64::MAX / 2,
    start_timeout: i64::MAX / 2,
    preemption_timeout: 0,
};

impl Leader {
    /// A process that begins to lead. What it has watched may be older than its beginning.
    pub(crate) fn new(
        term: u64,
        workload: Versioned<HubWorkload>,
        record: Versioned<FenceRecord>,
        now: Time,
    ) -> Self {
        Self {
            term,
            began_at: workload.version,
            workload,
            record,
            link: LinkView::Unlisted(now),
            seen: WorkerApi::default(),
            issuer: GrantIssuer::new(term, now),
            has_listed_b: term == 1,
            is_due: true,
            raised: false,
            sent: true,
        }
    }

    /// The leases of worker `a` as this process knows them. A weakened message carries what everything carries.
    fn leases(&self, fencing: Fencing, timing: GrantTiming) -> WorkerLeases<'_> {
        let reached = self.link == LinkView::Connected;
        WorkerLeases {
            record: self.record.object,
            reached,
            lost: !reached,
            confirmed: false,
            fencing,
            timing,
            beat: self.seen.beat.as_ref(),
            grant: self.seen.grant.as_ref().map(|(_, grant)| grant),
        }
    }
}

impl World {
    /// The leader decides on what it knows.
    pub(crate) fn decide(&mut self) {
        self.leader.is_due = false;
        self.decide_once();
        while !self.setting.slow_hub && self.store_on_hub() {
            self.see_hub();
            self.decide_once();
        }
    }

    /// The hub stores what is on its way.
    fn store_on_hub(&mut self) -> bool {
        let to_hub = |one: &&Message| matches!(one, Message::Workload(..) | Message::Record(..));
        let message = self.flight.iter().find(to_hub).cloned();
        message.inspect(|message| self.deliver(message)).is_some()
    }

    fn decide_once(&mut self) {
        let now = self.leader_time();
        self.decide_leases(now);
        let (hub, copies) = (self.hub_view(), self.copy_views(now));
        for step in decide(&hub, &copies, &TIMEOUTS, now) {
            self.carry_out(&step);
        }
    }

    fn decide_leases(&mut self, now: Time) {
        let mut issuer = self.leader.issuer.clone();
        let record_version = self.leader.record.version;
        let step = issuer.decide(&self.leases(), now);
        self.leader.issuer = issuer;
        let term = self.leader.term;
        match step {
            Some(IssuerStep::Claim(object) | IssuerStep::EndSession(object)) => {
                self.send(Message::Record(term, Versioned { version: record_version, object }));
            }
            Some(IssuerStep::Issue(grant)) => {
                let version = self.leader.seen.grant.as_ref().map(|(version, _)| *version);
                self.send(Message::Grant(version, grant));
            }
            Some(IssuerStep::WaitUntil(_)) | None => {}
        }
    }

    fn hub_view(&self) -> LocalWorkload {
        let leader = &self.leader;
        let hub = leader.workload.object;
        LocalWorkload {
            exists: true,
            finished: hub.finished,
            quota_reserved: hub.quota,
            evicted: hub.evicted,
            check: match hub.recorded {
                Some(_) => DispatchCheckState::Ready,
                None => DispatchCheckState::Pending,
            },
            recorded_cluster: hub.recorded,
            nominated_clusters: hub.nominated.into_iter().collect(),
            epoch: hub.epoch,
            epoch_raised: leader.raised,
            create_sent: leader.sent,
            exactly_once: true,
            is_own_version: leader.workload.version > leader.began_at,
            ..LocalWorkload::default()
        }
    }

    fn copy_views(&self, now: Time) -> Vec<RemoteCopy> {
        let leader = &self.leader;
        let leases = self.leases();
        let term = leader.term;
        let sent =
            |message: &Message| matches!(message, Message::Create { term: of, .. } if *of == term);
        let at = usize::try_from(term).expect("a small number");
        let shows_creates = leader.seen.version >= self.api.created[at];
        // What was listed before the term was on the worker proves nothing: a create of a former leader may follow.
        let settled =
            shows_creates && !self.flight.iter().any(sent) && leader.issuer.writes(&leases);
        let lease = RemoteLease {
            open: leader.issuer.is_open(&leases),
            fenced: leader.issuer.is_fenced(&leases, now),
        };
        let record = leader.record.object;
        let clone = leader.seen.copy.map(|copy| self.clone_view(&copy, record));
        let a = RemoteCopy {
            cluster: worker_a(),
            connection: leader.link.into(),
            cleanup_confirmed: false,
            creates_answered: settled,
            lease,
            refused: None,
            clone,
            jobs: leader.seen.copy.filter(|copy| copy.has_job).iter().map(job_view).collect(),
            missing_job: !leader.seen.copy.is_some_and(|copy| copy.has_job),
            name_held: false,
        };
        vec![a, self.other_view()]
    }

    fn clone_view(&self, copy: &WorkerCopy, record: FenceRecord) -> RemoteWorkload {
        let present = self.on_wire(LeaseStamp { session: record.session, term: self.leader.term });
        let stamp = match copy.stamp {
            stamp if stamp.session < present.session => StampState::Ended,
            stamp if stamp.term < present.term && !copy.admitted => StampState::OfFormerLeader,
            _ => StampState::Current,
        };
        RemoteWorkload {
            epoch: copy.epoch,
            admitted_at: copy.admitted.then_some(Time(0)),
            evicted: copy.evicted,
            finished: copy.done.then(|| ("Succeeded".into(), "".into())),
            same_spec: true,
            stamp,
            ..RemoteWorkload::default()
        }
    }

    fn other_view(&self) -> RemoteCopy {
        let seen = self.other.filter(|_| self.leader.has_listed_b);
        let connection = if self.leader.has_listed_b {
            RemoteConnection::Connected
        } else {
            RemoteConnection::NotSynced { since: Time(0) }
        };
        let clone = seen.map(|(epoch, runs)| RemoteWorkload {
            epoch,
            admitted_at: Some(Time(0)),
            finished: (!runs).then(|| ("Succeeded".into(), "".into())),
            same_spec: true,
            same_pods: true,
            same_uid: true,
            ..RemoteWorkload::default()
        });
        let job = |(epoch, runs): (u64, bool)| RemoteJob {
            epoch,
            same_uid: true,
            finished: !runs,
            succeeded: !runs,
            ..RemoteJob::default()
        };
        RemoteCopy {
            cluster: worker_b(),
            connection,
            cleanup_confirmed: false,
            creates_answered: true,
            lease: RemoteLease { open: true, fenced: false },
            refused: None,
            clone,
            jobs: seen.map(job).into_iter().collect(),
            missing_job: seen.is_none(),
            name_held: false,
        }
    }

    fn carry_out(&mut self, step: &DispatchStep) {
        let hub = self.leader.workload.object;
        match *step {
            DispatchStep::CreateClone(one) | DispatchStep::CreateJobs(one) if one == worker_b() => {
                self.leader.sent = true;
                self.other = self.other.or(Some((hub.epoch, true)));
            }
            DispatchStep::DeleteJobs(one) | DispatchStep::DeleteClone(one) if one == worker_b() => {
                self.other = None;
            }
            DispatchStep::CreateClone(_) => self.create(true),
            DispatchStep::CreateJobs(_) => self.create(false),
            DispatchStep::Stamp(_) => {
                let stamp = self.on_wire(self.own_stamp());
                self.send_about_copy(|version| Message::Stamp(version, stamp));
            }
            DispatchStep::DeleteJobs(_) => self.send_about_copy(Message::DeleteJob),
            // The Workload has one job.
            DispatchStep::DeleteMembers(_) => unreachable!("it is no group"),
            DispatchStep::DeleteClone(_) => self.send_about_copy(Message::DeleteClone),
            DispatchStep::ConfirmVersion => self.write(hub),
            DispatchStep::SetCheckReady(one) => {
                self.write(HubWorkload { recorded: Some(one), nominated: None, ..hub });
            }
            DispatchStep::SetCheckRetry(_) => self.write(HubWorkload { evicted: true, ..hub }),
            DispatchStep::RaiseEpoch(epoch) => self.write(HubWorkload { epoch, ..hub }),
            DispatchStep::AdoptResult(_) | DispatchStep::Finish { .. } => {
                self.write(HubWorkload { finished: true, quota: false, ..hub });
            }
            DispatchStep::Withdrawn | DispatchStep::CancelNomination { .. } => {
                let (quota, evicted, nominated, recorded) = (false, false, None, None);
                self.write(HubWorkload { quota, evicted, nominated, recorded, ..hub });
            }
            DispatchStep::Nominate
            | DispatchStep::PushPriority(_)
            | DispatchStep::PushSize(_)
            | DispatchStep::OpenPreemptionGate(_)
            | DispatchStep::SyncStatus(_)
            | DispatchStep::ClearActivePods
            | DispatchStep::WaitUntil(_) => {}
        }
    }

    /// The engine gives quota and a nomination to the Workload.
    pub(crate) fn nominate(&mut self, cluster: ClusterId) {
        let hub = self.leader.workload.object;
        self.leader.raised = false;
        self.write(HubWorkload { quota: true, nominated: Some(cluster), ..hub });
        if !self.setting.slow_hub && self.store_on_hub() {
            self.see_hub();
            self.decide();
        }
    }

    /// Whether the leader may place the Workload on worker `a`.
    pub(crate) fn may_nominate_a(&self) -> bool {
        self.leader.issuer.is_open(&self.leases())
    }

    fn leases(&self) -> WorkerLeases<'_> {
        self.leader.leases(self.setting.fencing, self.timing)
    }

    fn own_stamp(&self) -> LeaseStamp {
        LeaseStamp { session: self.leader.record.object.session, term: self.leader.term }
    }

    fn create(&mut self, with_clone: bool) {
        self.leader.sent = true;
        let (term, epoch) = (self.leader.term, self.leader.workload.object.epoch);
        let own =
            |message: &Message| matches!(message, Message::Create { term: of, .. } if *of == term);
        // Clone and job are created together.
        if !self.flight.iter().any(own) {
            let stamp = self.on_wire(self.own_stamp());
            self.send(Message::Create { term, epoch, stamp, with_clone });
        }
    }

    fn send_about_copy(&mut self, message: impl FnOnce(u16) -> Message) {
        if let Some(copy) = self.leader.seen.copy {
            self.send(message(copy.version));
        }
    }

    /// One write of the Workload at a time, on the version that was seen.
    fn write(&mut self, object: HubWorkload) {
        let term = self.leader.term;
        let own = |message: &Message| matches!(message, Message::Workload(of, _) if *of == term);
        if !self.flight.iter().any(own) {
            let version = self.leader.workload.version;
            self.send(Message::Workload(term, Versioned { version, object }));
        }
    }

    /// What a message of a weakened protocol lacks.
    pub(crate) fn weaken(&self, mut grant: dispatch::HubGrant) -> dispatch::HubGrant {
        let stamp = self.on_wire(LeaseStamp { session: grant.session, term: grant.term });
        (grant.session, grant.term) = (stamp.session, stamp.term);
        if self.setting.weakened == Weakened::Echo {
            grant.echo.clone_from(&self.api.beat);
        }
        grant
    }
}

fn job_view(copy: &WorkerCopy) -> RemoteJob {
    RemoteJob {
        epoch: copy.epoch,
        history: CopyHistory::Known,
        active: copy.running,
        suspended: !copy.running && !copy.done,
        finished: copy.done,
        succeeded: copy.done,
        ..RemoteJob::default()
    }
}
