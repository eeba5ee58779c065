//! Jobs from submission to their end: on the manager's own cluster and on workers.

mod own_cluster;
mod place;
mod thin_worker;
mod workers;

use anyhow::Result;
use e2e::world::{Plan, Ports, Program, World};
use harness::TestLab;
use tokio::sync::OnceCell;

/// What all tests share.
struct Shared {
    ports: Ports,
    _manager: Program,
    _agents: Vec<Program>,
}

const PLAN: Plan = Plan { workers: 2, elects: true };

static SHARED: OnceCell<Shared> = OnceCell::const_new();

/// The installation, with clients of this test's own.
async fn world() -> Result<World<'static>> {
    let lab = TestLab::shared(PLAN.workers).await?;
    let shared = SHARED.get_or_try_init(|| start(lab)).await?;
    World::of(lab, PLAN, shared.ports).await
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
    Ok(Shared { ports, _manager: manager, _agents: agents })
}
