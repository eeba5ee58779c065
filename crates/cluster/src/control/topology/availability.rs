//! Whether nodes and pods can be observed. Their watches are independent and optional, and start with the first Topology.
//!
//! Without pods nothing shows what they take of a node, or that they run there. So nodes are not used before pods were listed or
//! are known to be forbidden, no node fails while pods cannot be observed, and what was observed last counts until the next list.

use std::collections::BTreeSet;

use runtime::watch::{Change, Key, Unavailable};

use super::{watched_node::WatchedNode, watched_pod::WatchedPod};
use crate::control::observed::Observed;

/// The availability of nodes and pods to the watch.
#[derive(Debug, Default)]
pub(super) struct Availability {
    nodes: bool,
    pods: bool,
    /// Pods were listed, or are forbidden.
    shows_usage: bool,
    /// Pods that were removed because their kind was not served.
    unlisted: BTreeSet<Key>,
}

impl Availability {
    /// Whether nodes and pods are as they were last observed.
    pub(super) fn is_complete(&self) -> bool {
        self.nodes && self.pods
    }

    /// Whether pods are as they were last observed.
    pub(super) fn has_pods(&self) -> bool {
        self.pods
    }

    /// Whether what pods take of nodes is known as far as it can be.
    pub(super) fn shows_usage(&self) -> bool {
        self.shows_usage
    }

    /// Takes a change of nodes. Returns whether they can be observed again.
    pub(super) fn observe_nodes(&mut self, change: &Change<Observed<WatchedNode>>) -> bool {
        let before = self.nodes;
        match change {
            Change::Reset { .. } => self.nodes = true,
            Change::Unavailable { .. } => self.nodes = false,
            Change::Apply(_) | Change::Delete(_) => {}
        }
        self.nodes && !before
    }

    /// Takes a change of pods. Returns what changed for certain, and whether they can be observed again.
    pub(super) fn observe_pods(
        &mut self,
        change: Change<Observed<WatchedPod>>,
    ) -> (Change<Observed<WatchedPod>>, bool) {
        match change {
            Change::Reset { objects, mut removed } => {
                let mut unlisted = std::mem::take(&mut self.unlisted);
                for pod in &objects {
                    unlisted.remove(&Key::of(&**pod));
                }
                removed.extend(unlisted);
                self.shows_usage = true;
                (Change::Reset { objects, removed }, !std::mem::replace(&mut self.pods, true))
            }
            Change::Unavailable { reason, removed } => {
                self.unlisted.extend(removed);
                self.shows_usage |= reason == Unavailable::Forbidden;
                self.pods = false;
                (Change::Unavailable { reason, removed: Vec::new() }, false)
            }
            change @ (Change::Apply(_) | Change::Delete(_)) => (change, false),
        }
    }
}
