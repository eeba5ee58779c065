//! Nodes that kwok simulates.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSpec as KubeNodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

/// More pods than a kubelet accepts, because simulated nodes are cheap.
const PODS: &str = "1000";

/// The properties of a group of nodes.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// Names are `<prefix>-<number>`, from 1.
    pub prefix: String,
    /// How many.
    pub count: usize,
    /// CPU of each.
    pub cpu: String,
    /// Memory of each.
    pub memory: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Further resources, such as `nvidia.com/gpu`.
    pub extended: BTreeMap<String, String>,
}

impl Default for NodeSpec {
    fn default() -> Self {
        Self {
            prefix: "node".to_owned(),
            count: 1,
            cpu: "32".to_owned(),
            memory: "256Gi".to_owned(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            extended: BTreeMap::new(),
        }
    }
}

/// A taint that is not of the form `key[=value]:effect`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("taint {0:?} is not key:Effect or key=value:Effect")]
pub struct BadTaint(String);

/// A node could not be created.
#[derive(Debug, thiserror::Error)]
#[error("create node {name}: {source}")]
pub struct NodeError {
    name: String,
    source: kube::Error,
}

impl NodeSpec {
    /// The names of the nodes.
    pub fn names(&self) -> Vec<String> {
        (1..=self.count).map(|number| format!("{}-{number}", self.prefix)).collect()
    }

    fn node(&self, name: String) -> Node {
        let mut labels = self.labels.clone();
        for (key, value) in [
            ("kubernetes.io/hostname", name.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
        ] {
            labels.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
        let own = [("cpu", self.cpu.as_str()), ("memory", &self.memory), ("pods", PODS)];
        let extended = self.extended.iter().map(|(name, amount)| (name.as_str(), amount.as_str()));
        let capacity: BTreeMap<String, Quantity> = own
            .into_iter()
            .chain(extended)
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
            .collect();
        Node {
            metadata: ObjectMeta {
                name: Some(name),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: Some(KubeNodeSpec {
                taints: (!self.taints.is_empty()).then(|| self.taints.clone()),
                ..KubeNodeSpec::default()
            }),
            status: Some(NodeStatus {
                allocatable: Some(capacity.clone()),
                capacity: Some(capacity),
                ..NodeStatus::default()
            }),
        }
    }
}

/// Creates the nodes.
pub async fn create(client: Client, spec: &NodeSpec) -> Result<(), NodeError> {
    let api: Api<Node> = Api::all(client);
    for name in spec.names() {
        let created = api.create(&PostParams::default(), &spec.node(name.clone())).await;
        created.map_err(|source| NodeError { name, source })?;
    }
    Ok(())
}

/// Reads a taint as kubectl writes it.
pub fn parse_taint(text: &str) -> Result<Taint, BadTaint> {
    let bad = || BadTaint(text.to_owned());
    let (left, effect) = text.rsplit_once(':').ok_or_else(bad)?;
    let (key, value) = match left.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (left, None),
    };
    let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect);
    if key.is_empty() || !known {
        return Err(bad());
    }
    Ok(Taint { key: key.to_owned(), value, effect: effect.to_owned(), ..Taint::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_have_kubectls_notation() {
        let taint = parse_taint("gpu=yes:NoSchedule").unwrap();
        assert_eq!((taint.key.as_str(), taint.value.as_deref()), ("gpu", Some("yes")));
        assert_eq!(parse_taint("spot:NoExecute").unwrap().value, None);
        for bad in ["gpu", ":NoSchedule", "gpu=yes:Sometimes"] {
            assert_eq!(parse_taint(bad), Err(BadTaint(bad.into())));
        }
    }

    #[test]
    fn a_node_offers_the_requested_resources() {
        let spec = NodeSpec {
            prefix: "gpu".into(),
            extended: [("nvidia.com/gpu".to_owned(), "8".to_owned())].into(),
            ..NodeSpec::default()
        };
        let node = spec.node(spec.names().remove(0));
        let allocatable = node.status.unwrap().allocatable.unwrap();
        assert_eq!(allocatable["nvidia.com/gpu"].0, "8");
        assert_eq!(allocatable["cpu"].0, "32");
        assert_eq!(node.metadata.labels.unwrap()["kubernetes.io/hostname"], "gpu-1");
    }
}
