//! What the observer saw is what the containers wrote: no Job and no group of pods is lost, none runs twice.

use anyhow::{Result, ensure};
use e2e::objects;
use harness::Judgement;

use crate::fixture::RealFixture;

const JOBS: usize = 6;

const GROUPS: usize = 4;

/// Pods of each Job and of each group.
const PODS: usize = 2;

const SCRIPT: &str = "note started; sleep 4; note ended";

#[tokio::test]
#[ignore = "make test-real"]
async fn no_job_or_group_is_lost_or_runs_twice_when_manager_and_agents_crash() -> Result<()> {
    let fixture = RealFixture::open_alone("real_ledger").await?;
    // Half of them wait for quota while the others run.
    fixture.set_quota("1").await?;
    submit_all(&fixture).await?;
    let (_, worker) = fixture.until_placed("job-1").await?;
    fixture.until_noted(worker, "started", 1).await?;
    fixture.crash_programs().await?;

    let seen = until_all_ran_once(&fixture).await?;
    fixture.until_no_pod_is_left().await?;
    for worker in &fixture.workers {
        fixture.diary(worker)?.ensure_as_seen(worker.name(), &seen)?;
    }
    let written = fixture.whole_diary()?.pods("ended")?.len();
    ensure!(written == (JOBS + GROUPS) * PODS, "{written} containers ended");
    Ok(())
}

/// Jobs and groups in turn, so that a crash meets both.
async fn submit_all(fixture: &RealFixture) -> Result<()> {
    for number in 1..=JOBS.max(GROUPS) {
        if number <= JOBS {
            fixture.submit(&fixture.job(&format!("job-{number}"), PODS, SCRIPT)).await?;
        }
        for name in members(number).filter(|_| number <= GROUPS) {
            let pod = fixture.pod(&name, SCRIPT);
            fixture.submit(&objects::in_group(pod, &format!("group-{number}"), PODS)).await?;
        }
    }
    Ok(())
}

async fn until_all_ran_once(fixture: &RealFixture) -> Result<Vec<Judgement>> {
    let mut seen = Vec::new();
    for number in 1..=JOBS {
        let job = format!("job-{number}");
        fixture.until_ended(&job, "Complete").await?;
        seen.push(fixture.ensure_once(&job, PODS).await?);
    }
    for number in 1..=GROUPS {
        let mut places = Vec::new();
        for name in members(number) {
            fixture.until_phase(&name, "Succeeded").await?;
            let judgement = fixture.ensure_pod_once(&name, 1).await?;
            places.extend(judgement.runs.iter().map(|run| run.cluster.clone()));
            seen.push(judgement);
        }
        places.dedup();
        ensure!(places.len() == 1, "group-{number} ran on {places:?}");
    }
    Ok(seen)
}

/// The names of the pods of a group.
fn members(group: usize) -> impl Iterator<Item = String> {
    (1..=PODS).map(move |pod| format!("group-{group}-{pod}"))
}
