//! The task of one worker: connects, keeps the connection, and reports its status (docs/reference/multikueue.md §2.8).
//!
//! ```text
//!            +------------------------- another kubeconfig -------------------------+
//!            v                                                                      |
//!         loading --read--> probing --response--> connected --no response--> probing +
//!            |                  |                                            after a pause
//!         after a pause      no response: after a pause
//! ```
//! The old connection stays while another kubeconfig is loaded and probed. If the new one has the same server, its credentials
//! replace the old ones and no status is reported; another server is another connection.
//!
//! Order of reports: `connected` precedes the start of the watches, `lost` follows their end.

use std::{sync::Arc, time::Duration};

use cluster::control::{ConnectionStatus, ManagerInput, WorkerInput};
use crds::names::reasons::CLIENT_CONNECTION_FAILED;
use jiff::Timestamp;
use runtime::{Stop, credential_expiry::CredentialExpiry, jitter};
use tokio::{
    sync::watch::{Receiver, error::RecvError},
    time,
};

use crate::{
    client::{self, Unreachable},
    cluster_profile::renewal as renewal_times,
    cluster_uid,
    connection::{OpenConnection, PreparedConnection, WorkerEndpoint},
    context::WorkerContext,
    failed_load::{FailedLoad, failed_load},
    kubeconfig::Kubeconfig,
    kubeconfig_refused::KubeconfigRefused,
    load_kubeconfig::{LoadedKubeconfig, NotLoaded, load},
    reconcile::{KubeconfigLocation, KubeconfigVersion, TargetConnection},
    retry::ConnectionAttempts,
};

/// An instruction of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkerCommand {
    /// Connect to this target.
    Connect(TargetConnection),
    /// End the task.
    End,
}

/// A worker cluster and its connection.
pub(super) struct WorkerLoop {
    name: Box<str>,
    context: Arc<WorkerContext>,
    goal: WorkerGoal,
    attempts: ConnectionAttempts,
    connection: Option<OpenConnection>,
    /// The expiry that was reported last.
    credential: Option<CredentialReport>,
    /// The credential that a command renews.
    renewal: Option<CredentialRenewal>,
}

/// A credential that a command renews.
#[derive(Clone)]
struct CredentialRenewal {
    kubeconfig: KubeconfigVersion,
    /// When the command runs again; only after a failed probe if unset.
    due: Option<Timestamp>,
}

/// When the credential of a loaded kubeconfig expires; `None` if it does not say so.
type CredentialReport = Option<CredentialExpiry>;

/// How often the server of the former kubeconfig is probed at least, while the next one cannot be loaded.
const FORMER_CHECKED_EVERY: Duration = Duration::from_secs(30);

/// What the task does next.
enum WorkerGoal {
    /// Wait for another target.
    Idle,
    /// Load this kubeconfig. The connection of the former endpoint is in use until that succeeds.
    Load { kubeconfig: KubeconfigVersion, former: Option<Box<WorkerEndpoint>> },
    /// Probe the server periodically.
    Probe(WorkerEndpoint),
}

impl WorkerGoal {
    /// The endpoint of the connection that may be open.
    fn endpoint(self) -> Option<Box<WorkerEndpoint>> {
        match self {
            Self::Idle => None,
            Self::Load { former, .. } => former,
            Self::Probe(endpoint) => Some(Box::new(endpoint)),
        }
    }
}

impl WorkerLoop {
    /// A worker without a connection.
    pub(super) fn new(name: &str, context: Arc<WorkerContext>) -> Self {
        let attempts = ConnectionAttempts::new(context.settings.timing.first_pause);
        let (goal, name) = (WorkerGoal::Idle, name.into());
        Self { name, context, goal, attempts, connection: None, credential: None, renewal: None }
    }

    /// Runs until it is ended, then closes the connection.
    pub(super) async fn run(mut self, mut commands: Receiver<WorkerCommand>, stop: Stop) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.run_commands(&mut commands) => {}
        }
        let message = "the connection was ended".to_owned();
        self.lose(ConnectionStatus::lost(CLIENT_CONNECTION_FAILED, message)).await;
        self.context.settings.metrics.credentials.set(&self.name, None);
    }

    async fn run_commands(&mut self, commands: &mut Receiver<WorkerCommand>) {
        loop {
            let command = commands.borrow_and_update().clone();
            match command {
                WorkerCommand::End => return,
                WorkerCommand::Connect(TargetConnection::Refuse(refused)) => {
                    self.goal = WorkerGoal::Idle;
                    self.refuse(&refused).await;
                }
                WorkerCommand::Connect(TargetConnection::Connect { kubeconfig, .. }) => {
                    // Another configuration is tried at once, whatever the pause of the former one.
                    self.attempts.reset();
                    self.renewal = None;
                    let former = std::mem::replace(&mut self.goal, WorkerGoal::Idle).endpoint();
                    self.goal = WorkerGoal::Load { kubeconfig, former };
                }
            }
            // Without a sender the supervisor is gone.
            if self.run_until_command(commands).await.is_err() {
                return;
            }
        }
    }

    /// Works on the goal until the next command. Only pauses are interrupted: each step has a timeout, and a loss would
    /// remain unreported if a step was cancelled.
    async fn run_until_command(
        &mut self,
        commands: &mut Receiver<WorkerCommand>,
    ) -> Result<(), RecvError> {
        loop {
            let pause = self.step().await;
            tokio::select! {
                changed = commands.changed() => return changed,
                () = sleep(pause) => {}
            }
        }
    }

    /// One step. Returns the pause before the next.
    async fn step(&mut self) -> Option<Duration> {
        match &self.goal {
            WorkerGoal::Idle => None,
            WorkerGoal::Load { kubeconfig, .. } => {
                let kubeconfig = kubeconfig.clone();
                let pause = self.load(&kubeconfig).await;
                match &self.goal {
                    WorkerGoal::Load { former: Some(former), .. } => {
                        let former = former.clone();
                        self.watch_former(&former, pause).await
                    }
                    _ => pause,
                }
            }
            WorkerGoal::Probe(endpoint) => {
                let endpoint = endpoint.clone();
                match self.renewed(&endpoint).await {
                    Ok(renewed) => self.probe(renewed.unwrap_or(endpoint)).await,
                    Err(refused) => {
                        self.refuse(&refused).await;
                        Some(self.next_attempt())
                    }
                }
            }
        }
    }

    /// Follows the server of the former kubeconfig while the next one cannot be loaded: it may go, and come back. Returns the pause
    /// before the next attempt.
    async fn watch_former(
        &mut self,
        former: &WorkerEndpoint,
        pause: Option<Duration>,
    ) -> Option<Duration> {
        let next =
            pause.unwrap_or(self.context.settings.timing.probe_every).min(FORMER_CHECKED_EVERY);
        match self.check_endpoint(former).await {
            Ok(uid) => self.connect(former, uid.as_deref()).await,
            Err(error) => {
                let status = self.loss(&error, next);
                self.lose(status).await;
            }
        }
        Some(next)
    }

    async fn load(&mut self, kubeconfig: &KubeconfigVersion) -> Option<Duration> {
        match load(&self.context, kubeconfig).await {
            Ok(loaded) => {
                self.renewal = credential_renewal(kubeconfig, &loaded);
                // A credential that a command renews is no concern of the administrator.
                let expiry = loaded.kubeconfig.credential_expiry();
                let expiry = expiry.filter(|_| self.renewal.is_none());
                // Before the attempt: an expired credential is why it fails.
                self.report_credential(expiry).await;
                self.prepare(&loaded.kubeconfig).await
            }
            Err(failure) => {
                if !matches!(failure, NotLoaded::Refused(_)) {
                    let cluster = &*self.name;
                    tracing::warn!(cluster, %failure, "the kubeconfig of a worker was not loaded");
                }
                // Also after a refusal: the watch may be behind the read.
                let pause = self.next_attempt();
                match failed_load(failure, self.connection.is_some()) {
                    FailedLoad::Refuse(refused) => {
                        self.goal =
                            WorkerGoal::Load { kubeconfig: kubeconfig.clone(), former: None };
                        self.refuse(&refused).await;
                    }
                    FailedLoad::Report(status) => self.report(status).await,
                    FailedLoad::ReportAttempt(failure) => {
                        let cause = failure.to_string();
                        self.report(self.attempts.status(&cause, pause, Timestamp::now())).await;
                    }
                    FailedLoad::Keep => {}
                }
                Some(pause)
            }
        }
    }

    /// The endpoint with a new credential, if that is due. Until a command has given one, the former one is used.
    async fn renewed(
        &mut self,
        endpoint: &WorkerEndpoint,
    ) -> Result<Option<WorkerEndpoint>, KubeconfigRefused> {
        let Some(mut renewal) = self.renewal.clone() else {
            return Ok(None);
        };
        let now = Timestamp::now();
        if renewal.due.is_none_or(|due| now < due) {
            return Ok(None);
        }
        let renewed = match load(&self.context, &renewal.kubeconfig).await {
            Ok(loaded) => {
                renewal.due = credential_renewal(&renewal.kubeconfig, &loaded)
                    .and_then(|renewal| renewal.due);
                // The kubeconfig was usable before, and only its credential differs.
                client::build(
                    &loaded.kubeconfig,
                    &self.context.settings.metrics.requests.of(&self.name),
                )
                .ok()
            }
            Err(NotLoaded::Refused(refused)) => return Err(refused),
            Err(failure) => {
                tracing::warn!(cluster = &*self.name, %failure, "a credential was not renewed");
                renewal.due =
                    Some(renewal_times::repeated(now, self.context.settings.timing.first_pause));
                None
            }
        };
        self.renewal = Some(renewal);
        Ok(renewed.map(|client| WorkerEndpoint { client, fresh: true, ..endpoint.clone() }))
    }

    async fn prepare(&mut self, kubeconfig: &Kubeconfig) -> Option<Duration> {
        self.attempts.reset();
        match client::build(kubeconfig, &self.context.settings.metrics.requests.of(&self.name)) {
            Ok(client) => {
                let endpoint =
                    WorkerEndpoint { server: kubeconfig.server.clone(), client, fresh: true };
                self.probe(endpoint).await
            }
            // The same kubeconfig would fail again.
            Err(error) => {
                self.goal = WorkerGoal::Idle;
                self.lose(ConnectionStatus::lost(CLIENT_CONNECTION_FAILED, error.to_string()))
                    .await;
                None
            }
        }
    }

    async fn probe(&mut self, mut endpoint: WorkerEndpoint) -> Option<Duration> {
        let timing = self.context.settings.timing;
        let pause = match self.check_endpoint(&endpoint).await {
            Ok(uid) => {
                self.attempts.reset();
                self.connect(&endpoint, uid.as_deref()).await;
                endpoint.fresh = false;
                jitter::shortened(timing.probe_every)
            }
            Err(error) => {
                let pause = if error.refusal_reason().is_some() {
                    // The server responds, so this is no failed attempt, and the claim is repeated at the
                    // rate of probes.
                    self.attempts.reset();
                    timing.probe_every
                } else {
                    let pause = self.next_attempt();
                    // The credential may have been revoked: the next attempt asks for another one.
                    if let Some(renewal) = &mut self.renewal {
                        renewal.due = Some(Timestamp::now());
                    }
                    pause
                };
                let status = self.loss(&error, pause);
                self.lose(status).await;
                pause
            }
        };
        self.goal = WorkerGoal::Probe(endpoint);
        Some(pause)
    }

    /// What is reported when a server is not usable, and is tried again after a pause.
    fn loss(&self, error: &Unreachable, pause: Duration) -> ConnectionStatus {
        match error.refusal_reason() {
            Some(reason) => ConnectionStatus::lost(reason, error.to_string()),
            None => self.attempts.status(&error.to_string(), pause, Timestamp::now()),
        }
    }

    /// Counts a failed attempt. Returns the pause before the next: workers that failed together are not tried together.
    fn next_attempt(&mut self) -> Duration {
        jitter::lengthened(self.attempts.fail())
    }

    /// Whether the endpoint responds, and its cluster is claimed by this MultiKueueCluster. Returns the identity of the cluster, if that
    /// was read.
    async fn check_endpoint(
        &mut self,
        endpoint: &WorkerEndpoint,
    ) -> Result<Option<String>, Unreachable> {
        client::probe(&endpoint.client, self.context.settings.timing.deadline).await?;
        // A watch that failed would leave its kind outdated, while the server still answers probes.
        self.check_watches()?;
        // Another cluster may answer at the same address.
        let claimed = cluster_uid::claim(&self.name, &endpoint.client, &self.context).await;
        let is_open = self.connection.is_some() && !endpoint.fresh;
        match claimed {
            // A slow answer of this process is no reason to end a connection that works. A worker that does not tell
            // its identity may have lost its store, and its version alone says nothing about that.
            Err(error @ Unreachable::NotNoted(_)) if is_open => {
                tracing::warn!(cluster = &*self.name, %error, "the identity was not compared");
                Ok(None)
            }
            // Lists of this connection are held back until the identity is confirmed, which another connection does without.
            Ok(None) if is_open && self.knows_cluster() => {
                Err(Unreachable::Failed("it does not tell its identity any more".to_owned()))
            }
            claimed => claimed,
        }
    }

    fn knows_cluster(&self) -> bool {
        self.connection.as_ref().is_some_and(OpenConnection::knows_cluster)
    }

    /// A watch ends only with its connection, or because it failed.
    fn check_watches(&mut self) -> Result<(), Unreachable> {
        if self.connection.as_mut().is_some_and(OpenConnection::is_broken) {
            return Err(Unreachable::Failed("a watch ended".to_owned()));
        }
        Ok(())
    }

    /// Uses an endpoint after a successful probe, which read this identity.
    async fn connect(&mut self, endpoint: &WorkerEndpoint, uid: Option<&str>) {
        match &mut self.connection {
            // Nothing was recorded on the former cluster, or a person has confirmed the change.
            Some(connection) if !connection.is_cluster(uid) => {
                let message = "another cluster answers at the same address".to_owned();
                self.lose(ConnectionStatus::lost(CLIENT_CONNECTION_FAILED, message)).await;
            }
            Some(connection) if connection.has_server_of(endpoint) => {
                if endpoint.fresh {
                    connection.use_credentials_of(endpoint);
                    tracing::info!(
                        cluster = &*self.name,
                        "the credentials of a worker were replaced"
                    );
                }
                return;
            }
            Some(_) => {
                // resourceVersions of another server mean something else: all watches start again.
                let message = "the kubeconfig names another server".to_owned();
                self.lose(ConnectionStatus::lost(CLIENT_CONNECTION_FAILED, message)).await;
            }
            None => {}
        }
        let prepared = PreparedConnection::new(&self.name, &self.context, endpoint);
        self.report(ConnectionStatus::connected()).await;
        self.connection = Some(prepared.begin(&self.name, uid, &self.context));
    }

    async fn refuse(&mut self, refused: &KubeconfigRefused) {
        self.lose(ConnectionStatus::lost(refused.reason(), refused.message())).await;
    }

    /// Closes the connection, then reports the loss.
    async fn lose(&mut self, status: ConnectionStatus) {
        // The writer is removed before the loss is reported, so that no write follows the report.
        self.context.workers.set(&self.name, None);
        if let Some(connection) = self.connection.take() {
            connection.end().await;
        }
        self.report(status).await;
    }

    /// Reports the expiry of the credential, if it is another one.
    async fn report_credential(&mut self, expiry: CredentialReport) {
        if self.credential.replace(expiry) == Some(expiry) {
            return;
        }
        self.context.settings.metrics.credentials.set(&self.name, expiry);
        let input = WorkerInput::Credential(expiry);
        let _ = self.context.inputs.send(ManagerInput::Worker(self.name.clone(), input)).await;
    }

    /// Reports the status. Without a receiver the process is stopping.
    async fn report(&self, status: ConnectionStatus) {
        let input = ManagerInput::Worker(self.name.clone(), WorkerInput::Connection(status));
        let _ = self.context.inputs.send(input).await;
    }
}

/// When the credential of a kubeconfig is replaced; `None` if no command gave it.
fn credential_renewal(
    kubeconfig: &KubeconfigVersion,
    loaded: &LoadedKubeconfig,
) -> Option<CredentialRenewal> {
    let due = renewal_times::renewal_time(Timestamp::now(), loaded.renewed_before);
    matches!(kubeconfig.location, KubeconfigLocation::Profile(_))
        .then(|| CredentialRenewal { kubeconfig: kubeconfig.clone(), due })
}

/// Sleeps; forever without a pause.
async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
