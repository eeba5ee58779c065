//! The outcome of the batch: status of Jobs, verdicts of the observer, and remaining objects on the workers.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use harness::{GaveUp, Judgement, Observer, RunVerdict};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};

use crate::batch::{Batch, TOO_LARGE};
use crate::environment::{DemoEnvironment, TEAM};
use crate::job_table::{JobRow, JobState};
use crate::mixture::{self, OtherState};

/// The judgement.
pub(crate) struct DemoOutcome {
    /// Jobs that were to finish.
    wanted: usize,
    finished: usize,
    places: BTreeMap<String, usize>,
    /// What is not as it should be.
    faults: Vec<String>,
}

impl DemoOutcome {
    pub(crate) fn is_good(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Checks the outcome. `rows` is the final state of the Jobs, `others` that of the jobs of other kinds.
pub(crate) async fn judge(
    stage: &DemoEnvironment<'_>,
    observer: &Observer,
    batch: &Batch,
    (rows, others): (&BTreeMap<String, JobRow>, &[OtherState]),
) -> Result<DemoOutcome> {
    let mut faults: Vec<String> =
        left_behind(stage).await.into_iter().map(|gave_up| gave_up.to_string()).collect();
    observer.catch_up(TIMEOUT).await?;
    let ledger = observer.ledger();
    let (mut wanted, mut finished, mut places) = (0, 0, BTreeMap::new());
    for (name, work) in batch.work() {
        let judgement = ledger.judge(&name, work);
        if name == TOO_LARGE {
            faults.extend(unless(judgement.verdict == RunVerdict::NeverRan, &judgement));
            continue;
        }
        wanted += 1;
        let row = rows.get(&name);
        if row.is_some_and(|row| row.state == JobState::Finished && row.succeeded == work) {
            finished += 1;
        } else {
            faults.push(format!("{name} did not finish: {row:?}"));
        }
        faults.extend(unless(judgement.verdict == RunVerdict::Once, &judgement));
        for run in &judgement.runs {
            *places.entry(run.cluster.clone()).or_default() += 1;
            let reported = row.map(|row| row.place.as_str());
            if reported != Some(&run.cluster) {
                faults.push(format!("{name} ran on {}, the Job reports {reported:?}", run.cluster));
            }
        }
    }
    faults.extend(mixture::faults(stage, &ledger, others).await?);
    Ok(DemoOutcome { wanted, finished, places, faults })
}

fn unless(good: bool, judgement: &Judgement) -> Option<String> {
    (!good).then(|| judgement.to_string())
}

/// Waits until the workers have no objects of the team. Returns the remaining ones.
async fn left_behind(stage: &DemoEnvironment<'_>) -> Vec<GaveUp> {
    let mut left = Vec::new();
    for worker in &stage.installation.workers {
        let clones = worker.api::<Workload>(TEAM);
        let none = <[Workload]>::is_empty;
        left.extend(worker.until_all(&clones, "", "no clone is left", TIMEOUT, none).await.err());
        let jobs = worker.api::<Job>(TEAM);
        left.extend(
            worker.until_all(&jobs, "", "no Job is left", TIMEOUT, <[Job]>::is_empty).await.err(),
        );
        let pods = worker.api::<Pod>(TEAM);
        left.extend(
            worker.until_all(&pods, "", "no pod is left", TIMEOUT, <[Pod]>::is_empty).await.err(),
        );
    }
    left
}

impl fmt::Display for DemoOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, finished, places, faults } = self;
        writeln!(f, "{finished} of {wanted} Jobs finished; {TOO_LARGE} never ran")?;
        for (place, runs) in places {
            writeln!(f, "{place} ran {runs}")?;
        }
        if faults.is_empty() {
            let others =
                "a group of pods, a JobSet and an AppWrapper finished; a RayCluster served";
            writeln!(f, "beside them {others} and was deleted")?;
        }
        if faults.is_empty() {
            return write!(
                f,
                "by the pods seen: none lost, none run twice, nothing left on the workers"
            );
        }
        for fault in faults {
            writeln!(f, "WRONG: {fault}")?;
        }
        write!(f, "{} things are wrong", faults.len())
    }
}
