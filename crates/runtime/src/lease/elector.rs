//! The election as a task: the candidate's steps turned into requests, and its role told to others.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time;

use super::{
    candidate::{Candidate, FoundLease, LeaseWrite},
    decide::{ElectionStep, LeaseTiming, LeaseTimingError},
    leadership::{Announcer, LeaderRole, Leadership, now},
    record::LeaseRecord,
};
use crate::{
    Stop,
    failpoint::{LEASE, around},
};

/// Which lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why the election ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionEnd {
    /// It was asked to; the lease, if held, was given back.
    Stopped,
    /// It led and could not go on. State that was kept as leader is worth nothing now: the process should end.
    Lost,
}

/// What came of a request.
#[derive(Debug)]
enum LeaseResponse {
    /// The lease was written, or read.
    Done,
    /// Somebody wrote it since it was read.
    Stale,
    /// Nobody knows; it was logged.
    Failed,
}

/// One candidate and its connection.
pub struct Elector {
    api: Api<Lease>,
    name: LeaseName,
    timing: LeaseTiming,
    candidate: Candidate,
    /// What the object had besides its record when it was last seen; it is written back.
    metadata: ObjectMeta,
    announcer: Announcer,
}

impl Elector {
    /// A candidate of this identity, which must be no other process's.
    ///
    /// # Errors
    /// If the timing would allow two leaders.
    pub fn new(
        client: Client,
        name: LeaseName,
        identity: String,
        timing: LeaseTiming,
    ) -> Result<(Self, Leadership), LeaseTimingError> {
        timing.check()?;
        let api = Api::namespaced(client, &name.namespace);
        let (announcer, leadership) = Announcer::new();
        let candidate = Candidate::new(identity, timing);
        let metadata = ObjectMeta::default();
        Ok((Self { api, name, timing, candidate, metadata, announcer }, leadership))
    }

    /// Competes until stopped, or until leadership was won and lost. Listeners hear of the end before it is returned, and
    /// before the lease is given back; still, stop what acts as leader first, and this after it.
    pub async fn run(mut self, stop: Stop) -> ElectionEnd {
        let ended = tokio::select! {
            () = self.compete() => ElectionEnd::Lost,
            () = stop.cancelled() => ElectionEnd::Stopped,
        };
        let led = self.candidate.leads_until().is_some();
        self.candidate.stand_down();
        self.announcer.tell(LeaderRole::Following);
        let lease = &self.name.name;
        match ended {
            ElectionEnd::Lost => {
                tracing::error!(%lease, holder = self.candidate.holder(), "lost the lease");
            }
            ElectionEnd::Stopped if led => self.release().await,
            ElectionEnd::Stopped => {}
        }
        ended
    }

    /// Returns when leadership is lost.
    async fn compete(&mut self) {
        loop {
            if self.candidate.leads_until().is_none() {
                self.read().await;
            }
            let step = self.candidate.step(now());
            let answer = match step {
                ElectionStep::Lost => return,
                ElectionStep::Wait { .. } => LeaseResponse::Done,
                ElectionStep::Acquire | ElectionStep::Renew => self.advance().await,
            };
            match answer {
                LeaseResponse::Stale => self.reread().await,
                LeaseResponse::Done | LeaseResponse::Failed => self.pause(step).await,
            }
        }
    }

    /// One write to get or keep the lease.
    async fn advance(&mut self) -> LeaseResponse {
        let proposal = self.candidate.propose(Timestamp::now());
        let led = self.candidate.leads_until().is_some();
        let answer = self.write(proposal).await;
        if let Some(until) = self.candidate.leads_until()
            && self.candidate.leads(now())
        {
            self.announcer.tell(LeaderRole::Leading { until });
            if !led {
                tracing::info!(lease = %self.name.name, "got the lease");
            }
        }
        answer
    }

    /// After a conflict. A leader acts on what it reads at once: either it has lost, or the other write was its own. A
    /// follower has been overtaken, and has time.
    async fn reread(&mut self) {
        let led = self.candidate.leads_until().is_some();
        if matches!(self.read().await, LeaseResponse::Failed) || !led {
            self.pause(ElectionStep::Renew).await;
        }
    }

    /// Until the next attempt: a pause, shorter if a leader's time ends before.
    async fn pause(&self, step: ElectionStep) {
        let next = now() + self.timing.retry;
        let until = match (step, self.candidate.leads_until()) {
            (ElectionStep::Wait { until }, Some(_)) => until,
            (_, Some(end)) => next.min(end),
            // A follower reads at every pause, so as to see each change soon.
            (ElectionStep::Wait { until }, None) => next.min(until),
            (_, None) => next,
        };
        time::sleep_until(until.into()).await;
    }

    async fn read(&mut self) -> LeaseResponse {
        let request = self.api.get_opt(&self.name.name);
        let answered = time::timeout_at(self.patience(now()).into(), request).await;
        match answered {
            Ok(Ok(lease)) => {
                let found = lease.map(|lease| self.remember(lease));
                self.candidate.saw(found, now());
                LeaseResponse::Done
            }
            Ok(Err(error)) => self.failed("read", &error),
            Err(_) => self.late("read"),
        }
    }

    async fn write(&mut self, proposal: LeaseWrite) -> LeaseResponse {
        let sent = now();
        let answered = time::timeout_at(self.patience(sent).into(), self.send(proposal)).await;
        match answered {
            Ok(Ok(lease)) => {
                let found = self.remember(lease);
                self.candidate.wrote(found, sent);
                LeaseResponse::Done
            }
            // 404: it was deleted; 409: it was written, or created.
            Ok(Err(kube::Error::Api(status))) if [404, 409].contains(&status.code) => {
                tracing::debug!(lease = %self.name.name, message = %status.message, "stale");
                LeaseResponse::Stale
            }
            Ok(Err(error)) => self.failed("write", &error),
            Err(_) => self.late("write"),
        }
    }

    fn send(&self, proposal: LeaseWrite) -> impl Future<Output = kube::Result<Lease>> + use<> {
        let exists = proposal.expects.is_some();
        let name = self.name.clone();
        let metadata = match exists {
            true => ObjectMeta { resource_version: proposal.expects, ..self.metadata.clone() },
            false => ObjectMeta {
                name: Some(name.name.clone()),
                namespace: Some(name.namespace),
                ..ObjectMeta::default()
            },
        };
        let (api, lease) = (self.api.clone(), proposal.record.write(metadata));
        async move {
            let params = PostParams::default();
            match exists {
                true => around(LEASE, api.replace(&name.name, &params, &lease)).await,
                false => around(LEASE, api.create(&params, &lease)).await,
            }
        }
    }

    /// Until when to wait for an answer: half of the renew deadline, and not beyond a leader's time.
    fn patience(&self, sent: Instant) -> Instant {
        let patience = sent + self.timing.renew_deadline / 2;
        self.candidate.leads_until().map_or(patience, |until| patience.min(until))
    }

    fn remember(&mut self, lease: Lease) -> FoundLease {
        let record = LeaseRecord::read(&lease);
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        self.metadata = ObjectMeta { managed_fields: None, ..lease.metadata };
        FoundLease { record, version }
    }

    /// Gives the lease back. What goes wrong is only logged: the lease runs out by itself.
    async fn release(&mut self) {
        // The second attempt is for a renewal that was under way when the stop came.
        for _ in 0..2 {
            let Some(proposal) = self.candidate.propose_release(Timestamp::now()) else {
                return;
            };
            let limit = self.timing.retry.max(Duration::from_secs(1));
            match time::timeout(limit, self.send(proposal)).await {
                Ok(Ok(_)) => {
                    tracing::info!(lease = %self.name.name, "gave the lease back");
                    return;
                }
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                    self.read().await;
                }
                Ok(Err(error)) => {
                    self.failed("release", &error);
                    return;
                }
                Err(_) => {
                    self.late("release");
                    return;
                }
            }
        }
    }

    fn failed(&self, operation: &str, error: &kube::Error) -> LeaseResponse {
        let LeaseName { namespace, name } = &self.name;
        tracing::warn!(%namespace, lease = %name, operation, %error, "the lease does not answer");
        LeaseResponse::Failed
    }

    fn late(&self, operation: &str) -> LeaseResponse {
        let LeaseName { namespace, name } = &self.name;
        tracing::warn!(%namespace, lease = %name, operation, "no answer in time");
        LeaseResponse::Failed
    }
}
