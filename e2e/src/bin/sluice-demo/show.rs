//! The show: submits the batch, follows it to its end, takes back the Job that fits nowhere, and judges.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use crds::v1beta2::Workload;
use e2e::world::SOON;
use harness::{Cluster, Follow, Observer, secs};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, api::DeleteParams};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::batch::{Batch, TOO_LARGE};
use crate::outcome::{self, Outcome};
use crate::scene::{News, Row, Scene, State};
use crate::screen::Screen;
use crate::stage::{Stage, TEAM};
use crate::stopwatch::Stopwatch;

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(200);

/// From submission to the last end. Two cores take a third of that.
const OVER_WITHIN: Duration = secs(90);

/// Runs the batch and says what came of it.
pub(crate) async fn run(stage: &Stage<'_>, batch: Batch, watch: &mut Stopwatch) -> Result<Outcome> {
    // It was there first: nothing is in its books that it did not see begin.
    let observer = Observer::start(&stage.clusters(), TEAM, SOON).await?;
    let jobs: Api<Job> = stage.world.hub.api(TEAM);
    let mut play = Play::new(&stage.world.hub);
    println!("submitting {} Jobs\n", batch.work().count());
    let shown = play.until(|scene| is_over(scene, &batch));
    tokio::try_join!(batch.submit(&jobs), shown)?;
    watch.lap("the Jobs");
    let rows = play.rows();
    let why = rows.get(TOO_LARGE).map(|row| row.why.clone()).unwrap_or_default();
    println!("\n{TOO_LARGE} still waits ({why}); deleting it");
    jobs.delete(TOO_LARGE, &DeleteParams::background()).await?;
    play.until(|scene| scene.is_gone(TOO_LARGE)).await?;
    let outcome = outcome::judge(stage, &observer, &batch, &rows).await?;
    watch.lap("cleaning up, judging");
    Ok(outcome)
}

/// All are over but the one that is too large, and that one says why it waits.
fn is_over(scene: &Scene, batch: &Batch) -> bool {
    batch.work().all(|(name, _)| match scene.row(&name) {
        Some(row) if name == TOO_LARGE => row.state == State::Waiting && !row.why.is_empty(),
        Some(row) => matches!(row.state, State::Finished | State::Failed),
        None => false,
    })
}

/// The scene as it changes, and where it is shown.
struct Play {
    scene: Scene,
    screen: Screen,
    begun: Instant,
    news: mpsc::Receiver<News>,
    _watches: JoinSet<()>,
}

impl Play {
    fn new(hub: &Cluster) -> Self {
        let (tell, news) = mpsc::channel(256);
        let mut watches = JoinSet::new();
        let (jobs, told) = (hub.api::<Job>(TEAM), tell.clone());
        watches.spawn(async move {
            let mut follow = Follow::new(jobs);
            while told.send(News::Job(Box::new(follow.next().await))).await.is_ok() {}
        });
        let workloads = hub.api::<Workload>(TEAM);
        watches.spawn(async move {
            let mut follow = Follow::new(workloads);
            while tell.send(News::Workload(Box::new(follow.next().await))).await.is_ok() {}
        });
        let (scene, screen) = (Scene::default(), Screen::of_stdout());
        Self { scene, screen, begun: Instant::now(), news, _watches: watches }
    }

    /// Shows what happens until `over`.
    async fn until(&mut self, over: impl Fn(&Scene) -> bool) -> Result<()> {
        let played = timeout(OVER_WITHIN, self.play(over)).await;
        self.show()?;
        match played {
            Ok(played) => played,
            Err(_) => bail!("not over after {OVER_WITHIN:?}; what is above is how it stands"),
        }
    }

    async fn play(&mut self, over: impl Fn(&Scene) -> bool) -> Result<()> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !over(&self.scene) {
            tokio::select! {
                news = self.news.recv() => self.scene.hear(news.context("the watches ended")?),
                _ = frames.tick() => self.show()?,
            }
        }
        Ok(())
    }

    fn show(&mut self) -> Result<()> {
        let rows: Vec<Row> = self.scene.rows().collect();
        Ok(self.screen.show(&rows, self.begun.elapsed())?)
    }

    fn rows(&self) -> BTreeMap<String, Row> {
        self.scene.rows().map(|row| (row.name.clone(), row)).collect()
    }
}
