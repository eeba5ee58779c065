//! The programs send no request that their roles forbid.

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::installation::NAMESPACE;
use harness::Cluster;
use serde_json::Value;

use crate::{fixture::DispatchFixture, objects};

/// What a program asked for, of the requests that were answered with this code. The log of the API server has a line
/// for each request, of all tests so far.
pub(crate) fn asked(cluster: &Cluster, account: &str, code: Option<u64>) -> Result<Vec<String>> {
    let path = cluster.state().audit_log();
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
    // The last line may be half written.
    let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = requests.filter(|one| one["user"]["username"] == *user);
    let such = ours.filter(|one| code.is_none() || one["responseStatus"]["code"].as_u64() == code);
    Ok(such.map(|one| format!("{} {}", one["verb"], one["requestURI"])).collect())
}

#[tokio::test]
async fn no_request_is_forbidden_from_submission_to_the_end_of_a_job() -> Result<()> {
    let fixture = DispatchFixture::shared("rights").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&objects::job("train", 2, "1", 1)).await?;
    fixture.expect_once("train", 2).await?;
    let (hub, worker) = (fixture.hub(), fixture.worker(1));
    for (cluster, account) in
        [(hub, "sluice-manager"), (worker, "sluice-hub"), (worker, "sluice-agent")]
    {
        let n_asked = asked(cluster, account, None)?.len();
        ensure!(n_asked > 0, "{account} asked {} for nothing", cluster.name());
        let forbidden = asked(cluster, account, Some(403))?;
        ensure!(forbidden.is_empty(), "{account} on {}: {forbidden:#?}", cluster.name());
    }
    Ok(())
}
