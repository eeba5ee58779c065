//! A scenario: worker clusters, and jobs with the times of their arrival.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::NodeSpec;
use serde::Deserialize;

/// The largest shift of an arrival, in seconds.
const JITTER: f64 = 0.5;

/// The worker clusters and the jobs of a run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Scenario {
    pub(super) clusters: Vec<ScenarioCluster>,
    pub(super) jobs: Vec<ScenarioJob>,
}

/// A worker.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ScenarioCluster {
    nodes: Vec<ScenarioNodes>,
}

/// Equal nodes.
#[derive(Clone, Debug, Deserialize)]
struct ScenarioNodes {
    count: usize,
    cpu: u64,
    gpu: u64,
}

/// A job with pods that run at the same time.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ScenarioJob {
    pub(super) name: String,
    arrival_s: f64,
    pub(super) run_s: u32,
    pub(super) pods: u32,
    pub(super) gpu_per_pod: u32,
}

impl Scenario {
    /// Reads a scenario.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let scenario: Self = serde_json::from_str(text).context("reading a scenario")?;
        ensure!(!scenario.clusters.is_empty() && !scenario.jobs.is_empty(), "an empty scenario");
        Ok(scenario)
    }

    /// The jobs with their arrivals, each shifted by up to half a second, in the order of arrival. Equal seeds give equal shifts.
    pub(super) fn arrivals(&self, seed: u64) -> Vec<(Duration, &ScenarioJob)> {
        let mut random = SplitMix(seed);
        let shifted = self.jobs.iter().map(|job| {
            let shift = (random.next_unit() * 2.0 - 1.0) * JITTER;
            (Duration::from_secs_f64((job.arrival_s + shift).max(0.0)), job)
        });
        let mut arrivals: Vec<_> = shifted.collect();
        arrivals.sort_by_key(|(at, _)| *at);
        arrivals
    }

    /// CPUs and GPUs of all clusters.
    pub(super) fn capacity(&self) -> (u64, u64) {
        let nodes = self.clusters.iter().flat_map(|cluster| &cluster.nodes);
        nodes.fold((0, 0), |(cpu, gpu), one| {
            let count = one.count as u64;
            (cpu + count * one.cpu, gpu + count * one.gpu)
        })
    }
}

impl ScenarioCluster {
    /// Its nodes on the lab.
    pub(super) fn node_specs(&self) -> Vec<NodeSpec> {
        let specs = self.nodes.iter().enumerate().map(|(number, nodes)| NodeSpec {
            prefix: format!("gpu-{number}"),
            count: nodes.count,
            cpu: nodes.cpu.to_string(),
            extended: [("nvidia.com/gpu".to_owned(), nodes.gpu.to_string())].into(),
            ..NodeSpec::default()
        });
        specs.collect()
    }
}

/// Sebastiano Vigna's SplitMix64.
struct SplitMix(u64);

impl SplitMix {
    /// From 0 to less than 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    fn next_unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::SCENARIOS;

    #[test]
    fn every_scenario_has_the_same_clusters_and_fits_on_one() {
        for (name, text) in SCENARIOS {
            let scenario = Scenario::parse(text).expect(name);
            assert_eq!(scenario.capacity(), (896, 112), "{name}");
            let fits = scenario.jobs.iter().all(|job| job.pods * job.gpu_per_pod <= 64);
            assert!(fits, "{name}");
        }
        assert!(Scenario::parse(r#"{"clusters": [], "jobs": []}"#).is_err());
    }

    #[test]
    fn arrivals_are_shifted_by_their_seed() {
        let scenario = Scenario::parse(SCENARIOS[1].1).expect("a scenario");
        let times = |seed| {
            let arrivals = scenario.arrivals(seed);
            arrivals.iter().map(|(at, job)| (*at, job.name.clone())).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        assert!(times(1).is_sorted());
    }
}
