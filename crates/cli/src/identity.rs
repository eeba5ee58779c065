//! Which cluster a registration is about. Pure.
//!
//! The uid of `kube-system` identifies a cluster. The manager notes it on the MultiKueueCluster once it is connected.

use crds::{names::annotations::CLUSTER_UID, v1beta2::MultiKueueCluster};

/// How a cluster is at odds with the registrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityConflict {
    /// The registration of this name is about another cluster.
    Changed {
        /// The noted uid.
        known: String,
    },
    /// The cluster is registered under another name.
    RegisteredAs {
        /// The name.
        name: String,
    },
}

/// Compares the cluster `uid` with the registrations; it is meant by the one of this name.
#[must_use]
pub fn conflict(clusters: &[MultiKueueCluster], name: &str, uid: &str) -> Option<IdentityConflict> {
    let named = |one: &&MultiKueueCluster| one.metadata.name.as_deref() == Some(name);
    let other = clusters.iter().find(|one| !named(one) && noted(one) == Some(uid));
    if let Some(name) = other.and_then(|one| one.metadata.name.clone()) {
        return Some(IdentityConflict::RegisteredAs { name });
    }
    let known = clusters.iter().find(named).and_then(noted)?;
    (known != uid).then(|| IdentityConflict::Changed { known: known.to_owned() })
}

fn noted(cluster: &MultiKueueCluster) -> Option<&str> {
    let noted = cluster.metadata.annotations.as_ref()?.get(CLUSTER_UID)?;
    Some(noted.as_str()).filter(|uid| !uid.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str, uid: Option<&str>) -> MultiKueueCluster {
        let mut cluster = MultiKueueCluster::default();
        cluster.metadata.name = Some(name.to_owned());
        cluster.metadata.annotations =
            uid.map(|uid| [(CLUSTER_UID.to_owned(), uid.to_owned())].into());
        cluster
    }

    #[test]
    fn a_cluster_has_one_registration_and_a_registration_one_cluster() {
        let clusters =
            [cluster("east", Some("1")), cluster("west", Some("2")), cluster("new", None)];
        let changed = Some(IdentityConflict::Changed { known: "1".to_owned() });
        let west = Some(IdentityConflict::RegisteredAs { name: "west".to_owned() });
        for (name, uid, expected) in [
            ("east", "1", None),
            ("east", "3", changed),
            // The kubeconfig of another worker is the likelier mistake.
            ("east", "2", west.clone()),
            ("new", "3", None),
            ("absent", "2", west),
            ("absent", "3", None),
        ] {
            assert_eq!(conflict(&clusters, name, uid), expected, "{name} {uid}");
        }
    }
}
