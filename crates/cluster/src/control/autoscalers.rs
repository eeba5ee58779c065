//! The objects of autoscalers, and the nodes that they can still add (docs/reference/dispatch.md §2).
//!
//! Shapes are those that a node group declares, or those of an existing node of the group. What pods of DaemonSets take on that node
//! is subtracted: a new node gets the same. Nothing is counted for an autoscaler that does not write its status any more.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use dispatch::NodeClassCapacity;
use engine::{Amount, Names, topology::HOSTNAME_LABEL};
use jiff::{SignedDuration, Timestamp};
use provisioning::headroom::{
    self, AutoscalerStatus, GroupHeadroom, MachineDeployment, NodeClaim, NodePool,
};
use runtime::watch::Key;

use super::{
    autoscaler_input::AutoscalerInput, change::for_each_object, key_map::KeyMap,
    node_info::NodeInfo, outbox::after, time::moved,
};

/// How long a status of cluster-autoscaler counts. It is written every ten seconds, and counts from when it was observed: clocks
/// of two machines are not compared.
const STATUS_AGE: Duration = Duration::from_secs(300);

/// A node that takes pods. It shows the shape of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExistingNode<'a> {
    pub(crate) name: &'a str,
    pub(crate) info: &'a NodeInfo,
    /// What pods of DaemonSets take on it.
    pub(crate) daemons: &'a BTreeMap<String, i128>,
}

/// The nodes of a group that can still come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewNodeGroup {
    /// Those that were requested and are not ready, and those that were not requested yet.
    pub(crate) class: NodeClassCapacity,
    /// Those that were not requested yet.
    pub(crate) max_more: i64,
}

/// The objects of autoscalers, as they were observed.
#[derive(Debug, Default)]
pub(crate) struct Autoscalers {
    status: Option<(Arc<AutoscalerStatus>, Timestamp)>,
    deployments: KeyMap<Key, Arc<MachineDeployment>>,
    pools: KeyMap<Key, Arc<NodePool>>,
    claims: KeyMap<Key, Arc<NodeClaim>>,
}

impl Autoscalers {
    /// Records objects.
    pub(crate) fn observe(&mut self, input: AutoscalerInput, now: Timestamp) {
        match input {
            AutoscalerInput::Status(change) => {
                for_each_object(change, |_, object| self.observe_status(object, now));
            }
            AutoscalerInput::MachineDeployment(change) => {
                for_each_object(change, |key, object| set(&mut self.deployments, key, object));
            }
            AutoscalerInput::NodePool(change) => {
                for_each_object(change, |key, object| set(&mut self.pools, key, object));
            }
            AutoscalerInput::NodeClaim(change) => {
                for_each_object(change, |key, object| set(&mut self.claims, key, object));
            }
        }
    }

    /// A version that is listed again is not newer.
    fn observe_status(&mut self, status: Option<Arc<AutoscalerStatus>>, now: Timestamp) {
        let version = |status: &AutoscalerStatus| status.metadata.resource_version.clone();
        let known = self.status.as_ref().map(|(known, _)| version(known));
        if status.as_deref().map(version) != known {
            self.status = status.map(|status| (status, now));
        }
    }

    /// The clock jumped.
    pub(crate) fn clock_jumped(&mut self, by: SignedDuration) {
        if let Some((_, at)) = &mut self.status {
            *at = moved(*at, by);
        }
    }

    /// When the status of cluster-autoscaler counts no longer, unless it is written again.
    pub(crate) fn counts_until(&self) -> Option<Timestamp> {
        self.status.as_ref().map(|(_, at)| after(*at, STATUS_AGE))
    }

    /// The nodes that can still be added, by node group with a known shape.
    pub(crate) fn groups<'a>(
        &self,
        nodes: impl Iterator<Item = ExistingNode<'a>>,
        names: &mut Names,
        now: Timestamp,
    ) -> Vec<NewNodeGroup> {
        let counts = self.counts_until().is_some_and(|until| now < until);
        let status = self.status.as_ref().filter(|_| counts);
        let deployments: Vec<_> = self.deployments.values().map(|one| &**one).collect();
        let groups = status.map(|(status, _)| headroom::group_headroom(status, &deployments));
        let claims: Vec<_> = self.claims.values().map(|one| &**one).collect();
        let pools = self.pools.values().filter_map(|one| headroom::pool_headroom(one, &claims));
        let groups: Vec<_> = groups.into_iter().flatten().chain(pools).collect();
        if groups.is_empty() {
            return Vec::new();
        }
        let nodes: Vec<_> = nodes.collect();
        groups.iter().filter_map(|group| class(group, &nodes, names)).collect()
    }
}

fn set<T>(all: &mut KeyMap<Key, Arc<T>>, key: Key, object: Option<Arc<T>>) {
    match object {
        Some(object) => all.insert(key, object),
        None => all.remove(&key),
    };
}

/// The nodes of a group as a class; `None` if their shape is not known.
fn class(
    group: &GroupHeadroom,
    nodes: &[ExistingNode<'_>],
    names: &mut Names,
) -> Option<NewNodeGroup> {
    let is_own = |node: &&ExistingNode<'_>| match &group.node {
        Some(own) => **own == *node.name,
        None => headroom::has_node(&group.name, node.name, &node.info.labels),
    };
    let node = nodes.iter().find(is_own);
    let (labels, taints, mut amounts) = match (&group.shape, node) {
        (Some(shape), _) => {
            let amount = |(name, quantity): (&String, _)| {
                (name.clone(), index::allocatable_amount(name, quantity))
            };
            let amounts: BTreeMap<String, Amount> = shape.allocatable.iter().map(amount).collect();
            (&shape.labels, &shape.taints, amounts)
        }
        (None, Some(ExistingNode { info, .. })) => {
            (&info.labels, &info.taints, info.allocatable.clone())
        }
        (None, None) => return None,
    };
    for (resource, taken) in node.into_iter().flat_map(|node| node.daemons) {
        if let Some(amount) = amounts.get_mut(resource) {
            let left = (i128::from(amount.0) - taken).max(0);
            *amount = Amount(i64::try_from(left).unwrap_or(i64::MAX));
        }
    }
    let labels = labels.iter().filter(|(key, _)| *key != HOSTNAME_LABEL);
    let taints = taints.iter().filter(|taint| !headroom::is_of_one_node(taint)).cloned();
    let mut free: Vec<_> =
        amounts.into_iter().map(|(name, amount)| (names.resources.intern(&name), amount)).collect();
    free.sort_unstable_by_key(|(resource, _)| *resource);
    let class = NodeClassCapacity {
        count: group.max_more.saturating_add(group.upcoming),
        labels: labels.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect(),
        taints: index::taints(&taints.collect::<Vec<_>>()),
        size: free.clone(),
        free,
    };
    Some(NewNodeGroup { class, max_more: group.max_more })
}
