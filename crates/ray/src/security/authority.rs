//! The Secret with the CA of a RayCluster. It is made once: certificates of running pods are signed by it.

use serde_json::{Value, json};

use super::secured_cluster::SecuredCluster;

/// The common name of a CA.
pub const AUTHORITY_SUBJECT: &str = "root-ca";

/// The Secret without its content, which is made when it is written.
pub(super) fn authority(cluster: &SecuredCluster<'_>) -> Value {
    let mut secret = cluster.object("v1", "Secret", &cluster.names.authority());
    secret["type"] = json!("Opaque");
    secret
}

/// The content of the Secret, for its field `stringData`.
#[must_use]
pub fn authority_data(key: &str, certificate: &str) -> Value {
    json!({"ca.key": key, "ca.crt": certificate})
}
