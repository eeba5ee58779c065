//! `logs`: the logs of a Workload's pods, wherever they run (docs/reference/dispatch.md §12).
//!
//! The manager reads them; this command needs no access to a worker. [`choice`] decides which logs are wanted, `requests` reads them, and
//! [`text`] makes text of what arrives.

pub mod choice;
mod requests;
pub mod text;

use crds::v1beta2::Workload;
use futures::future::try_join_all;
use kube::{Api, Client, api::ListParams};

use self::{
    choice::{ChosenLog, LogOptions, PodOfWorkload, chosen, newest},
    text::LogText,
};
use crate::{
    command_exit::CommandExit,
    explain::{WorkloadQuery, workloads_of},
    requests::{RequestFailure, list},
};

/// The most logs that are followed at once: the manager has as many places for a namespace.
const FOLLOWED: usize = 16;

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogsFailure {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestFailure),
    /// The manager does not serve the API.
    #[error(
        "the manager does not serve logs: apply config/visibility with the APIService v1alpha1.visibility.sluice.dev"
    )]
    NotServed,
    /// No Workload has the name.
    #[error("no Workload {namespace}/{name}, and none of a job of that name")]
    NoWorkload {
        /// Its namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// The Workload has no pods.
    #[error("Workload {workload} has no pods{}", of_cluster(.cluster))]
    NoPods {
        /// The Workload.
        workload: String,
        /// The worker; empty for the manager cluster.
        cluster: String,
    },
    /// It has no such pod.
    #[error("Workload {workload} has no pod {pod}{}; it has {}", of_cluster(.cluster), .pods.join(", "))]
    NoPod {
        /// The Workload.
        workload: String,
        /// The pod.
        pod: String,
        /// The worker; empty for the manager cluster.
        cluster: String,
        /// Its pods.
        pods: Vec<String>,
    },
    /// No pod has the container.
    #[error("no pod has a container {container}; there are {}", .containers.join(", "))]
    NoContainer {
        /// The container.
        container: String,
        /// The containers of the pods.
        containers: Vec<String>,
    },
    /// Too many logs are to be followed.
    #[error(
        "{0} logs are to be followed, and {FOLLOWED} can be: name a pod with --pod, or a container with -c"
    )]
    TooMany(usize),
    /// The log broke off.
    #[error("the log of pod {pod} was cut off{}: {cause}", of_cluster(.cluster))]
    CutOff {
        /// The pod.
        pod: String,
        /// The worker; empty for the manager cluster.
        cluster: String,
        /// Why.
        cause: String,
    },
}

impl LogsFailure {
    /// How the command ends.
    pub(crate) fn exit(&self) -> CommandExit {
        match self {
            Self::TooMany(_) => CommandExit::Usage,
            Self::Request(_)
            | Self::NotServed
            | Self::NoWorkload { .. }
            | Self::NoPods { .. }
            | Self::NoPod { .. }
            | Self::NoContainer { .. }
            | Self::CutOff { .. } => CommandExit::Failed,
        }
    }
}

fn of_cluster(cluster: &str) -> String {
    match cluster {
        "" => String::new(),
        name => format!(" on cluster {name}"),
    }
}

/// Where the output goes.
pub struct LogOutput<'a> {
    /// Takes the text of logs.
    pub print: &'a (dyn Fn(&str) + Sync),
    /// Takes a line about what was chosen.
    pub note: &'a (dyn Fn(&str) + Sync),
}

/// Prints the wanted logs of the Workload that a name means.
///
/// # Errors
/// If there is no such log, or it cannot be read to its end.
pub async fn logs(
    client: &Client,
    namespace: &str,
    name: &WorkloadQuery,
    options: &LogOptions,
    output: &LogOutput<'_>,
) -> Result<(), LogsFailure> {
    let workloads: Api<Workload> = Api::namespaced(client.clone(), namespace);
    let workloads = list(&workloads, ListParams::default()).await?;
    let selected = workloads_of(name, &workloads);
    let absent = || LogsFailure::NoWorkload {
        namespace: namespace.to_owned(),
        name: name.name().to_owned(),
    };
    let workload = newest(&selected).ok_or_else(absent)?;
    if selected.len() > 1 {
        (output.note)(&format!("Workload {workload} of {}", selected.len()));
    }
    let path = requests::path(namespace, workload);
    let pods = requests::pods(client, &path).await?;
    if !pods.incomplete.is_empty() {
        (output.note)(&format!("The list of pods is not complete: {}", pods.incomplete));
    }
    // A job that is a pod, alone or in a group, means the pod.
    let of_name = name.names("Pod").then(|| name.name().to_owned());
    let pod = options.pod.clone().or_else(|| {
        of_name.filter(|name| !options.all_pods && pods.items.iter().any(|pod| pod.name == *name))
    });
    let options = LogOptions { pod, ..options.clone() };
    let (logs, notes) = chosen(workload, &pods, &options)?;
    notes.iter().for_each(|note| (output.note)(note));
    read_all(client, &path, (&logs, &pods.cluster), &options, output).await
}

async fn read_all(
    client: &Client,
    path: &str,
    (logs, cluster): (&[ChosenLog], &str),
    options: &LogOptions,
    output: &LogOutput<'_>,
) -> Result<(), LogsFailure> {
    let with_prefix = logs.len() > 1;
    let read = |log: ChosenLog| async move {
        let target = requests::target(path, &log, options);
        let mut text = LogText::new(with_prefix.then(|| log.prefix()));
        let whole = requests::log(client, &target, |bytes| (output.print)(&text.add(bytes))).await;
        (output.print)(&text.end());
        whole.map_err(|failure| failure.of(&log.pod, cluster))
    };
    if !options.follow {
        for log in logs {
            read(log.clone()).await?;
        }
        return Ok(());
    }
    if logs.len() > FOLLOWED {
        return Err(LogsFailure::TooMany(logs.len()));
    }
    try_join_all(logs.iter().cloned().map(read)).await.map(drop)
}

impl PodOfWorkload {
    /// The containers that run while the pod does.
    fn running(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().filter(|one| !one.init).map(|one| one.name.as_str())
    }
}
