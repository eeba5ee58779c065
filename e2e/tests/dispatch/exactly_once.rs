//! A worker that the manager does not reach, under `execution: ExactlyOnce` (docs/reference/dispatch.md §7-8). Its agent reaches
//! its API server all the time.

use anyhow::{Context, Result, ensure};
use crds::{v1alpha1::DispatchPolicy, v1beta2::Workload};
use e2e::{installation::TIMEOUT, waits};
use harness::{Fault, FaultProxy, Run, RunVerdict};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    cut_off::{self, worker_behind_proxy},
    fixture::{DispatchFixture, holds},
    objects,
};

/// `leaseDuration` of these tests. A grant lasts two thirds of it.
const LEASE: SignedDuration = SignedDuration::from_secs(9);

/// 1.01 times the duration, the time to stop and the margin.
const FENCED_AFTER: SignedDuration = SignedDuration::from_millis(24_090);

/// The last attempt to echo is at most one beat before the cut, and pods report whole seconds.
const BEAT: SignedDuration = SignedDuration::from_secs(3);

/// The second worker behind a proxy, and a queue under ExactlyOnce with nodes on this worker only.
async fn prepare(fixture: &DispatchFixture, fencing: &str) -> Result<FaultProxy> {
    let disconnection = json!({
        "execution": "ExactlyOnce", "fencing": fencing, "leaseDuration": "9s", "lostAfter": "5s",
    });
    worker_behind_proxy(fixture, &disconnection).await
}

/// Longer than a grant and the fence together: an agent that does not stop it runs it beside the second copy.
fn training() -> Value {
    objects::job("train", 2, "1", 45)
}

/// Registers the worker at its own address again. Of all policies the strictest fencing holds for a worker, so no policy of a
/// test that has ended asks for a person.
async fn reconnect(fixture: &DispatchFixture, proxy: FaultProxy) -> Result<()> {
    let timed = Patch::Merge(json!({"spec": {"disconnection": {"fencing": "Timed"}}}));
    let policies = fixture.hub().cluster_api::<DispatchPolicy>();
    policies.patch(fixture.namespace(), &PatchParams::default(), &timed).await?;
    cut_off::reconnect(fixture, proxy).await
}

/// The Job runs on the second worker, and the manager does not reach this any more. There is room on the first one.
async fn cut_off(fixture: &DispatchFixture, proxy: &FaultProxy) -> Result<Timestamp> {
    fixture.submit(&training()).await?;
    fixture.until_workload("train", "runs on the worker", |one| runs_on(one, "worker-2")).await?;
    fixture.until_running("train", 2, 2).await?;
    fixture.nodes(1, 1, "2").await?;
    let cut = Timestamp::now();
    proxy.set(Fault::Hang);
    Ok(cut)
}

fn runs_on(workload: &Workload, worker: &str) -> bool {
    holds(workload, "Admitted") && workload.status.cluster_name.as_deref() == Some(worker)
}

/// The runs of the Job: the first one on the worker that was cut off, the second one elsewhere.
async fn both_runs(fixture: &DispatchFixture) -> Result<[Run; 2]> {
    let observer = fixture.space.observer();
    let judgement = waits::ensure_verdict(observer, ("train", 2), &[RunVerdict::Moved]).await?;
    let clusters: Vec<&str> = judgement.runs.iter().map(|run| run.cluster.as_str()).collect();
    ensure!(clusters == ["worker-2", "worker-1"], "{judgement}");
    <[Run; 2]>::try_from(judgement.runs).ok().context("two runs")
}

#[tokio::test]
async fn the_job_of_a_worker_that_is_cut_off_starts_elsewhere_after_its_agent_has_stopped_it()
-> Result<()> {
    let fixture = DispatchFixture::alone("once_timed").await?;
    let proxy = prepare(&fixture, "Timed").await?;
    let outcome = is_fenced_by_time(&fixture, &proxy).await;
    reconnect(&fixture, proxy).await?;
    outcome?;
    fixture.expect_once_in_the_end("train", 2).await?;
    both_runs(&fixture).await.map(drop)
}

async fn is_fenced_by_time(fixture: &DispatchFixture, proxy: &FaultProxy) -> Result<()> {
    let cut = cut_off(fixture, proxy).await?;
    fixture.until_running("train", 2, 1).await?;
    let [first, second] = both_runs(fixture).await?;
    let ended = first.ended().context("an end")?;
    ensure!(ended.duration_since(cut) <= LEASE, "stopped {ended}, cut off {cut}");
    let began = second.began().context("a beginning")?;
    let earliest = FENCED_AFTER.checked_sub(BEAT).context("a time")?;
    ensure!(began.duration_since(cut) >= earliest, "began {began}, cut off {cut}");
    proxy.set(Fault::None);
    let clones = fixture.worker(2).api::<Workload>(fixture.namespace());
    let what = "the fenced clone is removed";
    fixture.worker(2).until_all(&clones, "", what, 2 * TIMEOUT, <[Workload]>::is_empty).await?;
    Ok(())
}

fn waits_for_fence(workload: &Workload) -> bool {
    let mut checks = workload.status.admission_checks.iter();
    checks.any(|check| check.state == "Ready" && check.message.contains("WaitingForFence"))
}

#[tokio::test]
async fn the_job_of_a_lost_worker_waits_until_a_person_confirms_that_nothing_runs_there()
-> Result<()> {
    let fixture = DispatchFixture::alone("once_confirmed").await?;
    let proxy = prepare(&fixture, "Confirmed").await?;
    let outcome = is_fenced_by_a_person(&fixture, &proxy).await;
    reconnect(&fixture, proxy).await?;
    outcome?;
    fixture.expect_once_in_the_end("train", 2).await?;
    both_runs(&fixture).await.map(drop)
}

async fn is_fenced_by_a_person(fixture: &DispatchFixture, proxy: &FaultProxy) -> Result<()> {
    cut_off(fixture, proxy).await?;
    fixture.until_workload("train", "says that it waits", waits_for_fence).await?;
    let (_, text) = fixture.sluicectl(&["explain", "train", "-n", fixture.namespace()]).await?;
    ensure!(text.contains("WaitingForFence"), "{text}");
    for (arguments, part) in [
        (["fence", "worker-1", "--yes"].as_slice(), "worker-1 is active"),
        (&["fence", "worker-2"], "1 Workload will run twice"),
    ] {
        let (code, text) = fixture.sluicectl(arguments).await?;
        ensure!(code == 4 && text.contains(part), "{arguments:?}: {code}, {text}");
    }
    let confirmed = Timestamp::now();
    let (code, text) = fixture.sluicectl(&["fence", "worker-2", "--yes"]).await?;
    ensure!(code == 0 && text.contains("1 Workload under ExactlyOnce"), "{code}, {text}");
    fixture.until_running("train", 2, 1).await?;
    let [_, second] = both_runs(fixture).await?;
    let began = second.began().context("a beginning")?;
    let earliest = confirmed.checked_sub(SignedDuration::from_secs(1))?;
    ensure!(began >= earliest, "began {began}, confirmed {confirmed}");
    proxy.set(Fault::None);
    Ok(())
}
