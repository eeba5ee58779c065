//! One worker as the manager knows it: its report, and what was placed there since.
//!
//! In flight is what was placed and is not yet part of the report: the clone's resourceVersion is unknown, or above
//! the report's `as_of` (docs/reference/dispatch.md §2). It is packed onto the nodes, in the order in which it was placed, before
//! anything is asked. What has the room of work that is over ([`credit`](crate::credit)) is not packed again. The packed
//! nodes are kept until something changes here.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Time;

use crate::credit::{Credits, Spare};
use crate::pack::Nodes;
use crate::{Report, Work};

/// The number of a placement; later ones have higher numbers.
pub(crate) type Serial = u64;

/// Work on a cluster.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) work: Arc<Work>,
    /// When it is over at the latest, if that is known.
    pub(crate) until: Option<Time>,
    /// resourceVersion of the clone, once it is known to exist.
    version: Option<u64>,
}

impl Placed {
    fn in_flight(&self, as_of: u64) -> bool {
        self.version.is_none_or(|version| version > as_of)
    }
}

/// A worker.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) labels: Vec<(Box<str>, Box<str>)>,
    pub(crate) connected: bool,
    /// When it last changed, counted in changes of the fleet.
    pub(crate) changed: u64,
    report: Option<Arc<Report>>,
    placed: BTreeMap<Serial, Placed>,
    nodes: Option<Nodes>,
    credits: Credits,
    /// Of the credits, those that what is in flight does not use.
    spare: Spare,
}

impl Cluster {
    pub(crate) fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }

    pub(crate) fn set_report(&mut self, report: Option<Report>) {
        let as_of = report.as_ref().map_or(u64::MAX, |report| report.as_of);
        self.credits.settle(as_of);
        (self.report, self.nodes) = (report.map(Arc::new), None);
    }

    /// Counts work that is placed here from now on, and over `until` then.
    pub(crate) fn place(&mut self, serial: Serial, work: Arc<Work>, until: Option<Time>) {
        if let Some(nodes) = &mut self.nodes
            && !self.spare.spend(&work)
        {
            nodes.take(&work);
        }
        self.placed.insert(serial, Placed { work, until, version: None });
    }

    /// What was placed here, in the order in which it was.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (Serial, &Placed)> {
        self.placed.iter().map(|(serial, placed)| (*serial, placed))
    }

    /// The clone exists. Says whether that changes what is free.
    pub(crate) fn created(&mut self, serial: Serial, version: u64) -> bool {
        let before = self.in_flight(serial);
        if let Some(placed) = self.placed.get_mut(&serial) {
            placed.version = Some(version);
        }
        self.outdated(before != self.in_flight(serial))
    }

    /// Work is over at this resourceVersion. What the report still counts is credited.
    pub(crate) fn ended(&mut self, serial: Serial, version: u64) {
        let as_of = self.report.as_ref().map_or(u64::MAX, |report| report.as_of);
        let counted = !self.in_flight(serial);
        if let Some(placed) = self.placed.remove(&serial)
            && counted
            && version > as_of
        {
            self.credits.add(version, placed.work);
        }
        self.nodes = None;
    }

    /// Whether work can have the room of some that is over.
    pub(crate) fn credits(&mut self, work: &Work) -> bool {
        self.nodes().is_some() && self.spare.covers(work)
    }

    /// Counts work no longer. Says whether that changes what is free.
    pub(crate) fn forget(&mut self, serial: Serial) -> bool {
        let before = self.in_flight(serial);
        self.placed.remove(&serial);
        self.outdated(before)
    }

    fn in_flight(&self, serial: Serial) -> bool {
        let as_of = self.report.as_ref().map_or(0, |report| report.as_of);
        self.placed.get(&serial).is_some_and(|placed| placed.in_flight(as_of))
    }

    fn outdated(&mut self, outdated: bool) -> bool {
        if outdated {
            self.nodes = None;
        }
        outdated
    }

    /// The nodes without what is in flight; `None` without a report.
    pub(crate) fn nodes(&mut self) -> Option<&Nodes> {
        let report = self.report.as_ref()?;
        if self.nodes.is_none() {
            let mut nodes = Nodes::new(Arc::clone(report));
            let mut spare = self.credits.spare();
            let in_flight = self.placed.values().filter(|placed| placed.in_flight(report.as_of));
            for placed in in_flight {
                if !spare.spend(&placed.work) {
                    nodes.take(&placed.work);
                }
            }
            (self.nodes, self.spare) = (Some(nodes), spare);
        }
        self.nodes.as_ref()
    }
}
