//! The settings with which a case was recorded.

use std::time::Duration;

use ray::settings::{OperatorSettings, RayPodDefaults};
use serde_json::json;

/// The settings of a profile.
pub(crate) fn settings(profile: &str) -> OperatorSettings {
    let mut settings = OperatorSettings { version: "nightly".to_owned(), ..Default::default() };
    let gates = &mut settings.gates;
    match profile {
        "default" => {}
        "gates" | "gates2" => {
            gates.network_policy = true;
            gates.embedded_storage = true;
            gates.history_server = true;
            gates.sidecar_submitter_restart = profile == "gates2";
        }
        "gates-off" => {
            gates.status_conditions = false;
            gates.deletion_policy = false;
            gates.multi_host_indexing = false;
            gates.incremental_upgrade = false;
        }
        "env" => {
            settings.head_cluster_ip_service = true;
            settings.deterministic_head_name = true;
            settings.login_shell = true;
            settings.random_pod_delete = true;
            settings.inject_probes = false;
            settings.inject_init_container = false;
            settings.redis_cleanup = false;
            settings.zero_downtime = false;
            settings.cluster_domain = "corp.example".to_owned();
            settings.delete_finished_jobs = true;
            settings.job_end_grace = Duration::from_secs(12);
            settings.job_check_timeout = Duration::from_secs(12);
        }
        "ray-config" => settings.pods = configured(),
        other => unreachable!("unknown profile {other}"),
    }
    settings
}

fn configured() -> RayPodDefaults {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    RayPodDefaults {
        head_sidecars: vec![json!({"name": "head-side", "image": "registry.example/side:1"})],
        worker_sidecars: vec![json!({"name": "worker-side", "image": "registry.example/side:2"})],
        env: vec![
            json!({"name": "SITE", "value": "one"}),
            json!({"name": "RAY_PORT", "value": "1"}),
        ],
        labels: pairs(&[("site", "one"), ("ray.io/cluster", "no")]),
        annotations: pairs(&[("lab.sluice.dev/run-seconds", "3600"), ("site/note", "x")]),
    }
}
