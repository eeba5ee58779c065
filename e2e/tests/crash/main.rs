//! Manager and agent die before and after every write of a Job's life; every Job runs to its end, nothing is left behind.
//!
//! The places are listed in [`places`]. A place that is never reached fails its test, and a write that is not listed
//! fails [`every_write_of_a_life_is_listed`]: the list is complete.

mod places;
mod scenario;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::world::{Plan, Ports, Program, SOON, World};
use harness::{Observer, TestLab, secs};

use self::places::{Place, Who};

const PLAN: Plan = Plan { workers: 1, elects: false };

/// How long a program may take to die after its last write was seen.
const LAST_BREATH: Duration = secs(5);

/// What runs, and what is started anew after a death.
struct House<'a> {
    world: World<'a>,
    manager: Option<Program>,
    agent: Option<Program>,
    observer: Option<Observer>,
}

impl<'a> House<'a> {
    async fn open(lab: &'a TestLab) -> Result<Self> {
        let world = World::of(lab, PLAN, Ports::choose()?).await?;
        world.install().await?;
        let mut house = Self { world, manager: None, agent: None, observer: None };
        house.start(Who::Manager, None).await?;
        house.start(Who::Agent, None).await?;
        house.world.register().await?;
        scenario::prepare(&house.world).await?;
        house.observer = Some(scenario::observe(&house.world).await?);
        Ok(house)
    }

    /// Starts a program, in place of the one that runs; `death` is where it shall die.
    async fn start(&mut self, who: Who, death: Option<&Place>) -> Result<()> {
        let places = death.map(|place| format!("{}=return", place.failpoint()));
        let environment: Vec<(&str, &str)> =
            places.iter().map(|places| ("FAILPOINTS", places.as_str())).collect();
        match who {
            Who::Manager => {
                if let Some(old) = self.manager.take() {
                    old.process.terminate(SOON).await?;
                }
                self.manager = Some(self.world.manager(true, &environment).await?);
            }
            Who::Agent => {
                if let Some(old) = self.agent.take() {
                    old.process.terminate(SOON).await?;
                }
                let worker = self.world.workers.first().context("a worker")?;
                self.agent = Some(self.world.agent(worker, &environment).await?);
            }
        }
        Ok(())
    }

    fn program(&self, who: Who) -> Result<&Program> {
        let program = match who {
            Who::Manager => &self.manager,
            Who::Agent => &self.agent,
        };
        program.as_ref().context("the program runs")
    }

    /// The program dies at its place while a Job lives, and is started again.
    async fn die_at(&mut self, number: usize, place: &Place) -> Result<()> {
        let name = format!("job-{number}");
        self.start(place.who, Some(place)).await?;
        let life = scenario::Life { world: &self.world, name: &name, evicted: place.evicted };
        life.submit().await?;
        let died = {
            let program = self.program(place.who)?;
            let ended = program.process.ended();
            tokio::pin!(ended);
            tokio::select! {
                status = &mut ended => Some(status),
                // The last write of a life is seen before whoever sent it has died of it.
                lived = life.until_over() => {
                    lived?;
                    tokio::time::timeout(LAST_BREATH, ended).await.ok()
                }
            }
        };
        let status = died.with_context(|| format!("{} is never reached", place.failpoint()))?;
        ensure!(status.contains("signal"), "it did not die of its own hand: {status}");
        match place.who {
            Who::Manager => self.manager = None,
            Who::Agent => self.agent = None,
        }
        self.start(place.who, None).await?;
        let life = scenario::Life { world: &self.world, name: &name, evicted: place.evicted };
        life.until_over().await?;
        life.judge(self.observer.as_ref().context("an observer")?).await
    }
}

async fn die_everywhere(places: Vec<Place>) -> Result<()> {
    let lab = TestLab::shared(PLAN.workers).await?;
    let mut house = House::open(lab).await?;
    for (number, place) in places.iter().enumerate() {
        let started = std::time::Instant::now();
        house
            .die_at(number, place)
            .await
            .with_context(|| format!("dying at {} of the {:?}", place.failpoint(), place.who))?;
        eprintln!("{:?} {}: {:?}", place.who, place.failpoint(), started.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn every_job_runs_to_its_end_whatever_write_the_programs_die_at() -> Result<()> {
    die_everywhere(places::all()).await
}
