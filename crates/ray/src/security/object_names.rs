//! Names of the objects that secure a RayCluster.
//!
//! A cluster without the annotation `ray.openshift.ai/version` has bare names. With it a name ends with a hash, so that it hardly meets
//! that of an object of the user; but for those of the ways from outside, by which clients look them up.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    json::{annotation, name, text},
    names,
};

/// The names of the objects that secure one RayCluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectNames<'a> {
    pub(super) cluster: &'a str,
    pub(super) namespace: &'a str,
    is_hashed: bool,
}

impl<'a> ObjectNames<'a> {
    pub(super) fn of(cluster: &'a Value) -> Self {
        Self {
            cluster: name(cluster),
            namespace: text(&cluster["metadata"]["namespace"]),
            is_hashed: !annotation(cluster, names::SECURITY_VERSION).is_empty(),
        }
    }

    /// The Secret with the CA.
    pub(super) fn authority(&self) -> String {
        // The bare name is the other way round.
        if self.is_hashed {
            self.hashed(format!("{}-ca-secret", self.cluster))
        } else {
            format!("ca-secret-{}", self.cluster)
        }
    }

    /// The Route or Ingress of the dashboard.
    pub(super) fn dashboard(&self) -> String {
        format!("ray-dashboard-{}", self.cluster)
    }

    /// The Route or Ingress of Ray's clients.
    pub(super) fn client(&self) -> String {
        format!("rayclient-{}", self.cluster)
    }

    /// The Secret of the proxy.
    pub(super) fn proxy_secret(&self) -> String {
        self.hashed(format!("{}-oauth-config", self.cluster))
    }

    /// The Service of the proxy.
    pub(super) fn proxy_service(&self) -> String {
        self.hashed(format!("{}-oauth", self.cluster))
    }

    /// The Secret with the certificate of the proxy, which OpenShift makes.
    pub(super) fn proxy_certificate(&self) -> String {
        self.hashed(format!("{}-proxy-tls-secret", self.cluster))
    }

    /// The account of the head's pod.
    pub(super) fn proxy_account(&self) -> String {
        self.hashed(format!("{}-oauth-proxy", self.cluster))
    }

    /// The ClusterRoleBinding of that account.
    pub(super) fn proxy_binding(&self) -> String {
        self.hashed(format!("{}-{}-auth", self.cluster, self.namespace))
    }

    /// The NetworkPolicy of the head.
    pub(super) fn head_policy(&self) -> String {
        self.hashed(format!("{}-head", self.cluster))
    }

    /// The NetworkPolicy of the workers.
    pub(super) fn workers_policy(&self) -> String {
        self.hashed(format!("{}-workers", self.cluster))
    }

    /// The name that earlier versions gave to a way from outside. None for a cluster with bare names.
    pub(super) fn former(&self, way: &str) -> Option<String> {
        self.is_hashed.then(|| self.hashed(way.to_owned()))
    }

    fn hashed(&self, bare: String) -> String {
        if !self.is_hashed {
            return bare;
        }
        let digest =
            Sha256::new().chain_update(names::SECURITY_MANAGER).chain_update(&bare).finalize();
        let mut hashed = bare;
        hashed.push('-');
        for byte in digest.iter().take(4) {
            // Writing to a text does not fail.
            let _ = write!(hashed, "{byte:02x}");
        }
        hashed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(annotations: &Value) -> Value {
        json!({"metadata": {"name": "c", "namespace": "ns", "annotations": annotations}})
    }

    #[test]
    fn names_are_bare_without_the_annotation() {
        let cluster = cluster(&json!({}));
        let names = ObjectNames::of(&cluster);
        assert_eq!(names.authority(), "ca-secret-c");
        assert_eq!(names.dashboard(), "ray-dashboard-c");
        assert_eq!(names.proxy_binding(), "c-ns-auth");
        assert_eq!(names.head_policy(), "c-head");
    }

    #[test]
    fn names_end_with_a_hash_of_the_bare_name_with_the_annotation() {
        let cluster = cluster(&json!({"ray.openshift.ai/version": "v1.16.0"}));
        let names = ObjectNames::of(&cluster);
        assert!(names.authority().starts_with("c-ca-secret-"), "{}", names.authority());
        assert!(names.authority().len() == "c-ca-secret-".len() + 8);
        // printf codeflare-raycluster-controllerc-head | sha256sum
        assert_eq!(names.head_policy(), "c-head-9340510f");
    }

    /// CodeFlare's SDK looks the dashboard up by this name.
    #[test]
    fn ways_from_outside_have_bare_names() {
        let cluster = cluster(&json!({"ray.openshift.ai/version": "v1.16.0"}));
        let names = ObjectNames::of(&cluster);
        assert_eq!(names.dashboard(), "ray-dashboard-c");
        assert_eq!(names.client(), "rayclient-c");
    }
}
