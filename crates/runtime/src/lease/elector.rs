//! The task of leader election: performs the steps of the candidate and publishes its role.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time;

use super::{
    candidate::{FoundLease, LeaseCandidate, LeaseWrite},
    decide::{ElectionStep, LeaseTiming, LeaseTimingError},
    leadership::{Announcer, LeaderRole, Leadership, now},
    record::LeaseRecord,
};
use crate::{
    Stop,
    error_chain::describe,
    failpoint::{LEASE, with_failpoints},
};

/// The Lease of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
}

/// Why an election ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionEnd {
    /// The stop token was cancelled. The Lease was released if it was held.
    Stopped,
    /// Leadership was lost. State that was kept as leader is outdated: the process should end.
    Lost,
}

/// The outcome of a request.
#[derive(Debug)]
enum LeaseResponse {
    /// The Lease was written or read.
    Done,
    /// The Lease was written by another process since it was read.
    Stale,
    /// The request failed, and was logged. It may have been handled.
    Failed,
}

/// One candidate with its client.
pub struct Elector {
    api: Api<Lease>,
    name: LeaseName,
    timing: LeaseTiming,
    candidate: LeaseCandidate,
    /// The metadata of the Lease as last seen. Writes send it back.
    metadata: ObjectMeta,
    announcer: Announcer,
}

impl Elector {
    /// A candidate. No other process may have the same identity.
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
        let candidate = LeaseCandidate::new(identity, timing);
        let metadata = ObjectMeta::default();
        Ok((Self { api, name, timing, candidate, metadata, announcer }, leadership))
    }

    /// Competes until stopped, until leadership was gained and lost, or until the cluster was restored from a backup. The role
    /// `Following` is published before this returns and before the Lease is released. Stop the components that act as leader
    /// first, and this task after them.
    pub async fn run(mut self, stop: Stop) -> ElectionEnd {
        let ended = tokio::select! {
            () = self.compete() => ElectionEnd::Lost,
            () = stop.cancelled() => ElectionEnd::Stopped,
        };
        let was_leader = self.candidate.leads_until().is_some();
        // Leadership ends before the release: another process may lead from then on.
        self.candidate.stand_down();
        self.announcer.publish(LeaderRole::Following);
        let lease = &self.name.name;
        match ended {
            ElectionEnd::Lost if self.candidate.went_back() => {
                tracing::error!(%lease, "the resourceVersion of the lease is below an earlier one: the cluster was restored");
            }
            // The Lease is not released: it may have another holder already.
            ElectionEnd::Lost => {
                tracing::error!(%lease, holder = self.candidate.holder(), "lost the lease");
            }
            ElectionEnd::Stopped if was_leader => self.release().await,
            ElectionEnd::Stopped => {}
        }
        ended
    }

    /// Returns when leadership is lost, or the cluster was restored from a backup.
    async fn compete(&mut self) {
        loop {
            // A leader needs no read: its conditional writes fail once another process has written. After a restore no read changes
            // the outcome, and the work of the leader goes on until this returns.
            if self.candidate.leads_until().is_none() && !self.candidate.went_back() {
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
        let was_leader = self.candidate.leads_until().is_some();
        let answer = self.write(proposal).await;
        if let Some(until) = self.candidate.leads_until()
            // The answer may arrive after the end of the time that it confirms.
            && self.candidate.leads(now())
        {
            self.announcer.publish(LeaderRole::Leading { until });
            if !was_leader {
                tracing::info!(lease = %self.name.name, "acquired the lease");
            }
        }
        answer
    }

    /// After a conflict. A leader acts on the new record at once: either it has lost, or the other write was its own. A follower
    /// first pauses.
    async fn reread(&mut self) {
        let was_leader = self.candidate.leads_until().is_some();
        if matches!(self.read().await, LeaseResponse::Failed) || !was_leader {
            self.pause(ElectionStep::Renew).await;
        }
    }

    /// Sleeps until the next attempt: the retry period, or less if the leader's time ends before. No attempt follows a restore.
    async fn pause(&self, step: ElectionStep) {
        if self.candidate.went_back() {
            return;
        }
        let next = now() + self.timing.retry;
        let until = match (step, self.candidate.leads_until()) {
            (ElectionStep::Wait { until }, Some(_)) => until,
            (_, Some(end)) => next.min(end),
            // A follower reads after every retry period, to see changes early.
            (ElectionStep::Wait { until }, None) => next.min(until),
            (_, None) => next,
        };
        time::sleep_until(until.into()).await;
    }

    async fn read(&mut self) -> LeaseResponse {
        let request = self.api.get_opt(&self.name.name);
        let answered = time::timeout_at(self.request_deadline(now()).into(), request).await;
        match answered {
            Ok(Ok(lease)) => {
                let found = lease.map(|lease| self.remember(lease));
                self.candidate.observe(found, now());
                LeaseResponse::Done
            }
            Ok(Err(error)) => self.failed("read", &error),
            Err(_) => self.timed_out("read"),
        }
    }

    async fn write(&mut self, proposal: LeaseWrite) -> LeaseResponse {
        let sent = now();
        let creates = proposal.expects.is_none();
        let answered =
            time::timeout_at(self.request_deadline(sent).into(), self.send(proposal)).await;
        match answered {
            Ok(Ok(lease)) => {
                let found = self.remember(lease);
                self.candidate.confirm(found, sent);
                LeaseResponse::Done
            }
            // 404: the Lease was deleted. 409: it was written or created by another process. A 404 to a create is about the
            // namespace, and the next create would meet it as well: it is a failure, which is followed by a pause.
            Ok(Err(kube::Error::Api(status)))
                if status.code == 409 || status.code == 404 && !creates =>
            {
                tracing::debug!(lease = %self.name.name, message = %status.message, "stale");
                LeaseResponse::Stale
            }
            Ok(Err(error)) => self.failed("write", &error),
            Err(_) => self.timed_out("write"),
        }
    }

    fn send(&self, proposal: LeaseWrite) -> impl Future<Output = kube::Result<Lease>> + use<> {
        let exists = proposal.expects.is_some();
        let name = self.name.clone();
        let metadata = if exists {
            ObjectMeta { resource_version: proposal.expects, ..self.metadata.clone() }
        } else {
            ObjectMeta {
                name: Some(name.name.clone()),
                namespace: Some(name.namespace),
                ..ObjectMeta::default()
            }
        };
        let (api, lease) = (self.api.clone(), proposal.record.write(metadata));
        async move {
            let params = PostParams::default();
            if exists {
                with_failpoints(LEASE, api.replace(&name.name, &params, &lease)).await
            } else {
                with_failpoints(LEASE, api.create(&params, &lease)).await
            }
        }
    }

    /// The deadline of a request: half of the renew deadline, and not after the end of the leader's time.
    fn request_deadline(&self, sent: Instant) -> Instant {
        // Half of it leaves time for a second attempt.
        let request_deadline = sent + self.timing.renew_deadline / 2;
        self.candidate.leads_until().map_or(request_deadline, |until| request_deadline.min(until))
    }

    fn remember(&mut self, lease: Lease) -> FoundLease {
        let record = LeaseRecord::read(&lease);
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        self.metadata = ObjectMeta { managed_fields: None, ..lease.metadata };
        FoundLease { record, version }
    }

    /// Releases the Lease. Errors are only logged, because the Lease expires anyway.
    async fn release(&mut self) {
        // The second attempt follows a renewal that was in flight when the stop came.
        for _ in 0..2 {
            let Some(proposal) = self.candidate.propose_release(Timestamp::now()) else {
                return;
            };
            let limit = self.timing.retry.max(Duration::from_secs(1));
            match time::timeout(limit, self.send(proposal)).await {
                Ok(Ok(_)) => {
                    tracing::info!(lease = %self.name.name, "released the lease");
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
                    self.timed_out("release");
                    return;
                }
            }
        }
    }

    fn failed(&self, operation: &str, error: &kube::Error) -> LeaseResponse {
        let LeaseName { namespace, name } = &self.name;
        let error = describe(error);
        tracing::warn!(%namespace, lease = %name, operation, %error, "a request for the lease failed");
        LeaseResponse::Failed
    }

    fn timed_out(&self, operation: &str) -> LeaseResponse {
        let LeaseName { namespace, name } = &self.name;
        tracing::warn!(%namespace, lease = %name, operation, "a request for the lease timed out");
        LeaseResponse::Failed
    }
}
