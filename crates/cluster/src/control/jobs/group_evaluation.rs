//! What a group of pods needs next.

use std::collections::HashSet;

use ::jobs::{
    GenericJob, JobObject, Pod,
    pods::{
        self,
        group::{self, GroupContext},
    },
    reconcile::{JobStep, ReconcileStep},
};
use jiff::Timestamp;
use runtime::watch::Key;

use super::{
    inputs::{JobInputs, JobsConfig, WorkloadEffect},
    refusals::Refusals,
    retention::{self, ends_at},
    role_requests::RoleRequests,
    steps::{StepTaker, Unit, release},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    key_map::KeyMap,
    outbox::{Target, Tracked},
    timers::Reevaluation,
};

/// Members that one evaluation deletes at most: nothing else is decided while their writes are made.
const MAX_EXPIRED: usize = 64;

/// The evaluation of one group.
pub(super) struct GroupEvaluation<'a> {
    pub(super) config: &'a JobsConfig,
    pub(super) jobs: &'a KeyMap<JobKey, Tracked<JobObject>>,
    pub(super) group: &'a Key,
    /// Its members that are this process's to start and stop.
    pub(super) managed: &'a [JobKey],
    pub(super) inputs: &'a JobInputs<'a>,
}

impl GroupEvaluation<'_> {
    /// Decides about the group. Returns what it means for its Workload.
    pub(super) fn run(
        &self,
        refused: &mut Refusals<Key>,
        held: &mut Refusals<JobKey>,
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        let members = self.members();
        let pods: Vec<&Pod> = members.iter().map(|member| member.pod).collect();
        let busy = self.busy(&members, ctx);
        self.wait(&pods, ctx);
        let mut steps = self.steps(&pods, &busy, ctx);
        if steps.is_empty() {
            steps = self.expire(&members, &pods, &busy, ctx);
        }
        refused.report_once(self.group, &mut steps, ctx.now);
        self.report_held_once(held, &mut steps, ctx.now);
        self.take(steps, &members, &pods, ctx)
    }

    /// Removes what was reported already about members that keep their gates.
    fn report_held_once(
        &self,
        held: &mut Refusals<JobKey>,
        steps: &mut Vec<ReconcileStep<JobObject>>,
        now: Timestamp,
    ) {
        let key_of = |pod: &str| {
            let namespace = self.group.namespace.clone();
            JobKey::new(pods::kind(), &Key { namespace, name: pod.into() })
        };
        steps.retain(|step| match step {
            ReconcileStep::ReportExcess { pod, message } => {
                held.record_report(&key_of(pod), message, now)
            }
            _ => true,
        });
    }

    /// The next steps.
    fn steps(
        &self,
        pods: &[&Pod],
        busy: &HashSet<&str>,
        ctx: &Context,
    ) -> Vec<ReconcileStep<JobObject>> {
        let record = self.inputs.workloads.get(self.group);
        let is_free = |pod: &Pod| !busy.contains(name_of(pod));
        let steps = self.role_requests().with(|comparison| {
            group::reconcile(GroupContext {
                group: &self.group.name,
                pods,
                workload: record.map(|record| &**record.object()),
                copied: &self.config.keys_to_copy,
                flavors: self.inputs.flavors,
                gates: self.config.gates,
                now: ctx.now,
                is_free: &is_free,
                comparison,
            })
        });
        steps.into_iter().map(|step| step.map(JobObject::from)).collect()
    }

    fn role_requests(&self) -> RoleRequests<'_> {
        let index = self.inputs.index;
        RoleRequests { index, kinds: &self.config.kinds, jobs: self.jobs }
    }

    /// Names of members that may not be written now. The group is evaluated again when they may.
    fn busy<'a>(&self, members: &[GroupMember<'a>], ctx: &mut Context) -> HashSet<&'a str> {
        let waiter = self.waiter();
        let mut is_busy = |member: &GroupMember<'_>| {
            !ctx.free_or_wait(&Target::job(member.key), &member.tracked.stamp(), &waiter)
        };
        let busy = members.iter().filter(|member| is_busy(member));
        busy.map(|member| name_of(member.pod)).collect()
    }

    /// Evaluates the group again when pods on a silent node count no longer.
    fn wait(&self, pods: &[&Pod], ctx: &mut Context) {
        let until = group::active_until(pods, ctx.now, self.config.gates);
        if let Some(until) = until.filter(|until| *until < Timestamp::MAX) {
            ctx.agenda.at(until, self.waiter());
        }
    }

    /// Deletes members that stay no longer, or waits for that time. A member that is deleted already needs no finalizer: no other one
    /// stands in for it. Returns the steps about those.
    fn expire(
        &self,
        members: &[GroupMember<'_>],
        pods: &[&Pod],
        busy: &HashSet<&str>,
        ctx: &mut Context,
    ) -> Vec<ReconcileStep<JobObject>> {
        let record = self.inputs.workloads.get(self.group);
        let retention = self.config.keeps_deactivated_for;
        let ends = record.zip(retention).and_then(|(one, kept)| ends_at(one.object(), kept));
        let Some(at) = ends.filter(|_| group::may_expire(pods, ctx.now, self.config.gates)) else {
            return Vec::new();
        };
        if at > ctx.now {
            ctx.agenda.at(at, self.waiter());
            return Vec::new();
        }
        // A member that is deleted and holds no finalizer of ours waits for another one.
        let is_open = |pod: &Pod| !pod.is_deleting() || pod.finalized().is_some();
        let free = members
            .iter()
            .filter(|member| !busy.contains(name_of(member.pod)) && is_open(member.pod));
        let (deleted, others): (Vec<_>, Vec<_>) =
            free.take(MAX_EXPIRED).partition(|member| member.pod.is_deleting());
        for GroupMember { key, tracked, .. } in others {
            retention::delete(key, tracked, ctx);
        }
        let finalized = deleted.into_iter().filter_map(|member| member.pod.finalized());
        finalized.map(|pod| ReconcileStep::Job(JobStep::Finalize(Box::new(pod.into())))).collect()
    }

    /// Takes the steps. Returns what they mean for the Workload.
    fn take(
        &self,
        steps: Vec<ReconcileStep<JobObject>>,
        members: &[GroupMember<'_>],
        pods: &[&Pod],
        ctx: &mut Context,
    ) -> Vec<(Key, WorkloadEffect)> {
        let gates = self.config.gates;
        // Without members no job can be written, but quota and finalizer of the Workload are still released.
        let member_of = |pod: &Pod| members.iter().find(|member| std::ptr::eq(member.pod, pod));
        let Some(oldest) = group::oldest(pods).and_then(member_of) else {
            return steps.iter().filter_map(|step| release(self.group, step)).collect();
        };
        let requests = self.role_requests();
        let unit = Unit {
            waiter: self.waiter(),
            first: oldest.tracked.object(),
            key: oldest.key,
            had: self.inputs.workloads.get(self.group).map(|record| &**record.object()),
            is_unaccounted: false,
            priority: &|| {
                requests.with(|all| group::priority_source(&self.group.name, pods, all, gates))
            },
            workload: &|_, priority| {
                let composed =
                    requests.with(|all| group::compose(&self.group.name, pods, all, gates));
                let composition = composed.ok()?;
                let copied = &self.config.keys_to_copy;
                group::group_workload(&self.group.name, &composition, priority, copied, gates)
            },
        };
        let taker = StepTaker {
            unit,
            jobs: self.jobs,
            inputs: self.inputs,
            gates,
            creates_workloads: self.config.creates_workloads,
        };
        steps.into_iter().filter_map(|step| taker.take(step, ctx)).collect()
    }

    /// The members, each looked up once: there may be thousands.
    fn members(&self) -> Vec<GroupMember<'_>> {
        let member = |key| {
            let tracked = self.jobs.get(key)?;
            Some(GroupMember { key, tracked, pod: tracked.object().as_pod()? })
        };
        self.managed.iter().filter_map(member).collect()
    }

    fn waiter(&self) -> Reevaluation {
        Reevaluation::PodGroup(self.group.clone())
    }
}

/// A member, as it was last observed.
struct GroupMember<'a> {
    key: &'a JobKey,
    tracked: &'a Tracked<JobObject>,
    pod: &'a Pod,
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata().name.as_deref().unwrap_or_default()
}
