//! All worker clusters as the manager knows them, with the placements on them.
//!
//! The owner of a fleet enters changes, requests clusters ([`Fleet::choose_cluster`]) and, after changes, reads the
//! keys of Workloads to requeue ([`Fleet::woken_keys`]). Source: docs/reference/dispatch.md §1-3.
//!
//! Fields are changed in this file. Other files read them; they change only these:
//!
//! | field | changed by |
//! |---|---|
//! | `clusters`, with the change counters | `local_cluster`, `unreported_clusters` and `gang_reservation`, each by `mark_changed` |
//! | `clusters`, the packed nodes, which are a cache | every file that looks for room |
//! | `extensions` | `slice_extension` |
//! | `pending` | `cluster_choice`, `preemption` |
//! | `racing` | `unreported_clusters` |
//! | `reservations`, `reservation_inputs` | `gang_reservation` |

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Interner, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::companions::Companions;
use crate::exclusions::{ExclusionCause, Exclusions};
use crate::gang_reservation::{CapacityReservation, ReservationInputs};
use crate::pending_placements::PendingPlacements;
use crate::run_times::{RunTime, RunTimeGroup, RunTimes};
use crate::slice_extension::SliceExtensions;
use crate::unreported_clusters::RacingWorkloads;
use crate::worker_cluster::{PlacementSerial, ReportState, WorkerCluster};
use crate::{AssignedWorkload, CapacityReport, LeasePolicy, PlacementConfig};

/// A configuration and the change counter at its last change.
#[derive(Debug, Default)]
pub(crate) struct FleetConfig {
    pub(crate) config: Arc<PlacementConfig>,
    pub(crate) changed: u64,
}

/// All worker clusters: reports, placements, waiting Workloads and reservations.
#[derive(Debug, Default)]
pub struct Fleet {
    names: Interner<ClusterId>,
    pub(crate) clusters: Vec<WorkerCluster>,
    pub(crate) configs: BTreeMap<Box<str>, FleetConfig>,
    placements: BTreeMap<WorkloadId, (ClusterId, PlacementSerial)>,
    pub(crate) companions: Companions,
    pub(crate) extensions: SliceExtensions,
    pub(crate) exclusions: Exclusions,
    pub(crate) pending: PendingPlacements,
    run_times: RunTimes,
    pub(crate) racing: RacingWorkloads,
    /// A Workload asks for ExactlyOnce itself.
    wants_leases: bool,
    /// Number of changes.
    pub(crate) changes: u64,
    pub(crate) serial: PlacementSerial,
    pub(crate) reservations: Vec<CapacityReservation>,
    /// Inputs of the current reservations.
    pub(crate) reservation_inputs: ReservationInputs,
}

impl Fleet {
    /// A fleet without clusters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Interns the name of a MultiKueueCluster. The id never changes.
    pub fn intern_cluster(&mut self, name: &str) -> ClusterId {
        let id = self.names.intern(name);
        while self.clusters.len() <= id.index() {
            self.clusters.push(WorkerCluster::default());
        }
        id
    }

    /// Id of a known MultiKueueCluster.
    pub fn find(&self, name: &str) -> Option<ClusterId> {
        self.names.get(name)
    }

    /// Name of a cluster.
    pub fn name(&self, id: ClusterId) -> &str {
        self.names.name(id)
    }

    /// Sets the labels of a MultiKueueCluster. Returns whether they are others.
    pub fn set_labels(&mut self, id: ClusterId, labels: Vec<(Box<str>, Box<str>)>) -> bool {
        let differ = self.clusters[id.index()].labels != labels;
        if differ {
            self.mark_changed(id).labels = labels;
        }
        differ
    }

    /// Sets whether a cluster is connected. Initially it is not; a disconnected cluster takes no new work.
    pub fn set_connected(&mut self, id: ClusterId, connected: bool) {
        self.set_field(id, |cluster| &mut cluster.reachability.connected, connected);
    }

    /// Sets the capacity report. A cluster without a report takes no new work.
    pub fn set_report(&mut self, id: ClusterId, report: Option<CapacityReport>) {
        let cluster = self.mark_changed(id);
        if grows(cluster.report(), report.as_ref()) {
            cluster.grown = cluster.changed;
        }
        cluster.set_report(report);
    }

    /// The connection to a cluster ended: its report is forgotten, and so are the versions of its clones, which begin lower after a
    /// restore of the cluster. Each clone is in flight until [`Self::clone_created`] is called for it again. Whether the cluster reports
    /// is to be listed again.
    pub fn forget_report(&mut self, id: ClusterId) {
        let cluster = self.mark_changed(id);
        cluster.forget_versions();
        cluster.report_state = ReportState::default();
        self.set_report(id, None);
    }

    /// Sets whether it is known if a cluster reports at all. Initially it is not.
    pub fn set_report_listed(&mut self, id: ClusterId, listed: bool) {
        self.set_field(id, |cluster| &mut cluster.report_state.listed, listed);
    }

    /// Sets whether a cluster has an agent that has not reported yet. Such a cluster takes no new work, not by a race either.
    pub fn set_report_awaited(&mut self, id: ClusterId, awaited: bool) {
        self.set_field(id, |cluster| &mut cluster.report_state.awaited, awaited);
    }

    /// Sets whether the report of a cluster is stale. A cluster with a stale report takes no new work.
    pub fn set_stale(&mut self, id: ClusterId, stale: bool) {
        self.set_field(id, |cluster| &mut cluster.report_state.stale, stale);
    }

    /// Sets whether the agent of a cluster gets grants ([`crate::GrantIssuer::is_open`]). Without them it takes no ExactlyOnce work.
    pub fn set_leases_open(&mut self, id: ClusterId, open: bool) {
        self.set_field(id, |cluster| &mut cluster.reachability.leases_open, open);
    }

    /// Sets a field of a cluster. An equal value is no change of the cluster.
    fn set_field<T: PartialEq>(
        &mut self,
        id: ClusterId,
        field: impl Fn(&mut WorkerCluster) -> &mut T,
        value: T,
    ) {
        if *field(&mut self.clusters[id.index()]) != value {
            *field(self.mark_changed(id)) = value;
        }
    }

    /// Time in nanoseconds after which a cluster that is not reached is lost, if the policy of a MultiKueueConfig says so.
    pub fn lost_after(&self, config: &str) -> Option<i64> {
        self.config(config).policy.lost_after
    }

    /// The leases under `execution: ExactlyOnce` that the policy of a MultiKueueConfig asks for.
    pub fn exactly_once(&self, config: &str) -> Option<LeasePolicy> {
        self.config(config).policy.exactly_once
    }

    /// What all policies together ask of the leases of a cluster; `None` if neither a MultiKueueConfig uses it under ExactlyOnce nor
    /// a Workload asks for that.
    pub fn lease_policy(&self, cluster: ClusterId) -> Option<LeasePolicy> {
        let configs = self.configs.values().map(|one| &one.config);
        let mut used = configs.filter(|config| config.clusters.contains(&cluster)).peekable();
        // What a Workload asks for changes nothing of what policies ask for.
        let wanted = used.peek().filter(|_| self.wants_leases).map(|config| LeasePolicy {
            lost_after: config.policy.lost_after,
            ..LeasePolicy::DEFAULT
        });
        used.filter_map(|config| config.policy.exactly_once).reduce(LeasePolicy::and).or(wanted)
    }

    /// Sets whether a Workload asks for ExactlyOnce itself, so that clusters need leases whatever their policies are.
    pub fn set_wants_leases(&mut self, wants: bool) {
        self.wants_leases = wants;
    }

    /// When the policy of a MultiKueueConfig withdraws running work from a cluster.
    pub fn drain_deadline(&self, config: &str, cluster: ClusterId) -> Option<Time> {
        self.config(config).policy.drain_deadline(cluster)
    }

    /// Whether a MultiKueueConfig exists.
    pub fn has_config(&self, config: &str) -> bool {
        self.configs.contains_key(config)
    }

    /// Whether a MultiKueueConfig, or its policy, has a cluster.
    pub fn is_configured(&self, config: &str, cluster: ClusterId) -> bool {
        self.config(config).clusters.contains(&cluster)
    }

    /// Names of the clusters of a MultiKueueConfig and its policy, in order.
    pub fn clusters_of(&self, config: &str) -> impl Iterator<Item = &str> {
        let clusters = self.configs.get(config).map(|one| &one.config.clusters);
        clusters.into_iter().flatten().map(|id| self.name(*id))
    }

    /// Whether it is known if a cluster reports at all.
    pub fn is_report_listed(&self, id: ClusterId) -> bool {
        self.clusters[id.index()].report_state.listed
    }

    /// Whether nothing is known of the capacity of any cluster of a MultiKueueConfig that is connected: none reports, or all reports are
    /// stale. Then the clusters race, as upstream's (docs/reference/dispatch.md §2).
    pub fn has_no_current_report(&self, config: &str) -> bool {
        let config = self.config(config);
        let clusters = config.clusters.iter().map(|id| &self.clusters[id.index()]);
        let mut connected = clusters.filter(|cluster| cluster.reachability.connected).peekable();
        let is_stale = |state: ReportState| state.listed && state.stale;
        connected.peek().is_some()
            && connected.all(|one| is_stale(one.report_state) || one.is_unreported())
    }

    /// Sets a MultiKueueConfig with its policy; `None` removes it.
    pub fn set_config(&mut self, name: &str, config: Option<PlacementConfig>) {
        // What is set again as it is gives no Workload a reason to be judged again.
        if self.configs.get(name).map(|one| &*one.config) == config.as_ref() {
            return;
        }
        self.changes += 1;
        let changed = self.changes;
        match config {
            Some(config) => {
                let configured = FleetConfig { config: Arc::new(config), changed };
                self.configs.insert(name.into(), configured);
            }
            None => {
                self.configs.remove(name);
            }
        }
    }

    /// Counts a Workload's pods on a cluster. Called after a decision, and after a restart for each placement found.
    /// The run time counts from `since`.
    pub fn place(
        &mut self,
        workload: WorkloadId,
        cluster: ClusterId,
        work: Arc<AssignedWorkload>,
        since: Time,
    ) {
        self.remove_placement(workload);
        self.serial += 1;
        let serial = self.serial;
        self.placements.insert(workload, (cluster, serial));
        if let Some(set) = &work.request.together {
            self.companions.place(workload, set, cluster);
        }
        let end = work.run_time().map(|runs| runs.end(since));
        let cluster = self.mark_changed(cluster);
        cluster.placed_at = cluster.changed;
        cluster.place(serial, work, end);
    }

    /// Counts a placed Workload that has fewer pods now, such as an elastic job that has shrunk. Does nothing for any other.
    pub fn shrink(&mut self, workload: WorkloadId, work: Arc<AssignedWorkload>) {
        if let Some(&(cluster, serial)) = self.placements.get(&workload)
            && self.clusters[cluster.index()].shrink(serial, work)
        {
            self.mark_changed(cluster);
        }
    }

    /// The run time by which a Workload was placed; `None` if it is not known, or the Workload is not placed.
    pub fn placed_run_time(&self, workload: WorkloadId) -> Option<RunTime> {
        self.placed_work(workload)?.run_time()
    }

    /// Records that work of a group ended well at `end`, after so many nanoseconds.
    pub fn record_run_time(&mut self, group: &RunTimeGroup, nanos: i64, end: Time) {
        self.run_times.record(group, nanos, end);
    }

    /// The work with the run time that is learned for its group, unless it declares one. Called before every request for a cluster
    /// and every placement.
    #[must_use]
    pub fn with_run_time(
        &self,
        work: Arc<AssignedWorkload>,
        group: Option<&RunTimeGroup>,
    ) -> Arc<AssignedWorkload> {
        let undeclared = work.request.max_run_time.is_none();
        let learned = group.filter(|_| undeclared).and_then(|one| self.run_times.estimate(one));
        if learned == work.learned_run_time {
            return work;
        }
        Arc::new(AssignedWorkload { learned_run_time: learned, ..Arc::unwrap_or_clone(work) })
    }

    /// The work of a placed Workload, on the nodes that it was assigned.
    pub fn placed_work(&self, workload: WorkloadId) -> Option<&Arc<AssignedWorkload>> {
        let &(cluster, serial) = self.placements.get(&workload)?;
        Some(&self.clusters[cluster.index()].placement(serial)?.work)
    }

    /// Records the priority of a placed Workload. One of unknown priority counts as one that may be preempted.
    pub fn set_priority(&mut self, workload: WorkloadId, priority: i64) {
        if let Some(&(cluster, serial)) = self.placements.get(&workload) {
            self.clusters[cluster.index()].set_priority(serial, priority);
        }
    }

    /// Records the clone's resourceVersion. A report with `as_of` at or above it includes the clone.
    pub fn clone_created(&mut self, workload: WorkloadId, version: u64) {
        if let Some(&(cluster, serial)) = self.placements.get(&workload)
            && self.clusters[cluster.index()].clone_created(serial, version)
        {
            self.mark_changed(cluster);
        }
    }

    /// Removes the placement and the waiting position of a Workload, after a withdrawal or a failed write. Exclusions
    /// stay.
    pub fn unplace(&mut self, workload: WorkloadId) {
        self.extensions.forget(workload);
        self.remove_placement(workload);
        self.hand_over(workload);
    }

    /// All pods of a slice that is gone count with the one that extends it. Returns whether there is one.
    fn hand_over(&mut self, workload: WorkloadId) -> bool {
        let Some((new, whole)) = self.extensions.take(workload) else {
            return false;
        };
        if let Some(&(cluster, serial)) = self.placements.get(&new) {
            self.mark_changed(cluster).take_over(serial, whole);
        }
        true
    }

    fn remove_placement(&mut self, workload: WorkloadId) {
        self.pending.remove(workload);
        self.end_race(workload);
        self.leave_companions(workload);
        if let Some((cluster, serial)) = self.placements.remove(&workload) {
            let freed = self.clusters[cluster.index()].unplace(serial);
            // The start of a reservation depends on all running work.
            if freed || !self.reservations.is_empty() {
                self.mark_changed(cluster);
            }
        }
    }

    /// Removes a Workload that ended at this resourceVersion of its clone. Its capacity is free before a report shows
    /// it.
    pub fn workload_ended(&mut self, workload: WorkloadId, version: u64) {
        self.extensions.forget(workload);
        // Its pods run on.
        if self.hand_over(workload) {
            return self.remove_placement(workload);
        }
        self.pending.remove(workload);
        self.end_race(workload);
        self.leave_companions(workload);
        if let Some((cluster, serial)) = self.placements.remove(&workload) {
            self.mark_changed(cluster).workload_ended(serial, version);
        }
    }

    /// Removes a Workload from the waiting ones while it lacks something other than capacity. It gets no reservation,
    /// but its waiting time continues if it returns with the same request.
    pub fn pause_waiting(&mut self, workload: WorkloadId) {
        self.pending.pause(workload);
    }

    /// Ends the wait of a Workload for room under other flavors than those of its first request.
    pub(crate) fn leave_alternatives(&mut self, workload: WorkloadId) {
        self.pending.leave_alternatives(workload);
    }

    /// Removes a Workload that is not pending, with its waiting time.
    pub fn reset_waiting(&mut self, workload: WorkloadId) {
        self.pending.remove(workload);
    }

    /// Removes a finished or deleted Workload. Its id may be reused.
    pub fn workload_removed(&mut self, workload: WorkloadId) {
        self.unplace(workload);
        // The number may be given to another Workload.
        for local in self.clusters.iter_mut().filter_map(|cluster| cluster.local.as_mut()) {
            local.set_bound(workload, Vec::new());
        }
    }

    /// Excludes a cluster that did not take a Workload, for everything of this cause: a minute at first, then longer and
    /// longer.
    pub fn exclude_cluster(
        &mut self,
        cluster: ClusterId,
        cause: ExclusionCause,
        now: Time,
        why: Box<str>,
    ) {
        self.exclusions.add(cluster, cause, now, why);
    }

    /// The clock that times come from was set by so many nanoseconds: exclusions and waiting times count as if it had run steadily.
    /// Run times begin where the API objects say so.
    pub fn clock_jumped(&mut self, by: i64) {
        let Self {
            names: _,
            clusters: _,
            configs: _,
            placements: _,
            companions: _,
            extensions: _,
            exclusions,
            pending,
            run_times: _,
            racing: _,
            wants_leases: _,
            changes: _,
            serial: _,
            reservations: _,
            reservation_inputs,
        } = self;
        exclusions.clock_jumped(by);
        pending.clock_jumped(by);
        let next = &mut reservation_inputs.next_update_at;
        *next = next.map(|at| Time(at.0.saturating_add(by)));
    }

    /// The cluster that a Workload is placed on.
    pub fn placed_on(&self, workload: WorkloadId) -> Option<ClusterId> {
        self.placements.get(&workload).map(|(cluster, _)| *cluster)
    }

    pub(crate) fn placement(&self, workload: WorkloadId) -> Option<(ClusterId, PlacementSerial)> {
        self.placements.get(&workload).copied()
    }

    /// Workloads that are placed on a cluster, sorted.
    pub(crate) fn placed_workloads(
        &self,
        on: ClusterId,
    ) -> impl Iterator<Item = (WorkloadId, PlacementSerial)> {
        let placed = self.placements.iter().filter(move |(_, (cluster, _))| *cluster == on);
        placed.map(|(workload, (_, serial))| (*workload, *serial))
    }

    /// Every cluster may take the others of a set that is placed nowhere any more.
    fn leave_companions(&mut self, workload: WorkloadId) {
        if self.companions.remove(workload) {
            let ids: Vec<ClusterId> =
                self.configs.values().flat_map(|one| one.config.clusters.clone()).collect();
            ids.into_iter().for_each(|id| {
                self.mark_changed(id);
            });
        }
    }

    pub(crate) fn mark_changed(&mut self, id: ClusterId) -> &mut WorkerCluster {
        self.changes += 1;
        let cluster = &mut self.clusters[id.index()];
        cluster.changed = self.changes;
        cluster
    }
}

/// Whether a report has more of a resource than the last one, whatever is free of it, or other nodes with as much.
fn grows(before: Option<&CapacityReport>, after: Option<&CapacityReport>) -> bool {
    let classes = |report: Option<&CapacityReport>| -> BTreeMap<_, i64> {
        let mut nodes = BTreeMap::new();
        for class in report.iter().flat_map(|report| &report.classes) {
            let size = if class.size.is_empty() { &class.free } else { &class.size };
            *nodes.entry((class.labels.clone(), size.clone())).or_default() += class.count;
        }
        nodes
    };
    let before = classes(before);
    classes(after).iter().any(|(shape, count)| before.get(shape).is_none_or(|old| old < count))
}

#[cfg(test)]
mod tests;
