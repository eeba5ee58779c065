//! Pods of elastic jobs: as many lose their gate as the admitted slice of their job grants (docs/reference/kueue.md §4.13).
//!
//! Inputs: Pods, reduced when they are decoded, and Workloads. Outputs: writes that take the gate off a pod. Pods of an earlier slice
//! count with the grant of a later one ([`ElasticChains`]).
//!
//! After its gate was taken off, a pod counts as started until it shows that, is gone, or the write is known to have had no effect. So
//! no share is given twice, however late the watch is.

mod slice_pod;

use std::sync::Arc;

use ::jobs::{
    elastic_ungater::{ElasticPod, pods_to_start},
    pods,
};
use crds::v1beta2::Workload;
use runtime::{watch::Key, write::Write, writer::WriteOutcome};
use serde_json::{Value, json};

use self::slice_pod::SlicePod;
pub use self::slice_pod::WatchedElasticPod;
use super::{
    context::Context,
    elastic_chains::ElasticChains,
    jobs::resource,
    key_map::KeyMap,
    key_set::KeySet,
    observed::{AnsweredObject, Observed},
    outbox::{Intent, Purpose, Settled, Stamp, Subject, Target, Ticket, version},
    timers::Reevaluation,
    workloads::{WorkloadChange, Workloads},
};

/// The gated pods of elastic jobs, by job.
#[derive(Debug, Default)]
pub(crate) struct ElasticPods {
    pods: KeyMap<Key, TrackedSlicePod>,
    /// Pods by the chain of their slice.
    by_chain: KeyMap<Key, KeySet<Key>>,
    chains: ElasticChains,
}

/// A pod as it was last observed.
#[derive(Debug)]
struct TrackedSlicePod {
    content: Arc<SlicePod>,
    version: u64,
    /// Its gate was taken off, which the pod does not show yet.
    released: bool,
}

impl TrackedSlicePod {
    fn stamp(&self) -> Stamp {
        Stamp { version: self.version, uid: self.content.uid.clone() }
    }
}

impl ElasticPods {
    /// Records a Pod; `None` if it is gone.
    pub(crate) fn observe_pod(
        &mut self,
        key: &Key,
        pod: Option<&Arc<Observed<WatchedElasticPod>>>,
        ctx: &mut Context,
    ) {
        let known = self.pods.get(key);
        let of_slice = pod.and_then(|pod| Some((pod.content().of_slice()?, version(&**pod))));
        let same = |one: &TrackedSlicePod, pod: &SlicePod| one.content.uid == pod.uid;
        if let (Some(known), Some((pod, version))) = (known, of_slice)
            && same(known, pod)
            && version <= known.version
        {
            return;
        }
        let tracked = of_slice.map(|(content, version)| {
            let released = known.is_some_and(|one| same(one, content) && one.released);
            let released = released && content.is_gated();
            TrackedSlicePod { content: Arc::clone(content), version, released }
        });
        let after = tracked.as_ref().map(|one| one.content.chain.clone());
        let before = match tracked {
            Some(tracked) => self.pods.insert(key.clone(), tracked),
            None => self.pods.remove(key),
        };
        let before = before.map(|one| one.content.chain.clone());
        if let Some(chain) = before.filter(|before| Some(before) != after.as_ref()) {
            self.by_chain.remove_member(&chain, key);
            ctx.agenda.now(Reevaluation::ElasticPods(chain));
        }
        if let Some(chain) = after {
            self.by_chain.entry(chain.clone()).or_default().insert(key.clone());
            ctx.agenda.now(Reevaluation::ElasticPods(chain));
        }
    }

    /// Takes a change of a Workload: its pods may start now.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, ctx: &mut Context) {
        if let Some(chain) = self.chains.workload_changed(change) {
            ctx.agenda.now(Reevaluation::ElasticPods(chain));
        }
    }

    /// Takes the gate off pods, as many as slices grant.
    pub(crate) fn ungate(&mut self, workloads: &Workloads, ctx: &mut Context) {
        for chain in ctx.agenda.take_elastic_pods() {
            let Some(slice) = self.chains.granting(&chain, workloads) else { continue };
            self.repeat(&chain, ctx);
            for pod in self.startable(&chain, slice) {
                // A pod that may not be written now starts when it may.
                if self.submit(&chain, &pod, ctx)
                    && let Some(pod) = self.pods.get_mut(&pod)
                {
                    pod.released = true;
                }
            }
        }
    }

    /// The slice of a chain that its pods start with.
    pub(crate) fn granting<'a>(
        &self,
        chain: &Key,
        workloads: &'a Workloads,
    ) -> Option<&'a Workload> {
        self.chains.granting(chain, workloads)
    }

    fn startable(&self, chain: &Key, slice: &Workload) -> Vec<Key> {
        let known: Vec<_> = self.of(chain).collect();
        let view: Vec<ElasticPod<'_>> = known
            .iter()
            .map(|(key, pod)| pod.content.for_ungater(&key.name, pod.released))
            .collect();
        pods_to_start(slice, &view).into_iter().map(|at| known[at].0.clone()).collect()
    }

    /// Repeats writes that may have had no effect.
    fn repeat(&self, chain: &Key, ctx: &mut Context) {
        let released = self.of(chain).filter(|(_, pod)| pod.released);
        for (key, _) in released {
            if !ctx.outbox.writes().is_in_flight(&target(key)) {
                self.submit(chain, key, ctx);
            }
        }
    }

    /// Submits the write of a pod. Returns false if it may not be written now; its chain is evaluated when it may.
    fn submit(&self, chain: &Key, key: &Key, ctx: &mut Context) -> bool {
        let Some(pod) = self.pods.get(key) else {
            return false;
        };
        let (target, base) = (target(key), pod.stamp());
        let waiter = Reevaluation::ElasticPods(chain.clone());
        if !ctx.free_or_wait(&target, &base, &waiter) {
            return false;
        }
        let patch = patch(pod);
        let intent = Intent { target, purpose: Purpose::UngateElastic, base, waiter };
        ctx.outbox.submit(intent, |purpose, key| {
            Write::of(purpose, &resource(pods::kind())).merge(key, None, &patch)
        })
    }

    /// Takes the answer to the write of a pod.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        settled: &Settled,
        ctx: &mut Context,
    ) {
        let key = &ticket.target.key;
        // The watch may have shown the end of the pod already, or a successor of its name.
        let Some(known) = self.pods.get_mut(key) else {
            return;
        };
        if !settled.is_of(known.content.uid.as_deref()) {
            return;
        }
        match AnsweredObject::of(answer) {
            AnsweredObject::Known(pod) => self.observe_pod(key, pod.as_ref(), ctx),
            // The share is free again.
            AnsweredObject::Unchanged => known.released = false,
            // The write may have had its effect.
            AnsweredObject::Unknown => {}
        }
    }

    /// Pods of a chain, in the order of their names.
    fn of(&self, chain: &Key) -> impl Iterator<Item = (&Key, &TrackedSlicePod)> {
        let keys = self.by_chain.get(chain).into_iter().flatten();
        keys.filter_map(|key| self.pods.get_key_value(key))
    }
}

/// Remaining gates. The version keeps the write from a pod that another leader has changed.
fn patch(pod: &TrackedSlicePod) -> Value {
    let others: Vec<Value> =
        pod.content.other_gates().map(|gate| json!({ "name": gate })).collect();
    let gates = if others.is_empty() { Value::Null } else { Value::Array(others) };
    json!({
        "metadata": { "uid": pod.content.uid, "resourceVersion": pod.version.to_string() },
        "spec": { "schedulingGates": gates },
    })
}

fn target(pod: &Key) -> Target {
    Target::home(Subject::Job(pods::kind().clone()), pod)
}
