//! The configuration of kwok: how it simulates nodes and pods.
//!
//! The stages are in `stages/*.yaml`, with a description of their annotations; e2e/README.md has a table of the annotations.

/// Settings of kwok. With the default of four workers thousands of pods are slow.
const SETTINGS: &str = "\
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 32
  nodePlayStageParallelism: 16
";

const STAGES: [&str; 6] = [
    include_str!("../stages/node-ready.yaml"),
    include_str!("../stages/pod-start.yaml"),
    include_str!("../stages/pod-ready.yaml"),
    include_str!("../stages/pod-end.yaml"),
    include_str!("../stages/pod-stop.yaml"),
    include_str!("../stages/pod-remove.yaml"),
];

/// Annotations on a pod (a job's pod template) that control its simulation.
pub mod annotation {
    /// Seconds from the containers' start until they end by themselves. Without it a pod whose `restartPolicy` is `Always`
    /// runs until it is deleted, and any other ends at once.
    pub const RUN_SECONDS: &str = "lab.sluice.dev/run-seconds";
    /// The exit code of the containers. A pod with another code than 0 fails.
    pub const EXIT_CODE: &str = "lab.sluice.dev/exit-code";
    /// Seconds from the containers' start until they become ready.
    pub const READY_SECONDS: &str = "lab.sluice.dev/ready-seconds";
    /// `"true"`: the containers run but never become ready, and end only with `run-seconds`.
    pub const NEVER_READY: &str = "lab.sluice.dev/never-ready";
    /// Seconds from the deletion until the containers have stopped, within the pod's grace period.
    pub const STOP_SECONDS: &str = "lab.sluice.dev/stop-seconds";
    /// `"true"`: a deletion is not noticed, as if the kubelet were down.
    pub const SILENT: &str = "lab.sluice.dev/silent";
}

/// The configuration file.
pub(crate) fn configuration() -> String {
    let documents: Vec<&str> = std::iter::once(SETTINGS).chain(STAGES).collect();
    documents.join("---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_a_stage_but_the_first() {
        let documents: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&configuration()).unwrap();
        let kinds: Vec<&str> = documents.iter().filter_map(|one| one["kind"].as_str()).collect();
        assert_eq!(kinds[0], "KwokConfiguration");
        assert_eq!(kinds.len(), 1 + STAGES.len());
        assert!(kinds[1..].iter().all(|kind| *kind == "Stage"));
    }

    #[test]
    fn every_annotation_is_used_by_a_stage() {
        use annotation::*;
        for name in [RUN_SECONDS, EXIT_CODE, READY_SECONDS, NEVER_READY, STOP_SECONDS, SILENT] {
            assert!(STAGES.iter().any(|stage| stage.contains(name)), "{name}");
        }
    }
}
