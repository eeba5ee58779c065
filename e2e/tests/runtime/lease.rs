//! Two candidates for one lease: whatever happens to the leader, the other takes over, and not before the first one stopped.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use harness::{Cluster, Fault, FaultProxy, Space, secs};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use runtime::Stop;
use runtime::lease::{ElectionEnd, Elector, Leadership, LeaseName, LeaseTiming};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{TIMEOUT, lab};

const NAME: &str = "leader";

/// Short enough for a test, with a margin that a busy machine does not eat up.
const QUICK: LeaseTiming =
    LeaseTiming { lease: secs(6), renew_deadline: secs(4), retry: Duration::from_millis(500) };

struct Candidate {
    leadership: Leadership,
    stop: Stop,
    task: JoinHandle<ElectionEnd>,
}

impl Candidate {
    fn start(space: &Space, client: Client, identity: &str, timing: LeaseTiming) -> Result<Self> {
        let name = LeaseName { namespace: space.namespace().to_owned(), name: NAME.to_owned() };
        let (elector, leadership) = Elector::new(client, name, identity.to_owned(), timing)?;
        let stop = Stop::new();
        let task = tokio::spawn(elector.run(stop.clone()));
        Ok(Self { leadership, stop, task })
    }

    async fn gained(&mut self) -> Result<()> {
        timeout(TIMEOUT, self.leadership.gained()).await.context("it never became the leader")
    }
}

/// The moments at which `old` stopped and `new` began to lead.
async fn handover(old: &Candidate, new: &Candidate) -> Result<(Instant, Instant)> {
    let (mut old, mut new) = (old.leadership.clone(), new.leadership.clone());
    let lost = tokio::spawn(async move {
        old.lost().await;
        Instant::now()
    });
    let gained = tokio::spawn(async move {
        new.gained().await;
        Instant::now()
    });
    let lost = timeout(TIMEOUT, lost).await.context("the old one leads on")??;
    Ok((lost, timeout(TIMEOUT, gained).await.context("the new process never became the leader")??))
}

async fn spec(cluster: &Cluster, space: &Space) -> Result<Value> {
    let leases: Api<Lease> = cluster.api(space.namespace());
    Ok(serde_json::to_value(leases.get(NAME).await?)?["spec"].clone())
}

#[tokio::test]
async fn a_leader_that_is_refused_stops_before_the_other_leads() -> Result<()> {
    cut_off_by(Fault::Refuse, "refused").await
}

#[tokio::test]
async fn a_leader_that_hangs_stops_before_the_other_leads() -> Result<()> {
    cut_off_by(Fault::Hang, "hanging").await
}

async fn cut_off_by(fault: Fault, test: &str) -> Result<()> {
    let space = lab().await?.space(test).await?;
    let cluster = space.manager()?;
    let proxy = FaultProxy::start(cluster).await?;
    let mut one = Candidate::start(&space, proxy.client().await?, "one", QUICK)?;
    one.gained().await?;
    let two = Candidate::start(&space, cluster.client(), "two", QUICK)?;

    proxy.set(fault);
    let (lost, gained) = handover(&one, &two).await?;
    assert!(lost < gained, "two processes were leaders for {:?}", lost - gained);
    assert_eq!(timeout(TIMEOUT, one.task).await??, ElectionEnd::Lost);

    // What was held back arrives now, and changes nothing.
    proxy.set(Fault::None);
    let mut three = Candidate::start(&space, proxy.client().await?, "three", QUICK)?;
    let overtaken = timeout(QUICK.renew_deadline, three.leadership.gained()).await;
    assert!(overtaken.is_err(), "two leads and renews");
    assert!(two.leadership.leads() && !one.leadership.leads());
    let spec = spec(cluster, &space).await?;
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&"two".into(), &1.into()));
    Ok(())
}

#[tokio::test]
async fn a_killed_leader_is_followed_when_its_lease_has_run_out() -> Result<()> {
    let space = lab().await?.space("killed_leader").await?;
    let cluster = space.manager()?;
    let mut one = Candidate::start(&space, cluster.client(), "one", QUICK)?;
    one.gained().await?;
    let two = Candidate::start(&space, cluster.client(), "two", QUICK)?;
    one.task.abort();
    let (lost, gained) = handover(&one, &two).await?;
    assert!(lost < gained);
    assert_eq!(spec(cluster, &space).await?["holderIdentity"], "two");
    Ok(())
}

#[tokio::test]
async fn a_leader_that_stops_gives_the_lease_back() -> Result<()> {
    let space = lab().await?.space("given_back").await?;
    let cluster = space.manager()?;
    // So long that only giving back explains what follows.
    let slow = LeaseTiming { lease: secs(600), renew_deadline: secs(400), ..QUICK };
    let mut one = Candidate::start(&space, cluster.client(), "one", slow)?;
    one.gained().await?;
    let held = spec(cluster, &space).await?;
    assert_eq!((&held["holderIdentity"], &held["leaseTransitions"]), (&"one".into(), &0.into()));
    assert_eq!(held["leaseDurationSeconds"], 600);
    for time in ["acquireTime", "renewTime"] {
        let Some(text) = held[time].as_str() else { bail!("no {time} in {held}") };
        let fraction = text.split_once('.').map(|(_, fraction)| fraction.len());
        assert_eq!(fraction, Some("123456Z".len()), "{text}");
    }

    one.stop.cancel();
    assert_eq!(timeout(TIMEOUT, one.task).await??, ElectionEnd::Stopped);
    let free = spec(cluster, &space).await?;
    assert_eq!((&free["holderIdentity"], &free["leaseDurationSeconds"]), (&"".into(), &1.into()));

    let mut two = Candidate::start(&space, cluster.client(), "two", slow)?;
    two.gained().await?;
    assert_eq!(spec(cluster, &space).await?["leaseTransitions"], 1);
    Ok(())
}

#[tokio::test]
async fn of_many_that_start_together_one_leads() -> Result<()> {
    let space = lab().await?.space("together").await?;
    let cluster = space.manager()?;
    let names = ["a", "b", "c", "d", "e"];
    let candidates: Vec<Candidate> = names
        .iter()
        .map(|name| Candidate::start(&space, cluster.client(), name, LeaseTiming::default()))
        .collect::<Result<_>>()?;
    let winner = candidates.iter().map(|candidate| {
        let mut leadership = candidate.leadership.clone();
        Box::pin(async move { leadership.gained().await })
    });
    let ((), winner, _) = timeout(TIMEOUT, futures::future::select_all(winner)).await?;
    let others = candidates.iter().enumerate().filter(|(at, _)| *at != winner);
    // Long enough for each of them to have tried.
    let rivals = others.map(|(_, candidate)| {
        let mut leadership = candidate.leadership.clone();
        Box::pin(async move { leadership.gained().await })
    });
    let second = timeout(secs(5), futures::future::select_all(rivals)).await;
    assert!(second.is_err(), "two lead");
    assert_eq!(spec(cluster, &space).await?["holderIdentity"], names[winner]);
    Ok(())
}
