//! Keeping the books: one function per event, no decision.
//!
//! What frees or adds capacity asks for a wake-up of the tree it happened in; the next cycle carries it out. Source:
//! docs/reference/kueue.md §2.5 (bookkeeping), §3.6 (wake-up sources).

use std::sync::Arc;

use crate::admission_fair_sharing;
use crate::equivalence_class::EquivalenceClass;
use crate::event::Event;
use crate::flavors::request_order;
use crate::ids::{
    CohortId, EquivalenceClassId, LocalQueueId, NodeId, QueueId, TopologyNodeId, WorkloadId,
};
use crate::pending::{dequeue, enqueue, enqueue_active, leave_queue, replace, target};
use crate::queues::pending_queue::PendingQueue;
use crate::queues::priority_counts::PriorityCounts;
use crate::quota::tree::Quota;
use crate::slices;
use crate::spec::{
    AdmissionSpec, ClusterQueueSpec, CohortSpec, FungibilitySpec, NamespaceSelector,
    PodSetAdmission, PreemptionSpec, QueueEligibility, QueueingStrategy, ResourceGroup,
    WorkloadSpec,
};
use crate::state::{ClusterQueueRecord, GroupSlots, State};
use crate::time::Time;
use crate::topology::TopologyNodeSpec;
use crate::topology::topologies::NodeChange;
use crate::workload::{Admission, QueuePosition, Usage, Workload, charge};

/// Enters one event into the books.
pub(crate) fn apply(state: &mut State, event: Event) {
    match event {
        Event::Namespace(id, labels) => {
            put(&mut state.namespaces, id.index(), labels);
            wake_all(state);
        }
        Event::Flavor(id, spec) => {
            put(&mut state.flavors, id.index(), spec);
            flavors_changed(state);
        }
        Event::Topology(id, spec) => {
            state.topologies.set_topology(id, spec);
            flavors_changed(state);
        }
        Event::Node(id, spec) => host(state, id, spec),
        Event::Check(id, spec) => crate::checks::tell(state, id, spec),
        Event::Cohort(id, spec) => cohort(state, id, &spec.unwrap_or_default()),
        Event::ClusterQueue(id, Some(spec)) => cluster_queue(state, id, spec),
        Event::ClusterQueue(id, None) => cluster_queue_gone(state, id),
        Event::LocalQueue(id, spec) => local_queue(state, id, spec),
        Event::AdmissionFairSharing(sharing) => admission_fair_sharing::configure(state, sharing),
        Event::ConsumedResources(id, consumed, at) => {
            admission_fair_sharing::consumed(state, id, &consumed, at);
        }
        Event::SampleUsage(now) => admission_fair_sharing::sample(state, now),
        Event::Admitted(id, now) => admission_fair_sharing::admitted(state, id, now),
        Event::Workload(id, spec) => {
            let touched = slices::telling(state, id, Some(&spec));
            workload(state, id, *spec);
            slices::told(state, id, &touched);
        }
        Event::WorkloadGone(id) => {
            let touched = slices::telling(state, id, None);
            workload_gone(state, id);
            slices::told(state, id, &touched);
        }
        Event::Evicting(id) => {
            mark_evicted(state, id);
        }
        Event::Released { workload, eligibility, queued_at } => {
            released(state, workload, eligibility, queued_at);
        }
        Event::UnhealthyNodes(id, hosts) => unhealthy_nodes(state, id, hosts),
        Event::ClusterCapacity(key) => room(state, key),
        Event::Written(id) => {
            state.second_passes.written(id);
            state.failures.written(id);
        }
        Event::WriteFailed(id) => write_failed(state, id),
    }
}

pub(crate) fn put<T>(table: &mut Vec<Option<T>>, index: usize, value: Option<T>) {
    if table.len() <= index {
        table.resize_with(index + 1, || None);
    }
    table[index] = value;
}

/// Notes that a Workload will release its quota.
pub(crate) fn mark_evicted(state: &mut State, id: WorkloadId) {
    let admission = state.workloads.get_mut(id).and_then(|one| one.admission.as_deref_mut());
    if let Some(admission) = admission {
        admission.evicted = true;
        let queue = admission.queue;
        state.queue_mut(queue).generation += 1;
    }
}

fn wake_all(state: &mut State) {
    for index in 0..state.queues.len() {
        if state.queues[index].is_some() {
            state.wake(QueueId::from(index));
        }
    }
}

/// A changed machine wakes everybody; pods that leave one, those who could stand there. Source: docs/reference/kueue.md §3.6.
fn host(state: &mut State, id: TopologyNodeId, spec: Option<TopologyNodeSpec>) {
    let change = state.topologies.set_node(id, spec);
    if change == NodeChange::Unchanged {
        return;
    }
    state.failures.freed();
    if change == NodeChange::Changed || state.topologies.stale {
        return wake_all(state);
    }
    for index in 0..state.queues.len() {
        let groups = state.queues[index].iter().flat_map(|queue| queue.groups.iter());
        let mut flavors = groups.flat_map(|group| &group.flavors);
        if flavors.any(|&flavor| state.topologies.has_node(flavor, id)) {
            state.wake(QueueId::from(index));
        }
    }
}

fn flavors_changed(state: &mut State) {
    state.flavors_changed = true;
    state.tree_changed = true;
    state.topologies.stale = true;
    state.failures.freed();
    wake_all(state);
}

/// The queue's record, made on first reference.
fn queue_record(state: &mut State, id: QueueId) -> NodeId {
    state.queues.reach(id.index() + 1);
    if let Some(queue) = &state.queues[id.index()] {
        return queue.node;
    }
    let node = state.tree.add_node(Some(id));
    state.queues[id.index()] = Some(ClusterQueueRecord {
        node,
        spec: None,
        active: false,
        in_cycle: false,
        stopped: false,
        ready: false,
        listed: false,
        strategy: QueueingStrategy::default(),
        preemption: PreemptionSpec::default(),
        flavor_fungibility: FungibilitySpec::default(),
        namespaces: NamespaceSelector::Nothing,
        groups: Arc::default(),
        covers_pods: false,
        topology_only: false,
        generation: 0,
        pending: PendingQueue::default(),
        reserving: Vec::new(),
        priorities: PriorityCounts::default(),
    });
    node
}

fn cohort_node(state: &mut State, id: CohortId) -> NodeId {
    if let Some(&Some(node)) = state.cohorts.get(id.index()) {
        return node;
    }
    let node = state.tree.add_node(None);
    put(&mut state.cohorts, id.index(), Some(node));
    node
}

fn changed(state: &mut State, node: NodeId) {
    state.tree_changed = true;
    state.changed.push(node);
}

/// Quotas or parent of a node are about to change: scans of flavors begin anew, in the tree that it leaves as well.
fn requoted(state: &mut State, node: NodeId) {
    state.requoted.push(node);
    state.requoted.extend(state.tree.parent(node));
}

fn quotas(state: &mut State, groups: &[ResourceGroup]) -> Vec<Quota> {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let lines = flavors.flat_map(|one| one.resources.iter().map(|quota| (one.flavor, *quota)));
    let mut quotas = Vec::new();
    for (flavor, quota) in lines {
        quotas.push(Quota {
            slot: state.tree.slot(flavor, quota.resource),
            nominal: quota.nominal,
            borrowing_limit: quota.borrowing_limit,
            lending_limit: quota.lending_limit,
        });
    }
    quotas
}

fn cohort(state: &mut State, id: CohortId, spec: &CohortSpec) {
    let node = cohort_node(state, id);
    state.wake_tree(node);
    if let Some(parent) = state.tree.parent(node) {
        state.wake_tree(parent);
        state.left.push(parent);
    }
    let parent = spec.parent.map(|parent| cohort_node(state, parent));
    let quotas = quotas(state, &spec.groups);
    requoted(state, node);
    state.tree.set_quotas(node, spec.weight, &quotas);
    state.tree.set_parent(node, parent);
    changed(state, node);
}

fn cluster_queue(state: &mut State, id: QueueId, spec: Box<ClusterQueueSpec>) {
    let node = queue_record(state, id);
    if state.queue(id).spec.as_ref() == Some(&spec) {
        return;
    }
    let parent = spec.cohort.map(|cohort| cohort_node(state, cohort));
    let quotas = quotas(state, &spec.groups);
    wake_siblings(state, id);
    let same_groups = state.queue(id).spec.as_ref().is_some_and(|old| old.groups == spec.groups);
    if !same_groups || state.tree.parent(node) != parent {
        requoted(state, node);
    }
    state.tree.set_quotas(node, spec.weight, &quotas);
    if state.tree.parent(node) != parent {
        state.tree.set_parent(node, parent);
    }
    let groups = spec.groups.iter().map(|group| slots_of(state, group)).collect();
    let pods = state.pods;
    let queue = state.queue_mut(id);
    queue.stopped = spec.stopped;
    queue.ready = spec.ready;
    queue.strategy = spec.strategy;
    queue.preemption = spec.preemption;
    queue.flavor_fungibility = spec.flavor_fungibility;
    queue.namespaces.clone_from(&spec.namespaces);
    queue.covers_pods = spec.groups.iter().any(|group| group.resources.contains(&pods));
    queue.groups = Arc::new(groups);
    queue.spec = Some(spec);
    admission_fair_sharing::queue_changed(state, id);
    changed(state, node);
    state.wake(id);
    wake_siblings(state, id);
}

/// A queue that leaves a tree wakes those who stay.
fn wake_siblings(state: &mut State, id: QueueId) {
    if let Some(parent) = state.tree.parent(state.queue(id).node) {
        state.wake_tree(parent);
        state.left.push(parent);
    }
}

fn slots_of(state: &mut State, group: &ResourceGroup) -> GroupSlots {
    let mut slots = Vec::new();
    for one in &group.flavors {
        for &resource in &group.resources {
            slots.push(state.tree.slot(one.flavor, resource));
        }
    }
    GroupSlots {
        resources: group.resources.clone(),
        flavors: group.flavors.iter().map(|one| one.flavor).collect(),
        slots,
    }
}

fn cluster_queue_gone(state: &mut State, id: QueueId) {
    let node = queue_record(state, id);
    wake_siblings(state, id);
    requoted(state, node);
    state.tree.set_quotas(node, crate::spec::FairSharingWeight::default(), &[]);
    state.tree.set_parent(node, None);
    let queue = state.queue_mut(id);
    queue.spec = None;
    queue.groups = Arc::default();
    // Another queue of this name knows nothing of who waits for victims.
    queue.pending.forget_preemptor();
    admission_fair_sharing::queue_changed(state, id);
    changed(state, node);
}

fn local_queue(state: &mut State, id: LocalQueueId, spec: Option<crate::spec::LocalQueueSpec>) {
    if let Some(spec) = &spec {
        queue_record(state, spec.queue);
    }
    let old = state.local_queues.get(id.index()).and_then(Option::as_ref).map(target);
    let new = spec.as_ref().map(target);
    if spec.is_none() {
        admission_fair_sharing::forget(state, id);
    }
    put(&mut state.local_queues, id.index(), spec);
    admission_fair_sharing::update_usage(state, id);
    if old != new {
        let moved: Vec<WorkloadId> = (0..state.names.workloads.len())
            .map(WorkloadId::from)
            .filter(|&one| state.workloads.get(one).is_some_and(|w| queued_through(w, id)))
            .collect();
        for workload in moved {
            leave_queue(state, workload);
            enqueue_active(state, workload);
        }
    }
}

/// Holders stay where they hold, wherever their LocalQueue points now.
fn queued_through(workload: &Workload, id: LocalQueueId) -> bool {
    workload.local_queue == Some(id) && workload.admission.is_none()
}

fn workload(state: &mut State, id: WorkloadId, mut spec: WorkloadSpec) {
    request_order::sort_requests(&state.names, &mut spec.pod_sets);
    let replaced_slice =
        spec.replaced_slice.filter(|_| state.settings.elastic_jobs_via_workload_slices);
    let allowed = spec.allowed_flavors.filter(|_| state.settings.concurrent_admission);
    let allowed = allowed.map(Into::into);
    let class = EquivalenceClass {
        priority: spec.priority,
        pod_sets: spec.pod_sets,
        replaced_slice,
        allowed,
    };
    state.families.tell(id, spec.variant_of.as_deref());
    let class = state.classes.acquire(class);
    let new = Workload {
        uid: spec.uid,
        namespace: spec.namespace,
        local_queue: spec.local_queue,
        queue: None,
        class,
        priority: spec.priority,
        has_priority_class: spec.has_priority_class,
        queued_at: spec.queued_at,
        eligibility: spec.eligibility,
        place: QueuePosition::Out,
        ticket: 0,
        hidden: false,
        preemption_gated: spec.preemption_gated,
        wake: None,
        invalid: spec.invalid,
        checks: spec.checks.into(),
        scan: None,
        admission: None,
    };
    let mut awake = false;
    match state.workloads.get(id) {
        None => state.workloads.insert(id, new),
        Some(old) if old.admission.is_some() => {
            return update_holder(state, id, new, spec.admission);
        }
        Some(old) if same(old, &new) && spec.admission.is_none() => {
            return state.classes.release(class);
        }
        Some(_) => awake = replace(state, id, new, spec.admission.is_none()),
    }
    match spec.admission {
        Some(admission) => hold_quota(state, id, admission),
        None if awake => enqueue_active(state, id),
        None => enqueue(state, id),
    }
}

fn same(old: &Workload, new: &Workload) -> bool {
    (old.class, old.queued_at, old.eligibility, old.local_queue, &old.invalid, old.namespace)
        == (new.class, new.queued_at, new.eligibility, new.local_queue, &new.invalid, new.namespace)
        && (&old.uid, &old.checks, old.preemption_gated)
            == (&new.uid, &new.checks, new.preemption_gated)
}

/// A Workload that holds quota changed: its priority decides who may preempt it, its finished pods free quota.
fn update_holder(
    state: &mut State,
    id: WorkloadId,
    new: Workload,
    admission: Option<AdmissionSpec>,
) {
    let old = state.workloads.at_mut(id);
    let changed = old.class != new.class;
    let (held_in, before) = (old.admission.as_deref().map(|held| held.queue), old.priority);
    let reweighed = new.has_priority_class && new.priority != before;
    (old.priority, old.has_priority_class) = (new.priority, new.has_priority_class);
    (old.eligibility, old.queued_at) = (new.eligibility, new.queued_at);
    (old.local_queue, old.invalid, old.checks) = (new.local_queue, new.invalid, new.checks);
    old.preemption_gated = new.preemption_gated;
    if let Some(queue) = held_in {
        let priorities = &mut state.queue_mut(queue).priorities;
        priorities.remove(before);
        priorities.add(new.priority);
    }
    reshape_holder(state, id, new.class);
    let Some(current) = state.workloads.at(id).admission.as_deref() else {
        return;
    };
    let queue = current.queue;
    let told = admission.map(|mut told| {
        told.pod_sets.iter_mut().for_each(PodSetAdmission::sort);
        let told = state.second_passes.with_places(id, current, told);
        state.failures.with_moves(id, current, told)
    });
    if let Some(admission) = told
        && current.pod_sets != admission.pod_sets
    {
        let evicted = current.evicted || admission.evicted;
        free_quota(state, id);
        hold_quota(state, id, AdmissionSpec { evicted, ..admission });
    } else {
        recharge(state, id);
        if changed {
            state.queue_mut(queue).generation += 1;
        }
        if reweighed {
            // Somebody may preempt it now.
            state.wake(queue);
        }
    }
    crate::second_pass::note(state, id);
}

/// Whatever is told of a holder, upstream takes its usage off and puts it on again.
fn recharge(state: &mut State, id: WorkloadId) {
    if let Some(admission) = state.workloads.at(id).admission.as_deref() {
        let node = state.queue(admission.queue).node;
        state.tree.recharge(node, &admission.usage);
    }
}

/// Places are charged by shape: those of the old one are given back before it is forgotten.
fn reshape_holder(state: &mut State, id: WorkloadId, class: EquivalenceClassId) {
    let workload = state.workloads.at_mut(id);
    let old = std::mem::replace(&mut workload.class, class);
    if let Some(admission) = workload.admission.as_deref() {
        state.topologies.release_admission(admission, &old, &state.classes);
        state.topologies.charge_admission(admission, &class, &state.classes);
    }
    state.classes.release(old);
}

fn hold_quota(state: &mut State, id: WorkloadId, spec: AdmissionSpec) {
    queue_record(state, spec.queue);
    let admission = Admission {
        queue: spec.queue,
        reserved_at: spec.reserved_at,
        evicted: spec.evicted,
        taken_over: false,
        usage: usage_of(state, &spec.pod_sets),
        pod_sets: spec.pod_sets,
    };
    start_holding(state, id, Box::new(admission));
}

/// What is charged for what pod sets hold.
pub(crate) fn usage_of(state: &mut State, pod_sets: &[PodSetAdmission]) -> Usage {
    let mut usage = Usage::new();
    for pod_set in pod_sets {
        for &(resource, flavor, total) in &pod_set.resources {
            let slot = state.tree.slot(flavor, resource);
            charge(&mut usage, slot, pod_set.left_of(total));
        }
    }
    usage
}

/// Enters an admission whose usage is already charged.
pub(crate) fn start_holding(state: &mut State, id: WorkloadId, mut admission: Box<Admission>) {
    admission.pod_sets.iter_mut().for_each(PodSetAdmission::sort);
    let queue = admission.queue;
    state.tree.charge(state.queue(queue).node, &admission.usage);
    state.topologies.charge_admission(&admission, &state.workloads.at(id).class, &state.classes);
    let reserving = &mut state.queue_mut(queue).reserving;
    reserving.push(id);
    let place = u32::try_from(reserving.len() - 1).expect("invariant: fewer than 2^32 Workloads");
    let workload = state.workloads.at_mut(id);
    workload.queue = Some(queue);
    workload.place = QueuePosition::Reserving { place };
    workload.admission = Some(admission);
    let priority = workload.priority;
    let queue = state.queue_mut(queue);
    queue.priorities.add(priority);
    queue.pending.clear_preemptor(id);
    queue.generation += 1;
    slices::started(state, id);
    crate::second_pass::note(state, id);
}

/// Gives back what a Workload holds, and wakes those who may want it.
fn free_quota(state: &mut State, id: WorkloadId) {
    let workload = state.workloads.at_mut(id);
    let (Some(_), QueuePosition::Reserving { place }) = (&workload.admission, workload.place)
    else {
        return;
    };
    workload.place = QueuePosition::Out;
    let (class, priority) = (workload.class, workload.priority);
    state.second_passes.forget(id);
    admission_fair_sharing::unsent(state, id);
    let Some(admission) = state.workloads.at_mut(id).admission.take() else {
        return;
    };
    state.topologies.release_admission(&admission, &class, &state.classes);
    let queue = admission.queue;
    let node = state.queue(queue).node;
    for &(slot, amount) in &admission.usage {
        state.tree.remove_usage(node, slot, amount);
    }
    state.queue_mut(queue).priorities.remove(priority);
    let reserving = &mut state.queue_mut(queue).reserving;
    reserving.swap_remove(place as usize);
    if let Some(&moved) = reserving.get(place as usize) {
        state.workloads.at_mut(moved).place = QueuePosition::Reserving { place };
    }
    state.workloads.keep_blank(admission);
    state.queue_mut(queue).generation += 1;
    state.failures.freed();
    state.wake(queue);
    slices::ended(state, id);
}

fn unhealthy_nodes(state: &mut State, id: WorkloadId, hosts: Vec<TopologyNodeId>) {
    let holds = state.workloads.get(id).is_some_and(|one| one.admission.is_some());
    if holds && state.settings.tas_failed_node_replacement {
        state.failures.set(id, hosts.into());
    }
}

fn workload_gone(state: &mut State, id: WorkloadId) {
    let Some(workload) = state.workloads.get(id) else {
        return;
    };
    let queue = workload.queue;
    state.failures.forget(id);
    state.families.tell(id, None);
    dequeue(state, id);
    free_quota(state, id);
    if let Some(queue) = queue {
        state.queue_mut(queue).pending.clear_preemptor(id);
        state.wake(queue);
    }
    if let Some(workload) = state.workloads.remove(id) {
        state.classes.release(workload.class);
        if !state.workloads.is_watched() {
            state.names.workloads.forget(id);
        }
    }
}

fn released(state: &mut State, id: WorkloadId, eligibility: QueueEligibility, queued_at: Time) {
    if state.workloads.get(id).is_none_or(|workload| workload.admission.is_none()) {
        return;
    }
    state.failures.forget(id);
    free_quota(state, id);
    let workload = state.workloads.at_mut(id);
    (workload.eligibility, workload.queued_at) = (eligibility, queued_at);
    enqueue(state, id);
}

fn write_failed(state: &mut State, id: WorkloadId) {
    if crate::second_pass::take_back(state, id) || crate::cycle::take_back(state, id) {
        return;
    }
    if state.workloads.get(id).is_some_and(|workload| workload.admission.is_some()) {
        let queued_at = state.workloads.at(id).queued_at;
        released(state, id, QueueEligibility::Eligible, queued_at);
    }
}

/// The placer has room again for those who wait under `key`.
fn room(state: &mut State, key: crate::placer::RequeueKey) {
    for id in state.workloads.told(key) {
        dequeue(state, id);
        enqueue(state, id);
    }
}
