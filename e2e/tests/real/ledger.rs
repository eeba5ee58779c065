//! What the observer saw is what the containers wrote: no job is lost, none runs twice.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use harness::{Cluster, Judgement, PodOutcome, PodRecord};

use crate::fixture::RealFixture;

const JOBS: usize = 8;

/// Pods of each job.
const PODS: usize = 2;

#[tokio::test]
#[ignore = "make test-real"]
async fn no_job_is_lost_or_runs_twice_when_manager_and_agents_crash() -> Result<()> {
    let fixture = RealFixture::open_alone("real_ledger").await?;
    // Half of the jobs wait for quota while the others run.
    fixture.set_quota("800m").await?;
    for number in 1..=JOBS {
        let job = fixture.job(&format!("job-{number}"), PODS, "note started; sleep 4; note ended");
        fixture.submit(&job).await?;
    }
    let (_, worker) = fixture.until_placed("job-1").await?;
    fixture.until_noted(worker, "started", 1).await?;
    fixture.crash_programs().await?;

    let mut seen = Vec::new();
    for number in 1..=JOBS {
        let job = format!("job-{number}");
        fixture.until_ended(&job, "Complete").await?;
        fixture.ensure_once(&job, PODS).await?;
        seen.push(fixture.judge(&job, PODS).await?);
    }
    fixture.until_no_pod_is_left().await?;
    for worker in &fixture.workers {
        let diary = fixture.diary(worker)?;
        let started = pods(&seen, worker, |pod| pod.started.is_some());
        ensure!(diary.pods("started")? == started, "{diary:?}, seen: {started:?}");
        let succeeded = |pod: &PodRecord| matches!(pod.ended, Some((_, PodOutcome::Succeeded)));
        let succeeded = pods(&seen, worker, succeeded);
        ensure!(diary.pods("ended")? == succeeded, "{diary:?}, seen: {succeeded:?}");
    }
    let written = fixture.whole_diary()?.pods("ended")?.len();
    ensure!(written == JOBS * PODS, "{written} containers ended");
    Ok(())
}

/// The names of pods on a worker in the observer's ledger.
fn pods(
    seen: &[Judgement],
    worker: &Cluster,
    which: impl Fn(&PodRecord) -> bool,
) -> BTreeSet<String> {
    let runs = seen.iter().flat_map(|judgement| &judgement.runs);
    let runs = runs.filter(|run| run.cluster == worker.name());
    let pods = runs.flat_map(|run| &run.pods).filter(|pod| which(pod));
    pods.map(|pod| pod.name.clone()).collect()
}
