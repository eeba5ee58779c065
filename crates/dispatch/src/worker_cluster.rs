//! One worker cluster as the manager knows it: its capacity report and the placements since that report.
//!
//! A placement is in flight while its clone's resourceVersion is unknown or above the report's `as_of`
//! (docs/reference/dispatch.md §2). Placements in flight are packed onto the reported nodes in the order of
//! placement. A placement that reuses capacity of an ended Workload ([`released_capacity`](crate::released_capacity))
//! is not packed again. The packed nodes are cached until an input changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Time;

use crate::local_nodes::LocalNodes;
use crate::node_packing::PackedNodes;
use crate::released_capacity::{ReleasedCapacity, UnusedReleases};
use crate::run_times::ExpectedEnd;
use crate::{AssignedWorkload, CapacityReport};

/// Sequence number of a placement.
pub(crate) type PlacementSerial = u64;

/// A Workload that is placed on the cluster.
#[derive(Debug)]
pub(crate) struct PlacedWorkload {
    pub(crate) work: Arc<AssignedWorkload>,
    /// Its end, if its run time is declared or learned.
    pub(crate) end: Option<ExpectedEnd>,
    /// Its priority, if it is known.
    pub(crate) priority: Option<i64>,
    /// resourceVersion of the clone, once the clone exists.
    version: Option<u64>,
}

impl PlacedWorkload {
    /// Latest end, as far as it is known.
    pub(crate) fn known_end(&self, now: Time) -> Option<Time> {
        self.end?.known(now)
    }

    fn in_flight(&self, as_of: u64) -> bool {
        self.version.is_none_or(|version| version > as_of)
    }
}

/// What can be sent to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClusterReachability {
    /// It takes work.
    pub(crate) connected: bool,
    /// Its agent gets grants from this manager.
    pub(crate) leases_open: bool,
}

/// What is known of the report of a cluster, beside the report. A report that is not read any more may be stale and awaited at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReportState {
    /// Whether it reports its capacity is known: its ClusterCapacity was listed, or cannot be.
    pub(crate) listed: bool,
    /// It has an agent that has not reported yet.
    pub(crate) awaited: bool,
    /// Its report is too old to place anything by it.
    pub(crate) stale: bool,
}

/// A worker cluster.
#[derive(Debug, Default)]
pub(crate) struct WorkerCluster {
    pub(crate) labels: Vec<(Box<str>, Box<str>)>,
    pub(crate) reachability: ClusterReachability,
    pub(crate) report_state: ReportState,
    /// Fleet change counter at the last change of this cluster.
    pub(crate) changed: u64,
    /// Fleet change counter at the last report with more or larger nodes.
    pub(crate) grown: u64,
    /// Fleet change counter at the last placement.
    pub(crate) placed_at: u64,
    /// Its nodes, if it is the cluster of this agent.
    pub(crate) local: Option<LocalNodes>,
    report: Option<Arc<CapacityReport>>,
    placed: BTreeMap<PlacementSerial, PlacedWorkload>,
    packed: Option<PackedNodes>,
    released: ReleasedCapacity,
    /// Released capacity that no placement in flight reuses.
    unused_releases: UnusedReleases,
}

impl WorkerCluster {
    pub(crate) fn report(&self) -> Option<&CapacityReport> {
        self.report.as_deref()
    }

    /// Whether it is known to report no capacity, as a cluster that runs Kueue: then its queues decide alone.
    pub(crate) fn is_unreported(&self) -> bool {
        let ReportState { listed, awaited, .. } = self.report_state;
        listed && !awaited && self.report.is_none()
    }

    pub(crate) fn set_report(&mut self, mut report: Option<CapacityReport>) {
        // `asOf` never falls: what an earlier report has counted would count twice, as work in flight.
        if let (Some(before), Some(report)) = (&self.report, &mut report) {
            report.as_of = report.as_of.max(before.as_of);
        }
        // Without a report no node is known, so no released capacity can be credited either.
        let as_of = report.as_ref().map_or(u64::MAX, |report| report.as_of);
        self.released.report_received(as_of);
        (self.report, self.packed) = (report.map(Arc::new), None);
    }

    /// Forgets which clones a report includes.
    pub(crate) fn forget_versions(&mut self) {
        self.placed.values_mut().for_each(|placed| placed.version = None);
    }

    /// Counts a placement, with its end as far as it is known.
    pub(crate) fn place(
        &mut self,
        serial: PlacementSerial,
        work: Arc<AssignedWorkload>,
        end: Option<ExpectedEnd>,
    ) {
        // The cached packing stays valid: a new placement is packed last in any case.
        if let Some(nodes) = &mut self.packed
            && !self.unused_releases.take_matching(&work)
        {
            nodes.place(&work);
        }
        if let Some(local) = &mut self.local {
            local.count(serial, Arc::clone(&work));
        }
        self.placed.insert(serial, PlacedWorkload { work, end, priority: None, version: None });
    }

    /// A placed Workload.
    pub(crate) fn placement(&self, serial: PlacementSerial) -> Option<&PlacedWorkload> {
        self.placed.get(&serial)
    }

    /// Placements, in order.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (PlacementSerial, &PlacedWorkload)> {
        self.placed.iter().map(|(serial, placed)| (*serial, placed))
    }

    /// Replaces the work of a placement by one of fewer pods. Returns whether it has fewer.
    pub(crate) fn shrink(&mut self, serial: PlacementSerial, work: Arc<AssignedWorkload>) -> bool {
        let in_flight = self.in_flight(serial);
        let Some(placed) = self.placed.get_mut(&serial) else {
            return false;
        };
        let counts = |work: &AssignedWorkload| work.pod_sets().map(|(_, count, _)| count).sum();
        let (before, after): (i64, i64) = (counts(&placed.work), counts(&work));
        if after >= before {
            return false;
        }
        placed.work = work;
        self.invalidate(in_flight);
        true
    }

    /// Replaces the work of a placement by that of another slice which it has taken over.
    pub(crate) fn take_over(&mut self, serial: PlacementSerial, work: Arc<AssignedWorkload>) {
        let in_flight = self.in_flight(serial);
        if let Some(placed) = self.placed.get_mut(&serial) {
            placed.work = work;
        }
        self.invalidate(in_flight);
    }

    /// Records the priority of a placed Workload.
    pub(crate) fn set_priority(&mut self, serial: PlacementSerial, priority: i64) {
        if let Some(placed) = self.placed.get_mut(&serial) {
            placed.priority = Some(priority);
        }
    }

    /// Records the clone's first resourceVersion. Later ones say nothing: a report that includes the clone does so whatever
    /// changes of it. Returns whether the free capacity changed.
    pub(crate) fn clone_created(&mut self, serial: PlacementSerial, version: u64) -> bool {
        let before = self.in_flight(serial);
        if let Some(placed) = self.placed.get_mut(&serial) {
            placed.version.get_or_insert(version);
        }
        self.invalidate(before != self.in_flight(serial))
    }

    /// Removes a Workload that ended at this resourceVersion. Its capacity is released if the report still counts it.
    pub(crate) fn workload_ended(&mut self, serial: PlacementSerial, version: u64) {
        let as_of = self.report.as_ref().map_or(u64::MAX, |report| report.as_of);
        // Work in flight is in no report: packing again without it frees its capacity. Only what
        // the report still counts is credited.
        let in_report = !self.in_flight(serial);
        if let Some(local) = &mut self.local {
            local.remove(serial);
        }
        if let Some(placed) = self.placed.remove(&serial)
            && in_report
            && version > as_of
        {
            self.released.add(version, placed.work);
        }
        self.packed = None;
    }

    /// Whether `work` can reuse the capacity of an ended Workload.
    pub(crate) fn covers_from_released(&mut self, work: &AssignedWorkload) -> bool {
        self.nodes().is_some() && self.unused_releases.covers(work)
    }

    /// Removes a placement. Returns whether the free capacity changed.
    pub(crate) fn unplace(&mut self, serial: PlacementSerial) -> bool {
        let before = self.in_flight(serial);
        self.placed.remove(&serial);
        if let Some(local) = &mut self.local {
            local.remove(serial);
        }
        self.invalidate(before)
    }

    /// What is placed and not in the report yet.
    pub(crate) fn in_flight_works(&self) -> impl Iterator<Item = &AssignedWorkload> {
        let as_of = self.report.as_ref().map_or(0, |report| report.as_of);
        let in_flight = self.placed.values().filter(move |placed| placed.in_flight(as_of));
        in_flight.map(|placed| &*placed.work)
    }

    fn in_flight(&self, serial: PlacementSerial) -> bool {
        let as_of = self.report.as_ref().map_or(0, |report| report.as_of);
        self.placed.get(&serial).is_some_and(|placed| placed.in_flight(as_of))
    }

    fn invalidate(&mut self, outdated: bool) -> bool {
        if outdated {
            self.packed = None;
        }
        outdated
    }

    /// Nodes after packing the placements in flight; `None` without a report.
    pub(crate) fn nodes(&mut self) -> Option<&PackedNodes> {
        let report = self.report.as_ref()?;
        if self.packed.is_none() {
            let mut nodes = PackedNodes::new(Arc::clone(report));
            let mut spare = self.released.unused();
            let in_flight = self.placed.values().filter(|placed| placed.in_flight(report.as_of));
            for placed in in_flight {
                if !spare.take_matching(&placed.work) {
                    nodes.place(&placed.work);
                }
            }
            (self.packed, self.unused_releases) = (Some(nodes), spare);
        }
        self.packed.as_ref()
    }
}
