//! Operators of Ray and AppWrapper, for clusters without the official ones.
//!
//! The decisions are pure (`ray`, `appwrapper`); here is the loop around them. It watches the operated kinds and what they make, runs
//! a pass for each object that changed or is due, and executes the orders of a pass one after the other. A pass is a task of
//! its own, so a head that hangs, or a write that waits, delays one object only.
//!
//! | module | concept |
//! |---|---|
//! | `takeover` | whether this agent operates the cluster |
//! | `parent` | the operated kinds, and what concerns each object of them |
//! | `operator_loop` | watches in, passes out |
//! | `object_cache`, `pass_queue` | what is known, and which object is next; pure |
//! | `watches` | the watches of operated kinds, of their objects, and of leases |
//! | `pass`, `pass_reads`, `step` | one pass; what it reads by name; steps of all operators in one form |
//! | `unwatched` | what a pass reads because no watch shows it |
//! | `pass_tasks` | the passes in progress, of which one that panics ends alone |
//! | `head_client` | requests to Ray heads |
//! | `resources`, `component_kinds` | kinds that are watched, and kinds that may be made |
//! | `cluster_facts` | definitions and leases, read for `takeover` |
//! | `security_facts` | what the security of RayClusters needs to know of the cluster |
//! | `submitter_rights` | whether a policy checks what the submitter of an AppWrapper may create |
//! | `phase_metrics` | the phases that AppWrappers have entered |

mod cluster_facts;
mod component_kinds;
mod head_client;
mod object_cache;
mod operator_loop;
mod parent;
mod pass;
mod pass_queue;
mod pass_reads;
mod pass_tasks;
mod phase_metrics;
mod resources;
mod security_facts;
#[cfg(test)]
mod simulation;
mod step;
mod submitter_rights;
mod takeover;
#[cfg(test)]
mod takeover_tests;
mod unwatched;
mod watches;

use std::{sync::Arc, time::Duration};

use appwrapper::AllowedComponents;
use jiff::Timestamp;
use kube::Client;
use leader::{ClientMetrics, HOME};
use ray::security::{SecurityConfig, SecuritySettings};
use runtime::{
    Stop, error_chain,
    events::{Reporter, recorder},
    lease::Leadership,
    writer::{WriteLimits, Writer},
};
use tokio::{sync::mpsc, task::JoinSet, time};

use self::{
    cluster_facts::cluster_facts,
    component_kinds::ComponentKinds,
    head_client::HeadClient,
    operator_loop::OperatorLoop,
    parent::ParentKind,
    pass::PassIo,
    resources::watched_on_openshift,
    security_facts::{SecurityFactsError, security_settings},
    submitter_rights::report_unchecked_rights,
    takeover::{NotOperated, operated},
};
pub(crate) use self::{
    parent::AllSettings,
    phase_metrics::PhaseMetrics,
    takeover::{LeaseSightings, OperatorMode},
};

/// The most passes at a time.
const MOST_PASSES: usize = 32;

/// How often it is looked at whether an official operator has come or gone, if nothing is heard of its lease.
const RECHECK: Duration = Duration::from_secs(30);

/// Timeout of a write.
const WRITE_DEADLINE: Duration = Duration::from_secs(15);

/// The most event writes in flight.
const EVENTS_AT_A_TIME: usize = 4;

/// Changes of watches that may wait for the loop.
const CHANGES: usize = 1024;

/// Operators of a process that leads.
pub(crate) struct Operators {
    pub(crate) mode: OperatorMode,
    pub(crate) client: Client,
    pub(crate) metrics: ClientMetrics,
    /// What AppWrappers have gone through.
    pub(crate) phases: PhaseMetrics,
    pub(crate) reporter: Reporter,
    /// `host:port` of a proxy to Ray heads.
    pub(crate) head_proxy: Option<String>,
    /// What an AppWrapper may contain.
    pub(crate) components: AllowedComponents,
    /// What an administrator sets, but for the security of RayClusters.
    pub(crate) settings: AllSettings,
    /// How RayClusters are secured; none unless an administrator asks for it.
    pub(crate) security: Option<SecurityConfig>,
    /// The namespace of the agent.
    pub(crate) namespace: String,
    /// When leases of official operators were seen to change.
    pub(crate) sightings: LeaseSightings,
}

impl Operators {
    /// Operates while the process leads.
    pub(crate) async fn run(mut self, leadership: Leadership, stop: Stop) {
        let mut reported = None;
        while self.mode != OperatorMode::Off && !stop.is_cancelled() {
            match self.operated_kinds().await {
                Ok(kinds) => {
                    reported = None;
                    self.start(kinds, &leadership, &stop).await;
                }
                // Once: it is looked at again and again.
                Err(why) if reported.as_ref() != Some(&why) => {
                    tracing::info!(%why, "operators do not run");
                    reported = Some(why);
                }
                Err(_) => {}
            }
            let _ = stop.run_until_cancelled(time::sleep(RECHECK)).await;
        }
        stop.cancelled().await;
    }

    /// Operates, once it is known how RayClusters are secured.
    async fn start(&mut self, mut kinds: Vec<ParentKind>, leadership: &Leadership, stop: &Stop) {
        let security = loop {
            match self.security(&kinds).await {
                Ok(None) => break None,
                // An official operator may have come while the security was read.
                Ok(security) => match self.operated_kinds().await {
                    Ok(still) if still == kinds => break security,
                    Ok(still) => kinds = still,
                    Err(_) => return,
                },
                // A cluster that is not secured although it should be is worse than one that waits.
                Err(error) => {
                    let error = error_chain::describe(&error);
                    return tracing::warn!(error, "operators do not run");
                }
            }
        };
        tracing::info!(?kinds, secured = security.is_some(), "operators run");
        self.operate(kinds, security, leadership, stop).await;
    }

    async fn operated_kinds(&mut self) -> Result<Vec<ParentKind>, NotOperated> {
        let facts = match self.mode {
            OperatorMode::Auto => cluster_facts(&self.client, &mut self.sightings).await,
            OperatorMode::On | OperatorMode::Off => takeover::ClusterFacts::default(),
        };
        let names = operated(self.mode, &facts, Timestamp::now())?;
        let is_operated =
            |kind: &ParentKind| names.as_ref().is_none_or(|names| names.contains(&kind.name()));
        let kinds = ParentKind::enabled(self.settings.ray.gates);
        Ok(kinds.filter(is_operated).collect())
    }

    /// What is added to RayClusters, if they are operated here.
    async fn security(
        &self,
        kinds: &[ParentKind],
    ) -> Result<Option<SecuritySettings>, SecurityFactsError> {
        match self.security.as_ref().filter(|_| kinds.contains(&ParentKind::RayCluster)) {
            Some(config) => {
                security_settings(&self.client, config, &self.namespace).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Until the process stops, or another set of kinds is to be operated.
    async fn operate(
        &mut self,
        kinds: Vec<ParentKind>,
        security: Option<SecuritySettings>,
        leadership: &Leadership,
        stop: &Stop,
    ) {
        let until = stop.child_token();
        let mut tasks = JoinSet::new();
        let (changes, received) = mpsc::channel(CHANGES);
        let on_openshift = security.as_ref().is_some_and(SecuritySettings::writes_openshift);
        let further = if on_openshift { watched_on_openshift() } else { Vec::new() };
        if kinds.contains(&ParentKind::AppWrapper) {
            tasks.spawn(report_unchecked_rights(self.client.clone()));
        }
        let n_watches = self.watch(&kinds, further, &changes, &until, &mut tasks);
        let mut settings = self.settings.clone();
        settings.ray.security = security;
        let io = self.io(settings, leadership, &until, &mut tasks);
        let mut work = OperatorLoop::new(io, n_watches);
        let (noticed, mut lease) = mpsc::channel(1);
        self.watch_leases(noticed, &until, &mut tasks);
        let rechecked = async {
            loop {
                tokio::select! {
                    () = time::sleep(RECHECK) => {}
                    Some(()) = lease.recv() => {}
                }
                let still = self.operated_kinds().await;
                if still.as_ref() != Ok(&kinds) {
                    tracing::info!(?still, "operated kinds have changed");
                    return;
                }
            }
        };
        tokio::select! {
            () = work.run(received) => {}
            () = rechecked => {}
            () = until.cancelled() => {}
        }
        until.cancel();
        tasks.shutdown().await;
    }

    fn io(
        &self,
        settings: AllSettings,
        leadership: &Leadership,
        stop: &Stop,
        tasks: &mut JoinSet<()>,
    ) -> Arc<PassIo> {
        let writer = |max_in_flight| {
            let limits = WriteLimits { max_in_flight, deadline: WRITE_DEADLINE };
            let writes = self.metrics.writes.clone();
            Writer::new(self.client.clone(), HOME, limits, writes).led_by(leadership.clone())
        };
        let events = writer(EVENTS_AT_A_TIME);
        let (recorder, events) =
            recorder(events, self.reporter.clone(), self.metrics.events.clone());
        tasks.spawn(events.run(stop.clone()));
        Arc::new(PassIo {
            client: self.client.clone(),
            writer: writer(MOST_PASSES),
            recorder,
            heads: Box::new(HeadClient { proxy: self.head_proxy.clone() }),
            kinds: ComponentKinds::new(self.components.clone()),
            settings,
            phases: self.phases.clone(),
            clock: Box::new(Timestamp::now),
        })
    }
}
