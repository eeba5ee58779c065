//! The run of the demo: submits the batch, follows it to its end, deletes the Job that fits nowhere, and checks the outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use crds::v1beta2::Workload;
use e2e::installation::TIMEOUT;
use harness::{Cluster, Follow, Observer, secs};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, api::DeleteParams};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::batch::{Batch, TOO_LARGE};
use crate::environment::{DemoEnvironment, TEAM};
use crate::job_table::{JobRow, JobState, JobTable, WatchUpdate};
use crate::mixture;
use crate::outcome::{self, DemoOutcome};
use crate::screen::Screen;
use crate::stopwatch::Stopwatch;

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(200);

/// From submission to the last end. Two cores need a third of it.
const OVER_WITHIN: Duration = secs(90);

/// Runs the batch and returns its outcome.
pub(crate) async fn run(
    stage: &DemoEnvironment<'_>,
    batch: Batch,
    watch: &mut Stopwatch,
) -> Result<DemoOutcome> {
    // Started before the batch: it observes every pod from its creation.
    let observer = Observer::start(&stage.clusters(), TEAM, TIMEOUT).await?;
    let jobs: Api<Job> = stage.installation.hub.api(TEAM);
    let mut play = DemoRun::new(&stage.installation.hub);
    let hub = &stage.installation.hub;
    let others = "a group of pods, a JobSet, an AppWrapper and a RayCluster";
    println!("submitting {} Jobs, {others}\n", batch.work().count());
    let display = play.until(|table| is_over(table, &batch) && mixture::is_over(table));
    tokio::try_join!(batch.submit(&jobs), mixture::submit(hub), display)?;
    watch.lap("the jobs");
    let (rows, states) = (play.rows(), mixture::states(&play.table));
    let why = rows.get(TOO_LARGE).map(|row| row.why.clone()).unwrap_or_default();
    println!("\n{TOO_LARGE} still waits ({why}); deleting it");
    jobs.delete(TOO_LARGE, &DeleteParams::background()).await?;
    mixture::end_ray_cluster(hub).await?;
    play.until(|table| table.is_gone(TOO_LARGE)).await?;
    let outcome = outcome::judge(stage, &observer, &batch, (&rows, &states)).await?;
    watch.lap("cleaning up, judging");
    Ok(outcome)
}

/// All Jobs are finished, except for the one that is too large and reports it.
fn is_over(table: &JobTable, batch: &Batch) -> bool {
    batch.work().all(|(name, _)| match table.row(&name) {
        Some(row) if name == TOO_LARGE => row.state == JobState::Waiting && !row.why.is_empty(),
        Some(row) => matches!(row.state, JobState::Finished | JobState::Failed),
        None => false,
    })
}

/// The job table and its output.
struct DemoRun {
    table: JobTable,
    screen: Screen,
    begun: Instant,
    update: mpsc::Receiver<WatchUpdate>,
    _watches: JoinSet<()>,
}

impl DemoRun {
    fn new(hub: &Cluster) -> Self {
        let (tell, update) = mpsc::channel(256);
        let mut watches = JoinSet::new();
        let (jobs, updates) = (hub.api::<Job>(TEAM), tell.clone());
        watches.spawn(async move {
            let mut follow = Follow::new(jobs);
            while updates.send(WatchUpdate::Job(Box::new(follow.next().await))).await.is_ok() {}
        });
        let workloads = hub.api::<Workload>(TEAM);
        watches.spawn(async move {
            let mut follow = Follow::new(workloads);
            while tell.send(WatchUpdate::Workload(Box::new(follow.next().await))).await.is_ok() {}
        });
        let (table, screen) = (JobTable::default(), Screen::of_stdout());
        Self { table, screen, begun: Instant::now(), update, _watches: watches }
    }

    /// Prints changes until `over`.
    async fn until(&mut self, over: impl Fn(&JobTable) -> bool) -> Result<()> {
        let played = timeout(OVER_WITHIN, self.play(over)).await;
        self.show()?;
        match played {
            Ok(played) => played,
            Err(_) => bail!("not over after {OVER_WITHIN:?}; what is above is how it stands"),
        }
    }

    async fn play(&mut self, over: impl Fn(&JobTable) -> bool) -> Result<()> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !over(&self.table) {
            tokio::select! {
                update = self.update.recv() => self.table.handle(update.context("the watches ended")?),
                _ = frames.tick() => self.show()?,
            }
        }
        Ok(())
    }

    fn show(&mut self) -> Result<()> {
        let rows: Vec<JobRow> = self.table.rows().collect();
        Ok(self.screen.show(&rows, self.begun.elapsed())?)
    }

    fn rows(&self) -> BTreeMap<String, JobRow> {
        self.table.rows().map(|row| (row.name.clone(), row)).collect()
    }
}
