//! Which nodes belong to a node group of cluster-autoscaler.
//!
//! The name of a group is that of the cloud's own object: an instance group, a scale set, a pool. A node belongs to it if a label
//! says so, or if the cloud makes the name of the node from that of the group. Other nodes belong to no group, so that no group gets
//! the shape of another one.

use std::collections::BTreeMap;

/// Labels with the name of the node's group as their value.
const GROUP_LABELS: &[&str] =
    &["doks.digitalocean.com/node-pool-id", "hcloud/node-group", "kwok-nodegroup"];

/// The label of managed node groups of EKS. Their instance group is `eks-<group>-<uuid>`.
const EKS_GROUP: &str = "eks.amazonaws.com/nodegroup";

/// Whether a node belongs to a group.
#[must_use]
pub fn has_node(group: &str, node: &str, labels: &BTreeMap<String, String>) -> bool {
    // On Google Cloud the name is a URL.
    let name = group.rsplit('/').next().unwrap_or(group);
    let says = |key: &&str| labels.get(*key).is_some_and(|value| value == name);
    GROUP_LABELS.iter().any(says)
        || labels.get(EKS_GROUP).is_some_and(|value| is_eks_group(name, value))
        || is_named_after(name.strip_suffix("-grp").map(|base| (base, "-", 4)), node)
        || is_named_after(name.ends_with("-vmss").then_some((name, "", 6)), node)
}

fn is_eks_group(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix("eks-").and_then(|rest| rest.strip_prefix(value));
    let uuid = rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
    let lengths = uuid.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && uuid.chars().all(|one| one.is_ascii_hexdigit() || one == '-')
}

/// Whether the name of a node is that of its group, a separator and so many letters and digits.
fn is_named_after(rule: Option<(&str, &str, usize)>, node: &str) -> bool {
    let Some((base, separator, length)) = rule else { return false };
    let rest = node.strip_prefix(base).and_then(|rest| rest.strip_prefix(separator));
    rest.is_some_and(|rest| {
        rest.len() == length && rest.chars().all(|one| one.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_belongs_to_the_group_of_its_label_or_its_name() {
        let gke = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-c-a-1a2b3c4d-grp";
        let eks = "eks-workers-3ac1b2c4-0f3d-4a55-9e27-0123456789ab";
        for (group, node, label, belongs) in [
            ("gpu", "n", ("kwok-nodegroup", "gpu"), true),
            ("gpu", "n", ("kwok-nodegroup", "gpu-large"), false),
            ("gpu", "n", ("team", "gpu"), false),
            (gke, "gke-c-a-1a2b3c4d-x7zk", ("", ""), true),
            (gke, "gke-c-a-b-1a2b3c4d-x7zk", ("", ""), false),
            ("aks-user-25795745-vmss", "aks-user-25795745-vmss000001", ("", ""), true),
            ("aks-user-25795745-vmss", "aks-users-25795745-vmss000001", ("", ""), false),
            (eks, "ip-10-0-0-1", (EKS_GROUP, "workers"), true),
            (eks, "ip-10-0-0-1", (EKS_GROUP, "workers-3ac1b2c4"), false),
            (eks, "ip-10-0-0-1", (EKS_GROUP, "work"), false),
        ] {
            let labels = [(label.0.to_owned(), label.1.to_owned())].into();
            assert_eq!(has_node(group, node, &labels), belongs, "{group} {node} {label:?}");
        }
    }
}
