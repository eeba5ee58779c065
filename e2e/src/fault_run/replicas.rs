//! Two managers behind one address, as a Deployment and a Service run them: an ended one is replaced.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
};

use anyhow::{Context, Result};
use futures::future::select_all;
use harness::{PlayedService, secs};
use serde_json::json;
use tokio::time::timeout;

use super::random::Random;
use crate::installation::{Installation, InstallationPorts, Program};

/// ManagerReplicas of the Deployment.
const REPLICAS: usize = 2;

/// Starts of a replacement before the run fails. The API server may hang while one starts.
const STARTS: usize = 3;

/// Last lines of a log.
const LINES: usize = 30;

/// Two managers behind one address.
pub(super) struct ManagerReplicas<'a> {
    installation: &'a Installation<'a>,
    service: PlayedService,
    all: Vec<Replica>,
    kills: usize,
    resigned: usize,
}

struct Replica {
    program: Program,
    webhooks: SocketAddr,
}

impl<'a> ManagerReplicas<'a> {
    pub(super) async fn start(installation: &'a Installation<'a>) -> Result<Self> {
        let service = PlayedService::start(installation.ports().webhooks()).await?;
        let mut this = Self { installation, service, all: Vec::new(), kills: 0, resigned: 0 };
        while this.all.len() < REPLICAS {
            this.add().await?;
        }
        Ok(this)
    }

    /// Kills leaders after random pauses, and replaces what has ended. Ends with an error only.
    pub(super) async fn disturb(
        &mut self,
        random: &mut Random,
        every: &RangeInclusive<u64>,
    ) -> Result<Infallible> {
        loop {
            match timeout(random.pause(every), self.first_ended()).await {
                Err(_) => self.kill_leader().await?,
                Ok(place) => self.replace_ended(place).await?,
            }
        }
    }

    /// Replaces what ends by itself. Ends with an error only.
    pub(super) async fn keep(&mut self) -> Result<Infallible> {
        loop {
            let place = self.first_ended().await;
            self.replace_ended(place).await?;
        }
    }

    async fn replace_ended(&mut self, place: usize) -> Result<()> {
        self.resigned += 1;
        self.replace(place).await
    }

    async fn first_ended(&self) -> usize {
        let all = self.all.iter().map(|one| Box::pin(one.program.process.ended()));
        let (_, place, _) = select_all(all).await;
        place
    }

    /// Kills the replica that leads, and starts another one. Without a leader, any replica.
    pub(super) async fn kill_leader(&mut self) -> Result<()> {
        let mut leader = 0;
        for (place, replica) in self.all.iter().enumerate() {
            // Only a leader has these series.
            let scraped = timeout(secs(2), replica.program.scrape()).await;
            if scraped.is_ok_and(|text| text.is_ok_and(|text| text.contains("role=\"leader\""))) {
                leader = place;
            }
        }
        self.all[leader].program.process.kill().await?;
        self.kills += 1;
        self.replace(leader).await
    }

    async fn replace(&mut self, place: usize) -> Result<()> {
        self.all.remove(place);
        self.route();
        self.add().await
    }

    async fn add(&mut self) -> Result<()> {
        let mut starts = 0;
        let replica = loop {
            starts += 1;
            match self.replica().await {
                Err(_) if starts < STARTS => {}
                started => break started.context("starting a manager")?,
            }
        };
        self.all.push(replica);
        self.route();
        Ok(())
    }

    async fn replica(&self) -> Result<Replica> {
        let ports = InstallationPorts::choose()?;
        let blocks = json!({"integrations": {"frameworks": ["batch/job", "pod"]}});
        let program = self.installation.manager_on(ports, &blocks, &[]).await?;
        let webhooks = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.webhooks()));
        Ok(Replica { program, webhooks })
    }

    fn route(&self) {
        self.service.set(self.all.iter().map(|one| one.webhooks).collect());
    }

    pub(super) fn kills(&self) -> usize {
        self.kills
    }

    pub(super) fn resigned(&self) -> usize {
        self.resigned
    }

    pub(super) fn log_tails(&self) -> String {
        let tails = self.all.iter().map(|one| one.program.process.log_tail(LINES));
        tails.collect::<Vec<_>>().join("\n---\n")
    }
}
