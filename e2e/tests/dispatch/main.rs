//! Jobs from submission to their end: on the manager's own cluster and on workers, when all goes well and when not.

mod broken_workers;
mod credentials;
mod deleted;
mod garbage;
mod no_room;
mod own_cluster;
mod place;
mod pods_ready;
mod registered_twice;
mod rights;
mod site;
mod stranded;
mod takeover;
mod thin_worker;
mod unknown_queue;
mod unregistered;
mod withdrawn;
mod workers;

use anyhow::{Context, Result};
use e2e::world::{Plan, Ports, Program, World};
use harness::{Shape, TestLab};
use tokio::sync::{Mutex, OnceCell};

/// What all tests share.
struct Shared {
    ports: Ports,
    /// Not there while a test that is alone has it.
    manager: Mutex<Option<Program>>,
    _agents: Vec<Program>,
}

const PLAN: Plan = Plan { workers: 2, elects: true };

static SHARED: OnceCell<Shared> = OnceCell::const_new();

/// The installation, with clients of this test's own.
async fn world() -> Result<World<'static>> {
    let lab = TestLab::shared_with(Shape { workers: PLAN.workers, audit: true }).await?;
    let shared = SHARED.get_or_try_init(|| start(lab)).await?;
    World::of(lab, PLAN, shared.ports).await
}

/// The manager that answers the webhooks. Only a test that has a space alone may take it, and it puts another back.
fn manager() -> Result<&'static Mutex<Option<Program>>> {
    SHARED.get().map(|shared| &shared.manager).context("the world is there")
}

async fn start(lab: &'static TestLab) -> Result<Shared> {
    let ports = Ports::choose()?;
    let world = World::of(lab, PLAN, ports).await?;
    world.install().await?;
    let manager = world.manager(true, &[]).await?;
    world.register().await?;
    let mut agents = Vec::new();
    for worker in &world.workers {
        agents.push(world.agent(worker, &[]).await?);
    }
    Ok(Shared { ports, manager: Mutex::new(Some(manager)), _agents: agents })
}
