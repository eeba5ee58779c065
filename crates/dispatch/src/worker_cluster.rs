//! One worker as the manager knows it: its report, and what was placed there since.
//!
//! In flight is what was placed and is not yet part of the report: the clone's resourceVersion is unknown, or above
//! the report's `as_of` (docs/reference/dispatch.md §2). It is packed onto the nodes, in the order in which it was placed, before
//! anything is asked. What has the room of work that is over ([`credit`](crate::released_capacity)) is not packed again. The packed
//! nodes are kept until something changes here.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Time;

use crate::node_packing::PackedNodes;
use crate::released_capacity::{ReleasedCapacity, UnusedReleases};
use crate::{AssignedWorkload, CapacityReport};

/// The number of a placement; later ones have higher numbers.
pub(crate) type PlacementSerial = u64;

/// Work on a cluster.
#[derive(Debug)]
pub(crate) struct PlacedWorkload {
    pub(crate) work: Arc<AssignedWorkload>,
    /// When it is over at the latest, if that is known.
    pub(crate) until: Option<Time>,
    /// resourceVersion of the clone, once it is known to exist.
    version: Option<u64>,
}

impl PlacedWorkload {
    fn in_flight(&self, as_of: u64) -> bool {
        self.version.is_none_or(|version| version > as_of)
    }
}

/// A worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerCluster {
    pub(crate) labels: Vec<(Box<str>, Box<str>)>,
    pub(crate) connected: bool,
    /// When it last changed, counted in changes of the fleet.
    pub(crate) changed: u64,
    report: Option<Arc<CapacityReport>>,
    placed: BTreeMap<PlacementSerial, PlacedWorkload>,
    packed: Option<PackedNodes>,
    released: ReleasedCapacity,
    /// Of the credits, those that what is in flight does not use.
    unused_releases: UnusedReleases,
}

impl WorkerCluster {
    pub(crate) fn report(&self) -> Option<&CapacityReport> {
        self.report.as_deref()
    }

    pub(crate) fn set_report(&mut self, report: Option<CapacityReport>) {
        let as_of = report.as_ref().map_or(u64::MAX, |report| report.as_of);
        self.released.report_received(as_of);
        (self.report, self.packed) = (report.map(Arc::new), None);
    }

    /// Counts work that is placed here from now on, and over `until` then.
    pub(crate) fn place(
        &mut self,
        serial: PlacementSerial,
        work: Arc<AssignedWorkload>,
        until: Option<Time>,
    ) {
        if let Some(nodes) = &mut self.packed
            && !self.unused_releases.take_matching(&work)
        {
            nodes.place(&work);
        }
        self.placed.insert(serial, PlacedWorkload { work, until, version: None });
    }

    /// What was placed here, in the order in which it was.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (PlacementSerial, &PlacedWorkload)> {
        self.placed.iter().map(|(serial, placed)| (*serial, placed))
    }

    /// The clone exists. Says whether that changes what is free.
    pub(crate) fn clone_created(&mut self, serial: PlacementSerial, version: u64) -> bool {
        let before = self.in_flight(serial);
        if let Some(placed) = self.placed.get_mut(&serial) {
            placed.version = Some(version);
        }
        self.invalidate(before != self.in_flight(serial))
    }

    /// Work is over at this resourceVersion. What the report still counts is credited.
    pub(crate) fn workload_ended(&mut self, serial: PlacementSerial, version: u64) {
        let as_of = self.report.as_ref().map_or(u64::MAX, |report| report.as_of);
        let counted = !self.in_flight(serial);
        if let Some(placed) = self.placed.remove(&serial)
            && counted
            && version > as_of
        {
            self.released.add(version, placed.work);
        }
        self.packed = None;
    }

    /// Whether work can have the room of some that is over.
    pub(crate) fn covers_from_released(&mut self, work: &AssignedWorkload) -> bool {
        self.nodes().is_some() && self.unused_releases.covers(work)
    }

    /// Counts work no longer. Says whether that changes what is free.
    pub(crate) fn unplace(&mut self, serial: PlacementSerial) -> bool {
        let before = self.in_flight(serial);
        self.placed.remove(&serial);
        self.invalidate(before)
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

    /// The nodes without what is in flight; `None` without a report.
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
