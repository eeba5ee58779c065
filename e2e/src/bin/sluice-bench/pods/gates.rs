//! From the admission of a pod to the removal of its gate, and the writes of its life.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::meta::is_true;
use crds::names::conditions::{ADMITTED, FINISHED};
use crds::v1beta2::Workload;
use harness::{Follow, secs};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::timeout;

use super::sample_pod::{SamplePod, may_start, name};
use crate::counters::Counters;
use crate::environment::{BenchEnvironment, NAME};
use crate::figures::per;
use crate::quantiles::Quantiles;

/// For one pod.
const WITHIN: Duration = secs(30);

/// For the end of all pods.
const ENDED_WITHIN: Duration = secs(120);

/// Kinds of objects of which writes count for a pod.
const OBJECTS: &[&str] = &["pods", "pods/status", "workloads", "workloads/status"];

/// What was measured.
pub(super) struct StartedPods {
    pub(super) ungated: Quantiles,
    /// Writes per pod, with its creation.
    pub(super) writes: f64,
}

/// Starts so many pods, one after the other.
pub(super) async fn measure(field: &BenchEnvironment<'_>, pods: usize) -> Result<StartedPods> {
    let hub = &field.installation.hub;
    let before = Counters::read(field).await?;
    let mut follows =
        Follows { workloads: Follow::new(hub.api(NAME)), pods: Follow::new(hub.api(NAME)) };
    let mut took = Vec::new();
    for number in 0..pods {
        let name = name(number);
        SamplePod { name: &name, cpu: "10m", run_seconds: 1, group: None }.submit(hub).await?;
        let started = timeout(WITHIN, follows.started(&name)).await;
        took.push(started.with_context(|| format!("{name} was not started in {WITHIN:?}"))?);
    }
    let over = |all: &[Workload]| {
        all.len() == pods && all.iter().all(|one| is_true(&one.status.conditions, FINISHED))
    };
    hub.until_all(&hub.api(NAME), "", "all pods have ended", ENDED_WITHIN, over).await?;
    let counters = Counters::read(field).await?.since(&before);
    for (write, count) in &counters.writes {
        println!("  {} ({}): {count}", write.purpose, write.answer);
    }
    let of_manager = counters.writes_of(|resource| OBJECTS.contains(&resource));
    let writes = per(of_manager, pods) + 1.0;
    Ok(StartedPods { ungated: Quantiles::of(took), writes })
}

/// Watches of Workloads and pods.
struct Follows {
    workloads: Follow<Workload>,
    pods: Follow<Pod>,
}

impl Follows {
    /// The time between both events of a pod. Watches are not in order: the gate may be seen first.
    async fn started(&mut self, name: &str) -> Duration {
        let (mut admitted, mut ungated) = (None, None);
        loop {
            tokio::select! {
                change = self.workloads.next() => {
                    let owned = |one: &Workload| one.owner_references().iter().any(|owner| owner.name == name);
                    let mut all = change.present().into_iter().filter(owned);
                    if all.any(|one| is_true(&one.status.conditions, ADMITTED)) {
                        admitted.get_or_insert_with(Instant::now);
                    }
                }
                change = self.pods.next() => {
                    let mut all = change.present().into_iter();
                    if all.any(|one| one.name_any() == name && may_start(&one)) {
                        ungated.get_or_insert_with(Instant::now);
                    }
                }
            }
            if let (Some(admitted), Some(ungated)) = (admitted, ungated) {
                return ungated.saturating_duration_since(admitted);
            }
        }
    }
}
