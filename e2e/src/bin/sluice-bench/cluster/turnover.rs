//! From the end of a Workload to the admission of the next one in its queue.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::v1beta2::Workload;
use harness::{Cluster, Follow, secs};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use tokio::time::timeout;

use super::{generator, status_writes};
use crate::environment::NAME;
use crate::quantiles::Quantiles;

/// Workloads that the quota holds, and that wait when each of the ends comes.
const RUNNING: usize = 10;

/// For one admission.
const WITHIN: Duration = secs(30);

/// Ends so many Workloads of a full queue, one after the other.
pub(super) async fn measure(hub: &Cluster, ends: usize) -> Result<Quantiles> {
    let api: Api<Workload> = hub.api(NAME);
    for number in 0..RUNNING + ends {
        let object = generator::workload(&format!("turn-{number:04}"), NAME, "1", 0)?;
        let created = api.create(&PostParams::default(), &object).await;
        created.with_context(|| format!("creating Workload {number}"))?;
    }
    let mut seen = AdmittedWorkloads { follow: Follow::new(api.clone()), all: BTreeSet::new() };
    while seen.all.len() < RUNNING {
        seen.next().await?;
    }
    let mut took = Vec::new();
    for end in 0..ends {
        let Some(name) = seen.all.pop_first() else {
            break;
        };
        status_writes::finish(&api, &name).await?;
        let freed = Instant::now();
        let next = seen.next().await?;
        took.push(freed.elapsed());
        ensure!(next.starts_with("turn-"), "{next} was admitted after end {end}");
    }
    for name in &seen.all {
        status_writes::finish(&api, name).await?;
    }
    Ok(Quantiles::of(took))
}

/// Names of Workloads that run, from a watch.
struct AdmittedWorkloads {
    follow: Follow<Workload>,
    all: BTreeSet<String>,
}

impl AdmittedWorkloads {
    /// Waits for the next Workload that is admitted.
    async fn next(&mut self) -> Result<String> {
        timeout(WITHIN, self.wait()).await.with_context(|| format!("no admission in {WITHIN:?}"))
    }

    async fn wait(&mut self) -> String {
        loop {
            let objects = self.follow.next().await.present();
            let runs = objects.iter().filter(|one| status_writes::runs(one));
            // All of a list are entered, not only the one that ends the wait.
            let fresh =
                runs.map(ResourceExt::name_any).filter(|name| self.all.insert(name.clone()));
            if let Some(name) = fresh.last() {
                return name;
            }
        }
    }
}
