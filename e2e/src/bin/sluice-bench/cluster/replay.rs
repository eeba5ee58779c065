//! The rate that this machine's API server allows: the fewest writes of each Workload, sent without any decision.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crds::v1beta2::Workload;
use futures::{StreamExt, TryStreamExt, stream};
use harness::{Cluster, Follow};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use tokio::task::JoinSet;

use super::{generator, status_writes};
use crate::environment::NAME;

/// Workloads in flight: more do not raise the rate of two cores.
const AT_A_TIME: usize = 16;

/// As many watches as in a measured run: the manager's and that of the owners.
const WATCHES: usize = 2;

/// Creates, admits and finishes so many Workloads. Returns Workloads per second.
#[expect(clippy::cast_precision_loss, reason = "thousands of Workloads")]
pub(super) async fn rate(hub: &Cluster, workloads: usize) -> Result<f64> {
    let mut watches = JoinSet::new();
    for _ in 0..WATCHES {
        let mut follow = Follow::new(hub.api::<Workload>(NAME));
        watches.spawn(async move {
            loop {
                follow.next().await;
            }
        });
    }
    let begun = Instant::now();
    let lives = (0..workloads).map(|number| life(hub, number));
    stream::iter(lives).buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
    let took: Duration = begun.elapsed();
    Ok(workloads as f64 / took.as_secs_f64())
}

async fn life(hub: &Cluster, number: usize) -> Result<()> {
    let name = format!("replayed-{number}");
    let api: Api<Workload> = hub.api(NAME);
    let object = generator::workload(&name, NAME, "1", 0)?;
    api.create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("creating {name}"))?;
    let admission = Patch::Merge(status_writes::admission(NAME, "1"));
    let patched = api.patch_status(&name, &PatchParams::default(), &admission).await;
    patched.with_context(|| format!("admitting {name}"))?;
    status_writes::finish(&api, &name).await
}
