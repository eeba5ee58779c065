//! Topology-aware scheduling in the cluster of a manager: its nodes, what other pods take of them, and the pods that wait for
//! their domain (docs/reference/kueue.md §4.11).
//!
//! Inputs: Nodes and Pods, reduced when they are decoded, and Workloads. Outputs: nodes for the engine, writes that take the
//! topology gate off a pod, and the nodes that failed under a Workload.
//!
//! All pods of a chain of workload slices count with its granting slice, whichever slice they name: they keep their domains when a
//! later slice takes over ([`ElasticChains`]).
//!
//! | file | concept |
//! |---|---|
//! | `watched_node`, `watched_pod` | a Node and a Pod, as far as they matter |
//! | `availability` | whether nodes and pods can be observed |
//! | `foreign_usage` | what pods take of each node for which no topology assignment accounts |
//! | `leaving_period` | for how long a deleted pod counts as one that leaves its node |
//! | `unreserved_pods` | pods of Workloads without a reservation, which are among these until they end |
//! | `topology_pods` | pods with a topology assignment, by Workload; domains that were given and are not visible yet |
//! | `ungating` | gated pods get their domain, in one write each |
//! | `node_health` | which nodes failed under a Workload |
//! | `keyed_workload` | a Workload with the key of its pods |
//! | `unbindable_pods` | pods that wait for a node that takes them no more |

mod availability;
mod foreign_usage;
mod keyed_workload;
mod leaving_period;
mod node_health;
mod topology_pods;
mod unbindable_pods;
mod ungating;
mod unreserved_pods;
mod watched_node;
mod watched_pod;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::jobs::admitted_infos::AssignedFlavors;
use crds::v1beta2::Workload;
use index::status::assigned_nodes;
use jiff::Timestamp;
use runtime::{
    watch::{Change, Key},
    writer::WriteOutcome,
};

pub(crate) use self::{keyed_workload::KeyedWorkload, node_health::NodeReplacementGates};
pub use self::{watched_node::WatchedNode, watched_pod::WatchedPod};

use self::{
    availability::Availability,
    foreign_usage::{ChargedPod, ForeignUsage},
    node_health::{AssignedNodes, NodeHealth, WorkloadOnNode},
    topology_pods::{TopologyPods, TrackedPod},
    unreserved_pods::{UnreservedPods, holds_reservation},
};
use super::{
    context::Context,
    elastic_chains::{ElasticChains, name_in_pods, names_in_pods},
    observed::{AnsweredObject, Observed},
    outbox::{Settled, Ticket},
    scheduling::Scheduler,
    timers::Reevaluation,
    workloads::{WorkloadChange, Workloads},
};

/// The nodes and pods of the manager's own cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterTopology {
    gates: NodeReplacementGates,
    usage: ForeignUsage,
    pods: TopologyPods,
    chains: ElasticChains,
    unreserved: UnreservedPods,
    availability: Availability,
    /// Hostnames of nodes that may have failed or recovered since the last decision.
    suspects: BTreeSet<Box<str>>,
    /// The nodes of every Workload may have: nodes or pods can be observed again, or a flavor changed.
    all_suspect: bool,
}

impl ClusterTopology {
    pub(crate) fn new(gates: NodeReplacementGates) -> Self {
        Self { gates, ..Self::default() }
    }

    /// Records whether nodes can be observed.
    pub(crate) fn observe_nodes(&mut self, change: &Change<Observed<WatchedNode>>) {
        self.all_suspect |= self.availability.observe_nodes(change);
    }

    /// Records that a flavor changed: its tolerations say which nodes fail.
    pub(crate) fn flavor_changed(&mut self) {
        self.all_suspect |= self.gates.enabled();
    }

    /// Records whether pods can be observed. Returns what changed for certain.
    pub(crate) fn observe_pods(
        &mut self,
        change: Change<Observed<WatchedPod>>,
    ) -> Change<Observed<WatchedPod>> {
        let (change, again) = self.availability.observe_pods(change);
        self.all_suspect |= again;
        change
    }

    /// Records a Node; `None` if it is gone.
    pub(crate) fn observe_node(&mut self, name: &str, node: Option<&WatchedNode>) {
        // Labels say which domains a node is in.
        let before = self.usage.node(name).map(|node| &node.info.labels);
        if before != node.map(|node| &node.info.labels) {
            self.unreserved.domains_changed();
        }
        let suspects = self.usage.set_node(name, node);
        if self.gates.enabled() {
            self.suspects.extend(suspects);
        }
    }

    /// Records a Pod; `None` if it is gone.
    pub(crate) fn observe_pod(
        &mut self,
        key: &Key,
        pod: Option<&Arc<Observed<WatchedPod>>>,
        ctx: &mut Context,
    ) {
        let assigned = pod.and_then(TrackedPod::of);
        // A pod that ends or goes, or cannot be bound, may be the last sign of a failed node.
        let runs = assigned.as_ref().is_some_and(TrackedPod::runs);
        let matters = self.gates.enabled() && !runs;
        let ran_for = self.usage.workload_of(key).cloned();
        for name in self.set_pod(key, pod.map(|pod| pod.content()), assigned) {
            if matters {
                self.reevaluate(&name, ctx);
            }
            ctx.agenda.now(Reevaluation::Ungating(name));
        }
        let ended = ran_for.filter(|name| self.usage.workload_of(key) != Some(name));
        if let Some(name) = ended.filter(|_| self.gates.enabled()) {
            self.reevaluate(&name, ctx);
        }
    }

    /// Evaluates the Workloads that pods have this name of.
    fn reevaluate(&self, name: &Key, ctx: &mut Context) {
        let members = self.chains.slices(name).chain(self.unreserved.variants_of(name));
        for member in members.chain([name]) {
            ctx.agenda.now(Reevaluation::Workload(member.clone()));
        }
    }

    /// Sets a pod, and what it takes of its node: of a bound pod of a Workload before the next cycle, of any other at once.
    fn set_pod(
        &mut self,
        key: &Key,
        content: Option<&WatchedPod>,
        assigned: Option<TrackedPod>,
    ) -> Vec<Key> {
        let Self { pods, unreserved, .. } = self;
        let before = pods.get(key).map(|pod| Arc::clone(pod.content()));
        let concerned = pods.set(key, assigned);
        let after = pods.get(key).map(|pod| &**pod.content());
        unreserved.pod_changed(key, (before.as_deref(), after), pods);
        if after.is_none_or(|after| after.usage.is_none()) {
            let charged = content.and_then(WatchedPod::foreign).cloned().map(|pod| ChargedPod {
                usage: pod.usage,
                leaves: false,
                runs_for: pod.runs_for,
            });
            self.usage.set_pod(key, charged);
        }
        concerned
    }

    /// Marks the pods of Workloads that the engine may have given a reservation, or taken one from.
    pub(crate) fn reservations_may_differ<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a Key>,
        workloads: &Workloads,
        scheduler: &Scheduler,
    ) {
        for (key, record) in keys.into_iter().filter_map(|key| workloads.get_key_value(key)) {
            let reserves = holds_reservation(record, scheduler);
            let of_workload = KeyedWorkload { key, workload: record.object() };
            self.unreserved.reservation_may_differ(of_workload, reserves, &self.pods);
        }
    }

    /// Whether nodes change for the engine when it reserves quota for a Workload: it accounts for its pods then.
    pub(crate) fn charges_pods_of(&self, key: &Key, workload: &Workload) -> bool {
        self.unreserved.charges_pods_of(key, workload)
    }

    /// Gives the engine the nodes that changed, from the time at which it is known what pods take of them.
    pub(crate) fn update_engine(
        &mut self,
        workloads: &Workloads,
        scheduler: &mut Scheduler,
        ctx: &mut Context,
    ) {
        let Self { unreserved, pods, usage, chains, .. } = self;
        unreserved.charge(pods, usage, chains, (workloads, scheduler), ctx);
        if !self.availability.shows_usage() {
            return;
        }
        self.usage.for_each_changed(|name, node| {
            scheduler.update(&mut ctx.agenda, |index, names| index.node(names, name, node));
        });
    }

    /// Evaluates the Workloads with pods on nodes that may have failed or recovered.
    pub(crate) fn evaluate_suspects(&mut self, workloads: &Workloads, ctx: &mut Context) {
        let suspects = std::mem::take(&mut self.suspects);
        let all = std::mem::take(&mut self.all_suspect);
        if suspects.is_empty() && !all {
            return;
        }
        let concerned = |workload: &Workload| {
            let on_suspect = || {
                let mut nodes = assigned_nodes(&workload.status).into_iter();
                nodes.any(|node| suspects.contains(&*node))
            };
            if all { has_topology(workload) } else { on_suspect() }
        };
        for key in workloads.select(concerned) {
            // Gated pods get no domain on a node that fails; they may get it when the node has recovered.
            let workload = workloads.get(&key).map(|record| name_in_pods(&key, record.object()));
            workload.into_iter().for_each(|name| ctx.agenda.now(Reevaluation::Ungating(name)));
            ctx.agenda.now(Reevaluation::Workload(key));
        }
    }

    /// The nodes that failed under a Workload and are to be replaced; `None` if it has no pods on nodes of a topology. Ends its
    /// pods that no node takes.
    pub(crate) fn failed_nodes(
        &self,
        keyed: KeyedWorkload<'_>,
        workloads: &Workloads,
        flavors: AssignedFlavors<'_>,
        ctx: &mut Context,
    ) -> Option<Vec<String>> {
        let KeyedWorkload { key, workload } = keyed;
        // The pods of a slice that another one has replaced are those of the other one, and wait for its nodes.
        let current = self.chains.workload_of_pods(&name_in_pods(key, workload), workloads)?;
        if current.metadata.name.as_deref() != Some(&*key.name) {
            return None;
        }
        let (nodes, failing) = self.failing_nodes(keyed, flavors, ctx.now)?;
        let unbindable = self.unbindable_nodes(workload, &failing);
        self.terminate_unbindable(keyed, &nodes, &unbindable, ctx);
        if self.gates.keeps_nodes(workload) {
            return Some(Vec::new());
        }
        for health in failing.values() {
            if let NodeHealth::FailingUntil(at) | NodeHealth::HealthyUntil(Reverse(at)) = health {
                ctx.agenda.at(*at, Reevaluation::Workload(key.clone()));
            }
        }
        let failed =
            failing.into_iter().filter(|(node, health)| counts_as_failed(workload, node, *health));
        Some(failed.map(|(node, _)| node).collect())
    }

    /// The nodes that a Workload has pods on, and those of them that are not healthy for ever, by hostname.
    fn failing_nodes(
        &self,
        KeyedWorkload { key, workload }: KeyedWorkload<'_>,
        flavors: AssignedFlavors<'_>,
        now: Timestamp,
    ) -> Option<(AssignedNodes, BTreeMap<String, NodeHealth>)> {
        let observed = self.availability.is_complete();
        if !self.gates.enabled() || !observed || !workload.runs() || !has_topology(workload) {
            return None;
        }
        let nodes = AssignedNodes::of(workload, flavors);
        let names: Vec<Key> = names_in_pods(key, workload).collect();
        let running: BTreeSet<&str> =
            names.iter().flat_map(|name| self.nodes_with_running_pods(name)).collect();
        let health = |(hostname, pod_sets): (&String, &Vec<usize>)| {
            let health = self.usage.on_host(hostname).map(|(name, node)| {
                let pods = WorkloadOnNode {
                    tolerations: nodes.tolerations(pod_sets),
                    run: running.contains(name),
                    admitted_at: workload.status.started_at(),
                };
                self.gates.health(node, &pods, now)
            });
            // Where several nodes have the label, pods may be bound to each of them.
            (hostname.clone(), health.min().unwrap_or(NodeHealth::Failed))
        };
        let all = nodes.by_hostname.iter().map(health);
        let failing = all.filter(|(_, health)| *health != NodeHealth::Healthy).collect();
        Some((nodes, failing))
    }

    /// Names of nodes where pods with this name of their Workload run.
    fn nodes_with_running_pods(&self, name: &Key) -> impl Iterator<Item = &str> {
        let running = self.pods.of(name).map(|one| one.pod).filter(|pod| pod.runs());
        // Pods name their node by its name, the assignment by its hostname label.
        let on_nodes = running.filter_map(|pod| pod.content().node());
        on_nodes.chain(self.usage.nodes_of(name))
    }

    /// The nodes, by hostname, on which waiting pods of a Workload end.
    fn unbindable_nodes<'a>(
        &self,
        workload: &Workload,
        failing: &'a BTreeMap<String, NodeHealth>,
    ) -> BTreeSet<&'a str> {
        let failed =
            failing.iter().filter(|(node, health)| counts_as_failed(workload, node, **health));
        // Several failed nodes evict the Workload, and its pods go with that. Pods that end before may fail its job for good.
        let is_evicted_next = failed.count() > 1 && !self.gates.keeps_nodes(workload);
        let ending = failing.iter().filter(|(node, health)| {
            self.gates.ends_waiting_pods(**health)
                && (!is_evicted_next || is_unhealthy(workload, node))
        });
        ending.map(|(node, _)| node.as_str()).collect()
    }

    /// Ends pods that wait for a node of which the Workload has nothing, or which takes them no more.
    fn terminate_unbindable(
        &self,
        KeyedWorkload { key, workload }: KeyedWorkload<'_>,
        nodes: &AssignedNodes,
        unbindable: &BTreeSet<&str>,
        ctx: &mut Context,
    ) {
        let ends = |pod: &TrackedPod| {
            pod.awaited_node().is_some_and(|node| {
                unbindable.contains(node) || !nodes.by_hostname.contains_key(node)
            })
        };
        // Where domains are larger than nodes, no pod waits for a node.
        let any = !nodes.by_hostname.is_empty();
        for name in names_in_pods(key, workload) {
            for pod in self.pods.of(&name).filter(|one| any && ends(one.pod)) {
                unbindable_pods::terminate(key, pod, ctx);
            }
        }
    }

    /// A Workload changed: its pods may get their domains now.
    pub(crate) fn workload_changed(&mut self, change: &WorkloadChange, ctx: &mut Context) {
        let chain = self.chains.workload_changed(change);
        self.unreserved.workload_changed(change, &self.pods);
        if change.after.as_ref().is_some_and(|after| has_topology(after)) {
            let name = chain.unwrap_or_else(|| change.key.clone());
            ctx.agenda.now(Reevaluation::Ungating(name));
        }
    }

    /// The Workload that the pods of this name get their domains from.
    pub(crate) fn workload_of_pods<'a>(
        &self,
        name: &Key,
        workloads: &'a Workloads,
    ) -> Option<&'a Workload> {
        self.chains.workload_of_pods(name, workloads)
    }

    /// Gives gated pods their domains.
    pub(crate) fn ungate(
        &mut self,
        workloads: &Workloads,
        flavors: AssignedFlavors<'_>,
        ctx: &mut Context,
    ) {
        let due = ctx.agenda.take_ungating();
        // Whether a node fails is unknown without pods. All Workloads are evaluated again with the next list.
        if !self.availability.has_pods() {
            return;
        }
        for name in due {
            let workload = self.workload_of_pods(&name, workloads);
            let Some(workload) = workload.filter(|_| self.pods.await_domains(&name)) else {
                continue;
            };
            let keyed = KeyedWorkload { key: &name, workload };
            let withheld = self.withheld_nodes(keyed, flavors, ctx.now);
            ungating::ungate(&mut self.pods, keyed, &withheld, ctx);
        }
    }

    /// Nodes that get no pods of a Workload, by hostname: the status may not show yet that they fail.
    fn withheld_nodes(
        &self,
        keyed: KeyedWorkload<'_>,
        flavors: AssignedFlavors<'_>,
        now: Timestamp,
    ) -> BTreeSet<String> {
        let failing = self.failing_nodes(keyed, flavors, now);
        let failing = failing.into_iter().flat_map(|(_, failing)| failing);
        let failing = failing.filter(|(_, health)| {
            !matches!(health, NodeHealth::HealthyUntil(_) | NodeHealth::Undecided)
        });
        let keeps_nodes = self.gates.keeps_nodes(keyed.workload);
        // A gated pod would wait for a node that is gone for ever. Without the gate it ends, as one that cannot be bound.
        let ends = |hostname: &String| keeps_nodes && self.usage.on_host(hostname).next().is_none();
        failing.map(|(hostname, _)| hostname).filter(|hostname| !ends(hostname)).collect()
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
        let known = self.pods.get(key);
        if !known.is_some_and(|known| settled.is_of(known.content().uid.as_deref())) {
            return;
        }
        match AnsweredObject::of(answer) {
            AnsweredObject::Known(pod) => self.observe_pod(key, pod.as_ref(), ctx),
            // The domain is free again.
            AnsweredObject::Unchanged => self.pods.take_back(key),
            // The write may have had its effect.
            AnsweredObject::Unknown => {}
        }
    }
}

/// Whether a pod set of a Workload has a topology assignment.
fn has_topology(workload: &Workload) -> bool {
    let admission = workload.status.admission.iter();
    let mut assigned = admission.flat_map(|admission| &admission.pod_set_assignments);
    assigned.any(|one| one.topology_assignment.is_some())
}

/// Whether a node has failed under a Workload. Of one that is undecided, the status says so.
fn counts_as_failed(workload: &Workload, node: &str, health: NodeHealth) -> bool {
    match health {
        NodeHealth::Undecided => is_unhealthy(workload, node),
        _ => health == NodeHealth::Failed,
    }
}

/// Whether the status lists a node as unhealthy.
fn is_unhealthy(workload: &Workload, node: &str) -> bool {
    workload.status.unhealthy_nodes.iter().any(|one| one.name == node)
}
