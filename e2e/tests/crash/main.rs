//! Manager and agent die before and after every write; every Job runs to its end, nothing is left behind.
//!
//! The places are listed in [`places`], each with a [`course`] of things that leads to it. A write without a place fails
//! [`places::every_write_has_a_place_to_die`], and a place that is never reached fails the loop.

mod course;
mod life;
mod places;
mod setting;

use std::{
    iter::Enumerate,
    sync::Mutex,
    time::{Duration, Instant},
    vec::IntoIter,
};

use anyhow::{Context, Error, Result, ensure};
use e2e::world::{NAMESPACE, Plan, Ports, Program, SOON, World};
use futures::future::try_join_all;
use harness::{Observer, ProcessError, Shape, TestLab, secs};
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use self::{
    course::Course,
    life::Life,
    places::{Place, Who},
};

const PLAN: Plan = Plan { workers: 1, elects: false };

/// Houses that stand at the same time. In each, somebody nearly always waits for something.
const HOUSES: usize = 3;

/// How long a program may take to die after its last write was seen.
const LAST_BREATH: Duration = secs(5);

/// What runs, and what is started anew after a death.
struct House<'a> {
    world: World<'a>,
    manager: Option<Program>,
    agent: Option<Program>,
    observer: Observer,
}

impl<'a> House<'a> {
    async fn open(lab: &'a TestLab) -> Result<Self> {
        let world = World::of(lab, PLAN, Ports::choose()?).await?;
        world.install().await?;
        let manager = world.manager(true, &[]).await?;
        let agent = world.agent(world.workers.first().context("a worker")?, &[]).await?;
        world.register().await?;
        setting::prepare(&world).await?;
        let observer = setting::observe(&world).await?;
        Ok(Self { world, manager: Some(manager), agent: Some(agent), observer })
    }

    /// Starts a program, in place of the one that runs; with a place where it shall die, as the course wants it.
    async fn start(&mut self, who: Who, death: Option<&Place>) -> Result<()> {
        let places = death.map(|place| format!("{}=return", place.failpoint()));
        let environment: Vec<(&str, &str)> =
            places.iter().map(|places| ("FAILPOINTS", places.as_str())).collect();
        let blocks = death.map_or(Value::Null, |place| blocks(place.course));
        self.stop(who).await?;
        match who {
            Who::Manager => {
                let manager = self.world.manager_with(true, &blocks, &environment).await?;
                self.manager = Some(manager);
            }
            Who::Agent => {
                let worker = self.world.workers.first().context("a worker")?;
                self.agent = Some(self.world.agent_with(worker, &blocks, &environment).await?);
            }
        }
        Ok(())
    }

    async fn stop(&mut self, who: Who) -> Result<()> {
        let program = match who {
            Who::Manager => self.manager.take(),
            Who::Agent => self.agent.take(),
        };
        if let Some(old) = program {
            old.process.terminate(SOON).await?;
        }
        Ok(())
    }

    /// The program dies at its place during the course, and is started again.
    async fn die_at(&mut self, number: usize, place: &Place) -> Result<()> {
        let name = format!("job-{number}");
        if place.course == Course::Untrusted {
            self.stop(place.who).await?;
            let secrets = self.world.hub.api::<Secret>(NAMESPACE);
            secrets.delete("kueue-webhook-server-cert", &DeleteParams::default()).await?;
        }
        let death = match self.start(place.who, Some(place)).await {
            Ok(()) => self.until_death(&name, place).await?,
            Err(error) => death_at_start(error)?,
        };
        ensure!(death.contains("signal"), "it did not die of its own hand: {death}");
        match place.who {
            Who::Manager => self.manager = None,
            Who::Agent => self.agent = None,
        }
        self.life(&name, place, true).meanwhile().await?;
        self.start(place.who, None).await?;
        if place.course == Course::Forbidden {
            // The manager would leave the worker out for a minute.
            self.start(Who::Manager, None).await?;
        }
        let life = self.life(&name, place, true);
        life.run().await.context("after the death")?;
        life.judge(&self.observer).await
    }

    fn life<'b>(&'b self, name: &'b str, place: &Place, again: bool) -> Life<'b> {
        Life { world: &self.world, course: place.course, name, again }
    }

    /// How it ended.
    async fn until_death(&self, name: &str, place: &Place) -> Result<String> {
        let program = match place.who {
            Who::Manager => &self.manager,
            Who::Agent => &self.agent,
        };
        let ended = program.as_ref().context("the program runs")?.process.ended();
        let life = self.life(name, place, false);
        tokio::pin!(ended);
        tokio::select! {
            status = &mut ended => Ok(status),
            lived = life.run() => {
                // The last write of a life is seen before whoever sent it has died of it, and a dead manager refuses
                // what it had to allow.
                let died = tokio::time::timeout(LAST_BREATH, ended).await;
                died.map_err(|_| match lived {
                    Ok(()) => Error::msg(format!("{} is never reached", place.failpoint())),
                    Err(error) => error,
                })
            }
        }
    }
}

/// What a course wants of the configuration.
fn blocks(course: Course) -> Value {
    match course {
        Course::Elected => json!({"leaderElection": {
            "leaderElect": true,
            "leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms",
        }}),
        Course::Forbidden => json!({"namespaces": {"allow": ["elsewhere"]}}),
        _ => Value::Null,
    }
}

/// How a program ended that was never ready.
fn death_at_start(error: Error) -> Result<String> {
    match error.downcast::<ProcessError>()? {
        ProcessError::Ended { status, .. } => Ok(status),
        other => Err(other.into()),
    }
}

/// Places that nobody died at yet.
type Left = Mutex<Enumerate<IntoIter<Place>>>;

/// One place after the other, in a house of its own.
async fn die_everywhere(left: &Left) -> Result<()> {
    let lab = TestLab::start(Shape { workers: PLAN.workers, audit: false }).await?;
    let mut house = House::open(&lab).await?;
    loop {
        let next = left.lock().map_err(|_| Error::msg("a house fell down"))?.next();
        let Some((number, place)) = next else { return Ok(()) };
        let started = Instant::now();
        let what = || format!("{:?} dies at {} ({:?})", place.who, place.failpoint(), place.course);
        house.die_at(number, &place).await.with_context(what)?;
        eprintln!("{}: {:?}", what(), started.elapsed());
    }
}

#[tokio::test]
async fn every_job_runs_to_its_end_whatever_write_the_programs_die_at() -> Result<()> {
    let places = places::chosen();
    let houses = HOUSES.min(places.len());
    let left = Mutex::new(places.into_iter().enumerate());
    try_join_all((0..houses).map(|_| die_everywhere(&left))).await?;
    Ok(())
}
