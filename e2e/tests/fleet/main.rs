//! A small fleet of the measurement `sluice-bench fleet`: every Job runs once, all statuses arrive, and a manager that was killed has a
//! successor.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fleet::{AgentFleetPlan, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_dispatches_to_twenty_workers_and_reconnects_to_all_of_them() -> Result<()> {
    let plan = AgentFleetPlan {
        agents: 20,
        workloads: 200,
        changes: 200,
        per_second: 200,
        within: Duration::from_secs(120),
        programs: None,
    };
    let report = run(&plan).await?;
    eprintln!("{report:?}");
    ensure!(report.used_workers == plan.agents, "every worker has work: {report:?}");
    ensure!(report.reconnected < plan.within, "{report:?}");
    Ok(())
}
