//! The commands: reads objects, makes the model, prints it.

use std::path::Path;

use clap::CommandFactory;
use config::declared_kinds::declared_kinds;
use crds::{
    v1beta2::{ClusterQueue, LocalQueue, MultiKueueCluster, Workload},
    worker_drain::DrainWindow,
};
use jiff::Timestamp;
use jobs::Kinds;
use k8s_openapi::api::{batch::v1::Job, events::v1::Event};
use kube::{Api, Client, api::ListParams};

use crate::{
    access::ClusterAccess,
    amounts::counted,
    args::{
        CliArgs, CliCommand, DrainArgs, ExplainArgs, FenceArgs, JoinArgs, LeaveArgs, LogsArgs,
        RebuildArgs, RecoveryCommand, WorkerAccessArgs,
    },
    clusters::{ClusterList, ClusterObjects},
    dr::{self, RebuildFailure, RebuildRequest},
    drain::{self, DeadlineArgument, DrainFailure, DrainOrder},
    explain::{
        EventLine, ExplanationInputs, JobRefusal, WorkloadExplanation, WorkloadQuery, position,
        refusals, workloads_of,
    },
    failure::CommandFailure,
    fence::{self, FenceFailure},
    join::{self, HubAccount, JoinRequest, OtherHub, TokenRequestKind},
    leave::{self, LeaveFailure, LeaveRequest, RemainingWork},
    logs::{self, LogOutput, choice::LogOptions},
    output::render,
    present_job::is_present,
    requests::{find, find_in, list, list_all, list_if_served},
    top::QueueList,
};
use crds::names::labels::QUEUE_NAME;

/// Runs a command. `print` gets each finished piece of its output, with line breaks.
///
/// # Errors
/// If the command fails; the error has the exit code.
pub async fn run(args: &CliArgs, print: &(dyn Fn(&str) + Sync)) -> Result<(), CommandFailure> {
    if let CliCommand::Completion { shell } = &args.command {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut CliArgs::command(), "sluicectl", &mut script);
        print(&String::from_utf8_lossy(&script));
        return Ok(());
    }
    let hub = ClusterAccess::load(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    match &args.command {
        CliCommand::Clusters(output) => {
            let objects = cluster_objects(&hub.client).await?;
            let list = ClusterList::of(&objects, Timestamp::now());
            print(&render(&list, output.output)?);
        }
        CliCommand::Top(output) => {
            let queues: Vec<ClusterQueue> = list_all(&hub.client).await?;
            print(&render(&QueueList::of(&queues), output.output)?);
        }
        CliCommand::Explain(args) => explain(&hub, args, print).await?,
        CliCommand::Logs(args) => run_logs(&hub, args, print).await?,
        CliCommand::Cordon(args) => {
            change_drain(&hub.client, &args.cluster, DrainOrder::Cordon, print).await?;
        }
        CliCommand::Uncordon(args) => {
            change_drain(&hub.client, &args.cluster, DrainOrder::End, print).await?;
        }
        CliCommand::Drain(args) => run_drain(&hub.client, args, print).await?,
        CliCommand::Dr(RecoveryCommand::Rebuild(args)) => {
            let report = dr::rebuild(&hub.client, &rebuild_request(args)?).await?;
            print(&render(&report, args.output.output)?);
            match report.n_failed() {
                0 => {}
                failed => return Err(RebuildFailure::Incomplete(failed).into()),
            }
        }
        CliCommand::Fence(args) => run_fence(&hub.client, args, print).await?,
        CliCommand::Join(join) => run_join(args, &hub, join, print).await?,
        CliCommand::Leave(leave) => run_leave(args, &hub, leave, print).await?,
        CliCommand::Completion { .. } => {}
    }
    Ok(())
}

async fn cluster_objects(client: &Client) -> Result<ClusterObjects, CommandFailure> {
    Ok(ClusterObjects {
        clusters: list_all(client).await?,
        capacities: list_if_served(client).await?,
        configs: list_all(client).await?,
        policies: list_if_served(client).await?,
        workloads: list_all(client).await?,
    })
}

async fn explain(
    hub: &ClusterAccess,
    args: &ExplainArgs,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let name: WorkloadQuery = args.name.parse()?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.namespace());
    let client = &hub.client;
    let workloads: Api<Workload> = Api::namespaced(client.clone(), &namespace);
    let workloads = list(&workloads, ListParams::default()).await?;
    let selected = workloads_of(&name, &workloads);
    let events = events_in(client, &namespace).await?;
    if selected.is_empty() {
        for JobRefusal { line, job } in refusals(&name, &events) {
            if is_present(client, &namespace, &job).await {
                let EventLine { object, reason, message, .. } = line;
                let text = format!("{object} in {namespace} has no Workload: {reason}: {message}");
                return Err(CommandFailure::NoWorkload(text));
            }
        }
        let text = no_workload(client, &namespace, &name).await?;
        return Err(CommandFailure::NoWorkload(text));
    }
    let clusters: Vec<MultiKueueCluster> = list_all(client).await?;
    let clusters: Vec<String> = clusters.into_iter().filter_map(|one| one.metadata.name).collect();
    let mut explanations = Vec::new();
    for workload in selected {
        let queue = &workload.spec.queue_name;
        let local_queue: Option<LocalQueue> =
            if queue.is_empty() { None } else { find_in(client, &namespace, queue).await? };
        let inputs = ExplanationInputs {
            visible: position::read(client, workload).await,
            local_queue,
            clusters: clusters.clone(),
            events: events.clone(),
        };
        explanations.push(WorkloadExplanation::of(workload, &inputs, Timestamp::now()));
    }
    print(&render(&explanations, args.output.output)?);
    Ok(())
}

async fn run_logs(
    hub: &ClusterAccess,
    args: &LogsArgs,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let name: WorkloadQuery = args.name.parse()?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.namespace());
    let options = LogOptions {
        pod: args.pod.clone(),
        all_pods: args.all_pods,
        container: args.container.clone(),
        all_containers: args.all_containers,
        follow: args.follow,
        previous: args.previous,
        timestamps: args.timestamps,
        tail: args.tail,
        since_seconds: args.since,
    };
    // Not among the lines of logs.
    let output = LogOutput { print, note: &|line| eprintln!("{line}") };
    Ok(logs::logs(&hub.client, &namespace, &name, &options, &output).await?)
}

/// The Events of a namespace. They explain more, but nothing depends on the right to read them.
async fn events_in(client: &Client, namespace: &str) -> Result<Vec<Event>, CommandFailure> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    match list(&events, ListParams::default()).await {
        Err(failure) if failure.is_forbidden() => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

/// Says why a name has no Workload, as far as a Job of that name shows it.
async fn no_workload(
    client: &Client,
    namespace: &str,
    name: &WorkloadQuery,
) -> Result<String, CommandFailure> {
    let plain = name.name();
    let nothing = format!("no Workload {namespace}/{plain}, and none of a job of that name");
    if !name.may_be("Job") {
        return Ok(nothing);
    }
    let Some(job) = find_in::<Job>(client, namespace, plain).await? else {
        return Ok(nothing);
    };
    let queue = job.metadata.labels.as_ref().and_then(|labels| labels.get(QUEUE_NAME));
    Ok(match queue {
        None => format!("Job {namespace}/{plain} has no Workload: it has no label {QUEUE_NAME}"),
        Some(queue) => format!(
            "Job {namespace}/{plain} of queue {queue} has no Workload: does sluice-manager run, and does its configuration enable batch/job?"
        ),
    })
}

async fn change_drain(
    client: &Client,
    cluster: &str,
    order: DrainOrder,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let lines = drain::order(client, cluster, order).await?;
    if lines.is_empty() {
        // The end of a drain needs no worker, but the name may be wrong.
        if find::<MultiKueueCluster>(client, cluster).await?.is_none() {
            return Err(DrainFailure::NoCluster(cluster.to_owned()).into());
        }
        print(&format!("{cluster} unchanged\n"));
    }
    lines.iter().for_each(|line| print(&format!("{line}\n")));
    Ok(())
}

async fn run_drain(
    client: &Client,
    args: &DrainArgs,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    if let Some(window) = args.window {
        return run_drain_in(client, args, window, print).await;
    }
    let deadline = deadline(args.deadline.as_deref())?;
    change_drain(client, &args.cluster, DrainOrder::Drain { deadline }, print).await?;
    let left = drain::work_on(client, &args.cluster).await?;
    let until = withdrawal(deadline);
    print(&format!("{} on {}, {until}\n", counted(left.len(), "Workload"), args.cluster));
    if args.wait {
        drain::wait_until_empty(client, &args.cluster, args.timeout).await?;
        print(&format!("{} is drained\n", args.cluster));
    }
    Ok(())
}

async fn run_drain_in(
    client: &Client,
    args: &DrainArgs,
    window: DrainWindow,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let deadline = deadline_argument(args.deadline.as_deref())?;
    let drain = drain::drain_in(window, deadline, Timestamp::now())?;
    let line = drain::schedule(client, &args.cluster, &drain).await?;
    let until = withdrawal(drain.deadline);
    print(&format!("{line}; running work is {until}\n"));
    Ok(())
}

/// What becomes of running work.
fn withdrawal(deadline: Option<Timestamp>) -> String {
    deadline.map_or("not withdrawn".to_owned(), |deadline| format!("withdrawn at {deadline}"))
}

async fn run_fence(
    client: &Client,
    args: &FenceArgs,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let loss = fence::read(client, &args.cluster).await?;
    if !args.yes {
        let (cluster, workloads) = (loss.cluster, loss.workloads);
        return Err(FenceFailure::NotAccepted { cluster, workloads }.into());
    }
    let line = fence::confirm(client, &loss).await?;
    print(&format!("{line}\n"));
    Ok(())
}

/// The kinds of jobs of a file of the command line.
fn declared(file: Option<&Path>) -> Result<Kinds, CommandFailure> {
    declared_kinds(file).map_err(|error| {
        let file = file.unwrap_or(Path::new("")).display().to_string();
        CommandFailure::File { file, reason: runtime::error_chain::describe(&error) }
    })
}

fn rebuild_request(args: &RebuildArgs) -> Result<RebuildRequest, CommandFailure> {
    Ok(RebuildRequest {
        declared: declared(args.job_kinds.as_deref())?,
        namespace: args.manager_namespace.clone(),
        origin: args.origin.clone(),
        clusters: args.clusters.clone(),
        dry_run: args.dry_run,
        accepted: args.yes,
    })
}

fn deadline_argument(text: Option<&str>) -> Result<Option<DeadlineArgument>, CommandFailure> {
    Ok(text.map(str::parse).transpose()?)
}

fn deadline(text: Option<&str>) -> Result<Option<Timestamp>, CommandFailure> {
    Ok(deadline_argument(text)?.map(|argument| argument.time(Timestamp::now())))
}

/// The worker as this command reaches it; `None` if the command line does not name it.
async fn worker_access(
    args: &CliArgs,
    worker: &WorkerAccessArgs,
) -> Result<Option<ClusterAccess>, CommandFailure> {
    if worker.worker_kubeconfig.is_none() && worker.worker_context.is_none() {
        return Ok(None);
    }
    let path = worker.worker_kubeconfig.as_deref().or(args.kubeconfig.as_deref());
    Ok(Some(ClusterAccess::load(path, worker.worker_context.as_deref()).await?))
}

async fn run_join(
    args: &CliArgs,
    hub: &ClusterAccess,
    join: &JoinArgs,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let worker = worker_access(args, &join.worker).await?;
    let worker = worker.ok_or(CommandFailure::NoWorker)?;
    let request = join_request(join)?;
    if join.dry_run {
        print(&join::dry_run(hub, &worker, &request).await?);
        return Ok(());
    }
    Ok(join::join(hub, &worker, &request, &|line| print(&format!("{line}\n"))).await?)
}

fn join_request(args: &JoinArgs) -> Result<JoinRequest, CommandFailure> {
    let token = if args.permanent_token {
        TokenRequestKind::Permanent
    } else {
        TokenRequestKind::Expiring(args.token_duration)
    };
    Ok(JoinRequest {
        name: args.name.clone(),
        hub_namespace: args.worker.manager_namespace.clone(),
        account: HubAccount {
            namespace: args.worker_namespace.clone(),
            name: args.service_account.clone(),
        },
        server: args.server.clone(),
        authority: args.certificate_authority.clone(),
        allow_loopback: args.allow_loopback,
        token,
        declared: declared(args.job_kinds.as_deref())?,
        replace_cluster: args.replace_cluster,
        other_hub: if args.take_over { OtherHub::TakeOver } else { OtherHub::Refuse },
        logs: !args.no_logs,
        config: args.config.clone(),
        wait: (!args.no_wait).then_some(args.timeout),
    })
}

async fn run_leave(
    args: &CliArgs,
    hub: &ClusterAccess,
    leave: &LeaveArgs,
    print: &(dyn Fn(&str) + Sync),
) -> Result<(), CommandFailure> {
    let worker = worker_access(args, &leave.worker).await?;
    if worker.is_none() && !leave.hub_only {
        return Err(LeaveFailure::NoWorkerAccess.into());
    }
    let work = match (leave.force, leave.drain) {
        (true, _) => RemainingWork::Ignore,
        (false, true) => RemainingWork::Drain { deadline: deadline(leave.deadline.as_deref())? },
        (false, false) => RemainingWork::Refuse,
    };
    let request = LeaveRequest {
        name: leave.name.clone(),
        hub_namespace: leave.worker.manager_namespace.clone(),
        work,
        within: leave.timeout,
    };
    let worker = worker.filter(|_| !leave.hub_only);
    let report = |line: &str| print(&format!("{line}\n"));
    Ok(leave::leave(hub, worker.as_ref(), &request, &report).await?)
}
