//! A Node, as topologies see it.

use crds::meta::Taint;
use engine::topology::HOSTNAME_LABEL;
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use crate::control::{node_info::NodeInfo, observed::Reduced};

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchedNode {
    pub(super) name: Box<str>,
    pub(super) info: NodeInfo,
    pub(super) readiness: Readiness,
    /// Its taints with the times at which they were added, which `info` leaves out.
    pub(super) taints: Vec<Taint>,
}

/// The condition Ready of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Readiness {
    /// There is no condition Ready.
    #[default]
    Unknown,
    /// The condition is true.
    Ready,
    /// It is false or unknown, since this time if there is one.
    NotReady(Option<Timestamp>),
}

impl Reduced for WatchedNode {
    type Kind = Node;
    type Object = Node;

    fn metadata(node: &Node) -> &ObjectMeta {
        &node.metadata
    }

    fn of(node: &Node) -> Self {
        let name = node.metadata.name.as_deref().unwrap_or_default().into();
        let info = NodeInfo::of(node);
        let listed = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let times = listed.map(|taint| taint.time_added.clone());
        let taints = info.taints.iter().cloned().zip(times);
        let taints = taints.map(|(taint, time_added)| Taint { time_added, ..taint }).collect();
        Self { name, info, readiness: Readiness::of(node), taints }
    }
}

impl WatchedNode {
    /// The hostname label, by which topology assignments and node selectors of pods name it. Its name may be another one, and stands in
    /// for a label that is missing: pods stay on a node that loses the label.
    pub(super) fn hostname(&self) -> &str {
        let label = self.info.labels.get(HOSTNAME_LABEL).filter(|label| !label.is_empty());
        label.map_or(&*self.name, String::as_str)
    }
}

impl Readiness {
    fn of(node: &Node) -> Self {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let Some(ready) = conditions.into_iter().find(|one| one.type_ == "Ready") else {
            return Self::Unknown;
        };
        match &*ready.status {
            "True" => Self::Ready,
            _ => Self::NotReady(ready.last_transition_time.as_ref().map(|time| time.0)),
        }
    }
}
