//! What is added to the pods of a group, in the lists where it stands.
//!
//! What was added once stays as it is, whatever the settings say now: pods that run were made from it, and a RayCluster that changes no
//! longer matches its Workload.

use serde_json::Value;

use super::{
    config::SecurityConfig,
    containers::{
        head_create_cert, proxy, proxy_volume, tls_mounts, tls_variables, tls_volumes,
        worker_create_cert,
    },
    object_names::ObjectNames,
};
use crate::json::{named, text};

/// The additions to the pods of one group.
#[derive(Clone, Debug, Default)]
pub(super) struct PodAdditions {
    pub(super) containers: Vec<Value>,
    pub(super) init_containers: Vec<Value>,
    pub(super) volumes: Vec<Value>,
    /// Of the first container.
    pub(super) env: Vec<Value>,
    /// Of the first container.
    pub(super) mounts: Vec<Value>,
    pub(super) account: Option<String>,
}

impl PodAdditions {
    /// Of the head. The volume of the proxy is the first one.
    pub(super) fn of_head(
        cluster: &Value,
        names: &ObjectNames<'_>,
        config: &SecurityConfig,
    ) -> Self {
        let create_cert = || head_create_cert(cluster, names, config);
        let mut additions = Self::of_pod(names, config, create_cert);
        if config.oauth {
            additions.containers.push(proxy(names, config));
            additions.volumes.insert(0, proxy_volume(names));
            additions.account = Some(names.proxy_account());
        }
        additions
    }

    /// Of workers.
    pub(super) fn of_workers(names: &ObjectNames<'_>, config: &SecurityConfig) -> Self {
        Self::of_pod(names, config, || worker_create_cert(config))
    }

    fn of_pod(
        names: &ObjectNames<'_>,
        config: &SecurityConfig,
        create_cert: impl FnOnce() -> Value,
    ) -> Self {
        if !config.mtls {
            return Self::default();
        }
        Self {
            init_containers: vec![create_cert()],
            volumes: tls_volumes(names),
            env: tls_variables(),
            mounts: tls_mounts(),
            ..Self::default()
        }
    }

    /// These additions, with the items of their names that a pod has already.
    pub(super) fn or_of(mut self, pod: &Value) -> Self {
        let ray = &pod["containers"][0];
        for (items, present) in [
            (&mut self.containers, &pod["containers"]),
            (&mut self.init_containers, &pod["initContainers"]),
            (&mut self.volumes, &pod["volumes"]),
            (&mut self.env, &ray["env"]),
            (&mut self.mounts, &ray["volumeMounts"]),
        ] {
            for item in items {
                if let Some(present) = named(present, text(&item["name"])) {
                    *item = present.clone();
                }
            }
        }
        self
    }
}
