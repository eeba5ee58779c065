//! The tasks of the process.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use appwrapper::AllowedComponents;
use cluster::control::{AgentControl, AgentInput, AgentSettings};
use config::declared_kinds::declared_kinds;
use crds::names::labels::MULTI_KUEUE_ORIGIN;
use jobs::Kinds;
use leader::{
    AdmissionExplanations, ClientMetrics, Election, HOME, Leader, LeaderContext, Sources,
    Unmeasured,
};
use prometheus_client::registry::Registry;
use runtime::{
    Stop, client,
    events::Reporter,
    health::{self, HealthChecks, HealthEndpoint},
    lease::{LeaseName, LeaseTiming, identity},
    metrics,
    server::Server,
    tasks::supervise,
    watch::Stores,
};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    args::AgentArgs,
    config::AgentConfiguration,
    operator_settings::{operator_settings, variable},
    operators::{LeaseSightings, Operators, PhaseMetrics},
};

/// The user agent, visible in the audit log of the API server.
const USER_AGENT: &str = concat!("sluice-agent/", env!("CARGO_PKG_VERSION"));

/// The reporting controller of events.
const COMPONENT: &str = "sluice.dev/agent";

/// The Lease of leader election among replicas.
const LEADER_LEASE: &str = "sluice-agent-leader";

/// Runs until `stop`, or until a task ends.
pub(crate) async fn run(
    args: &AgentArgs,
    config: &AgentConfiguration,
    stop: Stop,
) -> anyhow::Result<()> {
    // Before the probes: an agent that says it is ready must not stop because of a setting.
    let (operated, security) = operator_settings(args, variable)?;
    let (counters, phases) = (ClientMetrics::default(), PhaseMetrics::default());
    let count = counters.requests.of(HOME);
    let client = client::connect(args.kubeconfig.as_deref(), USER_AGENT, &count).await?;
    let mut tasks = JoinSet::new();
    // Before the election: a replica that waits for the lease answers its probes as well.
    serve(args, registry(&counters, &phases), &stop, &mut tasks).await?;
    let known = Kinds::built_in().with(&declared_kinds(args.job_kinds.as_deref())?);
    let settings = AgentSettings::new(config.policy(), &known.with_workloads())
        .with_lease(&config.namespace, &identity().context("identity of the agent's Lease")?)
        .admitting(args.admission)
        .provisioning(config.provisioning_request()?);
    let mut stores = Stores::new(client.clone(), &counters.watches, stop.clone());
    let reporter = reporter()?;
    let operators = Operators {
        mode: args.operators,
        client: client.clone(),
        metrics: counters.clone(),
        phases,
        reporter: reporter.clone(),
        head_proxy: args.ray_head_proxy.clone(),
        components: components(config, &known),
        settings: operated,
        security,
        namespace: config.namespace.clone(),
        sightings: LeaseSightings::default(),
    };
    let leader = Leader {
        client,
        sources: sources(&mut stores, &settings, &config.namespace),
        control: AgentControl::new(settings),
        election: election(config)?,
        metrics: counters,
        reporter,
        measure: Arc::new(Unmeasured),
        explanations: AdmissionExplanations::default(),
    };
    // After the sources, which have asked for their stores by now.
    tasks.spawn(stores.run());
    let until = stop.clone();
    tasks.spawn(async move {
        let runnable = |context: LeaderContext<AgentInput>| async move {
            operators.run(context.leadership, context.stop).await;
        };
        if let Err(error) = Box::pin(leader.run(runnable, until)).await {
            tracing::error!(%error, "cannot compete for the lease");
        }
    });
    Ok(supervise(tasks, stop).await?)
}

/// The source of events.
fn reporter() -> anyhow::Result<Reporter> {
    let instance = identity().context("identity of the source of events")?;
    Ok(Reporter { component: COMPONENT.to_owned(), instance })
}

/// What the agent watches. The label of managers with any value: several may share the worker.
fn sources(stores: &mut Stores, settings: &AgentSettings, namespace: &str) -> Sources<AgentInput> {
    let sources = Sources::agent(stores, settings.kinds(), MULTI_KUEUE_ORIGIN, namespace);
    let sources = if settings.has_queues() { sources.with_queues(stores) } else { sources };
    if settings.asks_for_nodes() { sources.with_provisioning(stores) } else { sources }
}

/// Serves probes, and metrics if they have an address.
async fn serve(
    args: &AgentArgs,
    registry: Registry,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    // The agent has no webhooks, so readiness has nothing to wait for.
    let endpoint = |name| HealthEndpoint::new(name, HealthChecks::default().with("ping", || true));
    let router = health::router(endpoint("healthz"), endpoint("readyz"));
    let listener = bind("health probes", args.health_probe_bind_address).await?;
    tasks.spawn(Server::plain(router).run(listener, stop.clone()));
    if let Some(address) = args.metrics_bind_address {
        let router = metrics::router(Arc::new(registry));
        let listener = bind("metrics", address).await?;
        tasks.spawn(Server::plain(router).run(listener, stop.clone()));
    }
    Ok(())
}

async fn bind(what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address} for {what}"))
}

fn registry(counters: &ClientMetrics, phases: &PhaseMetrics) -> Registry {
    let mut registry = Registry::default();
    phases.register(&mut registry);
    counters.register(registry.sub_registry_with_prefix("sluice"));
    registry
}

fn election(config: &AgentConfiguration) -> anyhow::Result<Option<Election>> {
    if !config.leader_election.leader_elect {
        // A single replica needs no lease.
        return Ok(None);
    }
    let lease = LeaseName { namespace: config.namespace.clone(), name: LEADER_LEASE.to_owned() };
    let identity = identity().context("leader election")?;
    Ok(Some(Election { lease, identity, timing: LeaseTiming::default() }))
}

/// What an AppWrapper may contain. The pods of a Deployment are the AppWrapper's, so it needs no Workload.
fn components(config: &AgentConfiguration, known: &Kinds) -> AllowedComponents {
    config.policy().allowed(known).as_components()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_wrapper_may_contain_deployments_unless_kinds_are_limited() {
        let with = |text: &str| {
            let header = "apiVersion: config.sluice.dev/v1alpha1\nkind: AgentConfiguration\n";
            let config = AgentConfiguration::read(&format!("{header}{text}")).expect("a file");
            components(&config, Kinds::built_in())
        };
        for (api_version, kind) in [("apps/v1", "Deployment"), ("v1", "Pod"), ("batch/v1", "Job")] {
            assert_eq!(with("").refusal(api_version, kind), None, "{kind}");
        }
        let limited = with("kinds: {allow: [{group: batch, version: v1, kind: Job}]}\n");
        assert_eq!(limited.refusal("batch/v1", "Job"), None);
        assert!(limited.refusal("apps/v1", "Deployment").is_some());
    }
}
