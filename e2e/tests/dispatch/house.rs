//! The two installations of these tests: one that gets along with many at once, and one for those that break something,
//! one after the other.

use anyhow::Result;
use e2e::world::{Plan, Ports, Program, World};
use harness::{Shape, TestLab};
use tokio::sync::{Mutex, OnceCell};

/// A lab with two workers, and what is installed on it.
pub(crate) struct House {
    pub(crate) lab: TestLab,
    ports: Ports,
    /// The manager that answers the webhooks. Not there while a test that is alone has it; it puts another back.
    pub(crate) manager: Mutex<Option<Program>>,
    _agents: Vec<Program>,
}

const PLAN: Plan = Plan { workers: 2, elects: true };

static SHARED: OnceCell<House> = OnceCell::const_new();
static ALONE: OnceCell<House> = OnceCell::const_new();

impl House {
    /// For tests that go on beside others.
    pub(crate) async fn shared() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::build).await
    }

    /// For tests that break something; they take turns.
    pub(crate) async fn alone() -> Result<&'static Self> {
        ALONE.get_or_try_init(Self::build).await
    }

    /// The installation, with clients of this test's own.
    pub(crate) async fn world(&'static self) -> Result<World<'static>> {
        World::of(&self.lab, PLAN, self.ports).await
    }

    async fn build() -> Result<Self> {
        let lab = TestLab::start(Shape { workers: PLAN.workers, audit: true }).await?;
        let ports = Ports::choose()?;
        let world = World::of(&lab, PLAN, ports).await?;
        world.install().await?;
        let manager = world.manager(true, &[]).await?;
        world.register().await?;
        let mut agents = Vec::new();
        for worker in &world.workers {
            agents.push(world.agent(worker, &[]).await?);
        }
        drop(world);
        Ok(Self { lab, ports, manager: Mutex::new(Some(manager)), _agents: agents })
    }
}
