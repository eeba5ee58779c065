//! The manager's half of the leases under ExactlyOnce: which worker gets grants, and which lost worker is fenced.
//!
//! Inputs: the Leases of workers, their connections, the record on each MultiKueueCluster. Outputs: the hub Lease on a worker, the
//! record, and the [`LeaseState`] that dispatch decides by. The rules are [`dispatch::GrantIssuer`]'s
//! (docs/reference/dispatch.md §7-8).

use crds::names::AGENT_LEASE;
use dispatch::{
    FenceRecord, Fencing, Fleet, GrantIssuer, GrantTiming, IssuerStep, LeasePolicy, LeaseStamp,
    WorkerLeases, workload::RemoteLease,
};
use engine::Time;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

use super::lease_state::LeaseState;
use crate::control::{
    change::for_each_object,
    context::Context,
    fleet::FleetRegistry,
    key_map::KeyMap,
    lease_objects::{beat_of, grant_fields, grant_of, hub_lease, submit},
    outbox::{Intent, Purpose, Subject, Target, Tracked, answer_single, upsert_single},
    time::{engine_time, signed_nanos, timestamp},
    timers::Reevaluation,
    workloads::Workloads,
};

/// The leases of a worker that no policy asks for any more: its work runs on under them.
const FORMER_POLICY: LeasePolicy = LeasePolicy::DEFAULT;

/// What leases are configured with.
#[derive(Clone, Copy)]
pub(crate) struct LeaseSettings<'a> {
    pub(crate) origin: &'a str,
    /// The namespace of the Leases.
    pub(crate) namespace: &'a str,
    /// `workerLostTimeout`, in nanoseconds.
    pub(crate) lost_after: i64,
    /// The term of this leader.
    pub(crate) term: u64,
}

/// What the leases of all workers are decided with.
pub(crate) struct LeaseContext<'a> {
    pub(crate) settings: LeaseSettings<'a>,
    pub(crate) workloads: &'a Workloads,
    pub(crate) registry: &'a mut FleetRegistry,
    pub(crate) fleet: &'a mut Fleet,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    workers: KeyMap<Box<str>, WorkerGrants>,
}

#[derive(Debug, Default)]
struct WorkerGrants {
    /// With its term.
    issuer: Option<(u64, GrantIssuer)>,
    beat: Option<Tracked<Lease>>,
    grant: Option<Tracked<Lease>>,
    /// They were listed over the present connection.
    listed: bool,
    /// A confirmation that was there while the worker was reached says nothing about its next loss.
    void_confirmation: bool,
    state: LeaseState,
}

/// What the leases of one worker are decided by, beside its objects.
struct LeaseInputs<'a> {
    name: &'a str,
    /// Since when it is not reached.
    lost_since: Option<Timestamp>,
    record: FenceRecord,
    confirmation: Option<u64>,
    policy: LeasePolicy,
    /// `workerLostTimeout`, in nanoseconds, or what the policy says instead.
    lost_after: i64,
    settings: LeaseSettings<'a>,
}

impl Grants {
    /// The leases of a worker; without any nothing is open and nothing fenced.
    pub(crate) fn state(&self, name: &str) -> LeaseState {
        self.workers.get(name).map(|worker| worker.state).unwrap_or_default()
    }

    /// Records a change of the Leases of a worker. `own` is the Lease of this manager there; those of other managers do not count.
    pub(crate) fn observe(
        &mut self,
        name: &str,
        change: Change<Lease>,
        own: &Key,
        ctx: &mut Context,
    ) {
        let worker = self.workers.entry(name.into()).or_default();
        if let Change::Unavailable { .. } = change {
            worker.listed = false;
        } else if change.is_list() {
            // A further list over the same connection names only what differs and what is gone.
            worker.listed = true;
        }
        for_each_object(change, |key, object| {
            if &*key.name == AGENT_LEASE {
                upsert_single(&mut worker.beat, object);
            } else if key == *own {
                upsert_single(&mut worker.grant, object);
            }
        });
        ctx.agenda.at(ctx.now, Reevaluation::Grants);
    }

    /// A worker was connected or disconnected: its Leases are listed again. The first list of a connection does not name what is gone.
    pub(crate) fn connection_changed(&mut self, name: &str) {
        if let Some(worker) = self.workers.get_mut(name) {
            (worker.beat, worker.grant, worker.listed) = (None, None, false);
        }
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        let by = signed_nanos(by);
        self.workers.for_each_mut(|_, worker| {
            // `state` follows from the rest at each decision.
            let WorkerGrants {
                issuer,
                beat: _,
                grant: _,
                listed: _,
                void_confirmation: _,
                state: _,
            } = worker;
            if let Some((_, issuer)) = issuer {
                issuer.clock_jumped(by);
            }
        });
    }

    /// Takes the answer to a write of the hub Lease.
    pub(crate) fn answered(&mut self, name: &str, purpose: Purpose, answer: WriteOutcome) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        if let Some((_, issuer)) = &mut worker.issuer {
            issuer.answered();
        }
        answer_single(&mut worker.grant, purpose == Purpose::GrantCreate, answer);
    }

    /// Decides about the leases of every worker that has them. `lost_since` says since when a worker is not reached, where it is lost
    /// after so many nanoseconds. Returns the workers of which they have changed.
    pub(crate) fn evaluate(
        &mut self,
        inputs: LeaseContext<'_>,
        lost_since: impl Fn(&str, i64) -> Option<Timestamp>,
        ctx: &mut Context,
    ) -> Vec<Box<str>> {
        let LeaseContext { settings, workloads, registry, fleet } = inputs;
        let mut changed = Vec::new();
        for name in registry.leased_clusters(workloads, fleet) {
            // Without a registration there is no record either, and each registration interns its name.
            let Some(id) = fleet.find(&name) else {
                continue;
            };
            let policy = fleet.lease_policy(id).unwrap_or(FORMER_POLICY);
            let lost_after = policy.lost_after.unwrap_or(settings.lost_after);
            let inputs = LeaseInputs {
                name: &name,
                lost_since: lost_since(&name, lost_after),
                record: registry.fence_record(&name).unwrap_or_default(),
                confirmation: registry.fence_confirmation(&name),
                policy,
                lost_after,
                settings,
            };
            let worker = self.workers.entry(name.clone()).or_default();
            let before = worker.state;
            worker.evaluate(&inputs, registry, ctx);
            let state = worker.state;
            fleet.set_leases_open(id, state.lease.open);
            if state != before {
                changed.push(name);
            }
        }
        changed
    }
}

impl WorkerGrants {
    fn evaluate(
        &mut self,
        inputs: &LeaseInputs<'_>,
        registry: &mut FleetRegistry,
        ctx: &mut Context,
    ) {
        let reached = inputs.lost_since.is_none();
        // Without its Leases a worker that is reached gets nothing, and is not lost either.
        if reached && !self.listed {
            self.state = LeaseState::default();
            return;
        }
        self.void_confirmation &= inputs.confirmation.is_some();
        let (beat, grant) = (
            self.beat.as_ref().and_then(|one| beat_of(one.object())),
            self.grant.as_ref().and_then(|one| grant_of(one.object())),
        );
        let lost_at = inputs
            .lost_since
            .map(|since| timestamp(Time(engine_time(since).0.saturating_add(inputs.lost_after))));
        let leases = WorkerLeases {
            record: inputs.record,
            reached,
            lost: lost_at.is_some_and(|at| at <= ctx.now),
            confirmed: !self.void_confirmation
                && inputs.confirmation == Some(inputs.record.session),
            fencing: inputs.policy.fencing,
            timing: GrantTiming { duration: inputs.policy.duration },
            beat: beat.as_ref(),
            grant: grant.as_ref(),
        };
        if let Some(at) = lost_at.filter(|at| *at > ctx.now) {
            ctx.agenda.at(at, Reevaluation::Grants);
        }
        let now = engine_time(ctx.now);
        let (term, mut issuer) = match self.issuer.take() {
            Some((term, issuer)) if term == inputs.settings.term => (term, issuer),
            _ => (inputs.settings.term, GrantIssuer::new(inputs.settings.term, now)),
        };
        self.decide(&mut issuer, inputs, &leases, registry, ctx);
        let awaits_fence = leases.lost && inputs.record.term > 0 && !issuer.is_fenced(&leases, now);
        let is_timed = awaits_fence && inputs.policy.fencing == Fencing::Timed;
        self.state = LeaseState {
            lease: RemoteLease {
                open: issuer.is_open(&leases),
                fenced: issuer.is_fenced(&leases, now),
            },
            writes: issuer.writes(&leases),
            stamp: LeaseStamp { session: inputs.record.session, term: inputs.settings.term },
            awaits_fence,
            fenced_at: is_timed.then(|| issuer.fenced_at(&leases)),
        };
        self.issuer = Some((term, issuer));
    }

    fn decide(
        &mut self,
        issuer: &mut GrantIssuer,
        inputs: &LeaseInputs<'_>,
        leases: &WorkerLeases<'_>,
        registry: &mut FleetRegistry,
        ctx: &mut Context,
    ) {
        let name = inputs.name;
        if leases.reached && inputs.confirmation.is_some() {
            self.void_confirmation = true;
            registry.write_fence_record(name, inputs.record, ctx);
        }
        let key = hub_lease(inputs.settings.namespace, inputs.settings.origin);
        let target = Target::worker(name, Subject::Lease, &key);
        let intent = intent(target, self.grant.as_ref());
        let free = ctx.free_or_wait(&intent.target, &intent.base, &intent.waiter);
        // A grant counts from its attempt, so none is decided that cannot be sent now.
        if leases.reached && !free {
            return;
        }
        match issuer.decide(leases, engine_time(ctx.now)) {
            Some(IssuerStep::Claim(record) | IssuerStep::EndSession(record)) => {
                registry.write_fence_record(name, record, ctx);
            }
            Some(IssuerStep::Issue(grant)) => {
                let sent = submit(intent, self.grant.as_ref(), grant_fields(&grant), ctx);
                if !sent {
                    issuer.answered();
                }
            }
            Some(IssuerStep::WaitUntil(at)) => {
                ctx.agenda.at(timestamp(at), Reevaluation::Grants);
            }
            None => {}
        }
    }
}

fn intent(target: Target, known: Option<&Tracked<Lease>>) -> Intent {
    let purpose = if known.is_some() { Purpose::Grant } else { Purpose::GrantCreate };
    let base = known.map(Tracked::stamp).unwrap_or_default();
    Intent { target, purpose, base, waiter: Reevaluation::Grants }
}
